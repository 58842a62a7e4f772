/* SPDX-License-Identifier: Apache-2.0
 * Reading decoders. Running them is in decode_stream.c.
 */
#include "tokenizer/decode.h"

#include <string.h>

#include "tokenizer/node.h"
#include "tokenizer/normalize_text.h"

void davit_decode_chain_clear(DavitDecodeChain *chain)
{
    for (size_t i = 0; i < chain->n; i++) {
        g_free(chain->stages[i].pattern);
        g_free(chain->stages[i].content);
    }
}

static int32_t read_replace(const DavitNodePlace *place, const json_t *node,
                            DavitDecodeStage *out)
{
    const char *pattern, *content;
    int32_t status = davit_node_pattern(place, node, &pattern, &out->pattern_len);

    if (status == DAVIT_OK)
        status = davit_node_text(place, node, "content", &content, &out->content_len);
    if (status != DAVIT_OK)
        return status;
    if (out->pattern_len == 0)
        return davit_node_unsupported(place, "pattern", "a pattern that is not empty",
                                      "\"\"");
    out->kind = DAVIT_DECODE_REPLACE;
    out->pattern = g_memdup2(pattern, out->pattern_len + 1);
    out->content = g_memdup2(content, out->content_len + 1);
    return DAVIT_OK;
}

/* A member that holds exactly one character. */
static int32_t read_char(const DavitNodePlace *place, const json_t *node, const char *key,
                         DavitDecodeStage *out)
{
    const char *text;
    int32_t status = davit_node_text(place, node, key, &text, &out->pattern_len);

    if (status != DAVIT_OK)
        return status;
    if (davit_count_chars(text, out->pattern_len) != 1)
        return davit_node_invalid(place, key, "one character",
                                  json_object_get(node, key));
    out->pattern = g_memdup2(text, out->pattern_len + 1);
    return DAVIT_OK;
}

static int32_t read_strip(const DavitNodePlace *place, const json_t *node,
                          DavitDecodeStage *out)
{
    int32_t status = read_char(place, node, "content", out);

    out->kind = DAVIT_DECODE_STRIP;
    if (status == DAVIT_OK)
        status = davit_node_count(place, node, "start", &out->start);
    if (status == DAVIT_OK)
        status = davit_node_count(place, node, "stop", &out->stop);
    return status;
}

static int32_t read_member(const DavitNodePlace *place, const json_t *node,
                           const char *key, char **out, size_t *out_len)
{
    const char *text;
    int32_t status = davit_node_text(place, node, key, &text, out_len);

    if (status == DAVIT_OK)
        *out = g_memdup2(text, *out_len + 1);
    return status;
}

static int32_t read_wordpiece(const DavitNodePlace *place, const json_t *node,
                              DavitDecodeStage *out)
{
    int32_t status = read_member(place, node, "prefix", &out->pattern, &out->pattern_len);

    out->kind = DAVIT_DECODE_WORDPIECE;
    return status == DAVIT_OK ? davit_node_bool(place, node, "cleanup", &out->cleanup)
                              : status;
}

static int32_t read_suffix(const DavitNodePlace *place, const json_t *node,
                           DavitDecodeStage *out)
{
    int32_t status = read_member(place, node, "suffix", &out->pattern, &out->pattern_len);

    out->kind = DAVIT_DECODE_BPE;
    if (status == DAVIT_OK && out->pattern_len == 0)
        return davit_node_unsupported(place, "suffix", "a suffix that is not empty", "\"\"");
    return status;
}

static int32_t read_ctc(const DavitNodePlace *place, const json_t *node,
                        DavitDecodeStage *out)
{
    int32_t status =
        read_member(place, node, "pad_token", &out->pattern, &out->pattern_len);

    out->kind = DAVIT_DECODE_CTC;
    if (status == DAVIT_OK)
        status = read_member(place, node, "word_delimiter_token", &out->content,
                             &out->content_len);
    if (status == DAVIT_OK)
        status = davit_node_bool(place, node, "cleanup", &out->cleanup);
    if (status == DAVIT_OK && (out->pattern_len == 0 || out->content_len == 0))
        return davit_node_unsupported(place, "pad_token", "tokens that are not empty",
                                      "\"\"");
    return status;
}

