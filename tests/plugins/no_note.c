/* SPDX-License-Identifier: Apache-2.0
 * The entry without any manifest. */
#include <davit/plugin.h>

const davit_bundle *davit_plugin_entry_v1(const davit_hello *hello,
                                          const davit_sink *sink)
{
    (void)hello;
    (void)sink;
    return NULL;
}
