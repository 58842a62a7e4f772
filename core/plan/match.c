/* SPDX-License-Identifier: Apache-2.0
 * Prefix rules: one prefix per checkpoint, found by trying. Slot tables stay free of
 * them. */
#include "plan/match.h"

#include <string.h>

/* Longest first, so that a wrapper's prefix is tried before its own tail. */
static const char *const prefixes[] = {
    "base_model.model.model.",
    "model.language_model.",
    "language_model.model.",
    "base_model.model.",
    "model.text_model.",
    "language_model.",
    "thinker.model.",
    "model.model.",
    "transformer.",
    "model.",
    "",
};

/* Where a head or another global may lie though the layers have a prefix. */
static const char *const global_prefixes[] = {"", "language_model.", "model.",
                                              "base_model.model."};

#define MAX_DIGITS 20u /* of 64 bits */

/* Decimal digits of @n, without printf: names are built for every tensor of a model. Returns:
 * how many. */
static size_t write_number(char *out, uint64_t n)
{
    char digits[MAX_DIGITS];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    memcpy(out, digits + at, sizeof digits - at);
    return sizeof digits - at;
}

static void append_number(GString *out, uint64_t n)
{
    char digits[MAX_DIGITS];

    g_string_append_len(out, digits, (gssize)write_number(digits, n));
}

/* @spec's name with "{i}" and '*' filled in. */
static void append_filled(GString *out, const char *name, uint64_t layer, uint64_t expert)
{
    for (const char *p = name; *p;) {
        const size_t n = strcspn(p, "{*");

        g_string_append_len(out, p, (gssize)n);
        p += n;
        if (*p == '*') {
            append_number(out, expert);
            p++;
        } else if (strncmp(p, "{i}", 3) == 0) {
            append_number(out, layer);
            p += 3;
        } else if (*p) {
            g_string_append_c(out, *p++);
        }
    }
}

/* What stands before the source's own name. */
static void fill_stem(const DavitSourceSpec *spec, const char *prefix, bool gguf,
                      int64_t layer, GString *out)
{
    g_string_assign(out, prefix);
    if (layer < 0 || spec->layer_named)
        return;
    g_string_append(out, gguf ? "blk." : "layers.");
    append_number(out, (uint64_t)layer);
    g_string_append_c(out, '.');
}

static void fill_name(const DavitSourceSpec *spec, const char *prefix, bool gguf,
                      int64_t layer, uint64_t expert, GString *out)
{
    fill_stem(spec, prefix, gguf, layer, out);
    append_filled(out, spec->name, layer < 0 ? 0 : (uint64_t)layer, expert);
}

static bool is_gguf(const DavitDraft *draft)
{
    return davit_settings_is_gguf(draft->plan->settings);
}

bool davit_match_name(const DavitDraft *draft, const DavitSourceSpec *spec, int64_t layer,
                      uint64_t expert, size_t variant, GString *out)
{
    const bool gguf = is_gguf(draft);

    if (variant == 0) {
        fill_name(spec, gguf ? "" : draft->prefix, gguf, layer, expert, out);
        return true;
    }
    if (gguf || layer >= 0 || variant > G_N_ELEMENTS(global_prefixes))
        return false;
    fill_name(spec, global_prefixes[variant - 1], gguf, layer, expert, out);
    return true;
}

void davit_match_tensor(const DavitDraft *draft, const DavitSourceSpec *spec,
                        int64_t layer, uint64_t expert, GString *out)
{
    /* a global that is no part of the text stack, the head, has no prefix */
    const bool head = layer < 0 && strcmp(spec->name, "lm_head") == 0;

    davit_match_name(draft, spec, layer, expert, head ? 1 : 0, out);
    if (!spec->exact)
        g_string_append(out, ".weight");
}

/* The module called @name, or the one that the tensor @name belongs to ("x.weight!"). */
static DavitModule *find_named(const DavitDraft *draft, const char *name, size_t len)
{
    DavitModule *module = davit_module_table_find(draft->modules, name, len);
    const char *dot;
    g_autofree char *base = NULL;

    if (module || !davit_checkpoint_find(draft->plan->checkpoint, name))
        return module;
    dot = strrchr(name, '.');
    if (!dot)
        return NULL;
    base = g_strndup(name, (gsize)(dot - name));
    return davit_module_table_find(draft->modules, base, (size_t)(dot - name));
}

