/* SPDX-License-Identifier: Apache-2.0
 * Ids to text as they come. Each push sends one token through the stages of the decoder;
 * a stage turns a list of tokens into another and keeps what it cannot settle yet.
 * Decoding all ids is the same code, so the two cannot differ.
 */
#include <string.h>

#include <davit/help/ucd.h>

#include "tokenizer/tokenizer_private.h"

/* Tokens between two stages. */
typedef struct TokenList {
    GString *text; /* all of them, end to end */
    GArray *lens;  /* size_t */
} TokenList;

typedef struct StageState {
    /* ByteLevel: incomplete character; ByteFallback: open run of bytes; BPE, CTC: the token
     * before */
    GString *held;
    bool first;    /* no token came yet, or no other text (fused Strip) */
    size_t left;   /* Strip behind Fuse: characters that may still go */
} StageState;

struct DavitDecoder {
    const DavitTokenizer *tokenizer; /* (borrowed) */
    bool skip_special;
    bool started; /* a token was pushed (decoder null joins by spaces) */
    StageState states[DAVIT_DECODE_MAX_STAGES];
    TokenList in, out;
};

static void start(DavitDecoder *decoder)
{
    const DavitDecodeChain *chain = &decoder->tokenizer->decoder;

    decoder->started = false;
    for (size_t i = 0; i < chain->n; i++) {
        g_string_truncate(decoder->states[i].held, 0);
        decoder->states[i].first = true;
        decoder->states[i].left = chain->stages[i].start;
    }
}

DavitDecoder *davit_decoder_new(const DavitTokenizer *tokenizer, bool skip_special)
{
    DavitDecoder *decoder = g_new0(DavitDecoder, 1);

    decoder->tokenizer = tokenizer;
    decoder->skip_special = skip_special;
    decoder->in =
        (TokenList){g_string_new(NULL), g_array_new(FALSE, FALSE, sizeof(size_t))};
    decoder->out =
        (TokenList){g_string_new(NULL), g_array_new(FALSE, FALSE, sizeof(size_t))};
    for (size_t i = 0; i < tokenizer->decoder.n; i++)
        decoder->states[i].held = g_string_new(NULL);
    start(decoder);
    return decoder;
}

void davit_decoder_free(DavitDecoder *decoder)
{
    if (!decoder)
        return;
    for (size_t i = 0; i < decoder->tokenizer->decoder.n; i++)
        g_string_free(decoder->states[i].held, TRUE);
    g_string_free(decoder->in.text, TRUE);
    g_string_free(decoder->out.text, TRUE);
    g_array_free(decoder->in.lens, TRUE);
    g_array_free(decoder->out.lens, TRUE);
    g_free(decoder);
}

/* ---- token lists ---- */

static void list_clear(TokenList *list)
{
    g_string_truncate(list->text, 0);
    g_array_set_size(list->lens, 0);
}

/* The text from @start to the end of @list becomes its next token. */
static void list_close(TokenList *list, size_t start_off)
{
    const size_t len = list->text->len - start_off;

    g_array_append_val(list->lens, len);
}

static void list_add(TokenList *list, const char *text, size_t len)
{
    g_string_append_len(list->text, text, (gssize)len);
    g_array_append_val(list->lens, len);
}

/* ---- ByteLevel ---- */

/* Longest start of @p that is the start of a valid sequence (Unicode table 3-7), at most
 * @n > 0 bytes; *out_whole if it is a whole one. At least 1. */
static size_t sequence_part(const uint8_t *p, size_t n, bool *out_whole)
{
    size_t want = p[0] < 0x80   ? 1
                  : p[0] < 0xc2 ? 0
                  : p[0] < 0xe0 ? 2
                  : p[0] < 0xf0 ? 3
                                : 4;
    uint8_t low = 0x80, high = 0xbf;

    *out_whole = false;
    if (p[0] > 0xf4 || want == 0)
        return 1;
    if (p[0] == 0xe0)
        low = 0xa0;
    else if (p[0] == 0xed)
        high = 0x9f;
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xf4)
        high = 0x8f;
    for (size_t i = 1; i < want; i++) {
        if (i >= n || p[i] < low || p[i] > high)
            return i;
        low = 0x80;
        high = 0xbf;
    }
    *out_whole = true;
    return want;
}

