/* SPDX-License-Identifier: Apache-2.0
 * Files that have a model's name and are something else: a LoRA adapter alone (D22), what
 * DeepSpeed's ZeRO-3 leaves when its parts are not gathered (D10). One finding in place of
 * those of every slot. */
#include <string.h>

#include "doctor/doctor_private.h"

#define MAX_TARGETS 12u

static bool every(const DavitRecord *r, const void *unused)
{
    (void)r;
    (void)unused;
    return true;
}

/* What follows from the weights being none. */
static void drop_consequences(DavitDoctor *d)
{
    static const char *const ids[] = {"D07", "D08", "D09", "D10", "D12"};

    for (size_t i = 0; i < G_N_ELEMENTS(ids); i++)
        davit_doctor_drop(d, ids[i], every, NULL);
}

/* ---- an adapter ---- */

static const char *mark_of(const char *name)
{
    static const char *const marks[] = {".lora_A", ".lora_B", ".lora_embedding_A",
                                        ".lora_embedding_B", ".lora_magnitude_vector"};

    for (size_t i = 0; i < G_N_ELEMENTS(marks); i++) {
        const char *at = strstr(name, marks[i]);

        if (at)
            return at;
    }
    return NULL;
}

/* Names of the modules that the pairs are for, "q_proj, k_proj"; and rows of the first lora_A. */
static char *targets_of(const DavitCheckpoint *c, uint64_t *out_rank, size_t *out_pairs)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GString *out = g_string_new(NULL);

    *out_rank = *out_pairs = 0;
    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, i);
        const char *at = mark_of(t->name), *from = at;
        char *module;

        if (!strstr(t->name, ".lora_A") || t->rank != 2)
            continue;
        (*out_pairs)++;
        *out_rank = *out_rank ? *out_rank : t->shape[0];
        while (from > t->name && from[-1] != '.')
            from--;
        module = g_strndup(from, (gsize)(at - from));
        if (g_hash_table_size(seen) < MAX_TARGETS && !g_hash_table_contains(seen, module))
            g_string_append_printf(out, "%s%s", out->len ? ", " : "", module);
        g_hash_table_add(seen, module);
    }
    return g_string_free(out, FALSE);
}

static bool check_bare_adapter(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    const size_t n = davit_checkpoint_n_tensors(c);
    g_autofree char *targets = NULL;
    uint64_t rank;
    size_t n_pairs;

    for (size_t i = 0; i < n; i++)
        if (!mark_of(davit_checkpoint_tensor(c, i)->name))
            return false;
    if (n == 0)
        return false;
    targets = targets_of(c, &rank, &n_pairs);
    drop_consequences(d);
    davit_doctor_say(
        d, "D22",
        &(DavitFinding){
            .status = DAVIT_E_UNSUPPORTED,
            .subject = davit_checkpoint_file(c, 0).name,
            .expected = "the weights of a model",
            .found = davit_doctor_text(d, "%zu pairs lora_A and lora_B of rank %" PRIu64 ", and nothing "
                                          "else: for %s", n_pairs, rank, targets),
            .message = "this is a LoRA adapter alone, not a model: the weights that it changes are in "
                       "its base model",
            .hint = "merge it into the base that it was trained on (in PEFT: merge_and_unload, then "
                    "save) and load the result; the file's own place is adapter_model.safetensors "
                    "beside its adapter_config.json"});
    return true;
}

/* ---- shells ---- */

static void check_shells(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    const davit_tensor_info *first = NULL;
    size_t n_empty = 0;

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, i);

        if (t->rank > 1)
            return;
        if (t->rank == 1 && t->shape[0] == 0) {
            first = first ? first : t;
            n_empty++;
        }
    }
    if (n_empty < 2)
        return;
    drop_consequences(d);
    davit_doctor_drop(d, "D14", every, NULL);
    davit_doctor_say(
        d, "D10",
        &(DavitFinding){
            .status = DAVIT_E_CORRUPT,
            .subject = first->name,
            .expected = "matrices",
            .found = davit_doctor_text(d, "%zu tensors of shape [0], and vectors", n_empty),
            .message = "every matrix is empty: the model was saved under DeepSpeed ZeRO-3 without "
                       "gathering its parts, and its weights are not in these files",
            .hint = "run zero_to_fp32.py on the training checkpoint, or save again with "
                    "stage3_gather_16bit_weights_on_model_save"});
}

void davit_check_no_model(DavitDoctor *d)
{
    if (d->patient.checkpoint && !d->patient.plan && !d->patient.is_part && !check_bare_adapter(d))
        check_shells(d);
}
