/* SPDX-License-Identifier: Apache-2.0
 * Reading source texts and applying their transforms to row windows. No bytes are
 * touched. */
#include "plan/transform.h"

#include <string.h>

static const struct {
    const char *name;
    DavitTransformKind kind;
    int min_args, max_args;
} kinds[] = {
    {"rows", DAVIT_TRANSFORM_ROWS, 2, 2},
    {"half", DAVIT_TRANSFORM_HALF, 1, 2},
    {"stack", DAVIT_TRANSFORM_STACK, 0, 0},
    {"perm", DAVIT_TRANSFORM_PERM, 1, 1},
    {"T", DAVIT_TRANSFORM_T, 0, 0},
    {"add1", DAVIT_TRANSFORM_ADD1, 0, 0},
    {"neg_exp", DAVIT_TRANSFORM_NEG_EXP, 0, 0},
};

int32_t davit_arch_fault(const char *subject, const char *found, const char *message,
                         DavitReport *report)
{
    return davit_report_add(
        report, &(DavitFinding){.code = DAVIT_R_FORWARD_ABSENT,
                                .status = DAVIT_E_UNSUPPORTED,
                                .stage = "plan",
                                .subject = subject,
                                .found = found,
                                .message = message,
                                .hint = "this is a fault of the architecture plugin"});
}

/* ---- parsing ---- */

static void spec_clear(void *p)
{
    DavitSourceSpec *spec = p;

    g_free(spec->name);
    for (size_t i = 0; i < spec->n_transforms; i++)
        g_free(spec->transforms[i].args);
}

/* Length of @text up to @end outside parentheses. */
static size_t span_to(const char *text, char end)
{
    size_t depth = 0, i = 0;

    for (; text[i]; i++) {
        if (depth == 0 && text[i] == end)
            break;
        if (text[i] == '(')
            depth++;
        else if (text[i] == ')' && depth > 0)
            depth--;
    }
    return i;
}

/* Expressions of an argument list; commas inside parentheses do not count. */
static int count_args(const char *args)
{
    int n = 1;

    if (!args)
        return 0;
    for (size_t at = span_to(args, ','); args[at]; at += 1 + span_to(args + at + 1, ','))
        n++;
    return n;
}

/* @text: one transform, "rows(0,nh*hd)". */
static bool parse_transform(const char *text, size_t len, DavitTransform *out)
{
    const char *open = memchr(text, '(', len);
    const size_t n = open ? (size_t)(open - text) : len;

    if (open && (text[len - 1] != ')' || len < n + 3))
        return false;
    for (size_t k = 0; k < G_N_ELEMENTS(kinds); k++) {
        if (strlen(kinds[k].name) != n || memcmp(kinds[k].name, text, n) != 0)
            continue;
        out->kind = kinds[k].kind;
        out->args = open ? g_strndup(open + 1, len - n - 2) : NULL;
        if (count_args(out->args) >= kinds[k].min_args &&
            count_args(out->args) <= kinds[k].max_args)
            return true;
        g_clear_pointer(&out->args, g_free);
        return false;
    }
    return false;
}

/* @text: one alternative, "name#t1#t2". */
static bool parse_spec(const char *text, size_t len, char mark, DavitSourceSpec *out)
{
    g_autofree char *copy = g_strndup(text, len);
    const char *part = g_strstrip(copy);
    size_t n = span_to(part, mark);
    bool stack = false;
    const char *star;

    out->name = g_strndup(part, n);
    out->exact = g_str_has_suffix(out->name, ".bias") || g_str_has_suffix(out->name, "!");
    if (n > 0 && out->name[n - 1] == '!')
        out->name[n - 1] = '\0';
    for (part += n; *part == mark; part += n) {
        part++;
        n = span_to(part, mark);
        if (out->n_transforms == DAVIT_MAX_TRANSFORMS ||
            !parse_transform(part, n, &out->transforms[out->n_transforms]))
            return false;
        stack |= out->transforms[out->n_transforms++].kind == DAVIT_TRANSFORM_STACK;
    }
    star = strchr(out->name, '*');
    out->star = star != NULL;
    out->layer_named = strstr(out->name, "{i}") != NULL;
    return *out->name && stack == out->star && !(star && strchr(star + 1, '*'));
}

GArray *davit_sources_parse(const char *text, char mark, const char *slot,
                            DavitReport *report)
{
    g_autoptr(GArray) specs = g_array_new(FALSE, TRUE, sizeof(DavitSourceSpec));
    const char *part = text;

    g_array_set_clear_func(specs, spec_clear);
    for (size_t n;; part += n + 1) {
        DavitSourceSpec spec = {0};

        n = span_to(part, '|');
        if (!parse_spec(part, n, mark, &spec)) {
            spec_clear(&spec);
            davit_arch_fault(slot, text, "source of the slot table does not parse",
                             report);
            return NULL;
        }
        g_array_append_val(specs, spec);
        if (!part[n])
            return g_steal_pointer(&specs);
    }
}

bool davit_source_only_perm(const DavitSourceSpec *spec)
{
    return spec->n_transforms == 1 && spec->transforms[0].kind == DAVIT_TRANSFORM_PERM;
}

/* ---- applying ---- */

