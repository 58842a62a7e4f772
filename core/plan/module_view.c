/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/module_view.h"

#include <string.h>

static const uint8_t *peek(void *ctx, uint64_t part, uint64_t *out_bytes)
{
    DavitModuleView *view = ctx;
    const davit_tensor_info *t;
    const uint8_t *bytes = NULL;

    view->peeked = true;
    if (part >= view->module.n_parts)
        return NULL;
    t = davit_checkpoint_tensor(view->checkpoint, view->tensor[part]);
    if (t->n_bytes > DAVIT_QUANT_PEEK)
        return NULL;
    davit_checkpoint_want(view->checkpoint, t->file, t->off, t->n_bytes);
    if (davit_checkpoint_view(view->checkpoint, t->file, t->off, t->n_bytes, &bytes,
                              view->report))
        return NULL;
    *out_bytes = t->n_bytes;
    return bytes;
}

static const char *suffix_of(const DavitModule *module, const char *tensor)
{
    const char *rest = tensor + module->name_len;

    return *rest == '.' ? rest + 1 : rest;
}

void davit_module_view_init(DavitModuleView *out, const DavitCheckpoint *checkpoint,
                            const davit_config *config, const DavitModule *module)
{
    for (size_t p = 0; p < module->n_parts; p++) {
        const davit_tensor_info *info =
            davit_checkpoint_tensor(checkpoint, module->tensor[p]);

        out->part[p] = (davit_quant_part_in){
            .struct_size = DAVIT_END(davit_quant_part_in, reserved),
            .suffix = suffix_of(module, info->name),
            .info = info,
            .dtype = info->dtype,
            .rank = info->rank,
        };
        out->parts[p] = &out->part[p];
    }
    out->checkpoint = checkpoint;
    out->tensor = module->tensor;
    out->module = (davit_quant_module){
        .struct_size = DAVIT_END(davit_quant_module, peek_ctx),
        .name = module->name,
        .parts = out->parts,
        .n_parts = module->n_parts,
        .config = config,
    };
}

void davit_module_view_for_check(DavitModuleView *out, const DavitQuantConfig *quant_config,
                                 const DavitModule *module, DavitReport *report)
{
    if (davit_quant_config_for(quant_config, module->name, &out->settings))
        out->module.settings = &out->settings;
    out->report = report;
    out->peeked = false;
    out->module.peek = peek;
    out->module.peek_ctx = out;
}

char *davit_module_view_signature(const DavitModuleView *view)
{
    GString *text = g_string_sized_new(64);

    for (size_t p = 0; p < view->module.n_parts; p++)
        g_string_append_printf(text, "%s:%s:%u;", view->part[p].suffix,
                               view->part[p].dtype, view->part[p].rank);
    return g_string_free(text, FALSE);
}

char *davit_module_view_parts(const DavitModuleView *view)
{
    GString *text = g_string_new(NULL);

    for (size_t p = 0; p < view->module.n_parts; p++)
        g_string_append_printf(text, "%s%s %s rank %u", p ? ", " : "",
                               *view->part[p].suffix ? view->part[p].suffix : "(tensor)",
                               view->part[p].dtype, view->part[p].rank);
    return g_string_free(text, FALSE);
}
