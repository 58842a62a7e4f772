/* SPDX-License-Identifier: Apache-2.0
 * libdavit's tokenizer without a model: encode, batches, decode, streams.
 */
#include "engine/private.h"

#include <pthread.h>
#include <string.h>

#define DAVIT_TEXT_PER_THREAD 131072u /* bytes of one text that are worth another thread */

struct davit_text {
    uint64_t magic; /* DAVIT_MAGIC_TEXT while it lives */
    DavitRegistry *registry;
    DavitTokenizer *tokenizer;
    pthread_mutex_t lock; /* not a GMutex: the thread sanitizer does not see those */
    GPtrArray *idle; /* DavitEncoder, warm, under lock */
};

struct davit_text_stream {
    uint64_t magic; /* DAVIT_MAGIC_STREAM */
    DavitDecoder *decoder;
    GString *out;
};

static bool is_text(const davit_text *text)
{
    return text && text->magic == DAVIT_MAGIC_TEXT;
}

static bool is_stream(const davit_text_stream *stream)
{
    return stream && stream->magic == DAVIT_MAGIC_STREAM;
}

/* ---- life ---- */

int davit_text_load(const davit_text_params *p, davit_text **out_text,
                    davit_records **out_records)
{
    if (!p || p->struct_size < offsetof(davit_text_params, plugin_paths) || !p->source ||
        !out_text)
        return davit_usage("davit_text_load needs a source", out_records);
    davit_text_params params = {0};
    memcpy(&params, p, MIN(sizeof params, p->struct_size));
    DavitReport *report = davit_report_new();
    const DavitRegistryOptions where = {.plugin_paths = params.plugin_paths,
                                        .trust_dirs = params.trust_dirs};
    davit_text *text = g_new0(davit_text, 1);
    text->magic = DAVIT_MAGIC_TEXT;
    pthread_mutex_init(&text->lock, NULL);
    text->idle = g_ptr_array_new_with_free_func((GDestroyNotify)davit_encoder_free);
    text->registry = davit_registry_open(&where, report);
    if (text->registry)
        text->tokenizer = davit_tokenizer_open(params.source, text->registry, report);
    int status = DAVIT_LIB_OK;
    if (!text->tokenizer) {
        const DavitRecord *r = davit_report_first_error(report, 0);
        status = r && r->status ? r->status : DAVIT_LIB_IO;
        g_clear_pointer(&text, davit_text_free);
    } else {
        *out_text = text;
    }
    davit_records_give(report, out_records);
    return status;
}

void davit_text_free(davit_text *text)
{
    if (!is_text(text))
        return;
    text->magic = 0;
    g_ptr_array_free(text->idle, TRUE);
    davit_tokenizer_free(text->tokenizer);
    davit_registry_free(text->registry);
    pthread_mutex_destroy(&text->lock);
    g_free(text);
}

int davit_text_describe(const davit_text *text, davit_text_info *out)
{
    if (!is_text(text) || !out)
        return DAVIT_LIB_USAGE;
    DavitTokenizerFacts f;
    davit_tokenizer_facts(text->tokenizer, &f);
    const davit_text_info full = {
        .struct_size = out->struct_size,
        .source = f.source,
        .family = f.family,
        .plugin = f.plugin,
        .shape = f.shape,
        .why = f.why,
        .model = f.model,
        .n_ids = davit_tokenizer_n_ids(text->tokenizer),
        .bos = davit_tokenizer_special(text->tokenizer, DAVIT_SPECIAL_BOS),
        .eos = davit_tokenizer_special(text->tokenizer, DAVIT_SPECIAL_EOS),
        .unk = davit_tokenizer_special(text->tokenizer, DAVIT_SPECIAL_UNK),
        .pad = davit_tokenizer_special(text->tokenizer, DAVIT_SPECIAL_PAD)};
    memcpy(out, &full, MIN(sizeof full, out->struct_size));
    return DAVIT_LIB_OK;
}

const char *davit_text_token(const davit_text *text, int32_t id, size_t *out_len)
{
    size_t len = 0;
    const char *token = is_text(text) ? davit_tokenizer_text(text->tokenizer, id, &len) : NULL;
    if (out_len)
        *out_len = token ? len : 0;
    return token;
}

int32_t davit_text_id(const davit_text *text, const char *token, size_t n)
{
    return is_text(text) && token ? davit_tokenizer_id(text->tokenizer, token, n) : -1;
}

int davit_text_is_special(const davit_text *text, int32_t id)
{
    return is_text(text) && davit_tokenizer_is_special(text->tokenizer, id);
}

/* ---- encode ---- */

