/* SPDX-License-Identifier: Apache-2.0
 * What the tensors' shapes and types say, against what the config says. The plan has
 * refused what does not fit; here the numbers that would fit are worked out. */
#include <stdio.h>
#include <string.h>

#include "doctor/doctor_private.h"
#include "tokenizer/beyond.h"

/* ---- D10 ---- */

static bool is_plain(const davit_tensor_info *t)
{
    return strcmp(t->dtype, "f32/1") == 0 || strcmp(t->dtype, "bf16/1") == 0 ||
           strcmp(t->dtype, "f16/1") == 0;
}

/* Did the plan get as far as the shapes, and refuse? Then this is the explanation. */
static bool is_refused(const DavitDoctor *d)
{
    return !d->patient.plan &&
           (davit_report_failed(davit_doctor_find(d, "D10")->findings) ||
            davit_report_failed(davit_doctor_find(d, "D07")->findings) ||
            davit_report_failed(davit_doctor_find(d, "D14")->findings));
}

/* Beside an error of the plan this is its explanation, else a finding of its own. */
static void say_size(DavitDoctor *d, const char *key, int64_t stated, int64_t found,
                     const char *why)
{
    davit_doctor_say(
        d, "D10",
        &(DavitFinding){
            .severity = DAVIT_NOTE, /* of an unknown architecture: it may mean otherwise */
            .status = is_refused(d) ? DAVIT_E_MISMATCH : DAVIT_OK,
            .subject = davit_doctor_text(d, "config.json: %s", key),
            .expected = davit_doctor_text(d, "%" PRId64, found),
            .found = stated >= 0 ? davit_doctor_text(d, "%" PRId64, stated) : "absent",
            .message = davit_doctor_text(d, "the weights speak of another number: %s", why),
            .hint = davit_doctor_text(d, "set %s to %" PRId64 ", if the weights are right",
                                      key, found)});
}

static void check_hidden(DavitDoctor *d)
{
    const davit_tensor_info *embed =
        davit_find_tail(d->patient.checkpoint, DAVIT_EMBED_TAILS, -1);
    int64_t hidden;

    if (!embed || embed->rank != 2 || !is_plain(embed) ||
        !davit_patient_int(&d->patient, "hidden_size", &hidden))
        return;
    if ((uint64_t)hidden != embed->shape[1])
        say_size(d, "hidden_size", hidden, (int64_t)embed->shape[1],
                 "width of the embedding");
}

static void check_layers(DavitDoctor *d)
{
    const int64_t found = davit_count_layers(d->patient.checkpoint);
    int64_t stated;

    if (!davit_patient_int(&d->patient, "num_hidden_layers", &stated) || found == 0)
        return;
    davit_doctor_fact(d, "D10", "%" PRId64 " layers stated, %" PRId64 " stored", stated,
                      found);
    if (found < stated)
        say_size(d, "num_hidden_layers", stated, found, "layers that are stored");
}

/* Heads: rows of q and k, head_dim. */
static void check_heads(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    const davit_tensor_info *q = davit_find_tail(c, "self_attn.q_proj.weight", -1);
    const davit_tensor_info *k = davit_find_tail(c, "self_attn.k_proj.weight", -1);
    int64_t heads, kv_heads, hidden, dim = -1;
    int64_t rows;

    if (!q || !is_plain(q) || q->rank != 2 ||
        !davit_patient_int(&d->patient, "num_attention_heads", &heads) || heads <= 0 ||
        !davit_patient_int(&d->patient, "hidden_size", &hidden))
        return;
    rows = (int64_t)q->shape[0];
    if (!davit_patient_int(&d->patient, "head_dim", &dim) || dim <= 0)
        dim = -1;
    if (rows % heads == 0 && rows != heads * (dim > 0 ? dim : hidden / heads)) {
        say_size(d, "head_dim", dim, rows / heads, "rows of q_proj by number of heads");
        dim = rows / heads;
    }
    dim = dim > 0 ? dim : hidden / heads;
    if (k && is_plain(k) && k->rank == 2 && dim > 0 && (int64_t)k->shape[0] % dim == 0 &&
        davit_patient_int(&d->patient, "num_key_value_heads", &kv_heads) &&
        (int64_t)k->shape[0] != kv_heads * dim)
        say_size(d, "num_key_value_heads", kv_heads, (int64_t)k->shape[0] / dim,
                 "rows of k_proj by head_dim");
}

