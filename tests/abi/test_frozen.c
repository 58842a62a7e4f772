/* SPDX-License-Identifier: Apache-2.0
 * What ABI 1.0 promised still stands: every field of the frozen headers has its offset and size
 * in today's, every number its value, every code its word. (A field that is gone does not
 * compile.) */
#include <string.h>

#include <glib.h>

#include "frozen.h"

static void take(void *ctx, const FrozenRow *row)
{
    g_array_append_val((GArray *)ctx, *row);
}

static void frozen_rows_are_as_they_were(void)
{
    g_autoptr(GArray) before = g_array_new(FALSE, FALSE, sizeof(FrozenRow));
    g_autoptr(GArray) now = g_array_new(FALSE, FALSE, sizeof(FrozenRow));

    frozen_1_0(take, before);
    frozen_now(take, now);
    g_assert_cmpuint(before->len, >, 250);
    g_assert_cmpuint(before->len, ==, now->len);
    for (guint i = 0; i < before->len; i++) {
        const FrozenRow *a = &g_array_index(before, FrozenRow, i);
        const FrozenRow *b = &g_array_index(now, FrozenRow, i);

        if (strcmp(a->field, b->field) == 0 && a->off == b->off && a->value == b->value)
            continue;
        g_test_message("%s.%s: offset %zu, value %lld in 1.0; %s, %zu, %lld today", a->name,
                       a->field, a->off, a->value, b->field, b->off, b->value);
        g_test_fail();
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/frozen/1.0", frozen_rows_are_as_they_were);
    return g_test_run();
}