static DavitEncoder *take_encoder(davit_text *text)
{
    DavitEncoder *encoder = NULL;
    pthread_mutex_lock(&text->lock);
    if (text->idle->len > 0)
        encoder = g_ptr_array_steal_index_fast(text->idle, text->idle->len - 1);
    pthread_mutex_unlock(&text->lock);
    return encoder ? encoder : davit_encoder_new(text->tokenizer);
}

static void give_encoder(davit_text *text, DavitEncoder *encoder)
{
    pthread_mutex_lock(&text->lock);
    g_ptr_array_add(text->idle, encoder);
    pthread_mutex_unlock(&text->lock);
}

void davit_encoding_clear(davit_encoding *encoding)
{
    if (!encoding || encoding->struct_size < offsetof(davit_encoding, starts))
        return;
    g_free(encoding->ids);
    encoding->ids = NULL;
    encoding->n = encoding->total = 0;
    if (encoding->struct_size < offsetof(davit_encoding, ends) + sizeof encoding->ends)
        return; /* a caller of the first version: nothing of its lies behind */
    g_free(encoding->starts);
    g_free(encoding->ends);
    encoding->starts = encoding->ends = NULL;
}

/* Take ids out of the text's end so that at most @max are left, those added stay. */
static void cut_to_limit(const davit_text *text, const davit_encode_params *p, DavitIds *ids,
                         GArray *spans)
{
    size_t n_front = 0, n_back = 0;
    if (!(p->flags & DAVIT_LIB_NO_SPECIAL)) {
        davit_tokenizer_prefix(text->tokenizer, &n_front);
        davit_tokenizer_suffix(text->tokenizer, &n_back);
    }
    const size_t added = n_front + n_back;
    const size_t keep = p->max_ids > added ? (size_t)p->max_ids - added : 0;
    if (p->max_ids == 0 || ids->n <= p->max_ids)
        return;
    if (n_back > 0)
        memmove(ids->ids + n_front + keep, ids->ids + ids->n - n_back,
                n_back * sizeof *ids->ids);
    if (spans)
        g_array_remove_range(spans, (guint)(n_front + keep),
                             (guint)(ids->n - added - keep));
    ids->n = added + keep;
}

/* Hand the ids over; takes the memory of @ids and @spans. */
static void fill(davit_encoding *out, DavitIds *ids, GArray *spans, size_t total)
{
    davit_encoding full = {.struct_size = out->struct_size, .ids = ids->ids, .n = ids->n,
                           .total = total};
    if (spans) {
        full.starts = g_new(uint64_t, spans->len + 1);
        full.ends = g_new(uint64_t, spans->len + 1);
        for (guint i = 0; i < spans->len; i++) {
            full.starts[i] = g_array_index(spans, DavitSpan, i).start;
            full.ends[i] = g_array_index(spans, DavitSpan, i).end;
        }
    }
    memcpy(out, &full, MIN(sizeof full, out->struct_size));
    *ids = (DavitIds){0};
}

/* The same with as much memory as the ids take, @ids keeps its own: a text of a batch may be a
 * word. */
static int32_t fill_exact(davit_encoding *out, const DavitIds *ids, GArray *spans, size_t total,
                          DavitReport *report)
{
    DavitIds exact = {.ids = g_try_new(int32_t, ids->n + 1), .n = ids->n};
    if (!exact.ids)
        return davit_report_add(report, &(DavitFinding){.code = DAVIT_R_OUT_OF_MEMORY,
                                                        .status = DAVIT_E_LIMIT,
                                                        .stage = "run",
                                                        .subject = "text",
                                                        .message = "no memory for the ids"});
    if (ids->n > 0)
        memcpy(exact.ids, ids->ids, ids->n * sizeof *exact.ids);
    fill(out, &exact, spans, total);
    return DAVIT_OK;
}

/* Who encodes. */
typedef struct Crew {
    davit_text *text;
    DavitEncoder *const *encoders;
    size_t n;       /* as many threads may work on a long text */
    DavitIds *kept; /* one buffer for the texts of a batch; NULL = the ids go to the caller */
} Crew;

