/* SPDX-License-Identifier: Apache-2.0
 * What a load moved, how long it took and what held it up. */
#include "cli/load_stats.h"

#include <stdio.h>

#include "plan/speed.h"

/* No hash is taken while loading: doctor --deep takes them. */
#define VERIFIED "headers and sizes; the files did not change while they were read"

static uint64_t made_bytes(const davit_model_info *i)
{
    return i->copied_bytes + i->packed_bytes + i->decoded_bytes;
}

static double convert_seconds(const davit_model_info *i)
{
    return MAX(i->make_seconds - i->upload_seconds, 0);
}

/* What most of the threads' time in the load went into. */
static const char *bound(const davit_model_info *i)
{
    const double convert = convert_seconds(i);
    if (i->read_bytes == 0)
        return "nothing: all weights stay in the file";
    if (i->upload_seconds > MAX(i->read_seconds, convert))
        return "upload";
    return i->read_seconds >= convert ? "read" : "convert";
}

/* Bytes per second of one thread, 0 where too little was done to tell. */
static double rate(uint64_t n_bytes, double seconds)
{
    return seconds > 1e-6 ? (double)n_bytes / seconds : 0;
}

static double cached(const davit_model_info *i)
{
    return i->probed_pages ? (double)i->cached_pages / (double)i->probed_pages : 0;
}

/* What the load of the weights would have taken at nominal speeds: the share that was cached from
 * the page cache, the rest from a disk. */
static double predicted_seconds(const davit_model_info *i, double *out_gb_s)
{
    const double in = cached(i);
    const DavitLoadBytes bytes = {.read = i->planned_read_bytes + i->compared_bytes,
                                  .copy = i->copied_bytes,
                                  .pack = i->packed_bytes,
                                  .decode = i->decoded_bytes,
                                  .upload = i->uploaded_bytes,
                                  .n_threads = (unsigned)i->n_io_threads};
    *out_gb_s = 1 / (in / davit_read_speeds[DAVIT_READ_CACHED].gb_s +
                     (1 - in) / davit_read_speeds[DAVIT_READ_DISK].gb_s);
    return davit_load_seconds(&bytes, *out_gb_s);
}

/* How the bytes of private weights came in. */
static const char *reader(const davit_model_info *i)
{
    if (i->read_bytes == 0)
        return "none";
    if (i->direct_bytes == 0)
        return "pread, buffered";
    return i->direct_bytes == i->read_bytes ? "pread, O_DIRECT" : "pread, O_DIRECT and buffered";
}

static const char *reader_reason(const davit_model_info *i)
{
    if (i->read_bytes == 0)
        return "all weights stay in the file";
    if (i->direct_refused)
        return "the file system does not read past the page cache";
    if (i->direct_bytes == 0)
        return "the page cache holds the files, they are small, or it was asked for";
    return "the page cache held less than half of these files, or it was asked for";
}

/* Bytes that reads moved for each byte that the plan needs of them; 0 = it needs none. */
static double amplification(const davit_model_info *i)
{
    return i->planned_read_bytes ? (double)(i->read_bytes + i->beside_bytes) /
                                       (double)i->planned_read_bytes
                                 : 0;
}

static void set(json_t *to, const char *key, uint64_t n)
{
    json_object_set_new(to, key, json_integer((json_int_t)n));
}

static void set_real(json_t *to, const char *key, double x)
{
    json_object_set_new(to, key, json_real(x));
}

static json_t *phases_json(const davit_model_info *i)
{
    json_t *phases = json_object();
    set_real(phases, "open_s", i->open_seconds);
    set_real(phases, "plan_s", i->plan_seconds);
    set_real(phases, "tokenizer_s", i->tokenizer_seconds);
    set_real(phases, "weights_s", i->load_seconds);
    set_real(phases, "read_thread_s", i->read_seconds);
    set_real(phases, "convert_thread_s", convert_seconds(i));
    set_real(phases, "upload_thread_s", i->upload_seconds);
    return phases;
}

/* What the threads did together while they did nothing else, and what such a stage could do. */
static json_t *stage_json(const davit_model_info *i, uint64_t n_bytes, double seconds,
                          double limit_gb_s)
{
    json_t *stage = json_object();
    set(stage, "bytes", n_bytes);
    set_real(stage, "thread_s", seconds);
    set_real(stage, "gb_s", rate(n_bytes, seconds) * (double)MAX(i->n_io_threads, 1) / 1e9);
    set_real(stage, "limit_gb_s", limit_gb_s);
    return stage;
}

