/* SPDX-License-Identifier: Apache-2.0
 * A sound plugin without manifest notes, as a build that nobody can change any more. */
#include "toy.h"

#define ID "org.example.bare"
static const davit_component bare = {.struct_size = DAVIT_END(davit_component, iface),
                                     .kind = "format",
                                     .kind_major = 1,
                                     .priority = 50,
                                     .id = ID,
                                     .capability = "ext=bare",
                                     .purposes = DAVIT_INSPECT,
                                     .probe = toy_probe,
                                     .iface = &toy_format};
static const davit_component *const list[] = {&bare, NULL};
static const davit_bundle bundle = {.magic = DAVIT_MAGIC,
                                    .struct_size = DAVIT_END(davit_bundle, quiesce),
                                    .abi_major = DAVIT_ABI_MAJOR,
                                    .id = "org.example.bundle.bare",
                                    .version = "1.0.0",
                                    .license = "MIT",
                                    .components = list};

const davit_bundle *davit_plugin_entry_v1(const davit_hello *hello, const davit_sink *sink)
{
    (void)hello;
    (void)sink;
    return &bundle;
}
