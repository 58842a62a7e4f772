/* SPDX-License-Identifier: Apache-2.0
 * SentencePiece .model: a protobuf of pieces with score and type, what the trainer did, and
 * how text is normalised. Format: sentencepiece, src/sentencepiece_model.proto.
 *
 * The contract is "equal to sentencepiece". BPE joins the neighbours whose joined piece
 * scores best: all splits of every piece, in the order of scores. Unigram takes the best sum
 * of scores behind sentencepiece's own normaliser.
 */
#include <string.h>

#include <davit/help/ucd.h>

#include "tokenizer/protobuf.h"
#include "tokenizer/tokenizer_private.h"

#define MARK "\xe2\x96\x81" /* U+2581, what a space becomes */

/* SentencePiece.Type */
enum { TYPE_NORMAL = 1, TYPE_UNKNOWN, TYPE_CONTROL, TYPE_USER, TYPE_UNUSED, TYPE_BYTE };

/* What is read of a file. */
typedef struct Model {
    DavitTokParts *parts; /* (borrowed) */
    DavitReport *report;
    GArray *scores; /* float, by id */
    GArray *types;  /* uint8_t, by id */
    uint64_t model_type;
    bool byte_fallback, suffix;
    bool dummy_prefix, strip_spaces, escape_spaces;
    davit_span charsmap; /* len 0 = none */
    int64_t unknown, control; /* ids of the last piece of type UNKNOWN, and of a CONTROL of one character; -1 */
    uint32_t n_unknown;
    int64_t bos, eos, pad;
} Model;

static int32_t invalid(const Model *m, const char *member, const char *expected,
                       const char *message)
{
    return davit_tok_invalid(m->parts, m->report, member, expected, NULL, message);
}

static int32_t unsupported(const Model *m, const char *member, const char *expected,
                           const char *found)
{
    return davit_report_add(
        m->report,
        &(DavitFinding){
            .code = DAVIT_R_TOKENIZER_UNSUPPORTED,
            .status = DAVIT_E_UNSUPPORTED,
            .stage = "open",
            .subject = davit_report_text(m->report, "%s: %s", m->parts->subject, member),
            .expected = expected,
            .found = found,
            .message = "this build does not know the tokenizer exactly, and a guess "
                       "would give other ids",
            .hint = "use the model's tokenizer.json, if it has one"});
}

/* ---- messages ---- */

static int32_t read_piece(Model *m, davit_span message)
{
    const int64_t id = m->scores->len;
    davit_span text = {NULL, 0};
    float score = 0;
    uint8_t type = TYPE_NORMAL;
    DavitProtobufField f;
    int more;

    while ((more = davit_protobuf_next(&message, &f)) > 0) {
        if (f.number == 1 && f.wire == 2)
            text = f.bytes;
        else if (f.number == 2 && f.wire == 5)
            score = davit_protobuf_float(f.bytes);
        else if (f.number == 3 && f.wire == 0)
            type = f.value > TYPE_BYTE ? 0 : (uint8_t)f.value;
    }
    if (more < 0 || !text.ptr || text.len == 0 || type == 0 || score != score ||
        davit_ucd_check(text.ptr, text.len) != text.len)
        return invalid(m, "pieces", "UTF-8, a score, a type from 1 to 6",
                       "a piece is malformed");
    if (davit_vocab_add(m->parts->vocab, id, text.ptr, text.len) != DAVIT_VOCAB_ADDED)
        return invalid(m, "pieces", "at most 16777217 pieces", "there are too many");
    g_array_append_val(m->scores, score);
    g_array_append_val(m->types, type);
    if (type == TYPE_UNKNOWN) {
        m->unknown = id;
        m->n_unknown++;
    }
    if (type == TYPE_CONTROL && g_utf8_strlen(text.ptr, (gssize)text.len) == 1)
        m->control = id;
    if (type == TYPE_CONTROL || type == TYPE_UNKNOWN || type == TYPE_USER) {
        const DavitAdded added = {.text = davit_tok_copy(text.ptr, text.len),
                                  .len = text.len,
                                  .id = (int32_t)id,
                                  .flags = type == TYPE_USER
                                               ? DAVIT_ADDED_NORMALIZED
                                               : DAVIT_ADDED_SPECIAL | DAVIT_ADDED_HIDDEN};

        g_array_append_val(m->parts->added, added);
    }
    return DAVIT_OK;
}