static int32_t read_metaspace(const DavitNodePlace *place, const json_t *node,
                              DavitDecodeStage *out)
{
    const json_t *scheme = json_object_get(node, "prepend_scheme");
    bool prefix;
    int32_t status = read_char(place, node, "replacement", out);

    out->kind = DAVIT_DECODE_METASPACE;
    if (status == DAVIT_OK)
        status = davit_node_bool_or(place, node, "add_prefix_space", true, &prefix);
    if (status != DAVIT_OK)
        return status;
    out->drop_first = g_strcmp0(json_string_value(scheme), "never") != 0;
    if (!prefix && out->drop_first)
        return davit_node_invalid(place, "prepend_scheme",
                                  "\"never\", as add_prefix_space is false", scheme);
    return DAVIT_OK;
}

static int32_t read_stage(const DavitNodePlace *place, const json_t *node,
                          DavitDecodeStage *out)
{
    const char *type = davit_node_type(place, node);

    if (strcmp(type, "Replace") == 0)
        return read_replace(place, node, out);
    if (strcmp(type, "Strip") == 0)
        return read_strip(place, node, out);
    if (strcmp(type, "Metaspace") == 0)
        return read_metaspace(place, node, out);
    if (strcmp(type, "WordPiece") == 0)
        return read_wordpiece(place, node, out);
    if (strcmp(type, "BPEDecoder") == 0)
        return read_suffix(place, node, out);
    if (strcmp(type, "CTC") == 0)
        return read_ctc(place, node, out);
    if (strcmp(type, "ByteLevel") == 0)
        out->kind = DAVIT_DECODE_BYTE_LEVEL;
    else if (strcmp(type, "ByteFallback") == 0)
        out->kind = DAVIT_DECODE_BYTE_FALLBACK;
    else if (strcmp(type, "Fuse") == 0)
        out->kind = DAVIT_DECODE_FUSE;
    else
        return davit_node_unsupported(
            place, "type",
            "Sequence, ByteLevel, ByteFallback, Replace, Fuse, Strip, Metaspace, WordPiece, "
            "BPEDecoder or CTC",
            type);
    return DAVIT_OK;
}

/* Behind ByteLevel or Fuse all tokens are one; of what may follow only Strip and Fuse are
 * done on the fly. */
static int32_t check_order(const DavitNodePlace *place, const DavitDecodeChain *chain)
{
    bool fused = false;

    for (size_t i = 0; i < chain->n; i++) {
        const DavitDecodeKind kind = chain->stages[i].kind;

        if (fused && kind != DAVIT_DECODE_STRIP && kind != DAVIT_DECODE_FUSE)
            return davit_node_unsupported(place, NULL, "only Strip and Fuse behind Fuse",
                                          "another stage");
        if (fused && chain->stages[i].stop > 0)
            return davit_node_unsupported(place, "stop", "0 behind Fuse", "more");
        fused = fused || kind == DAVIT_DECODE_FUSE || kind == DAVIT_DECODE_BYTE_LEVEL;
    }
    return DAVIT_OK;
}

int32_t davit_decode_chain_init(DavitDecodeChain *out, const json_t *node,
                                const char *subject, DavitReport *report)
{
    const DavitNodePlace place = {subject, "decoder", report};
    const json_t *stages[DAVIT_TOK_MAX_STAGES];
    size_t n;
    int32_t status = davit_node_flatten(&place, node, "decoders", stages, &n);

    if (status != DAVIT_OK)
        return status;
    if (n > DAVIT_DECODE_MAX_STAGES)
        return davit_node_unsupported(&place, NULL, "at most 8 stages", "more");
    /* An empty Sequence joins by nothing, an absent decoder by spaces. */
    out->joined = !node || json_is_null(node);
    for (size_t i = 0; i < n; i++) {
        out->n++;
        status = read_stage(&place, stages[i], &out->stages[i]);
        if (status != DAVIT_OK)
            return status;
    }
    return check_order(&place, out);
}