/* Nominal, of all threads, for the mixture that this load made. */
static double convert_limit(const davit_model_info *i)
{
    const DavitLoadBytes bytes = {.copy = i->copied_bytes,
                                  .pack = i->packed_bytes,
                                  .decode = i->decoded_bytes,
                                  .n_threads = (unsigned)i->n_io_threads};
    const double seconds = davit_load_seconds(&bytes, 1);
    return seconds > 0 ? (double)made_bytes(i) / seconds / 1e9 : 0;
}

static json_t *stages_json(const davit_model_info *i)
{
    json_t *stages = json_object();
    double gb_s;
    predicted_seconds(i, &gb_s);
    json_object_set_new(stages, "read", stage_json(i, i->read_bytes, i->read_seconds, gb_s));
    json_object_set_new(stages, "convert",
                        stage_json(i, made_bytes(i), convert_seconds(i), convert_limit(i)));
    json_object_set_new(stages, "upload",
                        stage_json(i, i->uploaded_bytes, i->upload_seconds, DAVIT_SPEED_UPLOAD));
    return stages;
}

static json_t *planned_json(const davit_model_info *i)
{
    json_t *planned = json_object();
    set(planned, "borrowed_bytes", i->planned_borrowed_bytes);
    set(planned, "read_bytes", i->planned_read_bytes);
    set(planned, "private_bytes", i->planned_private_bytes);
    set(planned, "made_bytes", i->planned_made_bytes);
    set(planned, "window_bytes", i->planned_window_bytes);
    set(planned, "peak_bytes", i->planned_peak_bytes);
    double gb_s;
    const double seconds = predicted_seconds(i, &gb_s);
    set_real(planned, "read_gb_s", gb_s);
    set_real(planned, "weights_s", seconds);
    json_object_set_new(planned, "equal",
                        json_boolean(i->planned_borrowed_bytes == i->borrowed_bytes &&
                                     i->planned_read_bytes == i->read_bytes &&
                                     i->planned_private_bytes == i->private_bytes &&
                                     i->planned_made_bytes == made_bytes(i) &&
                                     i->planned_window_bytes == i->window_bytes));
    return planned;
}

json_t *davit_load_stats_json(const davit_model_info *i, const davit_engine *engine)
{
    json_t *load = json_pack("{s:s, s:s, s:s, s:s?, s:f}", "arch", i->arch, "format", i->format,
                             "kernels", i->kernels ? i->kernels : "", "tokenizer", i->tokenizer,
                             "seconds", i->load_seconds);
    json_object_set_new(load, "phases", phases_json(i));
    set(load, "borrowed_bytes", i->borrowed_bytes);
    set(load, "private_bytes", i->private_bytes);
    set(load, "read_bytes", i->read_bytes);
    set(load, "compared_bytes", i->compared_bytes);
    set(load, "copied_bytes", i->copied_bytes);
    set(load, "packed_bytes", i->packed_bytes);
    set(load, "decoded_bytes", i->decoded_bytes);
    set(load, "uploaded_bytes", i->uploaded_bytes);
    set(load, "host_copy_bytes", made_bytes(i));
    set(load, "device_upload_bytes", i->uploaded_bytes);
    set(load, "crossed_bytes", davit_engine_crossed(engine));
    set(load, "window_bytes", i->window_bytes);
    set(load, "reads", i->n_reads);
    set(load, "pieces", i->n_pieces);
    set(load, "io_threads", i->n_io_threads);
    json_object_set_new(load, "slots",
                        json_pack("{s:I, s:I, s:I, s:I}", "borrow",
                                  (json_int_t)i->access_slots[0], "direct",
                                  (json_int_t)i->access_slots[1], "stream",
                                  (json_int_t)i->access_slots[2], "defer",
                                  (json_int_t)i->access_slots[3]));
    set(load, "memory_bytes", i->memory_bytes);
    set(load, "resident_bytes", i->resident_bytes);
    set_real(load, "page_cache_before", cached(i));
    set_real(load, "read_bytes_per_thread_s", rate(i->read_bytes, i->read_seconds));
    set_real(load, "convert_bytes_per_thread_s", rate(made_bytes(i), convert_seconds(i)));
    json_object_set_new(load, "reader", json_string(reader(i)));
    json_object_set_new(load, "reader_reason", json_string(reader_reason(i)));
    set(load, "direct_bytes", i->direct_bytes);
    set(load, "beside_bytes", i->beside_bytes);
    json_object_set_new(load, "bound_by", json_string(bound(i)));
    json_object_set_new(load, "stages", stages_json(i));
    set_real(load, "amplification", amplification(i));
    set(load, "header_bytes", i->header_bytes);
    set(load, "peak_rss_bytes", i->peak_rss_bytes);
    json_object_set_new(load, "verified", json_string(VERIFIED));
    json_object_set_new(load, "tensors",
                        json_pack("{s:I, s:I, s:I}", "used", (json_int_t)i->used_tensors,
                                  "ignored", (json_int_t)i->ignored_tensors, "tied_slots",
                                  (json_int_t)i->tied_slots));
    json_object_set_new(load, "planned", planned_json(i));
    return load;
}