/* Rows and columns of a finding "[48, 32]" against "[32, 48] (I,H)". */
static bool is_transposed(const DavitRecord *r)
{
    const char *found = r->found ? strrchr(r->found, '[') : NULL;
    unsigned long long a, b, x, y;

    return r->code == DAVIT_R_SHAPE_MISMATCH && found && r->expected &&
           sscanf(found, "[%llu, %llu]", &a, &b) == 2 &&
           sscanf(r->expected, "[%llu, %llu]", &x, &y) == 2 && a == y && b == x && a != b;
}

/* Are there any? Then numbers worked out from rows are none. */
static bool check_transposed(DavitDoctor *d)
{
    const DavitReport *f = davit_doctor_find(d, "D10")->findings;
    const char *first = NULL;
    size_t n = 0;

    for (size_t i = 0; i < davit_report_count(f); i++)
        if (is_transposed(davit_report_get(f, i))) {
            first = first ? first : davit_report_get(f, i)->subject;
            n++;
        }
    if (n > 0)
        davit_doctor_say(d, "D10",
                         &(DavitFinding){.status = DAVIT_E_MISMATCH,
                                         .subject = first,
                                         .expected = "[outputs, inputs]",
                                         .found = davit_doctor_text(
                                             d, "%zu names with rows and columns "
                                                "exchanged", n),
                                         .message = "matrices are stored transposed, as "
                                                    "some programs do",
                                         .hint = "transpose every projection, square "
                                                 "ones too, which no shape shows; or save "
                                                 "the model again from its own program"});
    return n > 0;
}

static void check_sizes(DavitDoctor *d)
{
    if (!d->patient.settings) {
        davit_doctor_skip(d, "D10", "a config that can be read");
        return;
    }
    if (!d->patient.checkpoint || d->patient.is_part) {
        davit_doctor_skip(d, "D10", "all weights");
        return;
    }
    check_layers(d);
    if (d->patient.plan)
        return; /* every shape fits its slot */
    if (check_transposed(d))
        return;
    check_hidden(d);
    check_heads(d);
}

/* ---- D14: rows ---- */

/* The tokenizer has ids beyond the embedding's rows. Where all of them are place holders of
 * another modality text never gives them. */
static void say_too_few(DavitDoctor *d, const char *subject, uint64_t rows)
{
    DavitBeyond beyond;

    if (!davit_tokenizer_beyond(d->patient.tokenizer, rows, &beyond))
        return;
    davit_doctor_say(
        d, "D14",
        &(DavitFinding){
            .severity = DAVIT_NOTE,
            .status = beyond.idle ? DAVIT_OK : DAVIT_E_MISMATCH,
            .subject = subject,
            .expected = davit_doctor_text(d, "at least %zu rows, one an id", beyond.n_ids),
            .found = davit_doctor_text(d, "%" PRIu64 " rows; first id beyond: %.*s", rows,
                                       (int)MIN(beyond.n_first, 60u),
                                       beyond.first ? beyond.first : "a hole"),
            .message = beyond.idle ? "ids beyond the embedding's rows stand for pictures or "
                                     "sound, which text never gives"
                                   : "the tokenizer gives ids that the embedding has no row for"});
}

static const davit_tensor_info *find_embedding(const DavitPatient *p)
{
    return p->checkpoint ? davit_find_tail(p->checkpoint, DAVIT_EMBED_TAILS, -1) : NULL;
}

uint64_t davit_patient_rows(const DavitPatient *p)
{
    const davit_tensor_info *embed = find_embedding(p);
    int64_t stated;

    if (embed && embed->rank == 2)
        return embed->shape[0];
    return davit_patient_int(p, "vocab_size", &stated) && stated > 0 ? (uint64_t)stated : 0;
}