static int32_t read_trainer(Model *m, davit_span message)
{
    DavitProtobufField f;
    int more;

    while ((more = davit_protobuf_next(&message, &f)) > 0) {
        if (f.wire != 0)
            continue;
        if (f.number == 3)
            m->model_type = f.value;
        else if (f.number == 24)
            m->suffix = f.value != 0;
        else if (f.number == 35)
            m->byte_fallback = f.value != 0;
        else if (f.number == 41)
            m->bos = (int32_t)f.value;
        else if (f.number == 42)
            m->eos = (int32_t)f.value;
        else if (f.number == 43)
            m->pad = (int32_t)f.value;
    }
    return more < 0 ? invalid(m, "trainer_spec", "a protobuf message", "the message is malformed")
                    : DAVIT_OK;
}

static int32_t read_normalizer(Model *m, davit_span message)
{
    DavitProtobufField f;
    int more;

    while ((more = davit_protobuf_next(&message, &f)) > 0) {
        if (f.number == 2 && f.wire == 2)
            m->charsmap = f.bytes;
        else if (f.number == 3 && f.wire == 0)
            m->dummy_prefix = f.value != 0;
        else if (f.number == 4 && f.wire == 0)
            m->strip_spaces = f.value != 0;
        else if (f.number == 5 && f.wire == 0)
            m->escape_spaces = f.value != 0;
    }
    return more < 0 ? invalid(m, "normalizer_spec", "a protobuf message", "the message is malformed")
                    : DAVIT_OK;
}

static int32_t read_messages(Model *m, davit_span file)
{
    int32_t status = DAVIT_OK;
    DavitProtobufField f;
    int more;

    while (status == DAVIT_OK && (more = davit_protobuf_next(&file, &f)) != 0) {
        if (more < 0)
            return invalid(m, "file", "a SentencePiece model", "the protobuf is broken");
        if (f.wire != 2)
            continue;
        if (f.number == 1)
            status = read_piece(m, f.bytes);
        else if (f.number == 2)
            status = read_trainer(m, f.bytes);
        else if (f.number == 3)
            status = read_normalizer(m, f.bytes);
    }
    return status;
}

/* ---- what this build can do exactly ---- */

static int32_t check_model(const Model *m)
{
    static const char *const names[] = {"?", "unigram", "bpe", "word", "char"};

    if (m->scores->len == 0)
        return invalid(m, "pieces", "at least one", "the file has no pieces");
    if (m->model_type != 1 && m->model_type != 2)
        return unsupported(m, "trainer_spec.model_type", "unigram or bpe",
                           names[m->model_type < 5 ? m->model_type : 0]);
    if (m->suffix)
        return unsupported(m, "trainer_spec.treat_whitespace_as_suffix", "false", "true");
    if (!m->escape_spaces)
        return unsupported(m, "normalizer_spec.escape_whitespaces", "true", "false");
    if (m->n_unknown != 1)
        return invalid(m, "pieces", "one of type UNKNOWN", "sentencepiece needs exactly one");
    if (m->model_type == 1)
        return DAVIT_OK;
    if (m->control >= 0) /* merging begins with characters, of which this would be one */
        return unsupported(m, "pieces", "no control piece of one character", "one");
    for (guint i = 0; i < m->types->len; i++) {
        if (g_array_index(m->types, uint8_t, i) == TYPE_UNUSED)
            return unsupported(m, "pieces", "no piece of type UNUSED", "one");
    }
    return DAVIT_OK;
}