DavitModule *davit_match_find(const DavitDraft *draft, const DavitSourceSpec *spec,
                              int64_t layer, uint64_t expert, GString *buf)
{
    for (size_t v = 0; davit_match_name(draft, spec, layer, expert, v, buf); v++) {
        DavitModule *module = find_named(draft, buf->str, buf->len);

        if (module)
            return module;
    }
    return NULL;
}

/* ---- experts ---- */

void davit_expert_names_init(DavitExpertNames *names, const DavitDraft *draft,
                             const DavitSourceSpec *spec, int64_t layer, uint64_t n_experts)
{
    const bool gguf = is_gguf(draft);
    const uint64_t i = layer < 0 ? 0 : (uint64_t)layer;
    const size_t n = strcspn(spec->name, "*");
    g_autofree char *before = g_strndup(spec->name, n);
    g_autoptr(GString) head = g_string_new(NULL);

    fill_stem(spec, gguf ? "" : draft->prefix, gguf, layer, head);
    append_filled(head, before, i, 0);
    *names = (DavitExpertNames){.head = head->len, .tail = g_string_new(NULL)};
    append_filled(names->tail, spec->name + n + (spec->name[n] == '*'), i, 0);
    names->name = g_malloc(head->len + MAX_DIGITS + names->tail->len + 1);
    memcpy(names->name, head->str, head->len);
    names->run = davit_module_table_run(draft->modules, head->str, head->len, names->tail->str,
                                        n_experts);
    names->n_run = names->run ? n_experts : 0;
}

void davit_expert_names_clear(DavitExpertNames *names)
{
    g_free(names->name);
    g_free(names->run);
    g_string_free(names->tail, TRUE);
}

DavitModule *davit_expert_names_find(DavitExpertNames *names, const DavitDraft *draft,
                                     uint64_t expert)
{
    size_t n;

    if (expert < names->n_run && names->run[expert] != UINT32_MAX)
        return davit_module_table_at(draft->modules, names->run[expert]);
    n = names->head + write_number(names->name + names->head, expert);

    memcpy(names->name + n, names->tail->str, names->tail->len + 1);
    return find_named(draft, names->name, n + names->tail->len);
}

/* ---- prefixes ---- */

/* Slots of @table that are there under @prefix, looking at layer 0. */
static size_t count_found(const DavitDraft *draft, const GArray *table,
                          const char *prefix, GString *buf)
{
    size_t n = 0;

    for (guint r = 0; r < table->len; r++) {
        const DavitTableRow *row = &g_array_index(table, DavitTableRow, r);
        bool found = false;

        for (guint s = 0; s < row->specs->len && !found; s++) {
            fill_name(&g_array_index(row->specs, DavitSourceSpec, s), prefix, false,
                      row->per_layer ? 0 : -1, 0, buf);
            found = find_named(draft, buf->str, buf->len) != NULL;
        }
        n += found;
    }
    return n;
}

const char *davit_match_prefix(const DavitDraft *draft, const GArray *table)
{
    g_autoptr(GString) buf = g_string_new(NULL);
    const char *best = "model.", *second = NULL;
    size_t most = 0;

    if (is_gguf(draft))
        return "";
    for (size_t p = 0; p < G_N_ELEMENTS(prefixes); p++) {
        const size_t n = count_found(draft, table, prefixes[p], buf);

        if (n > most) {
            best = prefixes[p];
            second = NULL;
            most = n;
        } else if (n == most && 2 * n > table->len) {
            second = prefixes[p]; /* a slot or two are found anywhere, by chance */
        }
    }
    if (second)
        davit_report_add(
            draft->report,
            &(DavitFinding){.code = DAVIT_R_AMBIGUOUS,
                            .status = DAVIT_E_MISMATCH,
                            .stage = "plan",
                            .subject = best,
                            .expected = "one text model in the checkpoint",
                            .found = second,
                            .message = "two prefixes of tensor names fit equally "
                                       "well, so two models may lie in one place",
                            .hint = "keep the files of one model in a directory"});
    return best;
}

int64_t davit_match_layer(const DavitDraft *draft, const char *tensor)
{
    g_autofree char *stem =
        g_strconcat(draft->prefix, is_gguf(draft) ? "blk." : "layers.", NULL);
    const size_t n = strlen(stem);
    char *end;
    guint64 layer;

    if (strncmp(tensor, stem, n) != 0 || !g_ascii_isdigit(tensor[n]))
        return -1;
    layer = g_ascii_strtoull(tensor + n, &end, 10);
    return *end == '.' && layer < 1000000 ? (int64_t)layer : -1;
}
