/* SPDX-License-Identifier: Apache-2.0
 * Tokenizer families: shapes that can be read, scanners that agree with themselves. */
#include "check/suite.h"

#include <string.h>

#define N_TEXTS 600

/* Copy of shape @k, padded with zeros; false after a finding if it cannot be scanned with. */
static bool take_shape(Check *check, const davit_tokenizer_iface *iface, size_t k,
                       davit_tok_shape *out)
{
    memset(out, 0, sizeof *out);
    memcpy(out, iface->shapes[k], MIN(iface->shapes[k]->struct_size, sizeof *out));
    if (!out->name)
        check_fail(check, NULL, "shapes", "a name", "none", "a shape is not readable");
    return out->name != NULL;
}

static void read_shape(Check *check, const davit_tok_shape *shape)
{
    static const char *const members[] = {"pre_tokenizer", "gguf_facts", "rank_facts"};
    const char *const texts[] = {shape->pre_tokenizer, shape->gguf_facts, shape->rank_facts};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        json_error_t error;
        json_t *tree = texts[i] ? json_loads(texts[i], JSON_DECODE_ANY, &error) : NULL;

        if (texts[i] && !tree)
            check_fail(check, NULL, davit_report_text(check->report, "%s: %s", shape->name,
                                                      members[i]),
                       "JSON text", error.text, "a shape is not readable");
        json_decref(tree);
    }
    if (shape->gguf_pre && !shape->gguf_facts)
        check_fail(check, NULL, shape->name, "gguf_facts beside gguf_pre", "none",
                   "the facts that GGUF omits are required with its names");
    if (shape->rank_hashes && !shape->rank_facts)
        check_fail(check, NULL, shape->name, "rank_facts beside rank_hashes", "none",
                   "the facts that a rank list omits are required with its hashes");
    if (shape->cut && !shape->scan)
        check_fail(check, NULL, shape->name, "scan beside cut", "none",
                   "a shape that never splits has no cuts");
}

static void scan_texts(Check *check, DavitComponent *c)
{
    const davit_tokenizer_iface *iface = c->load->iface;
    davit_test *t = check_library(check, c, c->load->self);
    davit_tok_shape shape;

    if (!iface->shapes[0])
        check_fail(check, NULL, "shapes", "at least one", "none",
                   "the component claims nothing");
    for (size_t k = 0; iface->shapes[k]; k++) {
        if (!take_shape(check, iface, k, &shape))
            continue;
        read_shape(check, &shape);
        check->subject = shape.name;
        check_step(check, "scan");
        if (shape.scan)
            davit_test_scan_random(t, &shape, (uint64_t)N_TEXTS * check->repeat);
    }
    test_drop(t);
}

void check_tokenizer_scan(Check *check)
{
    check_each(check, DAVIT_KIND_ID_TOKENIZER, scan_texts);
}

static void walk_classes(Check *check, DavitComponent *c)
{
    const davit_tokenizer_iface *iface = c->load->iface;
    davit_test *t = check_library(check, c, c->load->self);
    davit_tok_shape shape;

    for (size_t k = 0; iface->shapes[k]; k++) {
        if (!take_shape(check, iface, k, &shape) || !shape.scan)
            continue;
        check->subject = shape.name;
        check_step(check, "scan");
        davit_test_scan_classes(t, &shape);
    }
    test_drop(t);
}

void check_tokenizer_classes(Check *check)
{
    check_each(check, DAVIT_KIND_ID_TOKENIZER, walk_classes);
}
