/* SPDX-License-Identifier: Apache-2.0
 * The rules of codes.h as a table, and a record held against its row. */
#include "base/codes.h"

#include <string.h>

static const DavitCodeRule rules[] = {
#define RULE_ROW(name, fields, remedy) {DAVIT_R_##name, fields, remedy},
    DAVIT_CODE_RULES(RULE_ROW)
#undef RULE_ROW
};

const DavitCodeRule *davit_code_rules(size_t *out_n)
{
    *out_n = G_N_ELEMENTS(rules);
    return rules;
}

const DavitCodeRule *davit_code_rule(uint32_t code)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rules); i++)
        if (rules[i].code == code)
            return &rules[i];
    return NULL;
}

static const char *lacks_field(const DavitRecord *r, const char *fields)
{
    const bool asks_both = r->severity != DAVIT_NOTE;

    if (strchr(fields, 's') && !r->subject)
        return "subject";
    if (!asks_both)
        return NULL;
    if (strchr(fields, 'e') && !r->expected)
        return "expected";
    if (strchr(fields, 'f') && !r->found)
        return "found";
    return strchr(fields, 'c') && !r->expected && !r->found ? "expected or found" : NULL;
}

const char *davit_record_lacks(const DavitRecord *record)
{
    const DavitCodeRule *rule = davit_code_rule(record->code);

    if (!record->message || !*record->message || strchr(record->message, '\n'))
        return "sentence";
    if (record->severity != DAVIT_NOTE && !record->hint)
        return "hint";
    return rule ? lacks_field(record, rule->fields) : NULL;
}
