/* SPDX-License-Identifier: Apache-2.0
 * Checks that read payloads: values, a tied copy, hashes of cached blobs, the disk's rate.
 * One pass, one window, progress in bytes, may be stopped between windows. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/doctor_private.h"
#include "source/source.h"

#define WINDOW   (4u << 20) /* bytes read at a time */
#define RATE     (64u << 20) /* bytes of the rate probe */
#define MAX_SAID 32u
#define F16_MAX  65504.0f

typedef struct Pass {
    DavitDoctor *doctor;
    uint64_t done, total;
    uint8_t *window;
    float *values; /* [WINDOW / 2] */
    float largest;
    char *largest_name; /* (owned) where it is; NULL = nothing finite was seen */
    size_t n_bad;
} Pass;

static bool advance(Pass *p, uint64_t n)
{
    const DavitDoctorOptions *o = p->doctor->options;

    p->done += n;
    if (o->progress && !o->progress(o->progress_ctx, p->done, MAX(p->total, p->done)))
        p->doctor->stopped = true;
    return !p->doctor->stopped;
}

/* ---- D16 ---- */

/* What one tensor holds. */
typedef struct Tally {
    uint64_t n, n_nan, n_inf, n_zero;
    float largest;
} Tally;

static void tally(Tally *t, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float a = fabsf(x[i]);

        /* the sign of what they return is free: -1 for -inf in some C libraries */
        t->n_nan += isnan(x[i]) != 0;
        t->n_inf += isinf(x[i]) != 0;
        t->n_zero += x[i] == 0;
        if (isfinite(a) && a > t->largest)
            t->largest = a;
    }
    t->n += n;
}

static float from_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* IEEE 754 binary16, by value. */
static float from_half(uint16_t h)
{
    const int exponent = (h >> 10) & 31;
    const float fraction = (float)(h & 1023) / 1024.0f;
    const float sign = h & 0x8000 ? -1.0f : 1.0f;

    if (exponent == 31)
        return h & 1023 ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexpf(fraction, -14);
    return sign * ldexpf(1.0f + fraction, exponent - 15);
}

static size_t widen(const char *dtype, const uint8_t *bytes, size_t n_bytes, float *out)
{
    const size_t width = strcmp(dtype, "f32/1") == 0 ? 4 : 2;
    const size_t n = n_bytes / width;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits = 0;

        memcpy(&bits, bytes + i * width, width); /* little-endian machines only */
        out[i] = width == 4                      ? from_bits(bits)
                 : strcmp(dtype, "bf16/1") == 0  ? from_bits(bits << 16)
                                                 : from_half((uint16_t)bits);
    }
    return n;
}

static void judge(Pass *p, const char *name, const char *dtype, uint32_t rank,
                  const Tally *t)
{
    DavitDoctor *d = p->doctor;
    const bool half = strcmp(dtype, "f16/1") == 0;

    if (t->largest > p->largest) {
        p->largest = t->largest;
        g_free(p->largest_name);
        p->largest_name = g_strdup(name);
    }
    if (t->n_nan + t->n_inf > 0 && p->n_bad++ < MAX_SAID)
        davit_doctor_say(
            d, "D16",
            &(DavitFinding){.code = DAVIT_R_VALUE_NOT_FINITE,
                            .status = DAVIT_E_CORRUPT,
                            .subject = name,
                            .expected = "finite values",
                            .found = davit_doctor_text(d, "%" PRIu64 " NaN and %" PRIu64
                                                          " infinite of %" PRIu64,
                                                       t->n_nan, t->n_inf, t->n),
                            .message = half && t->n_inf
                                           ? "infinite values in float16: the weights "
                                             "were cast from a wider type and overflowed"
                                           : "weights that are no numbers",
                            .hint = half && t->n_inf ? "convert again, to bfloat16"
                                                     : NULL});
    else if (rank >= 2 && t->n > 0 && t->n_zero == t->n && p->n_bad++ < MAX_SAID)
        davit_doctor_say(d, "D16",
                         &(DavitFinding){.severity = DAVIT_WARNING,
                                         .subject = name,
                                         .expected = "values",
                                         .found = davit_doctor_text(
                                             d, "%" PRIu64 " zeros", t->n),
                                         .message = "a matrix of zeros only: a part that "
                                                    "was never written, or never "
                                                    "trained"});
}

