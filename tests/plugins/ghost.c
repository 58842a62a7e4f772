/* SPDX-License-Identifier: Apache-2.0
 * The library that is not there when missing_dep is loaded. */

__attribute__((visibility("default"))) int ghost_call(void);

int ghost_call(void)
{
    return 0;
}
