/* SPDX-License-Identifier: Apache-2.0
 * Finding who claims a shape. Equal or not: a near miss only helps the message.
 */
#include "tokenizer/shape.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/node.h"

/* Asked for each claim in registry order; true ends the walk. */
typedef bool (*ClaimFn)(const DavitShapeClaim *claim, void *ctx);

static bool walk_claims(DavitRegistry *registry, ClaimFn fn, void *ctx,
                        DavitReport *report)
{
    const GPtrArray *components = davit_registry_kind(registry, DAVIT_KIND_ID_TOKENIZER);

    for (guint i = 0; i < components->len; i++) {
        DavitComponent *component = g_ptr_array_index(components, i);
        const davit_tokenizer_iface *iface;
        void *self;

        if (davit_component_use(component, (const void **)&iface, &self, report) !=
            DAVIT_OK)
            continue;
        for (size_t k = 0; iface->shapes[k]; k++) {
            const davit_tok_shape *shape = iface->shapes[k];
            DavitShapeClaim claim = {.plugin = component->id, .component = component};

            memcpy(&claim.shape, shape, MIN(shape->struct_size, sizeof claim.shape));
            if (claim.shape.pre_tokenizer && fn(&claim, ctx))
                return true;
        }
    }
    return false;
}

/* What a claim's own text means. */
typedef struct Canonical {
    char *text;   /* owned; NULL if it does not parse */
    json_t *tree; /* owned; of text */
} Canonical;

static void *make_canonical(const void *key)
{
    g_autoptr(DavitReport) scratch = davit_report_new();
    Canonical *made = g_new0(Canonical, 1);
    json_t *node = json_loads(key, JSON_DECODE_ANY, NULL);

    if (node)
        made->text = davit_shape_canonical(node, "a plugin", scratch);
    if (made->text)
        made->tree = json_loads(made->text, JSON_DECODE_ANY, NULL);
    json_decref(node);
    return made;
}

static void free_canonical(void *data)
{
    Canonical *made = data;

    json_decref(made->tree);
    g_free(made->text);
    g_free(made);
}

/* (borrowed from the registry) made once: every tokenizer asks all claims. */
static const Canonical *canonical_of(const DavitShapeClaim *claim)
{
    return davit_component_derive(claim->component, claim->shape.pre_tokenizer, make_canonical,
                                  free_canonical);
}

/* ---- the nearest one ---- */

/* Where two shapes part. */
typedef struct Near {
    const char *canonical; /* the shape that was asked for */
    const json_t *tree;    /* (borrowed) the same */
    DavitShapeClaim *out;
    double score; /* equal members, and the equal share of a string that differs */
    DavitShapeClaim claim;  /* the best so far */
    char *where;            /* owned: path of the first member that differs */
    bool is_alike;          /* the texts that differ have something in common */
    char *found, *expected; /* owned */
} Near;

static const json_t *stage_at(const json_t *shape, size_t i)
{
    const json_t *list = json_object_get(shape, "pretokenizers");

    if (list)
        return json_array_get(list, i);
    return i == 0 && json_is_object(shape) ? shape : NULL;
}

/* The string inside a member: itself, or that of {"Regex": s} and {"String": s}. */
static const char *inner_text(const json_t *value)
{
    const char *key;
    json_t *inner;

    if (json_is_object(value)) {
        json_object_foreach ((json_t *)(uintptr_t)value, key, inner) {
            return json_string_value(inner);
        }
    }
    return json_string_value(value);
}

/* Equal bytes at the ends, of at most @most. */
static size_t common_suffix(const char *a, const char *b, size_t most)
{
    const size_t n_a = strlen(a), n_b = strlen(b);
    size_t n = 0;

    while (n < most && a[n_a - 1 - n] == b[n_b - 1 - n])
        n++;
    return n;
}

/* Do two texts start or end alike? If not, their difference says nothing. */
static bool is_alike(const char *a, const char *b)
{
    const size_t n = MIN(strlen(a), strlen(b));

    return n == 0 || a[0] == b[0] || common_suffix(a, b, n) >= MIN((n + 1) / 2, 8);
}