static int32_t encode_one(const Crew *crew, const char *bytes, size_t n,
                          const davit_encode_params *p, davit_encoding *out,
                          DavitReport *report)
{
    g_autoptr(GArray) spans = p->flags & DAVIT_LIB_OFFSETS
                                  ? g_array_new(FALSE, FALSE, sizeof(DavitSpan))
                                  : NULL;
    const uint32_t how = (p->flags & DAVIT_LIB_NO_SPECIAL ? 0 : DAVIT_ENCODE_SPECIAL) |
                         (p->flags & DAVIT_LIB_SAFE ? DAVIT_ENCODE_SAFE : 0);
    DavitIds own = {0}, *ids = crew->kept ? crew->kept : &own;
    ids->n = 0;
    bytes = bytes ? bytes : ""; /* of no length */
    int32_t status =
        spans ? davit_encode_spans(crew->encoders[0], bytes, n, how, ids, spans, report)
              : davit_encode_threads(crew->encoders, crew->n, bytes, n, how, ids, report);
    if (status) {
        davit_ids_clear(&own);
        return status;
    }
    const size_t total = ids->n;
    cut_to_limit(crew->text, p, ids, spans);
    if (crew->kept)
        status = fill_exact(out, ids, spans, total, report);
    else
        fill(out, ids, spans, total);
    return status;
}

/* Are the arguments good? @out_p gets the parameters, defaults filled in. */
static bool read_params(const davit_text *text, const davit_encode_params *p,
                        davit_encode_params *out_p)
{
    *out_p = (davit_encode_params){0};
    if (p)
        memcpy(out_p, p, MIN(sizeof *out_p, p->struct_size));
    return is_text(text) && !(out_p->flags &
                     ~(DAVIT_LIB_NO_SPECIAL | DAVIT_LIB_SAFE | DAVIT_LIB_OFFSETS));
}

/* Does the caller's struct take what is asked for? */
static bool has_room(const davit_encoding *out, const davit_encode_params *p)
{
    return out->struct_size >= (p->flags & DAVIT_LIB_OFFSETS
                                    ? offsetof(davit_encoding, ends) + sizeof out->ends
                                    : offsetof(davit_encoding, starts));
}

static size_t count_threads(uint32_t wanted, size_t most)
{
    return MIN(MIN(wanted ? wanted : g_get_num_processors(), most), 256);
}

/* A text by itself, on several threads where it is long. */
static int32_t encode_alone(davit_text *text, const char *bytes, size_t n,
                            const davit_encode_params *p, davit_encoding *out,
                            DavitReport *report)
{
    const size_t n_encoders = count_threads(p->n_threads, 1 + n / DAVIT_TEXT_PER_THREAD);
    g_autofree DavitEncoder **encoders = g_new0(DavitEncoder *, n_encoders);
    for (size_t i = 0; i < n_encoders; i++)
        encoders[i] = take_encoder(text);
    const Crew crew = {text, encoders, n_encoders, NULL};
    const int32_t status = encode_one(&crew, bytes, n, p, out, report);
    for (size_t i = 0; i < n_encoders; i++)
        give_encoder(text, encoders[i]);
    return status;
}

int davit_text_encode(davit_text *text, const char *bytes, size_t n,
                      const davit_encode_params *params, davit_encoding *out,
                      davit_records **out_records)
{
    davit_encode_params p;
    if (!read_params(text, params, &p) || (!bytes && n) || !out || !has_room(out, &p))
        return davit_usage("davit_text_encode needs a text, known flags and room",
                           out_records);
    DavitReport *report = davit_report_new();
    const int32_t status = encode_alone(text, bytes, n, &p, out, report);
    davit_records_give(report, out_records);
    return status;
}

int davit_text_count(davit_text *text, const char *bytes, size_t n,
                     const davit_encode_params *params, size_t *out_count,
                     davit_records **out_records)
{
    davit_encode_params p;
    if (!read_params(text, params, &p) || (!bytes && n) || !out_count)
        return davit_usage("davit_text_count needs a text and known flags", out_records);
    DavitReport *report = davit_report_new();
    davit_encoding out = {.struct_size = sizeof out};
    p.flags &= ~DAVIT_LIB_OFFSETS;
    p.max_ids = 0;
    const int32_t status = encode_alone(text, bytes, n, &p, &out, report);
    if (!status)
        *out_count = out.total;
    davit_encoding_clear(&out);
    davit_records_give(report, out_records);
    return status;
}

/* ---- batch ---- */

typedef struct Batch {
    davit_text *text;
    const char *const *bytes;
    const size_t *n;
    size_t count;
    davit_encode_params params;
    davit_encoding *made;  /* count */
    int32_t *status;       /* count */
    DavitReport **reports; /* count; NULL where nothing was said */
    size_t next;           /* atomic */
} Batch;

