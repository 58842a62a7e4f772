/* SPDX-License-Identifier: Apache-2.0
 * An ordinary library: neither manifest nor entry. */

__attribute__((visibility("default"))) int library_answer(void);

int library_answer(void)
{
    return 42;
}
