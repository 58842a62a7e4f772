/* SPDX-License-Identifier: Apache-2.0
 * Text to ids, in the order of Hugging Face's encode: added tokens of the raw text, the
 * normaliser, added tokens of the normalised text, the pre-tokenizer, the model; then the
 * post-processor round all of it. Nothing is allocated per piece or id.
 */
#include <string.h>

#include <davit/help/ucd.h>

#include "tokenizer/spans.h"
#include "tokenizer/tokenizer_private.h"

/* Word cache: direct-mapped, pieces of at most 15 bytes that gave at most 3 ids. */
#define CACHE_BITS 16
#define CACHE_TEXT 15
#define CACHE_IDS  3

typedef struct Word {
    uint64_t key[2]; /* the bytes, and their count in the last byte; 0 = empty */
    int32_t ids[CACHE_IDS];
    uint32_t n;
} Word;

/* Ends asked from a scanner in one call. */
#define SCAN_CAP 512

struct DavitEncoder {
    const DavitTokenizer *tokenizer; /* (borrowed) */
    Word *words;                     /* 1 << CACHE_BITS */
    DavitBpeScratch bpe;
    DavitUnigramScratch unigram;
    uint64_t steps; /* of WordPiece */
    DavitNormalScratch normal;
    GString *marked; /* after Metaspace or a prefix space */
    GString *front;  /* the text with SentencePiece's space in front */
    uint64_t ends[SCAN_CAP];
};

/* One call of encode. */
typedef struct Job {
    DavitEncoder *encoder;
    DavitIds *out;
    DavitPieceFn fn; /* NULL = nobody listens */
    void *ctx;
    bool safe;
    DavitAlign *align; /* NULL = no spans are wanted */
    const char *start; /* of the whole text, for spans */
    const uint8_t *locked; /* of the text's bytes: no special token may touch them */
    const char *text;      /* the text that locked belongs to */
} Job;

DavitEncoder *davit_encoder_new(const DavitTokenizer *tokenizer)
{
    DavitEncoder *encoder = g_new0(DavitEncoder, 1);

    encoder->tokenizer = tokenizer;
    encoder->words = g_new0(Word, (size_t)1 << CACHE_BITS);
    encoder->normal = (DavitNormalScratch){g_string_new(NULL), g_string_new(NULL)};
    encoder->marked = g_string_new(NULL);
    encoder->front = g_string_new(NULL);
    return encoder;
}

void davit_encoder_free(DavitEncoder *encoder)
{
    if (!encoder)
        return;
    g_free(encoder->words);
    davit_bpe_scratch_clear(&encoder->bpe);
    davit_unigram_scratch_clear(&encoder->unigram);
    g_string_free(encoder->normal.a, TRUE);
    g_string_free(encoder->normal.b, TRUE);
    g_string_free(encoder->marked, TRUE);
    g_string_free(encoder->front, TRUE);
    g_free(encoder);
}

uint64_t davit_encoder_steps(const DavitEncoder *encoder)
{
    return encoder->bpe.steps + encoder->unigram.steps + encoder->steps;
}

/* ---- one piece ---- */

/* Up to 8 bytes as a number, zeros behind. */
static uint64_t load_bytes(const char *p, size_t n)
{
    uint64_t v = 0;

    if (n == 8)
        memcpy(&v, p, 8);
    else
        for (size_t i = 0; i < n; i++)
            v |= (uint64_t)(uint8_t)p[i] << (8 * i);
    return v;
}