static void *work(void *data)
{
    Batch *b = data;
    DavitEncoder *encoder = take_encoder(b->text);
    DavitReport *report = davit_report_new(); /* of the next text that fails */
    DavitIds kept = {0};
    const Crew crew = {b->text, &encoder, 1, &kept};
    for (;;) {
        const size_t i = __atomic_fetch_add(&b->next, 1, __ATOMIC_RELAXED);
        if (i >= b->count)
            break;
        b->made[i].struct_size = sizeof *b->made;
        b->status[i] =
            encode_one(&crew, b->bytes[i], b->n[i], &b->params, &b->made[i], report);
        if (!b->status[i])
            continue;
        b->reports[i] = report;
        report = davit_report_new();
    }
    davit_ids_clear(&kept);
    davit_report_free(report);
    give_encoder(b->text, encoder);
    return NULL;
}

static void run_batch(Batch *b)
{
    const size_t n = count_threads(b->params.n_threads, b->count);
    g_autofree GThread **threads = g_new0(GThread *, n + 1);
    for (size_t i = 1; i < n; i++) /* one that cannot be started is not missed */
        threads[i] = g_thread_try_new("davit-text", work, b, NULL);
    work(b);
    for (size_t i = 1; i < n; i++) {
        if (threads[i])
            g_thread_join(threads[i]);
    }
}

int davit_text_encode_batch(davit_text *text, const char *const *bytes, const size_t *n,
                            size_t count, const davit_encode_params *params,
                            davit_encoding *out, davit_records **out_records)
{
    Batch b = {.text = text, .bytes = bytes, .n = n, .count = count};
    if (!read_params(text, params, &b.params) || (count && (!bytes || !n || !out)))
        return davit_usage("davit_text_encode_batch needs texts, known flags and room",
                           out_records);
    for (size_t i = 0; i < count; i++) {
        if ((!bytes[i] && n[i]) || !has_room(&out[i], &b.params))
            return davit_usage("davit_text_encode_batch needs texts and room", out_records);
    }
    b.made = g_new0(davit_encoding, count + 1);
    b.status = g_new0(int32_t, count + 1);
    b.reports = g_new0(DavitReport *, count + 1);
    run_batch(&b);
    size_t bad = 0;
    while (bad < count && !b.status[bad])
        bad++;
    const int32_t status = bad < count ? b.status[bad] : DAVIT_LIB_OK;
    for (size_t i = 0; i < count; i++) {
        const uint64_t size = out[i].struct_size;
        if (status)
            davit_encoding_clear(&b.made[i]);
        else
            memcpy(&out[i], &b.made[i], MIN(sizeof out[i], size));
        out[i].struct_size = size;
        if (i != bad)
            davit_report_free(b.reports[i]);
    }
    davit_records_give(status ? b.reports[bad] : davit_report_new(), out_records);
    g_free(b.made);
    g_free(b.status);
    g_free(b.reports);
    return status;
}

/* ---- decode ---- */

int davit_text_decode(const davit_text *text, const int32_t *ids, size_t n,
                      int skip_special, char **out, size_t *out_len)
{
    if (!is_text(text) || (!ids && n) || !out)
        return DAVIT_LIB_USAGE;
    GString *made = g_string_new(NULL);
    davit_decode(text->tokenizer, ids, n, skip_special != 0, made);
    if (out_len)
        *out_len = made->len;
    *out = g_string_free(made, FALSE);
    return DAVIT_LIB_OK;
}

davit_text_stream *davit_text_stream_new(const davit_text *text, int skip_special)
{
    if (!is_text(text))
        return NULL;
    davit_text_stream *stream = g_new0(davit_text_stream, 1);
    stream->magic = DAVIT_MAGIC_STREAM;
    stream->decoder = davit_decoder_new(text->tokenizer, skip_special != 0);
    stream->out = g_string_new(NULL);
    return stream;
}

void davit_text_stream_free(davit_text_stream *stream)
{
    if (!is_stream(stream))
        return;
    stream->magic = 0;
    davit_decoder_free(stream->decoder);
    g_string_free(stream->out, TRUE);
    g_free(stream);
}

int davit_text_stream_push(davit_text_stream *stream, int32_t id, const char **out,
                           size_t *out_len)
{
    if (!is_stream(stream) || !out || !out_len)
        return DAVIT_LIB_USAGE;
    g_string_truncate(stream->out, 0);
    const bool known = davit_decoder_push(stream->decoder, id, stream->out);
    *out = stream->out->str;
    *out_len = stream->out->len;
    return known ? DAVIT_LIB_OK : DAVIT_LIB_USAGE;
}

int davit_text_stream_end(davit_text_stream *stream, const char **out, size_t *out_len)
{
    if (!is_stream(stream) || !out || !out_len)
        return DAVIT_LIB_USAGE;
    g_string_truncate(stream->out, 0);
    davit_decoder_flush(stream->decoder, stream->out);
    *out = stream->out->str;
    *out_len = stream->out->len;
    return DAVIT_LIB_OK;
}