/* Could more bytes make the @len bytes at the end of the text a whole character? */
static bool is_open(const uint8_t *p, size_t len)
{
    return len < 4 && p[0] >= 0xc2 && p[0] <= 0xf4 &&
           len < (p[0] < 0xe0   ? 2u
                  : p[0] < 0xf0 ? 3u
                                : 4u);
}

/* Move the settled characters of @held to @out; broken ones become U+FFFD. */
static void settle_utf8(GString *held, GString *out, bool end)
{
    size_t off = 0;

    while (off < held->len) {
        const uint8_t *p = (const uint8_t *)held->str + off;
        bool whole;
        const size_t n = sequence_part(p, held->len - off, &whole);

        if (!whole && !end && off + n == held->len && is_open(p, n))
            break;
        if (whole)
            g_string_append_len(out, (const char *)p, (gssize)n);
        else
            g_string_append(out, "\xef\xbf\xbd");
        off += n;
    }
    g_string_erase(held, 0, (gssize)off);
}

/* Letters of the alphabet become bytes; a token with any other character stays as it is.
 */
static void append_bytes(GString *held, const char *text, size_t len)
{
    const size_t before = held->len;

    for (size_t off = 0; off < len;) {
        uint32_t n;
        const int32_t byte = davit_letter_byte(davit_ucd_decode(text, len, off, &n));

        if (byte < 0) {
            g_string_truncate(held, before);
            g_string_append_len(held, text, (gssize)len);
            return;
        }
        g_string_append_c(held, (char)byte);
        off += n;
    }
}

/* ---- ByteFallback ---- */

/* Value of a token spelled <0xNN>, or -1. Rust's parser, which the reference uses, takes
 * a plus sign too. */
static int byte_token(const char *text, size_t len)
{
    if (len != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>' ||
        !g_ascii_isxdigit(text[4]))
        return -1;
    if (text[3] == '+')
        return g_ascii_xdigit_value(text[4]);
    if (!g_ascii_isxdigit(text[3]))
        return -1;
    return g_ascii_xdigit_value(text[3]) * 16 + g_ascii_xdigit_value(text[4]);
}

/* The run is over: its text, or U+FFFD for every byte. */
static void close_run(GString *held, TokenList *out)
{
    if (held->len == 0)
        return;
    if (davit_ucd_check(held->str, held->len) == held->len) {
        list_add(out, held->str, held->len);
    } else {
        for (size_t i = 0; i < held->len; i++)
            list_add(out, "\xef\xbf\xbd", 3);
    }
    g_string_truncate(held, 0);
}

/* ---- stages ---- */

static void replace_token(const DavitDecodeStage *stage, const char *text, size_t len,
                          TokenList *out)
{
    const size_t at = out->text->len;

    while (len > 0) {
        if (len >= stage->pattern_len &&
            memcmp(text, stage->pattern, stage->pattern_len) == 0) {
            g_string_append_len(out->text, stage->content, (gssize)stage->content_len);
            text += stage->pattern_len;
            len -= stage->pattern_len;
        } else {
            g_string_append_c(out->text, *text++);
            len--;
        }
    }
    list_close(out, at);
}

/* As many from the right, never more than the left has left over. */
static size_t strip_right(const DavitDecodeStage *stage, const char *text, size_t len)
{
    for (size_t may = stage->stop; may > 0 && len >= stage->pattern_len; may--) {
        if (memcmp(text + len - stage->pattern_len, stage->pattern, stage->pattern_len) != 0)
            break;
        len -= stage->pattern_len;
    }
    return len;
}

/* Behind Fuse all tokens are one, so what may still go is counted over all of them. */
static void strip_token(const DavitDecodeStage *stage, bool fused, StageState *state,
                        const char *text, size_t len, TokenList *out)
{
    size_t may = fused ? state->left : stage->start;

    while (may > 0 && len >= stage->pattern_len &&
           memcmp(text, stage->pattern, stage->pattern_len) == 0) {
        text += stage->pattern_len;
        len -= stage->pattern_len;
        may--;
    }
    state->left = len > 0 ? 0 : may;
    list_add(out, text, strip_right(stage, text, len));
}

