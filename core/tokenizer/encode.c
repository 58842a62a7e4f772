/* SPDX-License-Identifier: Apache-2.0
 * Text to ids, in the order of Hugging Face's encode: added tokens of the raw text, the
 * normaliser, added tokens of the normalised text, the pre-tokenizer, the model; then the
 * post-processor round all of it. Nothing is allocated per piece or id.
 */
#include "tokenizer/encode.h"

#include <string.h>

#include <davit/help/ucd.h>

#include "base/unicode.h"
#include "tokenizer/origin.h"

DavitEncoder *davit_encoder_new(const DavitTokenizer *tokenizer)
{
    DavitEncoder *encoder = g_new0(DavitEncoder, 1);

    encoder->tokenizer = tokenizer;
    encoder->ends = g_new(uint64_t, DAVIT_SCAN_CAP);
    encoder->ends_cap = DAVIT_SCAN_CAP;
    encoder->normal = (DavitNormalScratch){g_string_new(NULL), g_string_new(NULL), NULL};
    encoder->marked = g_string_new(NULL);
    encoder->front = g_string_new(NULL);
    return encoder;
}

void davit_encoder_free(DavitEncoder *encoder)
{
    if (!encoder)
        return;
    g_free(encoder->words);
    g_free(encoder->ends);
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

/* ---- added tokens ---- */

/* @raw: the splitter walks the raw text. */
static int32_t add_token(DavitEncodeJob *job, const DavitSplitter *splitter,
                         const DavitPart *part, bool raw)
{
    const size_t before = job->out->n;
    const size_t len = part->end > part->start ? part->end - part->start : 0;
    const char *text = splitter->text + part->start;

    if (job->stretches) {
        const DavitStretch added = {.added = part->added->id};

        g_array_append_val(job->stretches, added);
        return DAVIT_OK;
    }
    if (!davit_ids_reserve(job->out, 1))
        return DAVIT_E_LIMIT;
    job->out->ids[job->out->n++] = part->added->id;
    if (job->align) {
        if (raw)
            davit_align_start(job->align, text, len, (uint64_t)(text - job->start));
        davit_align_token(job->align, text, len);
    }
    davit_encode_tell(job, text, len, before, true);
    return DAVIT_OK;
}

static int32_t give_part(DavitEncodeJob *job, const char *text, size_t len, bool first)
{
    if (!job->stretches)
        return davit_encode_part(job, text, len, first);
    davit_encode_list(job, text, len, first);
    return DAVIT_OK;
}

static size_t count_beyond_ascii(const char *text, size_t len)
{
    size_t n = 0;
    uint64_t word;

    for (; len >= sizeof word; text += sizeof word, len -= sizeof word) {
        memcpy(&word, text, sizeof word);
        n += (word >> 7 & 0x0101010101010101u) * 0x0101010101010101u >> 56;
    }
    for (; len > 0; text++, len--)
        n += (uint8_t)*text >> 7;
    return n;
}

/* Byte-level models have tables of characters, which pure ASCII never asks for. */
static void widen(DavitEncodeJob *job, const char *text, size_t len)
{
    const DavitTokenizer *t = job->encoder->tokenizer;
    size_t n;

    if (job->wide || t->model != DAVIT_MODEL_BPE || !t->bpe.byte_level)
        return;
    n = count_beyond_ascii(text, len);
    if (n > 0 || t->pretok.meta != DAVIT_META_NONE)
        job->wide = davit_bpe_need_chars(davit_encode_bpe(job), n);
}

/* The first character of @text that NFKC changes, 0 = none. What NFKC leaves alone NFC does, too. */
static uint32_t first_changed(const char *text, size_t len)
{
    g_autoptr(GString) form = NULL;
    size_t at = 0;
    uint32_t n;

    if (davit_form_is_plain(DAVIT_FORM_NFKC, text, len))
        return 0;
    form = g_string_new(NULL);
    davit_form_append(DAVIT_FORM_NFKC, form, text, len);
    if (form->len == len && memcmp(form->str, text, len) == 0)
        return 0;
    while (at < len && at < form->len && text[at] == form->str[at])
        at++;
    while (at > 0 && (at == len || ((uint8_t)text[at] & 0xc0) == 0x80))
        at--;
    return davit_ucd_decode(text, len, at, &n);
}

/* Which bytes of the normalised @text come from locked ones of @raw: (owned) [len], NULL when memory
 * is gone. @origin has each byte's. What a character swallowed (an accent that NFC joins to it)
 * lies between its origin and the next one's, and counts; what was only dropped does not. */
static uint8_t *lock_normal(const GArray *origin, const char *raw, size_t raw_len,
                            const uint8_t *locked, const char *text, size_t len)
{
    uint8_t *out = g_try_malloc0(len + 1);
    size_t next = raw_len, above = raw_len; /* the start of another origin behind; of this one */

    for (size_t i = len; out && i-- > 0;) {
        const DavitOrigin *o = &g_array_index(origin, DavitOrigin, i);
        size_t end = MIN(o->end, raw_len);

        if (o->start != above) {
            next = above;
            above = o->start;
        }
        if (end - MIN(o->start, end) != 1 || text[i] != raw[o->start])
            end = MAX(end, o->start == o->end ? end : next);
        out[i] = o->start < end && memchr(locked + o->start, 1, end - o->start) != NULL;
    }
    return out;
}

/* Pass 2 and on, over a raw part. */
static int32_t encode_raw(DavitEncodeJob *job, const char *text, size_t len, bool first)
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
    g_autoptr(GArray) origin = NULL;
    g_autofree uint8_t *locked_text = NULL;

    if (t->open && (encoder->open_cp = first_changed(text, len)) != 0)
        return DAVIT_E_UNSUPPORTED;
    if (job->align)
        davit_align_start(job->align, text, len, (uint64_t)(text - job->start));
    if (locked && t->normal_special && memchr(locked, 1, len))
        origin = g_array_new(FALSE, FALSE, sizeof(DavitOrigin));
    encoder->normal.origin = job->align ? job->align->origin : origin;
    text = davit_normalize(t->normalizer, &encoder->normal, text, len, &len, &cut);
    encoder->normal.origin = NULL;
    if (!text)
        return DAVIT_E_LIMIT;
    const bool same = text == raw && len == raw_len;
    if (job->align && !same)
        davit_align_normal(job->align, job->normal, text, len);
    widen(job, text, len);
    if (job->stretches &&
        !same) { /* the scratch is used again before its stretches are */
        char *copy = g_try_malloc(len + 1);

        if (!copy)
            return DAVIT_E_LIMIT;
        memcpy(copy, text, len);
        g_ptr_array_add(job->kept, copy);
        text = copy;
    }
    if (origin && !same && origin->len == len) {
        locked_text = lock_normal(origin, raw, raw_len, locked, text, len);
        if (!locked_text)
            return DAVIT_E_LIMIT;
    }
    /* where bytes have no origin, one locked byte locks the part */
    davit_splitter_init(&splitter, t->normal, text, len,
                        job->safe || (locked && !same && !locked_text && memchr(locked, 1, raw_len)));
    splitter.locked = same ? locked : locked_text;
    while (status == DAVIT_OK && davit_splitter_next(&splitter, &part)) {
        status = part.added ? add_token(job, &splitter, &part, false)
                            : give_part(job, text + part.start, part.end - part.start,
                                        first && !cut && part.start == 0);
    }
    if (job->align)
        davit_align_end(job->align);
    return status;
}

