/* SPDX-License-Identifier: Apache-2.0
 * Formats: what is not theirs, several questions at once, files that are broken. */
#include "check/suite.h"

#include <string.h>

#include "base/small_file.h"
#include "source/source.h"

#define N_BYTES    4096          /* of a head */
#define MAX_SAMPLE (64u << 20)   /* bytes of a sample */
#define N_CHANGED  400           /* changed versions of each file */
#define N_THREADS  4

/* ---- strangers ---- */

/* One question; false after a finding. */
static bool ask(Check *check, DavitComponent *c, const davit_probe_in *in, const char *what,
                davit_verdict *out)
{
    g_autoptr(DavitReport) said = davit_report_new();
    DavitSink sink;
    int32_t status;

    *out = (davit_verdict){.struct_size = DAVIT_END(davit_verdict, flags), .verdict = 99};
    davit_sink_init(&sink, said, c->id, "probe");
    check_step(check, "probe");
    status = c->load->desc.probe(in, out, &sink.abi);
    if (status < 0 || out->verdict > DAVIT_REFUSE || out->score > 1000) {
        check_fail(check, c->id, what, "DECLINE, ACCEPT with a score up to 1000, or REFUSE",
             davit_report_text(check->report, "status %d, verdict %u, score %u", status,
                               out->verdict, out->score),
             "a probe answers every input");
        return false;
    }
    if (out->verdict == DAVIT_REFUSE && sink.n_errors == 0) {
        check_fail(check, c->id, what, "a record with REFUSE", "none",
             "a refusal comes with its reason");
        return false;
    }
    return true;
}

/* Inputs that belong to nobody, asked twice. */
static void probe_strangers(Check *check, DavitComponent *c)
{
    g_autofree uint8_t *head = g_malloc0(N_BYTES);
    static const char *const names[] = {"README.md", "model.nobody", "notes.txt", NULL};
    char entry[256] = "";

    for (uint32_t round = 0; round < 12; round++) {
        const bool is_dir = round == 11;
        davit_probe_in in = {.struct_size = DAVIT_END(davit_probe_in, out_entry_cap),
                             .purposes = DAVIT_INSPECT | DAVIT_RUN,
                             .name = "x.nobody",
                             .head = is_dir ? NULL : head,
                             .head_len = is_dir ? 0 : round < 8 ? round : N_BYTES,
                             .file_size = is_dir ? 0 : round < 8 ? round : 1u << 20,
                             .names = is_dir ? names : NULL,
                             .n_names = is_dir ? 3 : 0,
                             .out_entry = entry,
                             .out_entry_cap = sizeof entry};
        const char *what = is_dir ? "a directory of strange files"
                                  : davit_report_text(check->report, "%u bytes of noise",
                                                      (unsigned)in.head_len);
        davit_verdict first, second;

        check_noise(head, N_BYTES, round + 1);
        if (!ask(check, c, &in, what, &first) || !ask(check, c, &in, what, &second))
            return;
        if (first.verdict != second.verdict || first.score != second.score)
            check_fail(check, c->id, what, "the same answer twice",
                 davit_report_text(check->report, "%u and %u", first.verdict,
                                   second.verdict),
                 "a probe keeps no state");
        if (first.verdict == DAVIT_ACCEPT && first.score >= 200)
            check_fail(check, c->id, what, "DECLINE, or a score below 200",
                 davit_report_text(check->report, "ACCEPT with score %u", first.score),
                 "the plugin takes what is not its own");
    }
}

void check_format_probe(Check *check)
{
    check_each(check, DAVIT_KIND_ID_FORMAT, probe_strangers);
}

/* ---- files of its own ---- */

/* (owned) name with the first extension that the capability claims. */
static char *name_of(const DavitComponent *c)
{
    g_auto(GStrv) exts = check_claimed(c, "ext");

    return g_strdup_printf("model.%s", exts[0] && *exts[0] ? exts[0] : "nobody");
}

/* Put what "@OFFSET:HEX" says into @bytes. Returns: false if it does not parse or fit. */
static bool put_magic(const char *magic, uint8_t *bytes, size_t cap)
{
    char *end;
    const guint64 off = magic[0] == '@' ? g_ascii_strtoull(magic + 1, &end, 10) : 0;

    if (magic[0] != '@' || *end != ':' || off > cap || strlen(end + 1) % 2)
        return false;
    for (size_t i = 0; end[1 + 2 * i]; i++) {
        const int hi = g_ascii_xdigit_value(end[1 + 2 * i]);
        const int lo = g_ascii_xdigit_value(end[2 + 2 * i]);

        if (hi < 0 || lo < 0 || off + i >= cap)
            return false;
        bytes[off + i] = (uint8_t)(hi * 16 + lo);
    }
    return true;
}

/* Bodies behind a magic number: zeros, small counts, large counts, noise, JSON. */
static void fill_body(uint8_t *bytes, size_t n, unsigned kind)
{
    static const char json[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],"
                               "\"data_offsets\":[0,16]},\"b\":[1,null,\"x\"]}";

    memset(bytes, kind == 2 ? 0xff : 0, n);
    if (kind == 1 || kind == 4)
        for (size_t i = 0; i + 8 <= n; i += 8)
            bytes[i] = (uint8_t)(1 + i / 8 % 7);
    if (kind == 3)
        check_noise(bytes, n, 7);
    if (kind == 4) { /* a length, then the text */
        bytes[0] = sizeof json - 1;
        memcpy(bytes + 8, json, sizeof json - 1);
    }
}