static size_t common_prefix(const char *a, const char *b)
{
    size_t n = 0;

    while (a[n] && a[n] == b[n])
        n++;
    while (n > 0 && ((unsigned char)a[n] & 0xc0) == 0x80)
        n--;
    return n;
}

/* The part of the longer text that is in both, at their starts and ends. */
static double alike_share(const char *a, const char *b)
{
    const size_t n = MIN(strlen(a), strlen(b)), first = common_prefix(a, b);

    return (double)(first + common_suffix(a, b, n - first)) / (double)MAX(strlen(a), strlen(b));
}

/* Bytes of a difference that are shown: enough to see it, and few enough for a terminal. */
#define MAX_SHOWN 60

/* (owned) a window of @text from a few characters before byte @at. */
static char *window(const char *text, size_t at)
{
    const size_t from = at > 12 ? at - 12 : 0;
    const char *start = g_utf8_find_prev_char(text, text + from + 1);

    return davit_escape(start ? start : text, strlen(start ? start : text), MAX_SHOWN);
}

/* (owned) a member as JSON, cut likewise. */
static char *member_text(const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
    char *shown = text ? davit_escape(text, strlen(text), MAX_SHOWN) : g_strdup("absent");

    free(text);
    return shown;
}

static void note_difference(Near *near, char *where, const json_t *found,
                            const json_t *expected)
{
    const char *a = inner_text(found), *b = inner_text(expected);

    g_free(near->where);
    g_free(near->found);
    g_free(near->expected);
    near->where = where;
    near->is_alike = !a || !b || is_alike(a, b);
    if (a && b) {
        const size_t at = common_prefix(a, b);

        near->where = g_strdup_printf("%s, from byte %zu on", where, at);
        near->found = window(a, at);
        near->expected = window(b, at);
        g_free(where);
    } else {
        near->found = member_text(found);
        near->expected = member_text(expected);
    }
}

/* Score of two stages; remembers the first difference in *out_key (borrowed). */
static double compare_stages(const json_t *a, const json_t *b, const char **out_key)
{
    double score = 0;
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)b, key, value) {
        const json_t *mine = json_object_get(a, key);
        const char *s = inner_text(mine), *t = inner_text(value);

        if (mine && json_equal(mine, value)) {
            score += 1;
            continue;
        }
        if (!*out_key || strcmp(key, "type") == 0)
            *out_key = key;
        if (s && t && *t)
            score += 0.9 * alike_share(s, t);
    }
    return score;
}

static bool measure(const DavitShapeClaim *claim, void *ctx)
{
    Near *near = ctx;
    const json_t *a = near->tree, *b = canonical_of(claim)->tree;
    double score = 0;
    const char *key = NULL;
    size_t at = 0;

    for (size_t i = 0; b && (stage_at(a, i) || stage_at(b, i)); i++) {
        const char *k = NULL;

        score += compare_stages(stage_at(a, i), stage_at(b, i), &k);
        if (!stage_at(a, i) || !stage_at(b, i)) {
            score -= 1;
            k = "";
        }
        if (!key && k) {
            key = k;
            at = i;
        }
    }
    if (key && score > near->score) {
        const json_t *sa = stage_at(a, at), *sb = stage_at(b, at);

        near->score = score;
        near->claim = *claim;
        note_difference(
            near, g_strdup_printf("stage %zu%s%s", at + 1, *key ? ", " : "", key),
            *key ? json_object_get(sa, key) : sa, *key ? json_object_get(sb, key) : sb);
    }
    return false;
}

/* ---- lookups ---- */

static bool is_equal(const DavitShapeClaim *claim, void *ctx)
{
    Near *near = ctx;

    if (strcmp(claim->shape.pre_tokenizer, near->canonical) != 0 &&
        g_strcmp0(canonical_of(claim)->text, near->canonical) != 0)
        return false;
    *near->out = *claim;
    return true;
}