/* Replace every @from in the text of @room from @at on; @to is not longer. */
static void replace_all(GString *room, size_t at, const char *from, size_t from_len,
                        const char *to)
{
    const size_t to_len = strlen(to);
    size_t in = at, out = at;

    while (in < room->len) {
        if (room->len - in >= from_len && memcmp(room->str + in, from, from_len) == 0) {
            memcpy(room->str + out, to, to_len);
            out += to_len;
            in += from_len;
        } else {
            room->str[out++] = room->str[in++];
        }
    }
    g_string_truncate(room, out);
}

/* Blanks that tokens of words leave: tokenizers, decoders/wordpiece.rs, in its order. */
static void clean_up(GString *room, size_t at)
{
    static const struct {
        const char *from, *to;
    } rules[] = {
        {" .", "."},     {" ?", "?"},     {" !", "!"},         {" ,", ","},
        {" ' ", "'"},    {" n't", "n't"}, {" 'm", "'m"},       {" do not", " don't"},
        {" 's", "'s"},   {" 've", "'ve"}, {" 're", "'re"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rules); i++)
        replace_all(room, at, rules[i].from, strlen(rules[i].from), rules[i].to);
}

/* A token that continues a word loses its prefix, others get a blank in front. */
static void wordpiece_token(const DavitDecodeStage *stage, StageState *state,
                            const char *text, size_t len, TokenList *out)
{
    const size_t at = out->text->len;

    if (!state->first && len >= stage->pattern_len &&
        memcmp(text, stage->pattern, stage->pattern_len) == 0) {
        text += stage->pattern_len;
        len -= stage->pattern_len;
    } else if (!state->first) {
        g_string_append_c(out->text, ' ');
    }
    state->first = false;
    g_string_append_len(out->text, text, (gssize)len);
    if (stage->cleanup)
        clean_up(out->text, at);
    list_close(out, at);
}

/* The suffix is a blank but in the last token, so one token waits. */
static void give_held(const DavitDecodeStage *stage, StageState *state, const char *to,
                      TokenList *out)
{
    const size_t at = out->text->len;

    if (state->first)
        return;
    g_string_append_len(out->text, state->held->str, (gssize)state->held->len);
    replace_all(out->text, at, stage->pattern, stage->pattern_len, to);
    list_close(out, at);
}

static void hold(StageState *state, const char *text, size_t len)
{
    g_string_truncate(state->held, 0);
    g_string_append_len(state->held, text, (gssize)len);
    state->first = false;
}

/* Equal neighbours are one, pads vanish. */
static void ctc_token(const DavitDecodeStage *stage, StageState *state, const char *text,
                      size_t len, TokenList *out)
{
    const size_t at = out->text->len;

    if (!state->first && state->held->len == len && memcmp(state->held->str, text, len) == 0)
        return;
    hold(state, text, len);
    g_string_append_len(out->text, text, (gssize)len);
    replace_all(out->text, at, stage->pattern, stage->pattern_len, "");
    if (stage->cleanup) {
        clean_up(out->text, at);
        replace_all(out->text, at, stage->content, stage->content_len, " ");
    }
    if (out->text->len > at)
        list_close(out, at);
}

static void metaspace_token(const DavitDecodeStage *stage, StageState *state,
                            const char *text, size_t len, TokenList *out)
{
    const size_t at = out->text->len;
    const bool drop = state->first && stage->drop_first;

    while (len > 0) {
        if (len >= stage->pattern_len &&
            memcmp(text, stage->pattern, stage->pattern_len) == 0) {
            if (!drop)
                g_string_append_c(out->text, ' ');
            text += stage->pattern_len;
            len -= stage->pattern_len;
        } else {
            g_string_append_c(out->text, *text++);
            len--;
        }
    }
    state->first = false;
    list_close(out, at);
}

