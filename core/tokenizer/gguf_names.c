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
    const char *reason; /* NULL: only the normaliser is missing */
} KnownName;

static const KnownName known[] = {
    {"jais|trillion|granite-docling|a.x-4.0", "gpt2", NULL},
    {"jina-es|jina-de|jina-v2-es|jina-v2-de|jina-v1-en|jina-v2-code", "gpt2",
     "GGUF carries neither the normaliser nor which tokens go round the text"},
    {"mellum2", "gpt2_digits", NULL},
    {"kanana2|talkie|minimax-m2", "o200k", NULL},
    {"poro-chat|gpt3-finnish|viking", "bloom", NULL},
    {"bailingmoe|bailingmoe2|llada-moe", "bailing", NULL},
    {"seed-coder", "seed_coder", NULL},
    {"jais-2", "jais2", NULL},
    {"youtu", "youtu", NULL},
    {"exaone-moe", "exaone_moe", NULL},
    {"chameleon", "chameleon", NULL},
    {"superbpe", "superbpe", NULL},
    {"tiny_aya|cohere2moe", "tiny_aya", NULL},
    {"afmoe", "afmoe", NULL},
    {"laguna", "laguna", NULL},
    {"minicpm5", "minicpm5", NULL},
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
            report, "the name stands for the pre-tokenizer \"%s\", but %s", k->family,
            k->reason ? k->reason
                      : "GGUF does not carry the normaliser, and which one this name "
                        "stands for is not known");
    }
    return NULL;
}