static void check_rows(DavitDoctor *d)
{
    const davit_tensor_info *embed = find_embedding(&d->patient);
    uint64_t rows = embed && embed->rank == 2 ? embed->shape[0] : 0;
    const size_t n_ids =
        d->patient.tokenizer ? davit_tokenizer_n_ids(d->patient.tokenizer) : 0;
    int64_t stated;

    if (rows && is_refused(d) && davit_patient_int(&d->patient, "vocab_size", &stated) &&
        (uint64_t)stated != rows)
        davit_doctor_say(d, "D14",
                         &(DavitFinding){.status = DAVIT_E_MISMATCH,
                                         .subject = "config.json: vocab_size",
                                         .expected = davit_doctor_text(
                                             d, "%" PRIu64 ", rows of the embedding", rows),
                                         .found = davit_doctor_text(d, "%" PRId64, stated),
                                         .message = "the vocabulary was resized, or the "
                                                    "config is another model's",
                                         .hint = davit_doctor_text(
                                             d, "set vocab_size to %" PRIu64
                                                ", if the weights are right", rows)});
    rows = davit_patient_rows(&d->patient);
    if (!rows || !n_ids) {
        davit_doctor_skip(d, "D14", "an embedding and a tokenizer");
        return;
    }
    davit_doctor_fact(d, "D14", "%" PRIu64 " rows, %zu ids", rows, n_ids);
    if (n_ids > rows)
        say_too_few(d, embed ? embed->name : "config.json: vocab_size", rows);
    else if (n_ids + n_ids / 8 + 1024 < rows)
        davit_doctor_say(
            d, "D14",
            &(DavitFinding){
                .severity = DAVIT_WARNING,
                .subject = embed ? embed->name : "config.json: vocab_size",
                .expected = davit_doctor_text(d, "about %zu rows, one an id", n_ids),
                .found = davit_doctor_text(d, "%" PRIu64 " rows", rows),
                .message = "far more rows than the tokenizer has ids: more than padding "
                           "explains, so the tokenizer may be another model's"});
}

/* ---- D15 ---- */

typedef struct Histogram {
    uint64_t f32, f16, bf16, other, total; /* bytes */
    uint64_t n_f32, n_f16, n_bf16, n_other; /* tensors */
} Histogram;

static Histogram count_types(const DavitCheckpoint *c)
{
    Histogram h = {0};

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, i);
        uint64_t *to = strcmp(t->dtype, "f32/1") == 0    ? &h.f32
                       : strcmp(t->dtype, "f16/1") == 0  ? &h.f16
                       : strcmp(t->dtype, "bf16/1") == 0 ? &h.bf16
                                                         : &h.other;

        *to += t->n_bytes;
        h.n_f32 += to == &h.f32;
        h.n_f16 += to == &h.f16;
        h.n_bf16 += to == &h.bf16;
        h.n_other += to == &h.other;
        h.total += t->n_bytes;
    }
    return h;
}

static const char *main_type(const Histogram *h)
{
    return h->other * 2 > h->total  ? "other"
           : h->bf16 * 2 > h->total ? "bfloat16"
           : h->f16 * 2 > h->total  ? "float16"
           : h->f32 * 2 > h->total  ? "float32"
                                    : "mixed";
}

/* (owned) "bfloat16 (17 tensors), float32 (4)" */
static char *types_text(const Histogram *h)
{
    const struct {
        const char *name;
        uint64_t n;
    } all[] = {{"bfloat16", h->n_bf16},
               {"float16", h->n_f16},
               {"float32", h->n_f32},
               {"other types", h->n_other}};
    GString *out = g_string_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
        if (all[i].n)
            g_string_append_printf(out, "%s%s (%" PRIu64 "%s)", out->len ? ", " : "",
                                   all[i].name, all[i].n, out->len ? "" : " tensors");
    return g_string_free(out, FALSE);
}

static const char *stated_type(const DavitPatient *p)
{
    const char *text = json_string_value(davit_patient_value(p, "dtype"));

    text = text ? text : json_string_value(davit_patient_value(p, "torch_dtype"));
    return text && g_str_has_prefix(text, "torch.") ? text + 6 : text;
}