static void print_bytes(const davit_model_info *i)
{
    g_autofree char *borrowed = davit_bytes_text(i->borrowed_bytes);
    g_autofree char *private = davit_bytes_text(i->private_bytes);
    g_autofree char *read = davit_bytes_text(i->read_bytes);
    g_autofree char *copied = davit_bytes_text(i->copied_bytes);
    g_autofree char *packed = davit_bytes_text(i->packed_bytes);
    g_autofree char *decoded = davit_bytes_text(i->decoded_bytes);
    g_autofree char *window = davit_bytes_text(i->window_bytes);
    g_autofree char *peak = davit_bytes_text(i->planned_peak_bytes);
    json_t *planned = planned_json(i);
    fprintf(stderr,
            "  borrowed      %s in place in the file (%" G_GUINT64_FORMAT " slots)\n"
            "  private       %s (copied %s, packed %s, decoded %s), read %s in %" G_GUINT64_FORMAT
            " reads (%" G_GUINT64_FORMAT " slots direct, %" G_GUINT64_FORMAT " streamed)\n"
            "  window        %s of temporary memory, %" G_GUINT64_FORMAT
            " threads; predicted peak %s\n"
            "  plan          %s\n",
            borrowed, i->access_slots[0], private, copied, packed, decoded, read, i->n_reads,
            i->access_slots[1], i->access_slots[2], window, i->n_io_threads, peak,
            json_is_true(json_object_get(planned, "equal"))
                ? "every byte as predicted"
                : "NOT as predicted: please report this");
    json_decref(planned);
    if (i->uploaded_bytes) {
        g_autofree char *uploaded = davit_bytes_text(i->uploaded_bytes);
        fprintf(stderr, "  uploaded      %s to the device\n", uploaded);
    }
    if (i->access_slots[3])
        fprintf(stderr,
                "  on disk       %" G_GUINT64_FORMAT
                " slots: their pages are given back after each layer\n",
                i->access_slots[3]);
}

void davit_load_stats_print(const davit_model_info *i, const davit_engine *engine)
{
    g_autofree char *now = davit_bytes_text(davit_engine_bytes(engine));
    double gb_s;
    const double seconds = predicted_seconds(i, &gb_s);
    fprintf(stderr,
            "load report\n"
            "  architecture  %s\n  format        %s\n  kernels       %s\n  tokenizer     %s\n"
            "  weights       %.1f M elements, %" G_GUINT64_FORMAT " layers\n",
            i->arch, i->format, i->kernels ? i->kernels : "-", i->tokenizer ? i->tokenizer : "-",
            (double)i->n_weights / 1e6, i->n_layers);
    print_bytes(i);
    g_autofree char *rss = davit_bytes_text(i->peak_rss_bytes);
    fprintf(stderr,
            "  tensors       %" G_GUINT64_FORMAT " used, %" G_GUINT64_FORMAT
            " ignored by rules; %" G_GUINT64_FORMAT " weights tied\n"
            "  verified      %s\n"
            "  memory        most resident %s, the program and mapped pages with it\n",
            i->used_tensors, i->ignored_tensors, i->tied_slots, VERIFIED, rss);
    fprintf(stderr,
            "  page cache    %.0f %% of the files before\n"
            "  phases        open %.3f s, plan %.3f s, tokenizer %.3f s, weights %.3f s\n"
            "  reader        %s: %s\n"
            "  bound by      %s",
            100 * cached(i), i->open_seconds, i->plan_seconds, i->tokenizer_seconds,
            i->load_seconds, reader(i), reader_reason(i), bound(i));
    if (i->read_bytes)
        fprintf(stderr,
                " (per thread: read %.2f GB/s, convert %.2f GB/s; %.3f bytes moved for each "
                "that is needed)",
                rate(i->read_bytes, i->read_seconds) / 1e9,
                rate(made_bytes(i), convert_seconds(i)) / 1e9, amplification(i));
    fprintf(stderr,
            "\n  predicted     %.3f s for the weights at nominal speeds (read %.1f GB/s), took %.3f s"
            "\n  engine        %s for context and scratch, %u threads\n"
            "  loaded in     %.3f s\n",
            seconds, gb_s, i->load_seconds, now, davit_engine_threads(engine), i->load_seconds);
    if (davit_engine_crossed(engine)) {
        g_autofree char *crossed = davit_bytes_text(davit_engine_crossed(engine));
        fprintf(stderr, "  crossed       %s of values went from device to device\n", crossed);
    }
}