/* (owned, GBytes) the samples, or what the magic numbers promise. */
static GPtrArray *files_of(Check *check, const DavitComponent *c)
{
    GPtrArray *files = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    g_auto(GStrv) magics = check_claimed(c, "magic");
    uint8_t bytes[512];

    for (size_t i = 0; check->samples[i]; i++) {
        gsize n = 0;
        char *text = davit_small_file_read(check->samples[i], MAX_SAMPLE, &n, NULL);

        if (text)
            g_ptr_array_add(files, g_bytes_new_take(text, n));
        else
            check_fail(check, NULL, check->samples[i], "a file of at most 64 MiB", "none",
                       "a sample cannot be read");
    }
    for (size_t m = 0; magics[m] && files->len < 40; m++)
        for (unsigned kind = 0; kind < 5; kind++) {
            fill_body(bytes, sizeof bytes, kind);
            if (put_magic(magics[m], bytes, sizeof bytes))
                g_ptr_array_add(files, g_bytes_new(bytes, sizeof bytes));
        }
    if (files->len == 0) {
        fill_body(bytes, sizeof bytes, 3);
        g_ptr_array_add(files, g_bytes_new(bytes, sizeof bytes));
    }
    return files;
}

static davit_test *open_library(Check *check, DavitComponent *c, void *self)
{
    davit_test *t = check_library(check, c, self);

    t->source_new = davit_source_from_bytes; /* the io suite is the program's */
    t->source_free = davit_source_free;
    check->subject = "probe, open, close";
    return t;
}

void check_read_files(Check *check, DavitComponent *c, void *self)
{
    g_autoptr(GPtrArray) files = files_of(check, c);
    g_autofree char *name = name_of(c);
    davit_test *t = open_library(check, c, self);

    check_step(check, "open");
    for (guint i = 0; i < files->len; i++) {
        gsize n;
        const void *bytes = g_bytes_get_data(g_ptr_array_index(files, i), &n);

        test_format_once(t, name, bytes, n);
    }
    test_drop(t);
}

static void damage_files(Check *check, DavitComponent *c)
{
    g_autoptr(GPtrArray) files = files_of(check, c);
    g_autofree char *name = name_of(c);
    davit_test *t = open_library(check, c, c->load->self);

    for (guint i = 0; i < files->len; i++) {
        gsize n;
        const void *bytes = g_bytes_get_data(g_ptr_array_index(files, i), &n);

        check_step(check, "open");
        davit_test_format(t, name, bytes, n); /* twice, alike */
        davit_test_format_broken(t, name, bytes, n, (uint64_t)N_CHANGED * check->repeat);
    }
    test_drop(t);
}

void check_format_damage(Check *check)
{
    check_each(check, DAVIT_KIND_ID_FORMAT, damage_files);
}

/* ---- at the same time ---- */

typedef struct Asker {
    const DavitComponent *c;
    uint8_t head[N_BYTES];
    uint64_t n;
    davit_verdict alone, among; /* answers */
    unsigned n_other;           /* answers that differ from alone */
} Asker;

static void ask_quietly(Asker *a, davit_verdict *out)
{
    const davit_probe_in in = {.struct_size = DAVIT_END(davit_probe_in, out_entry_cap),
                               .purposes = DAVIT_INSPECT,
                               .name = "x.nobody",
                               .head = a->head,
                               .head_len = a->n,
                               .file_size = a->n};
    g_autoptr(DavitReport) said = davit_report_new();
    DavitSink sink;

    *out = (davit_verdict){.struct_size = DAVIT_END(davit_verdict, flags)};
    davit_sink_init(&sink, said, a->c->id, "probe");
    a->c->load->desc.probe(&in, out, &sink.abi);
}

static gpointer ask_often(gpointer p)
{
    Asker *a = p;

    for (int i = 0; i < 200; i++) {
        ask_quietly(a, &a->among);
        a->n_other += a->among.verdict != a->alone.verdict || a->among.score != a->alone.score;
    }
    return NULL;
}

/* Each thread has an input of its own: an answer that depends on another's shows. */
static void ask_together(Check *check, DavitComponent *c)
{
    g_autoptr(GPtrArray) files = files_of(check, c);
    Asker *askers = g_new0(Asker, N_THREADS);
    GThread *threads[N_THREADS];

    check_step(check, "probe");
    for (guint i = 0; i < N_THREADS; i++) {
        gsize n;
        const void *bytes = g_bytes_get_data(g_ptr_array_index(files, i % files->len), &n);

        askers[i].c = c;
        askers[i].n = i % 2 ? N_BYTES - i : MIN(n, N_BYTES);
        check_noise(askers[i].head, N_BYTES, i + 1);
        if (i % 2 == 0 && n)
            memcpy(askers[i].head, bytes, MIN(n, N_BYTES));
        ask_quietly(&askers[i], &askers[i].alone);
    }
    for (guint i = 0; i < N_THREADS; i++)
        threads[i] = g_thread_new("ask", ask_often, &askers[i]);
    for (guint i = 0; i < N_THREADS; i++)
        g_thread_join(threads[i]);
    for (guint i = 0; i < N_THREADS; i++)
        if (askers[i].n_other)
            check_fail(check, NULL, "probe", "the answer that it gave alone",
                       davit_report_text(check->report, "%u of 200 others", askers[i].n_other),
                       "a probe is asked by several threads at once and keeps no state");
    g_free(askers);
}

void check_format_threads(Check *check)
{
    check_each(check, DAVIT_KIND_ID_FORMAT, ask_together);
}
