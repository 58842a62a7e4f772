/* SPDX-License-Identifier: Apache-2.0
 * Grouping of tensors into modules. Asking the quant plugins is in claim.c. */
#include "plan/module.h"

#include <string.h>

#include "base/big.h"
#include "plan/claim.h"
#include "plan/name_index.h"
#include "plan/series.h"
#include "plan/suffix.h"

#define MAX_NAME   8192u /* twice that of a tensor (checkpoint_private.h) */
#define MAX_DIGITS 20u

struct DavitModuleTable {
    const DavitCheckpoint *checkpoint;
    DavitNameIndex *index;   /* (owned) modules that no series copied; names borrowed from them */
    uint32_t *numbers;       /* (owned) [of index] module of each name */
    DavitSeriesSet *series;  /* (owned) */
    DavitModules *modules;   /* (owned) NULL = stolen */
    size_t names_used;       /* bytes of modules->names */
    DavitModuleState *state; /* [modules->len] */
    DavitClaims *claims;
};

/* Of a module that nobody was asked about, or nobody takes. */
static const davit_quant_desc unclaimed;

/* ---- grouping ---- */

/* A module more; its name is the first @len bytes of @name. */
static DavitModule *add_module(DavitModuleTable *table, const char *name, size_t len)
{
    DavitModules *modules = table->modules;
    DavitModule *module = &modules->at[modules->len++];
    char *own = modules->names + table->names_used;

    memcpy(own, name, len); /* zero follows */
    table->names_used += len + 1;
    module->name = own;
    module->name_len = (uint32_t)len;
    module->desc = &unclaimed;
    return module;
}

static DavitModule *module_of(DavitModuleTable *table, const char *tensor, size_t len)
{
    const char **place;
    const uint32_t number = davit_name_index_put(table->index, tensor, len, &place);
    DavitModule *module;

    if (!place)
        return &table->modules->at[table->numbers[number]];
    table->numbers[number] = (uint32_t)table->modules->len;
    module = add_module(table, tensor, len);
    *place = module->name;
    return module;
}

static void add_tensor(DavitModuleTable *table, size_t tensor, const GArray *quants)
{
    const davit_tensor_info *info = davit_checkpoint_tensor(table->checkpoint, tensor);
    const DavitSplit split = davit_suffix_split(info->name, table->checkpoint, quants);
    DavitModule *module = module_of(table, info->name, split.module_len);

    if (module->n_parts < DAVIT_MAX_PARTS) {
        module->tensor[module->n_parts++] = (uint32_t)tensor;
        return;
    }
    /* more parts than any layout has: the rest stays a module of its own, and left over
     */
    module = module_of(table, info->name, strlen(info->name));
    if (module->n_parts == 0)
        module->tensor[module->n_parts++] = (uint32_t)tensor;
}

/* Modules of the block of @series that begins at @tensor. */
static void copy_block(DavitModuleTable *table, const DavitSeries *series, size_t tensor)
{
    const DavitModule *from = &table->modules->at[series->first_module];
    const uint32_t further = (uint32_t)tensor - series->first_tensor;
    /* all that differs is the number, which stands in the modules' names */
    const size_t longer = strlen(davit_checkpoint_tensor(table->checkpoint, tensor)->name) -
                          strlen(davit_checkpoint_tensor(table->checkpoint, series->first_tensor)->name);

    for (uint32_t m = 0; m < series->n_modules; m++) {
        const davit_tensor_info *first =
            davit_checkpoint_tensor(table->checkpoint, from[m].tensor[0] + further);
        DavitModule *module = add_module(table, first->name, from[m].name_len + longer);

        module->n_parts = from[m].n_parts;
        for (uint32_t p = 0; p < module->n_parts; p++)
            module->tensor[p] = from[m].tensor[p] + further;
    }
}

static void group(DavitModuleTable *table, size_t n, const GArray *quants)
{
    for (size_t t = 0; t < n;) {
        const DavitSeries *series = davit_series_extend(table->series, (uint32_t)t);

        if (series) {
            copy_block(table, series, t);
            t += series->n_tensors;
        } else {
            add_tensor(table, t++, quants);
        }
    }
}

/* Bytes of all tensors' names and a zero for each: no module has a longer one than its first. */
static size_t bytes_of_names(const DavitCheckpoint *checkpoint)
{
    const size_t n = davit_checkpoint_n_tensors(checkpoint);
    size_t sum = n;

    for (size_t t = 0; t < n; t++)
        sum += strlen(davit_checkpoint_tensor(checkpoint, t)->name);
    return sum;
}

static DavitModules *modules_new(const DavitCheckpoint *checkpoint)
{
    DavitModules *modules = g_new0(DavitModules, 1);
    const size_t n = davit_checkpoint_n_tensors(checkpoint) * sizeof(DavitModule);

    /* less than the catalogue has of both; without memory it ends as g_new does */
    modules->at = davit_big_zeroed(n + bytes_of_names(checkpoint) + 1, 1);
    g_assert(modules->at);
    modules->names = (char *)modules->at + n;
    modules->descs = g_ptr_array_new_with_free_func(g_free);
    return modules;
}

