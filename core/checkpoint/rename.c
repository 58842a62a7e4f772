/* SPDX-License-Identifier: Apache-2.0
 * Star rules over the catalogue's names. Between two stars the earliest place of a literal is
 * taken, which is right whenever any is; so matching is linear. */
#include "checkpoint/rename.h"

#include <string.h>

#include <jansson.h>

#include "checkpoint/checkpoint_private.h"

#define MAX_STARS 16u
#define MAX_RULES 10000u
#define MAX_RULES_BYTES (16u << 20)

void davit_rename_free(void *p)
{
    DavitRename *rename = p;

    g_free(rename->text);
    g_free(rename->from);
    g_free(rename->to);
    g_free(rename->first);
    g_free(rename);
}

DavitRename *davit_rename_strip(const char *prefix)
{
    DavitRename *rename = g_new0(DavitRename, 1);

    rename->text = g_strdup(prefix);
    rename->from = g_strdup(prefix);
    return rename;
}

/* ---- reading ---- */

static size_t count_stars(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += *text == '*';
    return n;
}

static void fault(const char *file, const char *subject, const char *found,
                  const char *message, DavitReport *report)
{
    davit_report_add(
        report,
        &(DavitFinding){.code = DAVIT_R_USAGE,
                        .status = DAVIT_E_USAGE,
                        .stage = "options",
                        .subject = davit_report_text(report, "%s: %s", file, subject),
                        .expected = "[{\"from\": \"a.*\", \"to\": \"b.*\"}, ...] or "
                                    "{\"from\": \"to\", ...}",
                        .found = found,
                        .message = message});
}

static void add_rule(GPtrArray *rules, const char *file, const char *from, const char *to,
                     DavitReport *report)
{
    DavitRename *rename;

    if (!*from || !*to) {
        fault(file, *from ? from : "a rule", NULL, "a name of the rule is empty", report);
        return;
    }
    if (count_stars(from) != count_stars(to) || count_stars(from) > MAX_STARS ||
        strstr(from, "**")) {
        fault(file, from, to,
              "both names need the same number of stars, at most 16, none beside another",
              report);
        return;
    }
    rename = g_new0(DavitRename, 1);
    rename->text = g_strdup_printf("%s -> %s", from, to);
    rename->from = g_strdup(from);
    rename->to = g_strdup(to);
    g_ptr_array_add(rules, rename);
}

/* Rule number @at of a list. */
static void read_object(GPtrArray *rules, const char *file, size_t at, const json_t *rule,
                        DavitReport *report)
{
    const char *from = json_string_value(json_object_get(rule, "from"));
    const char *to = json_string_value(json_object_get(rule, "to"));
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)rule, key, value)
    {
        if (strcmp(key, "from") != 0 && strcmp(key, "to") != 0) {
            fault(file, key, NULL, "a rule has a key that is not known", report);
            return;
        }
    }
    if (!from || !to)
        fault(file, davit_report_text(report, "rule %zu", at + 1), NULL,
              "the rule is no object with the texts \"from\" and \"to\"", report);
    else
        add_rule(rules, file, from, to, report);
}

GPtrArray *davit_renames_read(const char *name, const char *text, size_t n,
                              DavitReport *report)
{
    g_autoptr(GPtrArray) rules = g_ptr_array_new_with_free_func(davit_rename_free);
    const size_t before = davit_report_count(report);
    json_error_t error;
    json_t *document = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);

    if (!document) {
        fault(name, davit_report_text(report, "line %d", error.line), error.text,
              "the rules are not JSON", report);
        return NULL;
    }
    if (json_is_object(document)) {
        const char *from;
        json_t *to;

        json_object_foreach(document, from, to)
        {
            if (json_is_string(to))
                add_rule(rules, name, from, json_string_value(to), report);
            else
                fault(name, from, NULL, "the new name is not a text", report);
        }
    } else {
        for (size_t i = 0; i < json_array_size(document); i++)
            read_object(rules, name, i, json_array_get(document, i), report);
    }
    json_decref(document);
    if (davit_report_count(report) == before && (rules->len == 0 || rules->len > MAX_RULES))
        fault(name, "rules", NULL, "there are no rules, or more than 10000", report);
    return davit_report_count(report) > before ? NULL : g_steal_pointer(&rules);
}

/* ---- matching ---- */

typedef struct Piece {
    const char *at;
    size_t n;
} Piece;

/* Does @from match all of @name? stars[] = what its stars stand for. */
static bool match(const char *from, const char *name, Piece *stars)
{
    size_t n = strcspn(from, "*"), star = 0;
    const char *end = name + strlen(name);

    if (strncmp(from, name, n) != 0)
        return false;
    from += n;
    name += n;
    while (*from == '*') {
        const char *literal = from + 1;
        const char *at;

        n = strcspn(literal, "*");
        if (literal[n] == '\0') { /* the last one must be the end */
            if ((size_t)(end - name) < n || strcmp(end - n, literal) != 0)
                return false;
            at = end - n;
        } else {
            g_autofree char *word = g_strndup(literal, n);

            at = strstr(name, word);
            if (!at)
                return false;
        }
        stars[star++] = (Piece){name, (size_t)(at - name)};
        name = at + n;
        from = literal + n;
    }
    return *name == '\0';
}