static bool is_plain(const char *dtype)
{
    return strcmp(dtype, "f32/1") == 0 || strcmp(dtype, "bf16/1") == 0 ||
           strcmp(dtype, "f16/1") == 0;
}

static bool scan_tensor(Pass *p, const davit_tensor_info *t)
{
    const DavitCheckpoint *c = p->doctor->patient.checkpoint;
    DavitReport *said = davit_doctor_of(p->doctor, "D16")->findings;
    Tally sum = {0};

    for (uint64_t off = 0; off < t->n_bytes; off += WINDOW) {
        const uint64_t n = MIN(WINDOW, t->n_bytes - off);

        if (davit_checkpoint_read(c, t->file, t->off + off, p->window, n, said))
            return false;
        if (is_plain(t->dtype))
            tally(&sum, p->values, widen(t->dtype, p->window, (size_t)n, p->values));
        if (!advance(p, n))
            return false;
    }
    judge(p, t->name, t->dtype, t->rank, &sum);
    return true;
}

/* Quantised modules, through their plugin's decoder. */
static bool scan_module(Pass *p, const DavitModule *m)
{
    const davit_quant_desc *q = m->desc;
    const uint64_t per_row = MAX(q->n_cols, 1u);
    const uint64_t rows = MAX(WINDOW / sizeof(float) / per_row, 1u);
    g_autofree float *buf =
        per_row < (1ull << 32) ? g_try_malloc_n((gsize)(rows * per_row), sizeof *buf) : NULL;
    Tally sum = {0};

    for (uint64_t e = 0; buf && e < MAX(q->n_experts, 1u); e++)
        for (uint64_t r = 0; r < q->n_rows; r += rows) {
            const uint64_t n = MIN(rows, q->n_rows - r);

            if (davit_module_decode(m, p->doctor->patient.checkpoint, e, r, n, buf,
                                    davit_doctor_of(p->doctor, "D16")->findings))
                return true; /* said; the next module may be sound */
            tally(&sum, buf, (size_t)(n * per_row));
            if (!advance(p, 0))
                return false;
        }
    judge(p, m->name, "", 2, &sum);
    return true;
}

static void scan_modules(Pass *p)
{
    const DavitPatient *patient = &p->doctor->patient;
    g_autoptr(DavitReport) aside = davit_report_new();
    g_autoptr(DavitModules) modules = NULL;

    if (!patient->settings)
        return;
    modules = davit_modules_find(patient->registry, patient->checkpoint, patient->settings,
                                 p->doctor->options->quant_allow, aside);
    for (size_t i = 0; modules && i < modules->len; i++) {
        const DavitModule *m = &modules->at[i];

        if (m->quant && g_strcmp0(m->desc->scheme, "dense/1") != 0 && !scan_module(p, m))
            return;
    }
}

static void scan_values(Pass *p)
{
    DavitDoctor *d = p->doctor;
    const DavitCheckpoint *c = d->patient.checkpoint;

    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++)
        if (!scan_tensor(p, davit_checkpoint_tensor(c, i)))
            return;
    scan_modules(p);
    davit_doctor_fact(d, "D16", "largest magnitude %g%s%s", (double)p->largest,
                      p->largest_name ? " in " : "",
                      p->largest_name ? p->largest_name : "");
    if (g_strcmp0(d->options->dtype, "f16/1") == 0 && p->largest > F16_MAX)
        davit_doctor_say(d, "D15",
                         &(DavitFinding){.severity = DAVIT_WARNING,
                                         .subject = p->largest_name,
                                         .expected = "at most 65504",
                                         .found = davit_doctor_text(d, "%g",
                                                                    (double)p->largest),
                                         .message = "a weight is beyond what float16 "
                                                    "holds"});
}

/* ---- D13 ---- */