int32_t davit_shape_find(DavitRegistry *registry, const char *canonical,
                         const char *subject, DavitShapeClaim *out, DavitReport *report)
{
    Near near = {.canonical = canonical, .out = out, .score = -1e9};
    json_t *tree;
    const char *hint;

    if (walk_claims(registry, is_equal, &near, report))
        return DAVIT_OK;
    near.tree = tree = json_loads(canonical, JSON_DECODE_ANY, NULL);
    walk_claims(registry, measure, &near, report);
    json_decref(tree);
    if (!near.is_alike) { /* the best of strangers helps nobody */
        g_clear_pointer(&near.where, g_free);
        g_clear_pointer(&near.found, g_free);
        g_clear_pointer(&near.expected, g_free);
    }
    hint = near.where
               ? davit_report_text(report,
                                   "install a tokenizer plugin that claims it; the nearest, "
                                   "\"%s\" of %s, differs in %s",
                                   near.claim.shape.name, near.claim.plugin, near.where)
               : "install a tokenizer plugin that claims it";
    davit_report_add(
        report, &(DavitFinding){
                    .code = DAVIT_R_PRETOKENIZER_UNKNOWN,
                    .status = DAVIT_E_UNSUPPORTED,
                    .stage = "open",
                    .subject = davit_report_text(report, "%s: pre_tokenizer", subject),
                    .found = near.found ? near.found : canonical,
                    .expected = near.expected,
                    .message = "no plugin claims this pre-tokenizer",
                    .hint = hint});
    g_free(near.where);
    g_free(near.found);
    g_free(near.expected);
    return DAVIT_E_UNSUPPORTED;
}

typedef struct PreQuery {
    const char *name;
    size_t len;
    DavitShapeClaim *out;
} PreQuery;

/* Is the name among the ones that @list joins by '|'? */
static bool is_listed(const char *list, const PreQuery *query)
{
    for (const char *at = list; at;) {
        const char *bar = strchr(at, '|');
        const size_t len = bar ? (size_t)(bar - at) : strlen(at);

        if (len == query->len && memcmp(at, query->name, len) == 0)
            return true;
        at = bar ? bar + 1 : NULL;
    }
    return false;
}

static bool has_pre(const DavitShapeClaim *claim, void *ctx)
{
    const PreQuery *query = ctx;

    if (!claim->shape.gguf_facts || !is_listed(claim->shape.gguf_pre, query))
        return false;
    *query->out = *claim;
    return true;
}

static bool has_ranks(const DavitShapeClaim *claim, void *ctx)
{
    const PreQuery *query = ctx;

    if (!claim->shape.rank_facts || !is_listed(claim->shape.rank_hashes, query))
        return false;
    *query->out = *claim;
    return true;
}

int32_t davit_shape_find_pre(DavitRegistry *registry, const char *name, size_t len,
                             const char *subject, DavitShapeClaim *out,
                             DavitReport *report)
{
    PreQuery query = {name, len, out};
    const char *why;

    if (walk_claims(registry, has_pre, &query, report))
        return DAVIT_OK;
    why = davit_shape_why_unclaimed(name, len, report);
    return davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_PRETOKENIZER_UNKNOWN,
            .status = DAVIT_E_UNSUPPORTED,
            .stage = "open",
            .subject = davit_report_text(report, "%s: tokenizer.ggml.pre", subject),
            .expected = "a name that a tokenizer plugin claims",
            .found = davit_report_text(report, "%.*s", (int)MIN(len, 200), name),
            .message = why ? davit_report_text(
                                 report, "no plugin claims this GGUF name: %s", why)
                           : "no plugin claims this GGUF pre-tokenizer name",
            .hint = "put the model's tokenizer.json beside the GGUF, or install a "
                    "plugin that claims the name"});
}

int32_t davit_shape_find_ranks(DavitRegistry *registry, const char *hash,
                               const char *subject, DavitShapeClaim *out,
                               DavitReport *report)
{
    PreQuery query = {hash, strlen(hash), out};

    if (walk_claims(registry, has_ranks, &query, report))
        return DAVIT_OK;
    return davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_PRETOKENIZER_UNKNOWN,
            .status = DAVIT_E_UNSUPPORTED,
            .stage = "open",
            .subject = davit_report_text(report, "%s: rank list", subject),
            .expected = "a hash that a tokenizer plugin claims",
            .found = hash,
            .message = "the file says nothing about its pre-tokenizer, and no plugin "
                       "claims this list of tokens",
            .hint = "use the model's tokenizer.json, or install a plugin that claims "
                    "the hash"});
}