static void stage_token(const DavitDecodeStage *stage, bool fused, StageState *state,
                        const char *text, size_t len, TokenList *out)
{
    size_t at = out->text->len;

    switch (stage->kind) {
    case DAVIT_DECODE_BYTE_LEVEL:
        append_bytes(state->held, text, len);
        settle_utf8(state->held, out->text, false);
        list_close(out, at);
        return;
    case DAVIT_DECODE_BYTE_FALLBACK:
        if (byte_token(text, len) >= 0) {
            g_string_append_c(state->held, (char)byte_token(text, len));
            return;
        }
        close_run(state->held, out);
        list_add(out, text, len);
        return;
    case DAVIT_DECODE_REPLACE:
        replace_token(stage, text, len, out);
        return;
    case DAVIT_DECODE_FUSE:
        list_add(out, text, len);
        return;
    case DAVIT_DECODE_STRIP:
        strip_token(stage, fused, state, text, len, out);
        return;
    case DAVIT_DECODE_METASPACE:
        metaspace_token(stage, state, text, len, out);
        return;
    case DAVIT_DECODE_WORDPIECE:
        wordpiece_token(stage, state, text, len, out);
        return;
    case DAVIT_DECODE_BPE:
        give_held(stage, state, " ", out);
        hold(state, text, len);
        return;
    case DAVIT_DECODE_CTC:
        ctc_token(stage, state, text, len, out);
        return;
    }
    g_assert_not_reached();
}

/* Send decoder->in through all stages, with @end the held parts too, and append to @text.
 */
static void run_stages(DavitDecoder *decoder, bool end, GString *text)
{
    const DavitDecodeChain *chain = &decoder->tokenizer->decoder;
    bool fused = false;

    for (size_t i = 0; i < chain->n; i++) {
        const DavitDecodeStage *stage = &chain->stages[i];
        StageState *state = &decoder->states[i];
        const char *at = decoder->in.text->str;
        TokenList swap = decoder->in;

        list_clear(&decoder->out);
        for (guint k = 0; k < decoder->in.lens->len; k++) {
            const size_t len = g_array_index(decoder->in.lens, size_t, k);

            stage_token(stage, fused, state, at, len, &decoder->out);
            at += len;
        }
        if (end && stage->kind == DAVIT_DECODE_BYTE_LEVEL) {
            const size_t from = decoder->out.text->len;

            settle_utf8(state->held, decoder->out.text, true);
            list_close(&decoder->out, from);
        } else if (end && stage->kind == DAVIT_DECODE_BYTE_FALLBACK) {
            close_run(state->held, &decoder->out);
        } else if (end && stage->kind == DAVIT_DECODE_BPE) {
            give_held(stage, state, "", &decoder->out);
        }
        fused = fused || stage->kind == DAVIT_DECODE_FUSE ||
                stage->kind == DAVIT_DECODE_BYTE_LEVEL;
        decoder->in = decoder->out;
        decoder->out = swap;
    }
    g_string_append_len(text, decoder->in.text->str, (gssize)decoder->in.text->len);
}

bool davit_decoder_push(DavitDecoder *decoder, int32_t id, GString *out)
{
    size_t len;
    const char *text = davit_tokenizer_text(decoder->tokenizer, id, &len);
    uint8_t flags;

    if (!text)
        return false;
    flags = decoder->tokenizer->id_flags[id];
    if (decoder->skip_special &&
        (flags & (flags & DAVIT_ID_SPOKEN ? DAVIT_ID_SILENT : DAVIT_ID_SPECIAL)))
        return true;
    if (flags & DAVIT_ID_SPOKEN) {
        const DavitAdded *added =
            g_hash_table_lookup(decoder->tokenizer->spoken, GINT_TO_POINTER(id));

        text = added->spoken;
        len = added->spoken_len;
    }
    if (decoder->tokenizer->decoder.joined && decoder->started)
        g_string_append_c(out, ' ');
    decoder->started = true;
    list_clear(&decoder->in);
    list_add(&decoder->in, text, len);
    run_stages(decoder, false, out);
    return true;
}

void davit_decoder_flush(DavitDecoder *decoder, GString *out)
{
    list_clear(&decoder->in);
    run_stages(decoder, true, out);
    start(decoder);
}

void davit_decode(const DavitTokenizer *tokenizer, const int32_t *ids, size_t n,
                  bool skip_special, GString *out)
{
    g_autoptr(DavitDecoder) decoder = davit_decoder_new(tokenizer, skip_special);

    for (size_t i = 0; i < n; i++)
        davit_decoder_push(decoder, ids[i], out);
    davit_decoder_flush(decoder, out);
}