void davit_modules_free(DavitModules *modules)
{
    if (!modules)
        return;
    davit_big_free(modules->at);
    g_ptr_array_unref(modules->descs);
    g_free(modules);
}

DavitModuleTable *davit_module_table_new(const DavitCheckpoint *checkpoint,
                                         const GArray *quants, const davit_config *config,
                                         const DavitQuantConfig *quant_config)
{
    DavitModuleTable *table = g_new0(DavitModuleTable, 1);
    const size_t n = davit_checkpoint_n_tensors(checkpoint);

    table->checkpoint = checkpoint;
    table->index = davit_name_index_new(n);
    table->numbers = g_new(uint32_t, MAX(n, 1));
    table->modules = modules_new(checkpoint);
    table->series = davit_series_set_new(checkpoint, table->modules);
    group(table, n, quants);
    table->state = g_new0(DavitModuleState, MAX(table->modules->len, 1));
    table->claims = davit_claims_new(checkpoint, quants, config, quant_config,
                                     table->modules->descs);
    return table;
}

void davit_module_table_free(DavitModuleTable *table)
{
    if (!table)
        return;
    davit_name_index_free(table->index);
    davit_series_set_free(table->series);
    davit_modules_free(table->modules);
    g_free(table->numbers);
    g_free(table->state);
    davit_claims_free(table->claims);
    g_free(table);
}

/* ---- access ---- */

size_t davit_module_table_count(const DavitModuleTable *table)
{
    return table->modules->len;
}

DavitModule *davit_module_table_at(const DavitModuleTable *table, size_t index)
{
    return &table->modules->at[index];
}

/* Module of a name that is a template's, -1 = none. */
static int64_t find_template(const DavitModuleTable *table, const char *name, size_t len)
{
    const int64_t number = davit_name_index_find(table->index, name, len);

    return number < 0 ? -1 : (int64_t)table->numbers[number];
}

DavitModule *davit_module_table_find(const DavitModuleTable *table, const char *name,
                                     size_t len)
{
    char own[MAX_NAME];
    size_t offset, n = davit_series_template(table->series, name, len, own, sizeof own, &offset);
    const int64_t at = n ? find_template(table, own, n) : find_template(table, name, len);

    return at >= 0 ? &table->modules->at[(size_t)at + offset] : NULL;
}

uint32_t *davit_module_table_run(const DavitModuleTable *table, const char *head, size_t head_len,
                                 const char *tail, uint64_t n)
{
    char own[MAX_NAME];
    size_t offset,
        len = davit_series_template(table->series, head, head_len, own, MAX_NAME / 2, &offset);
    const GArray *list = len ? davit_series_of_head(table->series, own, len) : NULL;
    uint32_t *run;

    if (!list || strlen(tail) >= MAX_NAME / 2 - MAX_DIGITS)
        return NULL;
    run = g_new(uint32_t, n);
    memset(run, 0xff, n * sizeof *run);
    for (guint l = 0; l < list->len; l++) {
        const DavitSeries *s =
            davit_series_at(table->series, g_array_index(list, uint32_t, l));
        const uint32_t first = g_array_index(s->numbers, uint32_t, 0);
        const int n_name =
            g_snprintf(own + len, MAX_NAME - len, "%" G_GUINT32_FORMAT "%s", first, tail);
        const int64_t at = find_template(table, own, len + (size_t)n_name);

        for (guint b = 0; at >= 0 && b < s->numbers->len; b++) {
            const uint32_t number = g_array_index(s->numbers, uint32_t, b);

            if (number < n)
                run[number] = (uint32_t)((size_t)at + offset + b * s->n_modules);
        }
    }
    return run;
}

int32_t davit_module_table_need(DavitModuleTable *table, DavitModule *module,
                                DavitReport *report)
{
    DavitModuleState *state = &table->state[module - table->modules->at];

    if (!state->asked) {
        state->asked = true;
        state->status = davit_claims_ask(table->claims, module, &state->purposes, report);
    }
    return state->status;
}

uint64_t davit_module_table_purposes(const DavitModuleTable *table,
                                     const DavitModule *module)
{
    return table->state[module - table->modules->at].purposes;
}

void davit_module_table_note_rest(const DavitModuleTable *table, DavitReport *report)
{
    davit_claims_note_rest(table->claims, report);
}

DavitModules *davit_module_table_steal(DavitModuleTable *table)
{
    return g_steal_pointer(&table->modules);
}

const char *davit_shape_text(DavitReport *report, const uint64_t *shape, uint32_t rank)
{
    g_autoptr(GString) text = g_string_new("[");

    for (uint32_t i = 0; i < rank && i < DAVIT_MAX_RANK; i++)
        g_string_append_printf(text, "%s%" G_GUINT64_FORMAT, i ? ", " : "", shape[i]);
    g_string_append_c(text, ']');
    return davit_report_text(report, "%s", text->str);
}