/* ---- merges ---- */

typedef struct Ranked {
    float score;
    uint32_t id;
} Ranked;

static int by_score(const void *a, const void *b)
{
    const Ranked *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static int32_t find_normal(const Model *m, const char *text, size_t len)
{
    const int32_t id = davit_vocab_find(m->parts->vocab, text, len);

    return id >= 0 && g_array_index(m->types, uint8_t, id) == TYPE_NORMAL ? id : -1;
}

/* All splits of piece @id with @rank. A character without a piece of its own would have to
 * be joined by its text, which merging by ids cannot do. */
static int32_t add_splits(Model *m, uint32_t id, uint32_t rank)
{
    size_t len;
    const char *text = davit_vocab_text(m->parts->vocab, id, &len);
    int32_t status;
    uint32_t n;

    davit_ucd_decode(text, len, 0, &n);
    if (n == len)
        return DAVIT_OK;
    status = davit_tok_check_split(m->parts, "pieces", len, m->report);
    if (status)
        return status;
    for (size_t at = 0; at < len; at += n) {
        int32_t left, right;

        davit_ucd_decode(text, len, at, &n);
        if (find_normal(m, text + at, n) < 0)
            return unsupported(m, "pieces", "a piece for every character of a piece",
                               davit_report_text(m->report, "piece %u", id));
        left = at > 0 ? find_normal(m, text, at) : -1;
        right = left >= 0 ? find_normal(m, text + at, len - at) : -1;
        if (right >= 0) {
            const DavitMerge merge = {(uint32_t)left, (uint32_t)right, rank, id};

            g_array_append_val(m->parts->merges, merge);
        }
    }
    return DAVIT_OK;
}

static int32_t make_merges(Model *m)
{
    const size_t n = m->scores->len;
    g_autofree Ranked *order = g_try_new(Ranked, n);
    const int32_t twin = order ? davit_vocab_seal(m->parts->vocab) : -2;
    uint32_t rank = 0;
    int32_t status = DAVIT_OK;

    if (twin >= 0)
        return invalid(m, "pieces", "a text of its own", "two pieces have one text");
    if (twin == -2)
        return davit_report_add(m->report,
                                &(DavitFinding){.code = DAVIT_R_OUT_OF_MEMORY,
                                                .status = DAVIT_E_LIMIT,
                                                .stage = "open",
                                                .subject = m->parts->subject,
                                                .message = "no memory for the pieces"});
    for (size_t i = 0; i < n; i++)
        order[i] = (Ranked){g_array_index(m->scores, float, i), (uint32_t)i};
    qsort(order, n, sizeof *order, by_score);
    for (size_t i = 0; i < n && status == DAVIT_OK; i++) {
        if (i > 0 && order[i].score != order[i - 1].score)
            rank++;
        if (g_array_index(m->types, uint8_t, order[i].id) == TYPE_NORMAL)
            status = add_splits(m, order[i].id, rank);
    }
    return status;
}

/* ---- unigram ---- */

static int32_t refuse_memory(const Model *m)
{
    return davit_report_add(m->report, &(DavitFinding){.code = DAVIT_R_OUT_OF_MEMORY,
                                                       .status = DAVIT_E_LIMIT,
                                                       .stage = "open",
                                                       .subject = m->parts->subject,
                                                       .message =
                                                           "no memory for the pieces"});
}

/* sentencepiece's normaliser; user-defined pieces pass it as they are. */
static int32_t make_rules(Model *m)
{
    DavitSpmRules rules = {.dummy_prefix = m->dummy_prefix,
                           .strip_spaces = m->strip_spaces};
    const size_t n = m->types->len;
    g_autofree uint8_t *skip = g_try_new0(uint8_t, n + 1);
    bool user = false;
    const char *why = NULL;

    if (!skip)
        return refuse_memory(m);
    for (size_t i = 0; i < n; i++) {
        skip[i] = g_array_index(m->types, uint8_t, i) != TYPE_USER;
        user |= !skip[i];
    }
    if (m->charsmap.len > 0)
        rules.map = davit_charsmap_new((const uint8_t *)m->charsmap.ptr, m->charsmap.len,
                                       &why);
    if (why)
        return invalid(m, "normalizer_spec.precompiled_charsmap",
                       davit_report_text(m->report, "a whole charsmap: %s", why),
                       "the charsmap is malformed");
    if (user && davit_pieces_of_vocab(&rules.user, m->parts->vocab, skip) !=
                    DAVIT_PIECES_MADE) {
        davit_spm_rules_clear(&rules);
        return refuse_memory(m);
    }
    m->parts->own_normalizer = davit_normalizer_spm(&rules);
    return DAVIT_OK;
}

/* BPE: where text is only marked, steps whose spans are exact do. User-defined pieces are cut
 * out of the normalised text as they are spelled. */
static int32_t make_bpe_rules(Model *m)
{
    if (m->charsmap.len == 0 && !m->strip_spaces)
        return DAVIT_OK;
    m->parts->added_as_spelled = true;
    return make_rules(m);
}

/* The least float above zero that is normal: what the maximum of scores starts from. */
#define LEAST_FLOAT 1.17549435e-38f

/* User-defined pieces score so that they win: unigram_model.cc, EncodeOptimized. */
static int32_t make_scores(Model *m)
{
    DavitTokParts *parts = m->parts;
    float most = LEAST_FLOAT;

    for (guint i = 0; i < m->scores->len; i++) {
        if (g_array_index(m->types, uint8_t, i) == TYPE_NORMAL)
            most = MAX(most, g_array_index(m->scores, float, i));
    }
    for (guint i = 0; i < m->scores->len; i++) {
        const uint8_t type = g_array_index(m->types, uint8_t, i);
        double score = (double)g_array_index(m->scores, float, i);
        uint8_t apart = type == TYPE_NORMAL ? 0 : DAVIT_SCORE_APART;
        size_t len = 0;

        if (type == TYPE_USER) {
            davit_vocab_text(parts->vocab, i, &len);
            score = (double)((float)len * most) - 0.1;
        } else if (type != TYPE_NORMAL) {
            apart |= DAVIT_SCORE_SKIP;
        }
        if (score - score != 0)
            return invalid(m, "pieces", "finite scores", "a score is not finite");
        g_array_append_val(parts->scores, score);
        g_array_append_val(parts->types, apart);
    }
    return DAVIT_OK;
}

static int32_t make_unigram(Model *m)
{
    DavitTokParts *parts = m->parts;
    const int32_t twin = davit_vocab_seal(parts->vocab);
    int32_t status = DAVIT_OK;

    if (twin >= 0)
        return invalid(m, "pieces", "a text of its own", "two pieces have one text");
    if (twin == -2)
        return refuse_memory(m);
    for (unsigned b = 0; m->byte_fallback && b < 256; b++) {
        char name[8];

        g_snprintf(name, sizeof name, "<0x%02X>", b);
        if (davit_vocab_find(parts->vocab, name, 6) < 0)
            return invalid(m, "pieces", "a piece for every byte",
                           "byte_fallback is set and a byte has no piece");
    }
    for (guint i = 0; i < parts->added->len; i++) /* the scores find user-defined ones */
        g_array_index(parts->added, DavitAdded, i).flags |= DAVIT_ADDED_HIDDEN;
    parts->model = DAVIT_MODEL_UNIGRAM;
    parts->sentencepiece = true;
    davit_report_add(m->report,
                     &(DavitFinding){.code = DAVIT_R_ASSUMED,
                                     .severity = DAVIT_NOTE,
                                     .stage = "open",
                                     .subject = parts->subject,
                                     .message = "ids are sentencepiece's; what a model's own "
                                                "code does besides (lower case, other ids, "
                                                "end of text) is not in the file"});
    status = make_scores(m);
    return status == DAVIT_OK ? make_rules(m) : status;
}

/* ---- whole ---- */

/* An id of trainer_spec that is a piece; -1 else. */
static int32_t role(const Model *m, int64_t id)
{
    return id >= 0 && id < (int64_t)m->scores->len ? (int32_t)id : -1;
}

static int32_t fill_parts(Model *m)
{
    DavitTokParts *parts = m->parts;
    size_t len = 0;
    /* what is encoded is the piece of that type, whatever trainer_spec.unk_id says */
    const char *unk = davit_vocab_text(parts->vocab, m->unknown, &len);

    parts->specials[DAVIT_SPECIAL_BOS] = role(m, m->bos);
    parts->specials[DAVIT_SPECIAL_EOS] = role(m, m->eos);
    parts->specials[DAVIT_SPECIAL_UNK] = (int32_t)m->unknown;
    parts->specials[DAVIT_SPECIAL_PAD] = role(m, m->pad);
    if (!unk)
        return invalid(m, "pieces", "one of type UNKNOWN", "there is no unknown piece");
    parts->unk = davit_tok_copy(unk, len);
    parts->unk_len = len;
    parts->byte_fallback = m->byte_fallback;
    parts->fuse_unk = true;
    parts->unk_id = parts->specials[DAVIT_SPECIAL_UNK];
    parts->front_space = m->dummy_prefix && !parts->own_normalizer;
    parts->normalizer = json_pack("{s:s,s:{s:s},s:s}", "type", "Replace", "pattern",
                                  "String", " ", "content", MARK);
    parts->decoder = json_pack(
        "{s:s,s:[{s:s,s:{s:s},s:s},{s:s},{s:s}]}", "type", "Sequence", "decoders", "type",
        "Replace", "pattern", "String", MARK, "content", " ", "type", "ByteFallback",
        "type", "Fuse");
    if (m->dummy_prefix || m->strip_spaces)
        json_array_append_new(json_object_get(parts->decoder, "decoders"),
                              json_pack("{s:s,s:s,s:i,s:i}", "type", "Strip", "content",
                                        " ", "start", m->strip_spaces ? INT32_MAX : 1,
                                        "stop", 0));
    davit_tok_make_post(parts, parts->specials[DAVIT_SPECIAL_BOS], -1);
    return DAVIT_OK;
}

DavitTokenizer *davit_tokenizer_from_spm(const char *bytes, size_t len,
                                         const char *subject, DavitRegistry *registry,
                                         DavitReport *report)
{
    DavitTokParts parts;
    DavitTokenizer *tokenizer = NULL;
    /* Defaults of the proto file. */
    Model m = {.parts = &parts,
               .report = report,
               .scores = g_array_new(FALSE, FALSE, sizeof(float)),
               .types = g_array_new(FALSE, FALSE, sizeof(uint8_t)),
               .model_type = 1,
               .dummy_prefix = true,
               .strip_spaces = true,
               .escape_spaces = true,
               .unknown = -1,
               .control = -1,
               .bos = 1,
               .eos = 2,
               .pad = -1};
    int32_t status;

    davit_tok_parts_init(&parts, subject, "sentencepiece");
    status = read_messages(&m, (davit_span){bytes, len});
    if (status == DAVIT_OK)
        status = check_model(&m);
    if (status == DAVIT_OK)
        status = m.model_type == 1 ? make_unigram(&m) : make_merges(&m);
    if (status == DAVIT_OK && m.model_type == 2)
        status = make_bpe_rules(&m);
    if (status == DAVIT_OK)
        status = fill_parts(&m);
    if (status == DAVIT_OK)
        tokenizer = davit_tok_build(&parts, registry, report);
    g_array_free(m.scores, TRUE);
    g_array_free(m.types, TRUE);
    davit_tok_parts_clear(&parts);
    return tokenizer;
}
