/* SPDX-License-Identifier: Apache-2.0
 * Grouping of tensors into modules. Asking the quant plugins is in claim.c. */
#include "plan/module.h"

#include <string.h>
#include <sys/mman.h>

#include "plan/claim.h"
#include "plan/name_index.h"
#include "plan/suffix.h"

struct DavitModuleTable {
    const DavitCheckpoint *checkpoint;
    DavitNameIndex *index;   /* (owned) names borrowed from the modules */
    DavitModules *modules;   /* (owned) NULL = stolen */
    DavitModuleState *state; /* [modules->len] */
    DavitClaims *claims;
};

/* Of a module that nobody was asked about, or nobody takes. */
static const davit_quant_desc unclaimed;

/* ---- grouping ---- */

static DavitModule *module_of(DavitModuleTable *table, const char *tensor, size_t len)
{
    DavitModules *modules = table->modules;
    const char **place;
    DavitModule *module =
        &modules->at[davit_name_index_put(table->index, tensor, len, &place)];

    if (place) {
        module->name = g_string_chunk_insert_len(modules->names, tensor, (gssize)len);
        module->desc = &unclaimed;
        *place = module->name;
        modules->len++;
    }
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

/* (owned) Room for @n. A large checkpoint's are on huge pages, because the first touch of small
 * ones would cost more than the plan. What is so large comes from the kernel and is zero. */
static DavitModules *modules_new(size_t n)
{
    const size_t page = 2u << 20, n_bytes = n * sizeof(DavitModule);
    DavitModules *modules = g_new0(DavitModules, 1);
    uintptr_t first, end;

    modules->at = g_new0(DavitModule, n);
    modules->names = g_string_chunk_new(64 * 1024);
    modules->descs = g_ptr_array_new_with_free_func(g_free);
    first = ((uintptr_t)modules->at + page - 1) / page * page;
    end = ((uintptr_t)modules->at + n_bytes) / page * page;
    if (first < end)
        madvise((void *)first, end - first, MADV_HUGEPAGE); /* a hint */
    return modules;
}

void davit_modules_free(DavitModules *modules)
{
    if (!modules)
        return;
    g_free(modules->at);
    g_string_chunk_free(modules->names);
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
    table->modules = modules_new(MAX(n, 1));
    for (size_t t = 0; t < n; t++)
        add_tensor(table, t, quants);
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
    davit_modules_free(table->modules);
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

DavitModule *davit_module_table_find(const DavitModuleTable *table, const char *name,
                                     size_t len)
{
    const int64_t at = davit_name_index_find(table->index, name, len);

    return at >= 0 ? &table->modules->at[at] : NULL;
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