static void compare_head(Pass *p)
{
    DavitDoctor *d = p->doctor;
    const DavitCheckpoint *c = d->patient.checkpoint;
    const davit_tensor_info *head = davit_find_tail(c, "lm_head.weight|output.weight", -1);
    const davit_tensor_info *embed =
        davit_find_tail(c, "embed_tokens.weight|tok_embeddings.weight|token_embd.weight", -1);
    g_autofree uint8_t *other = g_malloc(WINDOW);
    DavitReport *said = davit_doctor_of(d, "D13")->findings;
    bool equal = true;

    if (!head || !embed) {
        davit_doctor_skip(d, "D13", "a stored head beside an embedding");
        return;
    }
    if (head->n_bytes != embed->n_bytes || strcmp(head->dtype, embed->dtype) != 0)
        equal = false;
    for (uint64_t off = 0; equal && off < head->n_bytes; off += WINDOW) {
        const uint64_t n = MIN(WINDOW, head->n_bytes - off);

        if (davit_checkpoint_read(c, head->file, head->off + off, p->window, n, said) ||
            davit_checkpoint_read(c, embed->file, embed->off + off, other, n, said))
            return;
        equal = memcmp(p->window, other, (size_t)n) == 0;
        if (!advance(p, 0))
            return;
    }
    if (equal && d->patient.plan && d->patient.plan->tied && d->patient.plan->tied_given)
        davit_doctor_say(d, "D12",
                         &(DavitFinding){.severity = DAVIT_NOTE,
                                         .subject = head->name,
                                         .expected = "no head, since the flag says tied",
                                         .found = "a head that equals the embedding",
                                         .message = "the stored head is a copy of the "
                                                    "embedding",
                                         .hint = "nothing to do"});
    davit_doctor_fact(d, "D13", "head and embedding are %s", equal ? "equal" : "different");
    if (!equal && d->patient.plan && d->patient.plan->tied && d->patient.plan->tied_given)
        davit_doctor_say(d, "D13",
                         &(DavitFinding){.code = DAVIT_R_HEAD_COMPARED,
                                         .severity = DAVIT_WARNING,
                                         .subject = head->name,
                                         .expected = "equal to the embedding, since "
                                                     "tie_word_embeddings is true",
                                         .found = "different",
                                         .message = "the stored head is used, and "
                                                    "differs from what the flag says",
                                         .hint = "set tie_word_embeddings to false if the head was "
                                                 "trained (a merged adapter leaves such heads); "
                                                 "programs that follow the flag leave it out"});
}

/* ---- D37 ---- */

static bool is_hex(const char *text, size_t n)
{
    return strlen(text) == n && strspn(text, "0123456789abcdef") == n;
}

/* Hash of a file as the hub names its blob: SHA-256, or SHA-1 of git's blob form for small
 * ones. (owned) NULL: stopped or unreadable. */
static char *hash_file(Pass *p, const DavitSource *source, bool git)
{
    const uint64_t n = davit_source_size(source);
    GChecksum *sum = g_checksum_new(git ? G_CHECKSUM_SHA1 : G_CHECKSUM_SHA256);
    char *out = NULL;
    uint64_t off = 0;

    if (git) {
        g_autofree char *head = g_strdup_printf("blob %" PRIu64, n);

        g_checksum_update(sum, (const guchar *)head, (gssize)strlen(head) + 1);
    }
    for (; off < n; off += WINDOW) {
        const uint64_t step = MIN(WINDOW, n - off);

        if (davit_source_read(source, off, p->window, step,
                              davit_doctor_of(p->doctor, "D37")->findings))
            break;
        g_checksum_update(sum, p->window, (gssize)step);
        if (!advance(p, step))
            break;
    }
    if (off >= n)
        out = g_strdup(g_checksum_get_string(sum));
    g_checksum_free(sum);
    return out;
}

