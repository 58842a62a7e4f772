/* SPDX-License-Identifier: Apache-2.0
 * GGUF pre names that are known and that no plugin claims, and why: GGUF leaves out the
 * normaliser, so a name that does not stand for one cannot give Hugging Face's ids.
 * Names: llama.cpp src/llama-vocab.cpp, 2026-08-22.
 */
#include <string.h>

#include "tokenizer/shape.h"

typedef struct KnownName {
    const char *names;  /* joined by '|' */
    const char *family; /* whose shape it is, NULL = none that a plugin has */
    const char *reason;
} KnownName;

static const KnownName known[] = {
    {"jina-es|jina-de|jina-v2-es|jina-v2-de|jina-v1-en|jina-v2-code", "gpt2",
     "GGUF carries neither the normaliser nor which tokens go round the text"},
    {"afmoe", "afmoe",
     "its regex is public only as llama.cpp has it, and whether a range begins at U+F900 or U+8C48 "
     "decides how other alphabets are cut"},
    {"granite-embed-multi-97m", NULL,
     "its regex is public only as llama.cpp rewrote it, which cuts other alphabets "
     "otherwise than the model's own"},
    {"gemma4|granite-embed-multi-311m|sarvam-moe", "spm",
     "GGUF does not say which tokens are matched before merging, and llama.cpp cuts at "
     "line feeds, which the model's own tokenizer does not"},
    {"whitespace", NULL,
     "it works on words without blanks; GGUF does not carry the rest"},
    {"default|", NULL,
     "the file does not name its pre-tokenizer; llama.cpp guesses one, which gives wrong "
     "ids without a word"},
};

static bool is_listed(const char *list, const char *name, size_t len)
{
    for (const char *at = list; at;) {
        const char *bar = strchr(at, '|');
        const size_t n = bar ? (size_t)(bar - at) : strlen(at);

        if (n == len && memcmp(at, name, len) == 0)
            return true;
        at = bar ? bar + 1 : NULL;
    }
    return false;
}

const char *davit_shape_why_unclaimed(const char *name, size_t len, DavitReport *report)
{
    for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
        const KnownName *k = &known[i];

        if (!is_listed(k->names, name, len))
            continue;
        if (!k->family)
            return k->reason;
        return davit_report_text(
            report, "the name stands for the pre-tokenizer \"%s\", but %s", k->family, k->reason);
    }
    return NULL;
}
