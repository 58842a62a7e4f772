/* SPDX-License-Identifier: Apache-2.0
 * Where a model keeps its tokenizer: the files that may hold it, in the order in which they
 * are believed.
 */
#include "engine/private.h"

#include <stdio.h>
#include <string.h>

#include "config/tree.h"

/* Beside the weights. tokenizer.json says everything; the others leave something out, and
 * are known exactly or refused. */
static const char *const names[] = {"tokenizer.json",  "tekken.json",   "tokenizer.model",
                                    "tiktoken.model", "qwen.tiktoken", "spiece.model",
                                    "vocab.txt"};

const char *davit_tokenizer_file_name(size_t i)
{
    return i < G_N_ELEMENTS(names) ? names[i] : NULL;
}

#define CONFIG "tokenizer_config.json"
#define MAX_FILE (512ull << 20) /* of one tokenizer file; the largest known has 40 MB */

static DavitTokenizer *from_pair(GBytes *vocab, GBytes *merges, GBytes *config,
                                 DavitRegistry *registry, DavitReport *report)
{
    DavitMergesFiles files = {0};

    files.vocab = g_bytes_get_data(vocab, &files.n_vocab);
    files.merges = g_bytes_get_data(merges, &files.n_merges);
    files.config = config ? g_bytes_get_data(config, &files.n_config) : NULL;
    return davit_tokenizer_from_merges(&files, registry, report);
}

int32_t davit_tokenizer_beside(const DavitCheckpoint *c, DavitRegistry *registry,
                               DavitTokenizer **out, DavitReport *report)
{
    g_autoptr(GBytes) vocab = NULL;
    g_autoptr(GBytes) merges = NULL;
    g_autoptr(GBytes) config = NULL;

    *out = NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GBytes) bytes = NULL;
        int32_t status = davit_checkpoint_sibling(c, names[i], MAX_FILE, &bytes, report);
        size_t n;

        if (status)
            return status;
        if (!bytes)
            continue;
        const char *text = g_bytes_get_data(bytes, &n);
        *out = davit_tokenizer_from_bytes(text, n, names[i], registry, report);
        return *out ? DAVIT_OK : DAVIT_E_UNSUPPORTED;
    }
    int32_t status = davit_checkpoint_sibling(c, "vocab.json", MAX_FILE, &vocab, report);
    if (!status && vocab)
        status = davit_checkpoint_sibling(c, "merges.txt", MAX_FILE, &merges, report);
    if (!status && merges)
        status = davit_checkpoint_sibling(c, CONFIG, DAVIT_TREE_MAX_BYTES, &config, report);
    if (status || !vocab || !merges)
        return status;
    *out = from_pair(vocab, merges, config, registry, report);
    return *out ? DAVIT_OK : DAVIT_E_UNSUPPORTED;
}

/* ---- by path ---- */

static DavitTokenizer *open_file(const char *path, DavitRegistry *registry,
                                 DavitReport *report)
{
    const uint8_t *bytes;
    g_autoptr(DavitSource) source = davit_source_open(path, report);

    if (!source ||
        davit_source_view(source, 0, davit_source_size(source), &bytes, report))
        return NULL;
    DavitTokenizer *tokenizer =
        davit_tokenizer_from_bytes((const char *)bytes, davit_source_size(source),
                                   davit_source_name(source), registry, report);
    if (davit_source_check(source, report)) /* cut while it was read */
        g_clear_pointer(&tokenizer, davit_tokenizer_free);
    return tokenizer;
}

static DavitTokenizer *open_pair(const char *folder, DavitRegistry *registry,
                                 DavitReport *report)
{
    g_autofree char *vocab_path = g_build_filename(folder, "vocab.json", NULL);
    g_autofree char *merges_path = g_build_filename(folder, "merges.txt", NULL);
    g_autoptr(DavitSource) vocab = davit_source_open(vocab_path, report);
    g_autoptr(DavitSource) merges = vocab ? davit_source_open(merges_path, report) : NULL;
    g_autofree char *config_path = g_build_filename(folder, CONFIG, NULL);
    g_autoptr(DavitSource) config = NULL;
    const uint8_t *v, *m, *c = NULL;

    if (merges && g_file_test(config_path, G_FILE_TEST_EXISTS)) {
        config = davit_source_open(config_path, report);
        if (!config || davit_source_view(config, 0, davit_source_size(config), &c, report))
            return NULL;
    }
    if (!merges || davit_source_view(vocab, 0, davit_source_size(vocab), &v, report) ||
        davit_source_view(merges, 0, davit_source_size(merges), &m, report))
        return NULL;
    const DavitMergesFiles files = {(const char *)v,
                                    (const char *)m,
                                    (const char *)c,
                                    davit_source_size(vocab),
                                    davit_source_size(merges),
                                    config ? davit_source_size(config) : 0};
    DavitTokenizer *tokenizer = davit_tokenizer_from_merges(&files, registry, report);
    if (davit_source_check(vocab, report) || davit_source_check(merges, report) ||
        (config && davit_source_check(config, report)))
        g_clear_pointer(&tokenizer, davit_tokenizer_free);
    return tokenizer;
}

/* Names that are a tokenizer and no weights. */
static bool is_tokenizer_file(const char *path)
{
    g_autofree char *name = g_path_get_basename(path);

    if (g_str_has_suffix(name, ".index.json"))
        return false;
    return g_str_has_suffix(name, ".json") || g_str_has_suffix(name, ".tiktoken") ||
           g_str_has_suffix(name, ".model") || strcmp(name, "vocab.txt") == 0 || strstr(name, ".model.v") != NULL;
}

/* A file of another name that is an object of JSON, which no weights are: a tokenizer.json out of a
 * cache, say. */
static bool begins_as_object(const char *path)
{
    char text[64];
    size_t n, at = 0;
    FILE *file = g_file_test(path, G_FILE_TEST_IS_REGULAR) ? fopen(path, "rb") : NULL;

    if (!file)
        return false;
    n = fread(text, 1, sizeof text, file);
    fclose(file);
    while (at < n && g_ascii_isspace(text[at]))
        at++;
    return at < n && text[at] == '{' && !g_str_has_suffix(path, ".index.json");
}

DavitTokenizer *davit_tokenizer_open(const char *path, DavitRegistry *registry,
                                     DavitReport *report)
{
    if (!g_file_test(path, G_FILE_TEST_IS_DIR)) {
        if (is_tokenizer_file(path) || begins_as_object(path))
            return open_file(path, registry, report);
    } else {
        for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
            g_autofree char *inside = g_build_filename(path, names[i], NULL);

            if (g_file_test(inside, G_FILE_TEST_EXISTS))
                return open_file(inside, registry, report);
        }
        g_autofree char *pair = g_build_filename(path, "merges.txt", NULL);
        if (g_file_test(pair, G_FILE_TEST_EXISTS))
            return open_pair(path, registry, report);
    }
    g_autoptr(DavitCheckpoint) c =
        davit_checkpoint_open(registry, path, DAVIT_INSPECT, report);
    DavitTokenizer *tokenizer = c ? davit_tokenizer_of(c, registry, report) : NULL;
    if (tokenizer && davit_checkpoint_check(c, report))
        g_clear_pointer(&tokenizer, davit_tokenizer_free);
    return tokenizer;
}