/* Families whose activations are known to pass what float16 holds (65504). */
static bool overflows_fp16(const DavitPatient *p)
{
    const char *type = json_string_value(davit_patient_value(p, "model_type"));

    return type && (g_str_has_prefix(type, "gemma") || g_str_has_prefix(type, "t5"));
}

static void check_half(DavitDoctor *d, const Histogram *h, const char *stated)
{
    const bool wanted = g_strcmp0(d->options->dtype, "f16/1") == 0;
    const bool stored = strcmp(main_type(h), "float16") == 0;
    const bool from_bf16 = (wanted && h->bf16 > 0) ||
                           (stored && g_strcmp0(stated, "bfloat16") == 0);

    if (!from_bf16 && !((wanted || stored) && overflows_fp16(&d->patient)))
        return;
    davit_doctor_say(d, "D15",
                     &(DavitFinding){.severity = DAVIT_WARNING,
                                     .subject = wanted ? "--dtype" : "stored data type",
                                     .expected = "bfloat16 or float32",
                                     .found = "float16",
                                     .message = "the model was made for a wider range "
                                                "than float16 has: values above 65504 "
                                                "become infinite"});
}

static void check_types(DavitDoctor *d)
{
    const char *stated = stated_type(&d->patient);
    const char *stored;
    g_autofree char *types = NULL;
    Histogram h;

    if (!d->patient.checkpoint) {
        davit_doctor_skip(d, "D15", "weights that open");
        return;
    }
    h = count_types(d->patient.checkpoint);
    stored = main_type(&h);
    types = types_text(&h);
    davit_doctor_fact(d, "D15", "stored: %s; config: %s", types,
                      stated ? stated : "not stated");
    check_half(d, &h, stated);
    if (stated && strcmp(stored, "other") != 0 && strcmp(stored, "mixed") != 0 &&
        strcmp(stated, stored) != 0 && strcmp(stated, "auto") != 0)
        davit_doctor_say(d, "D15",
                         &(DavitFinding){.severity = DAVIT_NOTE,
                                         .subject = "config.json: dtype",
                                         .expected = stated,
                                         .found = stored,
                                         .message = "the weights are stored in another "
                                                    "type than the config names; davit "
                                                    "follows the weights"});
}

/* ---- D23 ---- */

static void check_ranks(DavitDoctor *d)
{
    const uint64_t n = d->options->n_ranks;
    int64_t heads, kv;

    if (n < 2) {
        davit_doctor_skip(d, "D23", "--tp N");
        return;
    }
    if (!davit_patient_int(&d->patient, "num_attention_heads", &heads) || heads <= 0) {
        davit_doctor_skip(d, "D23", "a config that states its heads");
        return;
    }
    if (!davit_patient_int(&d->patient, "num_key_value_heads", &kv) || kv <= 0)
        kv = heads;
    davit_doctor_fact(d, "D23", "%" PRIu64 " ranks: %" PRId64 " heads, %" PRId64
                                " key heads", n, heads, kv);
    if ((uint64_t)heads % n != 0 ||
        ((uint64_t)kv % n != 0 && n % (uint64_t)kv != 0))
        davit_doctor_say(
            d, "D23",
            &(DavitFinding){.status = DAVIT_E_UNSUPPORTED,
                            .subject = "--tp",
                            .expected = davit_doctor_text(
                                d, "a divisor of %" PRId64 " heads that divides, or is "
                                   "divided by, %" PRId64 " key heads", heads, kv),
                            .found = davit_doctor_text(d, "%" PRIu64, n),
                            .message = "the heads do not divide among so many ranks"});
    else if ((uint64_t)kv < n)
        davit_doctor_say(d, "D23",
                         &(DavitFinding){.severity = DAVIT_NOTE,
                                         .subject = "key and value heads",
                                         .found = davit_doctor_text(
                                             d, "%" PRId64 " for %" PRIu64 " ranks", kv, n),
                                         .message = "each is kept by several ranks"});
}

void davit_check_shapes(DavitDoctor *doctor)
{
    check_sizes(doctor);
    davit_check_head(doctor);
    check_rows(doctor);
    check_types(doctor);
    check_ranks(doctor);
}