static void check_hash(Pass *p, const char *name, size_t *n_right)
{
    DavitDoctor *d = p->doctor;
    g_autofree char *full = g_build_filename(d->patient.path.dir, name, NULL);
    g_autofree char *target = g_file_read_link(full, NULL);
    g_autofree char *blob = target ? g_path_get_basename(target) : NULL;
    g_autoptr(DavitReport) aside = davit_report_new();
    g_autoptr(DavitSource) source = NULL;
    g_autofree char *hash = NULL;

    if (!blob || (!is_hex(blob, 64) && !is_hex(blob, 40)))
        return;
    source = davit_source_open(full, aside);
    hash = source ? hash_file(p, source, strlen(blob) == 40) : NULL;
    if (!hash)
        return;
    *n_right += strcmp(hash, blob) == 0;
    if (strcmp(hash, blob) != 0)
        davit_doctor_say(d, "D37",
                         &(DavitFinding){.code = DAVIT_R_HASH_MISMATCH,
                                         .status = DAVIT_E_CORRUPT,
                                         .subject = name,
                                         .expected = blob,
                                         .found = hash,
                                         .message = "the file's bytes are not the ones "
                                                    "that its name promises"});
}

static void check_hashes(Pass *p)
{
    DavitDoctor *d = p->doctor;
    const GPtrArray *names = d->patient.path.names;
    size_t n_right = 0;

    for (guint i = 0; i < names->len && !d->stopped; i++)
        check_hash(p, g_ptr_array_index(names, i), &n_right);
    davit_doctor_fact(d, "D37", "%zu files equal their names", n_right);
}

/* ---- D31 ---- */

static const DavitSource *largest_file(const DavitCheckpoint *c)
{
    const DavitSource *best = NULL;

    for (size_t i = 0; i < davit_checkpoint_n_files(c); i++) {
        const DavitSource *s = davit_checkpoint_file(c, i).source;

        if (!best || davit_source_size(s) > davit_source_size(best))
            best = s;
    }
    return best;
}

static void measure_rate(Pass *p)
{
    DavitDoctor *d = p->doctor;
    const DavitSource *source = largest_file(d->patient.checkpoint);
    const uint64_t n = davit_source_size(source);
    int fd;
    void *buf = NULL;
    uint64_t got = 0;
    int64_t start;

    if (n < RATE) {
        davit_doctor_skip(d, "D31", "a file of at least 64 MiB");
        return;
    }
    fd = open(davit_source_path(source), O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd < 0 || posix_memalign(&buf, 4096, 1u << 20) != 0) {
        davit_doctor_skip(d, "D31", "direct reads");
        if (fd >= 0)
            close(fd);
        return;
    }
    start = g_get_monotonic_time();
    while (got < RATE) {
        const ssize_t r = pread(fd, buf, 1u << 20, (off_t)got);

        if (r <= 0)
            break;
        got += (uint64_t)r;
    }
    close(fd);
    free(buf);
    if (got == RATE) {
        const double seconds = (double)(g_get_monotonic_time() - start + 1) / 1e6;
        const double rate = (double)got / seconds;

        davit_doctor_fact(d, "D31", "%.2f GB/s in one direct stream: %.1f s for all weights",
                          rate / 1e9,
                          (double)davit_checkpoint_n_bytes(d->patient.checkpoint) / rate);
    } else {
        davit_doctor_skip(d, "D31", "direct reads");
    }
}

void davit_check_deep(DavitDoctor *doctor)
{
    static const char *const ids[] = {"D13", "D16", "D31", "D37"};
    const DavitPatient *patient = &doctor->patient;
    Pass pass = {.doctor = doctor};

    if (!doctor->options->deep || !patient->checkpoint) {
        for (size_t i = 0; i < G_N_ELEMENTS(ids); i++)
            davit_doctor_skip(doctor, ids[i],
                              doctor->options->deep ? "weights that open" : "--deep");
        return;
    }
    pass.window = g_malloc(WINDOW);
    pass.values = g_malloc(WINDOW / 2 * sizeof *pass.values);
    pass.total = davit_checkpoint_n_bytes(patient->checkpoint);
    measure_rate(&pass);
    scan_values(&pass);
    if (!doctor->stopped)
        compare_head(&pass);
    if (!doctor->stopped && davit_doctor_find(doctor, "D35")->skipped == NULL)
        check_hashes(&pass);
    else
        davit_doctor_skip(doctor, "D37", "a snapshot of a hub cache");
    g_free(pass.largest_name);
    g_free(pass.window);
    g_free(pass.values);
}
