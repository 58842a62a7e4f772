/* SPDX-License-Identifier: Apache-2.0
 * Entries of ignore and target lists against module names. */
#include "plan/quant_names.h"

#include <fnmatch.h>
#include <string.h>

#include "base/regex.h"

struct DavitNamePattern {
    DavitNameDialect dialect;
    char *text;        /* (owned) */
    DavitRegex *regex; /* (owned) NULL = plain text */
    bool is_class;     /* "Linear", "Embedding" */
};

/* Text whose only special sign is the dot needs no regex engine. */
static bool is_plain(const char *text)
{
    return text[strcspn(text, "\\^$*+?()[]{}|")] == '\0';
}

DavitNamePattern *davit_name_pattern_new(DavitNameDialect dialect, const char *text,
                                         const char *subject, DavitReport *report)
{
    DavitNamePattern *p = g_new0(DavitNamePattern, 1);
    const char *regex = NULL;

    p->dialect = dialect;
    p->text = g_strdup(text);
    if (dialect == DAVIT_NAMES_CT && g_str_has_prefix(text, "re:"))
        regex = text + 3;
    else if (dialect == DAVIT_NAMES_REGEX ||
             (dialect == DAVIT_NAMES_TRANSFORMERS && !is_plain(text)))
        regex = text;
    /* a class name has no dots and starts in upper case */
    p->is_class = dialect == DAVIT_NAMES_CT && !regex && g_ascii_isupper(*text) &&
                  !strchr(text, '.');
    if (regex) {
        g_autofree char *anchored = g_strdup_printf("\\A(?:%s)", regex);

        p->regex =
            davit_regex_compile(anchored, strlen(anchored), 0, subject, report);
        if (!p->regex) {
            davit_name_pattern_free(p);
            return NULL;
        }
    }
    return p;
}

void davit_name_pattern_free(DavitNamePattern *pattern)
{
    if (!pattern)
        return;
    g_free(pattern->text);
    davit_regex_free(pattern->regex);
    g_free(pattern);
}

const char *davit_name_pattern_plain(const DavitNamePattern *p)
{
    const bool whole = p->dialect == DAVIT_NAMES_EXACT ||
                       (p->dialect == DAVIT_NAMES_CT && !p->regex && !p->is_class);
    const bool subtree =
        p->dialect == DAVIT_NAMES_WILDCARD && p->text[strcspn(p->text, "*?[\\")] == '\0';

    return whole || subtree ? p->text : NULL;
}

/* Names tell no class; embeddings go by few names, and what is no embedding is linear. */
static bool class_hits(const char *class_name, const char *module)
{
    static const char *const embeddings[] = {"embed_tokens", "embed_tokens_per_layer", "wte",
                                             "tok_embeddings", "word_embeddings", "embed_in"};
    const char *dot = strrchr(module, '.'), *last = dot ? dot + 1 : module;
    bool embeds = false;

    for (size_t i = 0; i < G_N_ELEMENTS(embeddings); i++)
        embeds |= strcmp(last, embeddings[i]) == 0;
    return strcmp(class_name, embeds ? "Embedding" : "Linear") == 0;
}

static bool regex_hits(const DavitRegex *regex, const char *name)
{
    uint64_t pair[2], next;

    return davit_regex_matches(regex, (davit_span){name, strlen(name)}, 0, pair, 1,
                               &next) == 1;
}

/* @text at the start of @name, its dots standing for any character. */
static bool starts_with(const char *name, const char *text)
{
    for (; *text; text++, name++) {
        if (*name == '\0' || (*text != '.' && *text != *name))
            return false;
    }
    return true;
}

/* The shell's match of @name or of a module that it lies in. */
static bool shell_hits(const char *text, const char *name)
{
    g_autofree char *part = g_strdup(name);
    char *dot;

    for (;;) {
        if (fnmatch(text, part, 0) == 0)
            return true;
        dot = strrchr(part, '.');
        if (!dot)
            return false;
        *dot = '\0';
    }
}

/* "name*" is the module and what is below it, not its longer-named neighbours. */
static bool wildcard_hits(const char *text, const char *name)
{
    const size_t n = strlen(text), special = strcspn(text, "*?[");

    if (n > 1 && special == n - 1 && text[n - 1] == '*')
        return strncmp(name, text, n - 1) == 0 &&
               (name[n - 1] == '\0' || name[n - 1] == '.' || text[n - 2] == '.');
    return shell_hits(text, name);
}

static bool hits(const DavitNamePattern *p, const char *name)
{
    if (p->regex && regex_hits(p->regex, name))
        return true;
    switch (p->dialect) {
    case DAVIT_NAMES_CT:
        return !p->regex && strcmp(p->text, name) == 0;
    case DAVIT_NAMES_TRANSFORMERS:
        return (!p->regex && starts_with(name, p->text)) ||
               g_str_has_suffix(name, p->text);
    case DAVIT_NAMES_SUBSTRING:
        return strstr(name, p->text) != NULL;
    case DAVIT_NAMES_EXACT:
        return strcmp(name, p->text) == 0;
    case DAVIT_NAMES_WILDCARD:
        return wildcard_hits(p->text, name);
    case DAVIT_NAMES_REGEX:
    default:
        return false;
    }
}

bool davit_name_pattern_has(const DavitNamePattern *pattern, const char *name,
                            int *out_rank)
{
    static const char wrapper[] = "language_model.";
    const char *at = strstr(name, wrapper);
    g_autofree char *other = NULL;

    if (out_rank)
        *out_rank = pattern->is_class ? 2 : pattern->regex ? 1 : 0;
    if (pattern->is_class)
        return class_hits(pattern->text, name);
    if (hits(pattern, name))
        return true;
    if (at) {
        other = g_strdup_printf("%.*s%s", (int)(at - name), name, at + sizeof wrapper - 1);
        return hits(pattern, other);
    }
    /* the list may know a wrapper that the tensors do not have */
    if (!strstr(pattern->text, "language_model"))
        return false;
    other = g_strconcat(wrapper, name, NULL);
    if (hits(pattern, other))
        return true;
    if (!g_str_has_prefix(name, "model."))
        return false;
    g_free(other);
    other = g_strconcat("model.", wrapper, name + strlen("model."), NULL);
    return hits(pattern, other);
}