/* (owned) The new name, NULL = the rule does not match. */
static char *apply(const DavitRename *rule, const char *name)
{
    const size_t n = strlen(rule->from);
    Piece stars[MAX_STARS];
    GString *out;
    size_t star = 0;

    if (!rule->to)
        return strncmp(name, rule->from, n) == 0 && name[n] ? g_strdup(name + n) : NULL;
    if (!match(rule->from, name, stars))
        return NULL;
    out = g_string_new(NULL);
    for (const char *p = rule->to; *p; p++) {
        if (*p == '*') {
            g_string_append_len(out, stars[star].at, (gssize)stars[star].n);
            star++;
        } else {
            g_string_append_c(out, *p);
        }
    }
    return g_string_free(out, FALSE);
}

/* ---- all names ---- */

/* A name as long as no file may have one: rules are bounded together, but what they make of twenty
 * thousand names is not. */
static int32_t too_long(const DavitRename *rule, const char *name, DavitReport *report)
{
    return davit_report_add(
        report, &(DavitFinding){.code = DAVIT_R_USAGE,
                                .status = DAVIT_E_USAGE,
                                .stage = "options",
                                .subject = rule->text,
                                .expected = "a name of at most 4096 bytes",
                                .found = davit_report_text(report, "%zu bytes for %.80s",
                                                           strlen(name), name),
                                .message = "the rule makes a name longer than a tensor's may be"});
}

static int32_t rename_one(DavitCheckpoint *ckpt, davit_tensor_info *t, DavitReport *report)
{
    g_autofree char *name = g_strdup(t->name);
    bool changed = false;

    for (guint r = 0; r < ckpt->renames->len; r++) {
        DavitRename *rule = g_ptr_array_index(ckpt->renames, r);
        char *to = apply(rule, name);

        if (!to)
            continue;
        if (strlen(to) > DAVIT_MAX_TENSOR_NAME) {
            const int32_t status = too_long(rule, to, report);

            g_free(to);
            return status;
        }
        if (rule->n_tensors++ == 0)
            rule->first = g_strdup_printf("%s -> %s", name, to);
        g_free(name);
        name = to;
        changed = true;
    }
    if (changed)
        t->name = g_string_chunk_insert(ckpt->text, name);
    return DAVIT_OK;
}

static void check_rules(const DavitCheckpoint *ckpt, DavitReport *report)
{
    for (guint r = 0; r < ckpt->renames->len; r++) {
        const DavitRename *rule = g_ptr_array_index(ckpt->renames, r);

        davit_report_add(
            report,
            &(DavitFinding){.code = DAVIT_R_USER_DECISION,
                            .severity = rule->n_tensors ? DAVIT_NOTE : DAVIT_WARNING,
                            .stage = "open",
                            .who = "user",
                            .subject = rule->text,
                            .found = davit_report_text(report, "%zu tensors",
                                                       rule->n_tensors),
                            .message = rule->n_tensors
                                           ? "names changed, as asked for"
                                           : "the rule matches no tensor's name"});
    }
}

int32_t davit_checkpoint_rename(DavitCheckpoint *ckpt, GPtrArray *rules,
                                DavitReport *report)
{
    DavitMany twice = {.report = report};

    g_clear_pointer(&ckpt->renames, g_ptr_array_unref);
    ckpt->renames = rules;
    for (size_t i = 0; i < ckpt->n_tensors; i++) {
        const int32_t status = rename_one(ckpt, &ckpt->tensors[i], report);

        if (status)
            return status;
    }
    davit_tensors_sort(ckpt->tensors, ckpt->n_tensors);
    check_rules(ckpt, report);
    for (size_t i = 1; i < ckpt->n_tensors; i++) {
        if (strcmp(ckpt->tensors[i - 1].name, ckpt->tensors[i].name) == 0)
            davit_many_add(&twice,
                           &(DavitFinding){.code = DAVIT_R_DUPLICATE_KEY,
                                           .status = DAVIT_E_MISMATCH,
                                           .stage = "open",
                                           .subject = ckpt->tensors[i].name,
                                           .expected = "one tensor of this name",
                                           .message = "the rules give two tensors "
                                                      "one name"});
    }
    davit_many_end(&twice);
    return twice.n ? DAVIT_E_MISMATCH : DAVIT_OK;
}

size_t davit_checkpoint_n_renames(const DavitCheckpoint *ckpt)
{
    return ckpt->renames ? ckpt->renames->len : 0;
}

const DavitRename *davit_checkpoint_rename_at(const DavitCheckpoint *ckpt, size_t index)
{
    return g_ptr_array_index(ckpt->renames, index);
}

/* ---- the whole wish of a user ---- */

static GPtrArray *read_file(const char *path, DavitReport *report)
{
    g_autoptr(DavitSource) source = davit_source_open(path, report);
    g_autofree char *text = NULL;
    uint64_t n;

    if (!source)
        return NULL;
    n = davit_source_size(source);
    if (n > MAX_RULES_BYTES) {
        fault(davit_source_name(source), "size", NULL, "the rules are larger than 16 MiB",
              report);
        return NULL;
    }
    text = g_malloc(n + 1);
    if (davit_source_read(source, 0, text, n, report))
        return NULL;
    return davit_renames_read(davit_source_name(source), text, (size_t)n, report);
}

int32_t davit_checkpoint_repair(DavitCheckpoint *ckpt, const char *prefix, const char *path,
                                DavitReport *report)
{
    GPtrArray *rules = NULL;

    if (!prefix && !path)
        return DAVIT_OK;
    rules = path ? read_file(path, report) : g_ptr_array_new_with_free_func(davit_rename_free);
    if (!rules)
        return davit_report_first_error(report, 0)->status;
    if (prefix)
        g_ptr_array_insert(rules, 0, davit_rename_strip(prefix));
    return davit_checkpoint_rename(ckpt, rules, report);
}