static Word *find_word(DavitEncoder *encoder, const char *piece, size_t len,
                       uint64_t key[2])
{
    uint64_t h;

    key[0] = load_bytes(piece, MIN(len, 8));
    key[1] = (len > 8 ? load_bytes(piece + 8, len - 8) : 0) | (uint64_t)len << 56;
    h = (key[0] ^ key[1] * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull;
    return &encoder->words[h >> (64 - CACHE_BITS)];
}

/* Where special tokens stay text, the models that look whole tokens up must not find them.
 * NULL = they may be found. */
static const uint8_t *hidden_ids(const Job *job)
{
    return job->safe || job->locked ? job->encoder->tokenizer->id_flags : NULL;
}

static int32_t run_model(Job *job, const char *piece, size_t len)
{
    DavitEncoder *encoder = job->encoder;
    const DavitTokenizer *t = encoder->tokenizer;

    switch (t->model) {
    case DAVIT_MODEL_UNIGRAM:
        return davit_unigram_encode(&t->unigram, &encoder->unigram, piece, len,
                                    hidden_ids(job), job->out);
    case DAVIT_MODEL_WORDPIECE:
        return davit_wordpiece_encode(&t->wordpiece, piece, len, hidden_ids(job), job->out,
                                      &encoder->steps);
    case DAVIT_MODEL_BPE:
        return davit_bpe_encode(&t->bpe, &encoder->bpe, piece, len, job->out);
    }
    g_assert_not_reached();
}

/* Ids of a piece that no cut divides. */
static int32_t encode_word(Job *job, const char *piece, size_t len)
{
    DavitEncoder *encoder = job->encoder;
    DavitIds *out = job->out;
    uint64_t key[2];
    Word *word;
    size_t before = out->n;
    int32_t status;

    if (len > CACHE_TEXT ||
        (encoder->tokenizer->model != DAVIT_MODEL_BPE && hidden_ids(job)))
        return run_model(job, piece, len);
    word = find_word(encoder, piece, len, key);
    if (word->key[0] == key[0] && word->key[1] == key[1]) {
        if (!davit_ids_reserve(out, CACHE_IDS))
            return DAVIT_E_LIMIT;
        memcpy(out->ids + out->n, word->ids, sizeof word->ids);
        out->n += word->n;
        return DAVIT_OK;
    }
    status = run_model(job, piece, len);
    if (status == DAVIT_OK && out->n - before <= CACHE_IDS) {
        memcpy(word->key, key, sizeof key);
        word->n = (uint32_t)(out->n - before);
        memcpy(word->ids, out->ids + before, word->n * sizeof *word->ids);
    }
    return status;
}

static void tell(const Job *job, const char *text, size_t len, size_t before, bool added)
{
    const DavitPiece piece = {text, len, job->out->ids + before, job->out->n - before,
                              added};

    if (job->fn)
        job->fn(job->ctx, &piece);
}

static int32_t encode_piece(Job *job, const char *piece, size_t len)
{
    const DavitBpe *bpe = &job->encoder->tokenizer->bpe;
    const size_t before = job->out->n;
    size_t from = 0;
    int32_t status = DAVIT_OK;

    if (!bpe->cuts)
        status = encode_word(job, piece, len);
    while (bpe->cuts && from < len && status == DAVIT_OK) {
        const size_t end = davit_bpe_cut(bpe, piece, len, from);

        status = encode_word(job, piece + from, end - from);
        from = end;
    }
    if (status == DAVIT_OK && job->align)
        davit_align_piece(job->align, piece, len, job->out->ids + before,
                          job->out->n - before);
    if (status == DAVIT_OK)
        tell(job, piece, len, before, false);
    return status;
}

/* ---- a part between added tokens ---- */

/* Spaces become marks, and one goes in front where the scheme says so. */
static void apply_metaspace(const DavitPretok *pretok, GString *out, const char *text,
                            size_t len, bool first)
{
    const bool wanted =
        pretok->meta == DAVIT_META_ALWAYS || (pretok->meta == DAVIT_META_FIRST && first);
    const bool has =
        text[0] == ' ' ||
        (len >= pretok->mark_len && memcmp(text, pretok->mark, pretok->mark_len) == 0);

    g_string_truncate(out, 0);
    if (wanted && !has)
        g_string_append_len(out, pretok->mark, (gssize)pretok->mark_len);
    while (len > 0) {
        const char *space = memchr(text, ' ', len);
        const size_t n = space ? (size_t)(space - text) : len;

        g_string_append_len(out, text, (gssize)n);
        if (space)
            g_string_append_len(out, pretok->mark, (gssize)pretok->mark_len);
        text += n + (space ? 1 : 0);
        len -= n + (space ? 1 : 0);
    }
}

/* Metaspace behind other stages: mark the piece, then cut before each mark. */
static int32_t encode_marked(Job *job, const char *piece, size_t len, bool first)
{
    const DavitPretok *pretok = &job->encoder->tokenizer->pretok;
    GString *marked = job->encoder->marked;
    int32_t status = DAVIT_OK;
    size_t from = 0;

    apply_metaspace(pretok, marked, piece, len, first);
    while (from < marked->len && status == DAVIT_OK) {
        size_t end = from + 1;

        while (pretok->meta_split && end < marked->len &&
               (marked->len - end < pretok->mark_len ||
                memcmp(marked->str + end, pretok->mark, pretok->mark_len) != 0))
            end++;
        if (!pretok->meta_split)
            end = marked->len;
        status = encode_piece(job, marked->str + from, end - from);
        from = end;
    }
    return status;
}

static int32_t give_piece(Job *job, const char *piece, size_t len, bool first)
{
    if (job->encoder->tokenizer->pretok.meta_last)
        return encode_marked(job, piece, len, first);
    return encode_piece(job, piece, len);
}

/* Cut with the plugin's scanner. An end that does not move forward is the plugin's
 * mistake; it is taken as the end of the text, so the loop ends whatever it says.
 * @first: @text starts the whole input. */
static int32_t scan_text(Job *job, const char *text, size_t len, bool first)
{
    DavitEncoder *encoder = job->encoder;
    const davit_tok_shape *shape = &encoder->tokenizer->pretok.shape;
    uint64_t from = 0;
    int32_t status = DAVIT_OK;

    if (!shape->scan)
        return give_piece(job, text, len, first);
    while (from < len && status == DAVIT_OK) {
        const uint64_t n = shape->scan(text, len, from, encoder->ends, SCAN_CAP);

        for (uint64_t i = 0; i < MIN(n, SCAN_CAP) && status == DAVIT_OK; i++) {
            const uint64_t end = encoder->ends[i] & ~DAVIT_TOK_DROP;

            if (end <= from || end > len)
                return give_piece(job, text + from, len - from, first && from == 0);
            if (!(encoder->ends[i] & DAVIT_TOK_DROP))
                status = give_piece(job, text + from, end - from, first && from == 0);
            from = end;
        }
        if (n == 0)
            return give_piece(job, text + from, len - from, first && from == 0);
    }
    return status;
}

/* Pre-tokenizer and model over a normalised part. @first: it starts the whole text. */
static int32_t encode_part(Job *job, const char *text, size_t len, bool first)
{
    DavitEncoder *encoder = job->encoder;
    const DavitPretok *pretok = &encoder->tokenizer->pretok;

    if (len == 0)
        return DAVIT_OK;
    if (pretok->meta != DAVIT_META_NONE && !pretok->meta_last) {
        apply_metaspace(pretok, encoder->marked, text, len, first);
        return scan_text(job, encoder->marked->str, encoder->marked->len, first);
    }
    if (pretok->prefix_space && text[0] != ' ') {
        g_string_assign(encoder->marked, " ");
        g_string_append_len(encoder->marked, text, (gssize)len);
        return scan_text(job, encoder->marked->str, encoder->marked->len, first);
    }
    return scan_text(job, text, len, first);
}

/* ---- added tokens ---- */

/* @raw: the splitter walks the raw text. */
static int32_t add_token(Job *job, const DavitSplitter *splitter, const DavitPart *part,
                         bool raw)
{
    const size_t before = job->out->n;
    const size_t len = part->end > part->start ? part->end - part->start : 0;
    const char *text = splitter->text + part->start;

    if (!davit_ids_reserve(job->out, 1))
        return DAVIT_E_LIMIT;
    job->out->ids[job->out->n++] = part->added->id;
    if (job->align) {
        if (raw)
            davit_align_start(job->align, text, len, (uint64_t)(text - job->start));
        davit_align_token(job->align, text, len);
    }
    tell(job, text, len, before, true);
    return DAVIT_OK;
}

/* Pass 2 and on, over a raw part. */
static int32_t encode_raw(Job *job, const char *text, size_t len, bool first)
{
    DavitEncoder *encoder = job->encoder;
    const DavitTokenizer *t = encoder->tokenizer;
    DavitSplitter splitter;
    DavitPart part;
    int32_t status = DAVIT_OK;
    bool cut = false;

    const char *raw = text;
    const size_t raw_len = len;
    const uint8_t *locked = job->locked ? job->locked + (raw - job->text) : NULL;

    if (job->align)
        davit_align_start(job->align, text, len, (uint64_t)(text - job->start));
    text = davit_normalize(t->normalizer, &encoder->normal, text, len, &len, &cut);
    if (!text)
        return DAVIT_E_LIMIT;
    const bool same = text == raw && len == raw_len;
    /* where the text changed, bytes have no owner: one locked byte locks the part */
    davit_splitter_init(&splitter, t->normal, text, len,
                        job->safe || (locked && !same && memchr(locked, 1, raw_len)));
    splitter.locked = same ? locked : NULL;
    while (status == DAVIT_OK && davit_splitter_next(&splitter, &part)) {
        status = part.added ? add_token(job, &splitter, &part, false)
                            : encode_part(job, text + part.start, part.end - part.start,
                                          first && !cut && part.start == 0);
    }
    if (job->align)
        davit_align_end(job->align);
    return status;
}

static int32_t encode_text(Job *job, const char *text, size_t len)
{
    DavitSplitter splitter;
    DavitPart part;
    int32_t status = DAVIT_OK;
    g_autofree uint8_t *shifted = NULL;

    if (job->encoder->tokenizer->front_space && len > 0) {
        GString *front = job->encoder->front;

        g_string_assign(front, " ");
        g_string_append_len(front, text, (gssize)len);
        text = front->str;
        len = front->len;
        job->start = text; /* spans count from here; the space is taken off at the end */
        if (job->locked) {
            shifted = g_try_malloc0(len);
            if (!shifted)
                return DAVIT_E_LIMIT;
            memcpy(shifted + 1, job->locked, len - 1);
            job->locked = shifted;
        }
    }
    davit_splitter_init(&splitter, job->encoder->tokenizer->raw, text, len, job->safe);
    splitter.locked = job->locked;
    job->text = text;
    while (status == DAVIT_OK && davit_splitter_next(&splitter, &part)) {
        status = part.added ? add_token(job, &splitter, &part, true)
                            : encode_raw(job, text + part.start, part.end - part.start,
                                         part.start == 0);
    }
    return status;
}

/* ---- the call ---- */

static int32_t append_ids(DavitIds *out, const DavitIds *more)
{
    if (!davit_ids_reserve(out, more->n))
        return DAVIT_E_LIMIT;
    if (more->n > 0)
        memcpy(out->ids + out->n, more->ids, more->n * sizeof *more->ids);
    out->n += more->n;
    return DAVIT_OK;
}

static int32_t refuse_text(DavitReport *report, const char *text, size_t len)
{
    const uint64_t bad = len > DAVIT_TOK_MAX_TEXT ? 0 : davit_ucd_check(text, len);

    if (len > DAVIT_TOK_MAX_TEXT)
        return davit_report_add(
            report, &(DavitFinding){.code = DAVIT_R_USAGE,
                                    .status = DAVIT_E_LIMIT,
                                    .stage = "run",
                                    .subject = "text",
                                    .expected = "at most 1073741824 bytes",
                                    .found = davit_report_text(report, "%zu", len),
                                    .message = "the text is too long for one call"});
    if (bad == len)
        return DAVIT_OK;
    return davit_report_add(
        report, &(DavitFinding){.code = DAVIT_R_USAGE,
                                .status = DAVIT_E_USAGE,
                                .stage = "run",
                                .subject = "text",
                                .expected = "UTF-8",
                                .found = davit_report_text(
                                    report, "byte 0x%02x at offset %" G_GUINT64_FORMAT,
                                    (unsigned)(uint8_t)text[bad], bad),
                                .message = "the text is not valid UTF-8"});
}

static int32_t refuse_status(DavitReport *report, int32_t status)
{
    if (status == DAVIT_E_LIMIT)
        return davit_report_add(report,
                                &(DavitFinding){.code = DAVIT_R_OUT_OF_MEMORY,
                                                .status = status,
                                                .stage = "run",
                                                .subject = "text",
                                                .message = "no memory for the ids"});
    return davit_report_add(
        report,
        &(DavitFinding){.code = DAVIT_R_TOKENIZER_INVALID,
                        .status = status,
                        .stage = "run",
                        .subject = "model.unk_token",
                        .expected = "a token of the vocabulary",
                        .message = "the text has a character that needs the unknown "
                                   "token, which the vocabulary does not hold"});
}

static int32_t encode(Job *job, const char *text, size_t len, uint32_t flags,
                      DavitReport *report)
{
    const DavitPost *post = &job->encoder->tokenizer->post;
    const size_t before = job->out->n;
    int32_t status = refuse_text(report, text, len);

    if (status != DAVIT_OK)
        return status;
    job->safe = flags & DAVIT_ENCODE_SAFE;
    if (flags & DAVIT_ENCODE_SPECIAL)
        status = append_ids(job->out, &post->prefix);
    if (status == DAVIT_OK)
        status = encode_text(job, text, len);
    if (status == DAVIT_OK && (flags & DAVIT_ENCODE_SPECIAL))
        status = append_ids(job->out, &post->suffix);
    if (status == DAVIT_OK)
        return DAVIT_OK;
    job->out->n = before;
    return refuse_status(report, status);
}

int32_t davit_encode(DavitEncoder *encoder, const char *text, size_t len, uint32_t flags,
                     DavitIds *out, DavitReport *report)
{
    Job job = {.encoder = encoder, .out = out};

    return encode(&job, text, len, flags, report);
}

static void append_spans(GArray *spans, size_t n, uint64_t at)
{
    const DavitSpan span = {at, at};

    for (size_t i = 0; i < n; i++)
        g_array_append_val(spans, span);
}

int32_t davit_encode_spans(DavitEncoder *encoder, const char *text, size_t len,
                           uint32_t flags, DavitIds *out, GArray *spans,
                           DavitReport *report)
{
    const DavitTokenizer *t = encoder->tokenizer;
    DavitAlign align = {.tokenizer = t, .spans = spans};
    Job job = {.encoder = encoder, .out = out, .align = &align, .start = text};
    const guint before = spans->len;
    int32_t status;

    if (flags & DAVIT_ENCODE_SPECIAL)
        append_spans(spans, t->post.prefix.n, 0);
    const guint body = spans->len;
    status = encode(&job, text, len, flags, report);
    if (status != DAVIT_OK) {
        g_array_set_size(spans, before);
        return status;
    }
    for (guint i = body; t->front_space && i < spans->len; i++) {
        DavitSpan *span = &g_array_index(spans, DavitSpan, i);

        span->start -= span->start > 0;
        span->end -= span->end > 0;
    }
    if (flags & DAVIT_ENCODE_SPECIAL)
        append_spans(spans, t->post.suffix.n, len);
    return DAVIT_OK;
}

int32_t davit_encode_locked(DavitEncoder *encoder, const char *text, size_t len,
                            const uint8_t *locked, uint32_t flags, DavitIds *out,
                            DavitReport *report)
{
    Job job = {.encoder = encoder, .out = out, .locked = locked};

    return encode(&job, text, len, flags, report);
}

int32_t davit_encode_pieces(DavitEncoder *encoder, const char *text, size_t len,
                            uint32_t flags, DavitPieceFn fn, void *ctx,
                            DavitReport *report)
{
    DavitIds ids = {0};
    Job job = {.encoder = encoder, .out = &ids, .fn = fn, .ctx = ctx};
    int32_t status = encode(&job, text, len, flags & ~DAVIT_ENCODE_SPECIAL, report);

    davit_ids_clear(&ids);
    return status;
}