static int32_t cut_rows(int64_t first, int64_t n, const char *slot, DavitWindow *w,
                        DavitReport *report)
{
    if (first < 0 || n <= 0 || (uint64_t)first > w->n_rows ||
        (uint64_t)n > w->n_rows - (uint64_t)first)
        return davit_report_add(
            report,
            &(DavitFinding){
                .code = DAVIT_R_SHAPE_MISMATCH,
                .status = DAVIT_E_MISMATCH,
                .stage = "plan",
                .subject = slot,
                .expected = davit_report_text(report, "rows %" PRId64 " to %" PRId64,
                                              first, first + n - 1),
                .found = davit_report_text(report, "%" PRIu64 " rows", w->n_rows),
                .message = "the stored tensor has not the rows that the slot takes"});
    w->row += (uint64_t)first;
    w->n_rows = (uint64_t)n;
    return DAVIT_OK;
}

static int32_t cut_half(int64_t half, int64_t axis, const char *slot, DavitWindow *w,
                        DavitReport *report)
{
    if (w->n_rows % 2)
        return davit_report_add(
            report,
            &(DavitFinding){.code = DAVIT_R_SHAPE_MISMATCH,
                            .status = DAVIT_E_MISMATCH,
                            .stage = "plan",
                            .subject = slot,
                            .expected = "an even number of rows",
                            .found = davit_report_text(report, "%" PRIu64, w->n_rows),
                            .message = "a stored tensor that holds two halves is odd"});
    if (half < 0 || half > 1 || axis < 0 || axis > 1)
        return davit_arch_fault(slot, NULL, "half takes 0 or 1, and axis 1", report);
    w->row += (uint64_t)half * (w->n_rows / 2);
    w->n_rows /= 2;
    return DAVIT_OK;
}

static int32_t set_perm(int64_t heads, const char *slot, DavitWindow *w,
                        DavitReport *report)
{
    if (heads <= 0 || w->n_rows % (uint64_t)heads || (w->n_rows / (uint64_t)heads) % 2)
        return davit_report_add(
            report, &(DavitFinding){
                        .code = DAVIT_R_SHAPE_MISMATCH,
                        .status = DAVIT_E_MISMATCH,
                        .stage = "plan",
                        .subject = slot,
                        .expected = davit_report_text(
                            report, "a multiple of 2 x %" PRId64 " heads", heads),
                        .found = davit_report_text(report, "%" PRIu64 " rows", w->n_rows),
                        .message = "rows do not divide into rotary heads"});
    w->perm_heads = (uint64_t)heads;
    return DAVIT_OK;
}

static void transpose(DavitWindow *w)
{
    const uint64_t n = w->n_rows;

    if (w->oriented)
        return;
    w->n_rows = w->n_cols;
    w->n_cols = n;
    w->value_ops |= DAVIT_VALUE_TRANSPOSE;
}

/* What the executor can do in one pass: turn first, cut, then order rows. */
static bool order_allowed(DavitTransformKind kind, const DavitWindow *w, bool cut)
{
    const bool turned = w->value_ops & DAVIT_VALUE_TRANSPOSE;

    switch (kind) {
    case DAVIT_TRANSFORM_T:
        return !turned && !cut && !w->perm_heads;
    case DAVIT_TRANSFORM_ROWS:
    case DAVIT_TRANSFORM_HALF:
        return !w->perm_heads;
    case DAVIT_TRANSFORM_PERM:
        return !turned && !w->perm_heads;
    default:
        return true;
    }
}

static int32_t apply_one(const DavitTransform *t, const int64_t *arg, const char *slot,
                         DavitWindow *w, DavitReport *report)
{
    switch (t->kind) {
    case DAVIT_TRANSFORM_ROWS:
        return cut_rows(arg[0], arg[1], slot, w, report);
    case DAVIT_TRANSFORM_HALF:
        return cut_half(arg[0], arg[1], slot, w, report);
    case DAVIT_TRANSFORM_PERM:
        return set_perm(arg[0], slot, w, report);
    case DAVIT_TRANSFORM_T:
        transpose(w);
        return DAVIT_OK;
    case DAVIT_TRANSFORM_ADD1:
        w->value_ops |= DAVIT_VALUE_ADD1;
        return DAVIT_OK;
    case DAVIT_TRANSFORM_NEG_EXP:
        w->value_ops |= DAVIT_VALUE_NEG_EXP;
        return DAVIT_OK;
    case DAVIT_TRANSFORM_STACK:
    default:
        return DAVIT_OK; /* the gathering itself is the caller's */
    }
}

int32_t davit_source_apply(const DavitSourceSpec *spec, const DavitScope *scope,
                           const char *slot, DavitWindow *window, DavitReport *report)
{
    bool cut = false;

    for (size_t i = 0; i < spec->n_transforms; i++) {
        const DavitTransform *t = &spec->transforms[i];
        int64_t arg[2] = {0, 0};
        int32_t status;

        if (!order_allowed(t->kind, window, cut))
            return davit_arch_fault(slot, spec->name,
                                    "transforms in this order are not supported", report);
        if (t->args) {
            status = davit_expr_list(t->args, scope, slot, arg, 2, report);
            if (status < 0)
                return status;
        }
        status = apply_one(t, arg, slot, window, report);
        if (status)
            return status;
        cut |= t->kind == DAVIT_TRANSFORM_ROWS || t->kind == DAVIT_TRANSFORM_HALF;
    }
    return DAVIT_OK;
}