static int32_t encode_text(DavitEncodeJob *job, const char *text, size_t len)
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

/* An open tokenizer, and a text that what is not known of it matters for. */
static int32_t refuse_open(const DavitEncoder *encoder, DavitReport *report)
{
    return davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_TOKENIZER_UNSUPPORTED,
            .status = DAVIT_E_UNSUPPORTED,
            .stage = "run",
            .subject = "text",
            .expected = encoder->open_cp ? "text that NFC and NFKC leave alone"
                                         : "words that merging makes as they are in the vocabulary",
            .found = encoder->open_cp ? davit_report_text(report, "U+%04X", encoder->open_cp)
                                      : "a word that it makes otherwise",
            .message = "the ids of this text depend on what a GGUF leaves out: the normaliser, and "
                       "whether whole words are looked up",
            .hint = "put the model's tokenizer.json beside the GGUF"});
}

/* Make a record of a status that one of the steps gave. */
static int32_t refuse(const DavitEncoder *encoder, DavitReport *report, int32_t status)
{
    if (status == DAVIT_E_UNSUPPORTED)
        return refuse_open(encoder, report);
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

/* Cut the ids of the text, which begin at @body, and return how many pads go where. */
static DavitFitting fit_body(const DavitEncodeJob *job, size_t body, uint32_t flags)
{
    const DavitTokenizer *t = job->encoder->tokenizer;
    const size_t added =
        flags & DAVIT_ENCODE_SPECIAL ? t->post.prefix.n + t->post.suffix.n : 0;
    const DavitFitting fitting = davit_fit(&t->fit, job->out->n - body, added);

    if (fitting.from > 0 && fitting.n > 0)
        memmove(job->out->ids + body, job->out->ids + body + fitting.from,
                fitting.n * sizeof *job->out->ids);
    job->out->n = body + fitting.n;
    return fitting;
}

/* Pads before @first, and behind all. */
static int32_t pad_ids(const DavitEncodeJob *job, size_t first, DavitFitting fitting)
{
    const int32_t pad = job->encoder->tokenizer->fit.pad;
    DavitIds *out = job->out;

    if (fitting.front + fitting.back == 0)
        return DAVIT_OK;
    if (!davit_ids_reserve(out, fitting.front + fitting.back))
        return DAVIT_E_LIMIT;
    memmove(out->ids + first + fitting.front, out->ids + first,
            (out->n - first) * sizeof *out->ids);
    for (size_t i = 0; i < fitting.front; i++)
        out->ids[first + i] = pad;
    out->n += fitting.front;
    for (size_t i = 0; i < fitting.back; i++)
        out->ids[out->n++] = pad;
    return DAVIT_OK;
}

int32_t davit_encode_run(DavitEncodeJob *job, const char *text, size_t len,
                         uint32_t flags, DavitReport *report)
{
    const DavitPost *post = &job->encoder->tokenizer->post;
    const size_t before = job->out->n;
    DavitFitting fitting = {0};
    size_t body;
    int32_t status = refuse_text(report, text, len);

    if (status != DAVIT_OK)
        return status;
    job->safe = flags & DAVIT_ENCODE_SAFE;
    job->encoder->open_cp = 0;
    if (flags & DAVIT_ENCODE_SPECIAL)
        status = append_ids(job->out, &post->prefix);
    body = job->out->n;
    if (status == DAVIT_OK)
        status = encode_text(job, text, len);
    if (status == DAVIT_OK && job->stretches)
        status = davit_encode_listed(job);
    if (status == DAVIT_OK)
        fitting = fit_body(job, body, flags);
    if (status == DAVIT_OK && (flags & DAVIT_ENCODE_SPECIAL))
        status = append_ids(job->out, &post->suffix);
    if (status == DAVIT_OK)
        status = pad_ids(job, before, fitting);
    if (status == DAVIT_OK)
        return DAVIT_OK;
    job->out->n = before;
    return refuse(job->encoder, report, status);
}

int32_t davit_encode(DavitEncoder *encoder, const char *text, size_t len, uint32_t flags,
                     DavitIds *out, DavitReport *report)
{
    DavitEncodeJob job = {.encoder = encoder, .out = out};

    return davit_encode_run(&job, text, len, flags, report);
}

static void append_spans(GArray *spans, size_t n, uint64_t at)
{
    const DavitSpan span = {at, at};

    for (size_t i = 0; i < n; i++)
        g_array_append_val(spans, span);
}

/* The same cuts and pads for the spans from @before on, of a text of @len bytes. */
static void fit_spans(const DavitTokenizer *t, GArray *spans, guint before, guint body,
                      uint32_t flags, size_t len)
{
    const bool special = flags & DAVIT_ENCODE_SPECIAL;
    const DavitFitting fitting =
        davit_fit(&t->fit, spans->len - body,
                  special ? t->post.prefix.n + t->post.suffix.n : 0);
    const DavitSpan none = {0, 0};

    if (fitting.from > 0)
        g_array_remove_range(spans, body, (guint)fitting.from);
    g_array_set_size(spans, body + (guint)fitting.n);
    if (special)
        append_spans(spans, t->post.suffix.n, len);
    append_spans(spans, fitting.back, len);
    for (size_t i = 0; i < fitting.front; i++)
        g_array_insert_val(spans, before, none);
}

int32_t davit_encode_spans(DavitEncoder *encoder, const char *text, size_t len,
                           uint32_t flags, DavitIds *out, GArray *spans,
                           DavitReport *report)
{
    const DavitTokenizer *t = encoder->tokenizer;
    g_autoptr(GArray) origin = g_array_new(FALSE, FALSE, sizeof(DavitOrigin));
    g_autoptr(GArray) normal_spans = g_array_new(FALSE, FALSE, sizeof(DavitSpan));
    DavitAlign normal = {.spans = normal_spans};
    DavitAlign align = {.tokenizer = t, .spans = spans, .origin = origin};
    DavitEncodeJob job = {.encoder = encoder, .out = out, .align = &align, .normal = &normal,
                          .start = text};
    const guint before = spans->len;
    int32_t status;

    if (flags & DAVIT_ENCODE_SPECIAL)
        append_spans(spans, t->post.prefix.n, 0);
    const guint body = spans->len;
    status = davit_encode_run(&job, text, len, flags, report);
    encoder->normal.origin = NULL;
    if (status != DAVIT_OK) {
        g_array_set_size(spans, before);
        return status;
    }
    for (guint i = body; t->front_space && i < spans->len; i++) {
        DavitSpan *span = &g_array_index(spans, DavitSpan, i);

        span->start -= span->start > 0;
        span->end -= span->end > 0;
    }
    fit_spans(t, spans, before, body, flags, len);
    return DAVIT_OK;
}

int32_t davit_encode_locked(DavitEncoder *encoder, const char *text, size_t len,
                            const uint8_t *locked, uint32_t flags, DavitIds *out,
                            DavitReport *report)
{
    DavitEncodeJob job = {.encoder = encoder, .out = out, .locked = locked};

    return davit_encode_run(&job, text, len, flags, report);
}

int32_t davit_encode_pieces(DavitEncoder *encoder, const char *text, size_t len,
                            uint32_t flags, DavitPieceFn fn, void *ctx,
                            DavitReport *report)
{
    DavitIds ids = {0};
    DavitEncodeJob job = {.encoder = encoder, .out = &ids, .fn = fn, .ctx = ctx};
    int32_t status =
        davit_encode_run(&job, text, len, flags & ~DAVIT_ENCODE_SPECIAL, report);

    davit_ids_clear(&ids);
    return status;
}
