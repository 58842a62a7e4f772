/* SPDX-License-Identifier: Apache-2.0
 * A good plugin whose entry does TWIST before it returns: one fault per build. NAME and
 * TWIST come from CMakeLists.txt. TWIST sees: bundle, component, iface (writable copies),
 * sink. */
#include "toy.h"

/* What DAVIT_PLUGIN defines becomes an inner function; the exported one is below. */
const davit_bundle *inner_entry(const davit_hello *hello, const davit_sink *sink);
#define davit_plugin_entry_v1 inner_entry
DAVIT_COMPONENT(plain, DAVIT_KIND_FORMAT, "org.example." NAME, "ext=toy", DAVIT_INSPECT,
                50, .probe = toy_probe, .iface = &toy_format);
DAVIT_PLUGIN("org.example.bundle." NAME, NAME, "Example", "1.0.0", "MIT", &plain);
#undef davit_plugin_entry_v1

#define UNUSED __attribute__((unused))

static const davit_refusal sorry = {.struct_size = DAVIT_END(davit_refusal, url),
                                    .code = DAVIT_R_DRIVER_MISSING,
                                    .flags = DAVIT_REFUSAL_ENVIRONMENT,
                                    .subject = "libtoy-driver.so",
                                    .message = "the toy driver is not installed",
                                    .hint = "install the toy driver"};

UNUSED static int32_t start_fail(const davit_host *host, void **out_ctx,
                                 const davit_sink *sink)
{
    (void)host;
    (void)out_ctx;
    return davit_say(sink, DAVIT_E_IO, &sorry);
}

UNUSED static int32_t start_mute(const davit_host *host, void **out_ctx,
                                 const davit_sink *sink)
{
    (void)host;
    (void)out_ctx;
    (void)sink;
    return DAVIT_E_LIMIT;
}

UNUSED static int32_t create_fail(void *ctx, const davit_create_in *in, void **out_self,
                                  const davit_sink *sink)
{
    (void)ctx;
    (void)in;
    (void)out_self;
    return davit_say(sink, DAVIT_E_UNSUPPORTED, &sorry);
}

UNUSED static void destroy_nothing(void *self)
{
    (void)self;
}

const davit_bundle *davit_plugin_entry_v1(const davit_hello *hello,
                                          const davit_sink *sink)
{
    /* Room behind the copies: what a newer plugin's longer structs look like. */
    static struct {
        davit_bundle bundle;
        uint64_t future[8];
    } b;
    static struct {
        davit_component component;
        uint64_t future[8];
    } c;
    static struct {
        davit_format_iface iface;
        uint64_t future[8];
    } i;
    static const davit_component *list[] = {&c.component, NULL};
    davit_bundle *bundle = &b.bundle;
    davit_component *component = &c.component;
    davit_format_iface *iface = &i.iface;

    *bundle = *inner_entry(hello, sink);
    *component = plain;
    *iface = toy_format;
    component->iface = iface;
    bundle->components = list;
    TWIST;
    return bundle;
}
