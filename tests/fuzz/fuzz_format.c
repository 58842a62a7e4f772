/* SPDX-License-Identifier: Apache-2.0
 * A format plugin's table, linked directly, behind the checkpoint: what fuzz_safetensors,
 * fuzz_index and fuzz_gguf share. */
#include <davit/format.h>

#include "checkpoint/checkpoint_private.h"
#include "fuzz/fuzz.h"
#include "plugin/registry.h"

/* The plugin's component, made once. */
static GArray *make_formats(void)
{
    const davit_hello hello = {.struct_size = DAVIT_END(davit_hello, host_version),
                               .abi_major = DAVIT_ABI_MAJOR,
                               .host_name = "fuzz",
                               .host_version = "0"};
    const davit_bundle *bundle = davit_plugin_entry_v1(&hello, NULL);
    const davit_component *component = bundle->components[0];
    const davit_create_in in = {.struct_size = DAVIT_END(davit_create_in, component),
                                .host = davit_host_table(),
                                .component = component->id};
    DavitFormat format = {.id = component->id,
                          .capability = component->capability,
                          .probe = component->probe,
                          .iface = component->iface};
    GArray *formats = g_array_new(FALSE, FALSE, sizeof format);

    if (component->create)
        g_assert_cmpint(component->create(NULL, &in, &format.self, NULL), ==, DAVIT_OK);
    g_array_append_val(formats, format);
    return formats;
}

static void read_keys(const DavitCheckpoint *ckpt)
{
    for (size_t i = 0; i < davit_checkpoint_n_keys(ckpt); i++) {
        const davit_kv *kv = davit_checkpoint_key(ckpt, i);
        DavitKvCursor cursor = davit_kv_strings(kv);
        davit_span s;
        double f;
        int64_t n;

        g_assert(davit_checkpoint_find_key(ckpt, kv->key.ptr));
        while (davit_kv_next(&cursor, &s))
            ;
        davit_kv_f64(kv, 0, &f);
        davit_kv_i64(kv, kv->count ? kv->count - 1 : 0, &n);
    }
}

static void read_tensors(const DavitCheckpoint *ckpt, DavitReport *report)
{
    for (size_t i = 0; i < davit_checkpoint_n_tensors(ckpt); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(ckpt, i);
        uint8_t last = 0;

        g_assert(davit_checkpoint_find(ckpt, t->name) == t);
        if (t->n_bytes)
            g_assert_cmpint(davit_checkpoint_read(ckpt, t->file, t->off + t->n_bytes - 1,
                                                  &last, 1, report),
                            ==, DAVIT_OK);
    }
}

void fuzz_open_format(const char *name, const uint8_t *data, size_t size)
{
    static GArray *formats;
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitCheckpoint) ckpt = NULL;

    if (!formats)
        formats = make_formats();
    ckpt = davit_checkpoint_open_source(
        formats, davit_source_from_bytes(name, data, size), DAVIT_INSPECT, report);
    g_assert((ckpt != NULL) == !davit_report_failed(report));
    if (!ckpt)
        return;
    read_keys(ckpt);
    read_tensors(ckpt, report);
}
