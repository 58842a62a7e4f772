/* SPDX-License-Identifier: Apache-2.0
 * Kernels: entries as they are declared, calls that make no sense, values. Device kernels are
 * left alone: the suite has no device's memory. */
#include "check/suite.h"

#include <string.h>

#include "testlib/call.h"
#include "base/cpu.h"

#define N_CALLS  64 /* damaged, of each entry */
#define N_VALUES 6  /* computed, of each entry */

/* Of the row's largest value. An entry that rounds activations to 8 bits loses as much; more is
 * a wrong row, a wrong order, a wrong scale. Fine tolerances are the business of its own tests. */
#define TOLERANCE 0.04

static void look_at_entries(Check *check, DavitComponent *c)
{
    const davit_kernels_iface *iface = c->load->iface;
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);

    for (size_t e = 0; iface->entries[e]; e++) {
        const davit_kernel_entry *entry = iface->entries[e];
        const char *subject = davit_report_text(check->report, "entry %zu", e);

        if (!entry->op || !entry->name || !entry->run)
            check_fail(check, c->id, subject, "op, name and run",
                 !entry->op ? "no op" : !entry->name ? "no name" : "no run",
                 "an entry lacks what it is called by");
        else if (!g_hash_table_add(names, (gpointer)(uintptr_t)entry->name))
            check_fail(check, c->id, entry->name, "one entry of a name", "two",
                 "the user's ranks and `plugin ops` go by the name");
        else if (entry->score > 1000)
            check_fail(check, c->id, entry->name, "a score of at most 1000",
                 davit_report_text(check->report, "%u", entry->score),
                 "the score is out of range");
    }
}

void check_kernel_entries(Check *check)
{
    check_each(check, DAVIT_KIND_ID_KERNELS, look_at_entries);
}

static bool is_cpu(const DavitComponent *c)
{
    const davit_kernels_iface *iface = c->load->iface;

    return !iface->device || strcmp(iface->device, "cpu") == 0;
}

static void damage_calls(Check *check, DavitComponent *c)
{
    davit_test *t = check_library(check, c, c->load->self);

    check->subject = "check, size, state_size, block_bytes";
    check_step(check, "check");
    if (is_cpu(c))
        davit_test_kernels_broken(t, (uint64_t)N_CALLS * check->repeat);
    test_drop(t);
}

void check_kernel_damage(Check *check)
{
    check_each(check, DAVIT_KIND_ID_KERNELS, damage_calls);
}

/* Does the library make calls that the entry takes: an op of ops.h, a layout of ref.h? */
static bool can_try(const davit_kernel_entry *entry)
{
    bool has_layout = !entry->layouts;

    for (uint64_t i = 0; !has_layout && davit_ref_layout_get(i); i++) {
        g_auto(GStrv) layouts = g_strsplit(entry->layouts, "|", -1);

        has_layout = g_strv_contains((const char *const *)layouts, davit_ref_layout_get(i)->name);
    }
    return has_layout && (entry->cpu & ~davit_cpu_features()) == 0 && test_has_cases(entry->op);
}

static void compute(Check *check, DavitComponent *c)
{
    const davit_kernels_iface *iface = c->load->iface;
    davit_test *t = check_library(check, c, c->load->self);

    for (size_t e = 0; is_cpu(c) && iface->entries[e]; e++) {
        const davit_kernel_entry *entry = iface->entries[e];

        if (!entry->name || !entry->op || !can_try(entry))
            continue;
        check->subject = entry->name;
        check_step(check, "run");
        test_entry_values(t, entry, (uint64_t)N_VALUES * check->repeat, TOLERANCE, 1e-3);
    }
    test_drop(t);
}

void check_kernel_values(Check *check)
{
    check_each(check, DAVIT_KIND_ID_KERNELS, compute);
}
