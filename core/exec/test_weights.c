/* SPDX-License-Identifier: Apache-2.0
 * What the plan printed is what happens: its bytes against the executor's counters and against
 * the kernel's own account, and the same weights for every access, window and thread count. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "exec/budget.h"
#include "base/sanitizer.h"
#include "exec/exec.h"
#include "exec/verify.h"
#include "plan/layout.h"

#define MIB (1ull << 20)

/* ---- a model, opened and planned ---- */

typedef struct Model {
    DavitRegistry *registry;
    DavitCheckpoint *checkpoint;
    DavitSettings *settings;
    DavitReport *report;
    DavitPlan *plan; /* NULL = refused */
} Model;

static void model_clear(Model *m)
{
    davit_plan_free(m->plan);
    davit_settings_free(m->settings);
    davit_checkpoint_free(m->checkpoint);
    davit_registry_free(m->registry);
    davit_report_free(m->report);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Model, model_clear)

static Model open_model(const char *path, const DavitPlanOptions *options)
{
    const DavitRegistryOptions where = {.builtin_dir = DAVIT_PLUGIN_DIR, .only_paths = true};
    Model m = {.report = davit_report_new()};
    m.registry = davit_registry_open(&where, m.report);
    m.checkpoint = davit_checkpoint_open(m.registry, path, DAVIT_RUN, m.report);
    if (m.checkpoint)
        m.settings = davit_settings_open(m.checkpoint, m.report);
    if (m.settings)
        m.plan = davit_plan_make(m.registry, m.checkpoint, m.settings, options, m.report);
    return m;
}

static bool has_code(const DavitReport *report, uint32_t code)
{
    for (size_t i = 0; i < davit_report_count(report); i++)
        if (davit_report_get(report, i)->code == code)
            return true;
    return false;
}

/* ---- the kernel's account of reads ---- */

/* rchar of this process, all threads; *out_n = bytes that asking for it read. */
static bool read_account(uint64_t *out, uint64_t *out_n)
{
    g_autofree char *text = NULL;
    gsize n;
    if (!g_file_get_contents("/proc/self/io", &text, &n, NULL))
        return false;
    *out = g_ascii_strtoull(text + strlen("rchar: "), NULL, 10);
    *out_n = n;
    return true;
}

/* ---- bytes of weights ---- */

static void add_part(GChecksum *sum, const DavitPlan *plan, const DavitSlot *slot,
                     const davit_segment *seg, uint64_t part)
{
    const DavitModule *module = slot->sources[0].module;
    uint64_t n = seg->n_rows * seg->row_bytes[part];
    if (slot->access == DAVIT_ACCESS_PACK)
        n = part == 0 ? (seg->n_rows + slot->pack->row_block - 1) / slot->pack->row_block *
                            seg->row_bytes[0]
                      : davit_pack_map_bytes(slot);
    else if (seg->row_bytes[part] == 0)
        n = davit_checkpoint_tensor(plan->checkpoint,
                                    module->tensor[module->desc.parts[part].index])
                ->n_bytes;
    g_checksum_update(sum, seg->part[part], (gssize)n);
}

static char *digest(const DavitPlan *plan, const DavitSlot *slot, const davit_weight *w)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    for (uint64_t s = 0; s < w->n_segments; s++)
        for (uint64_t p = 0; p < w->segments[s].n_parts; p++)
            add_part(sum, plan, slot, &w->segments[s], p);
    return g_strdup(g_checksum_get_string(sum));
}

/* The same slot in the same layout has the same bytes, however it came into memory. */
static void check_digests(const Model *m, const DavitWeights *weights, GHashTable *known)
{
    const DavitPlan *plan = m->plan;
    for (size_t i = 0; i < plan->program->n_weights; i++) {
        const int32_t at = plan->program->weights[i].slot;
        if (at < 0)
            continue;
        const DavitSlot *slot = &plan->slots[at];
        if (slot->tied_to >= 0)
            slot = &plan->slots[slot->tied_to];
        g_autofree char *sum = digest(plan, slot, davit_weights_get(weights, i));
        char *key = g_strdup_printf("%d %s", at, slot->layout);
        const char *before = g_hash_table_lookup(known, key);
        if (before)
            g_assert_cmpstr(sum, ==, before);
        if (before)
            g_free(key);
        else
            g_hash_table_insert(known, key, g_steal_pointer(&sum));
    }
}

/* ---- predicted and counted ---- */

static uint64_t made_by(const DavitPlan *plan, DavitAccess access)
{
    uint64_t n = 0;
    for (size_t i = 0; i < plan->n_slots; i++)
        if (plan->slots[i].access == access)
            n += plan->slots[i].made_bytes;
    return n;
}

static void check_counters(const DavitPlan *plan, const DavitLoadStats *s)
{
    g_assert_cmpuint(s->borrowed_bytes, ==, plan->borrowed_bytes);
    g_assert_cmpuint(s->read_bytes, ==, plan->read_bytes);
    g_assert_cmpuint(s->private_bytes, ==, plan->private_bytes);
    g_assert_cmpuint(s->copied_bytes, ==, made_by(plan, DAVIT_ACCESS_COPY));
    g_assert_cmpuint(s->packed_bytes, ==, made_by(plan, DAVIT_ACCESS_PACK));
    g_assert_cmpuint(s->decoded_bytes, ==, made_by(plan, DAVIT_ACCESS_DECODE));
    g_assert_cmpuint(s->window_bytes, ==, plan->window_bytes);
    g_assert_cmpuint(s->compared_bytes, <=, plan->compare_bytes);
    g_assert_cmpuint(s->uploaded_bytes, ==, 0);
}

static void load_as(const char *path, const DavitPlanOptions *options, GHashTable *known)
{
    g_auto(Model) m = open_model(path, options);
    uint64_t before = 0, after = 0, asking = 0, unused;
    DavitLoadStats stats;
    if (!m.plan)
        return;
    const bool account = read_account(&before, &asking);
    g_autoptr(DavitWeights) weights = davit_weights_load(m.plan, NULL, m.report);
    if (account)
        read_account(&after, &unused);
    g_assert_nonnull(weights);
    davit_weights_stats(weights, &stats);
    check_counters(m.plan, &stats);
    if (account)
        g_assert_cmpuint(after - before - asking, ==, stats.read_bytes + stats.compared_bytes);
    check_digests(&m, weights, known);
}

static void plan_is_what_happens(const void *data)
{
    static const DavitAccessChoice accesses[] = {DAVIT_ACCESS_AUTO, DAVIT_ACCESS_FORCE_BORROW,
                                                 DAVIT_ACCESS_FORCE_DIRECT,
                                                 DAVIT_ACCESS_FORCE_STREAM};
    static const struct {
        uint64_t window;
        unsigned lanes;
    } sizes[] = {{64 << 10, 1}, {8 * MIB, 2}, {32 * MIB, 3}, {128 * MIB, 4}, {256 * MIB, 0}};
    g_autoptr(GHashTable) known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    DavitPlanOptions options = {.purposes = DAVIT_MAP | DAVIT_RUN};
    for (size_t a = 0; a < G_N_ELEMENTS(accesses); a++)
        for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
            options.access = accesses[a];
            options.window_bytes = sizes[s].window;
            options.n_lanes = sizes[s].lanes;
            /* every access with two sizes, every size with two accesses */
            if (a == 0 || a == 3 || s == 0 || s == 4)
                load_as(data, &options, known);
        }
    options.access = DAVIT_ACCESS_AUTO;
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s += 2) {
        options.layout = DAVIT_LAYOUT_PACKED;
        options.window_bytes = sizes[s].window;
        options.n_lanes = sizes[s].lanes;
        load_as(data, &options, known);
    }
    options.layout = DAVIT_LAYOUT_AUTO;
    for (DavitDtypeChoice d = DAVIT_DTYPE_F32; d <= DAVIT_DTYPE_BF16; d++) {
        options.dtype = d;
        load_as(data, &options, known);
    }
}

/* ---- ranks ---- */

/* Put what one rank holds of a slot into @whole, [E, N, row] bytes of the stored matrix. */
static void put_rank(const DavitSlot *slot, const davit_weight *w, uint64_t n_rows,
                     uint64_t row_bytes, uint64_t n_cols, uint8_t *whole)
{
    const bool by_expert = slot->cut && strcmp(slot->cut, "experts") == 0;
    const bool by_column = slot->cut && strcmp(slot->cut, "columns") == 0;
    const uint64_t row0 = slot->cut && !by_expert && !by_column ? slot->cut_first : 0;
    const uint64_t col0 = by_column ? slot->cut_first * row_bytes / n_cols : 0;
    for (uint64_t s = 0; s < w->n_segments; s++) {
        const davit_segment *seg = &w->segments[s];
        const uint64_t e = seg->expert + (by_expert ? slot->cut_first : 0);
        for (uint64_t r = 0; r < seg->n_rows; r++)
            memcpy(whole + (e * n_rows + row0 + seg->row + r) * row_bytes + col0,
                   seg->part[0] + r * seg->row_bytes[0], seg->row_bytes[0]);
    }
}

/* The stored bytes of all of @slot, (owned) NULL if it is not one part as stored. */
static uint8_t *stored_whole(const DavitPlan *plan, const DavitSlot *slot, uint64_t *out_n)
{
    const davit_quant_desc *d = slot->n_sources ? &slot->sources[0].module->desc : NULL;
    const uint64_t row_bytes = d ? d->parts[0].row_bytes : 0;
    g_autoptr(DavitReport) report = davit_report_new();
    if (!d || d->n_parts != 1 || row_bytes == 0 || slot->value_ops || slot->perm_heads)
        return NULL;
    *out_n = slot->n_experts * slot->n_rows * row_bytes;
    uint8_t *bytes = g_malloc0(*out_n);
    for (size_t s = 0; s < slot->n_sources; s++) {
        const DavitSlotSource *src = &slot->sources[s];
        const davit_tensor_info *t = davit_checkpoint_tensor(
            plan->checkpoint, src->module->tensor[src->module->desc.parts[0].index]);
        for (uint64_t e = 0; e < src->n_experts; e++)
            g_assert_cmpint(
                davit_checkpoint_read(
                    plan->checkpoint, t->file,
                    t->off + (e * src->module->desc.n_rows + src->row) * row_bytes,
                    bytes + (src->slot_expert + e) * slot->n_rows * row_bytes,
                    src->n_rows * row_bytes, report),
                ==, 0);
    }
    return bytes;
}

/* Bytes that the ranks together take of a slot: once what is cut, each for itself what is not, and
 * heads that several hold at most once for each. */
static void check_rank_bytes(const DavitPlan *whole, size_t i, const Model *ranks, unsigned tp)
{
    const DavitSlot *slot = &whole->slots[i];
    const uint64_t n = slot->borrowed_bytes + slot->read_bytes;
    const char *cut = ranks[0].plan->slots[i].cut;
    uint64_t sum = 0;
    for (unsigned r = 0; r < tp; r++)
        sum += ranks[r].plan->slots[i].borrowed_bytes + ranks[r].plan->slots[i].read_bytes;
    if (cut && strcmp(cut, "rows, shared") == 0)
        g_assert_cmpuint(sum, <=, n * tp);
    else
        g_assert_cmpuint(sum, ==, cut ? n : n * tp);
}

/* What all ranks hold together is the stored matrix, and each read what it holds. */
static void check_ranks(const char *path, unsigned tp)
{
    DavitPlanOptions options = {.purposes = DAVIT_MAP};
    g_auto(Model) whole = open_model(path, &options);
    g_autofree Model *ranks = g_new0(Model, tp);
    g_autofree DavitWeights **weights = g_new0(DavitWeights *, tp);
    for (unsigned r = 0; whole.plan && r < tp; r++) {
        DavitLoadStats stats;
        options.tp = tp;
        options.rank = r;
        ranks[r] = open_model(path, &options);
        if (!ranks[r].plan)
            break;
        weights[r] = davit_weights_load(ranks[r].plan, NULL, ranks[r].report);
        g_assert_nonnull(weights[r]);
        davit_weights_stats(weights[r], &stats);
        check_counters(ranks[r].plan, &stats);
    }
    for (size_t i = 0; weights[tp - 1] && i < whole.plan->n_slots; i++) {
        const DavitSlot *slot = &whole.plan->slots[i];
        uint64_t n = 0;
        check_rank_bytes(whole.plan, i, ranks, tp);
        g_autofree uint8_t *want = stored_whole(whole.plan, slot, &n);
        g_autofree uint8_t *have = g_malloc0(n + 1);
        for (unsigned r = 0; want && r < tp; r++)
            put_rank(&ranks[r].plan->slots[i], davit_weights_slot(weights[r], i), slot->n_rows,
                     slot->sources[0].module->desc.parts[0].row_bytes, slot->n_cols, have);
        if (want)
            g_assert_true(memcmp(have, want, n) == 0);
    }
    if (!weights[tp - 1] && whole.plan)
        g_assert_true(has_code(ranks[0].report, DAVIT_R_CONFIG_UNSUPPORTED) ||
                      has_code(ranks[0].report, DAVIT_R_QUANT_PARAMS));
    for (unsigned r = 0; r < tp; r++) {
        davit_weights_free(weights[r]);
        if (ranks[r].report)
            model_clear(&ranks[r]);
    }
}

static void ranks_hold_the_whole(const void *data)
{
    check_ranks(data, 2);
    check_ranks(data, 3);
    check_ranks(data, 4);
}

/* ---- a large model of zeros, sparse on disk ---- */

typedef struct Header {
    GString *json;
    uint64_t at;
} Header;

static void add_tensor(Header *h, const char *name, uint64_t rows, uint64_t cols)
{
    const uint64_t n = rows * MAX(cols, 1) * 2;
    g_string_append_printf(h->json, "%s\"%s\":{\"dtype\":\"BF16\",\"shape\":[%" G_GUINT64_FORMAT,
                           h->json->len > 1 ? "," : "", name, rows);
    if (cols)
        g_string_append_printf(h->json, ",%" G_GUINT64_FORMAT, cols);
    g_string_append_printf(h->json,
                           "],\"data_offsets\":[%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT "]}",
                           h->at, h->at + n);
    h->at += n;
}

/* (owned) A directory with a llama of one layer whose embedding has @vocab rows of 64. */
static char *large_model(uint64_t vocab)
{
    static const char *const mats[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                       "self_attn.o_proj", "mlp.gate_proj",    "mlp.up_proj",
                                       "mlp.down_proj"};
    char *dir = g_dir_make_tmp("davit-load-XXXXXX", NULL);
    g_autofree char *config = g_build_filename(dir, "config.json", NULL);
    g_autofree char *file = g_build_filename(dir, "model.safetensors", NULL);
    g_autofree char *text = g_strdup_printf(
        "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"hidden_size\":64,"
        "\"intermediate_size\":64,\"num_hidden_layers\":1,\"num_attention_heads\":4,"
        "\"vocab_size\":%" G_GUINT64_FORMAT ",\"tie_word_embeddings\":true,"
        "\"rms_norm_eps\":1e-5,\"max_position_embeddings\":128,\"rope_theta\":10000.0}",
        vocab);
    Header h = {.json = g_string_new("{")};
    add_tensor(&h, "model.embed_tokens.weight", vocab, 64);
    add_tensor(&h, "model.norm.weight", 64, 0);
    add_tensor(&h, "model.layers.0.input_layernorm.weight", 64, 0);
    add_tensor(&h, "model.layers.0.post_attention_layernorm.weight", 64, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(mats); i++) {
        g_autofree char *name = g_strdup_printf("model.layers.0.%s.weight", mats[i]);
        add_tensor(&h, name, 64, 64);
    }
    g_string_append_c(h.json, '}');
    while (h.json->len % 8)
        g_string_append_c(h.json, ' ');
    const uint64_t n = h.json->len;
    const int fd = g_open(file, O_CREAT | O_WRONLY, 0600);
    g_assert_true(g_file_set_contents(config, text, -1, NULL));
    g_assert_cmpint(write(fd, &n, 8), ==, 8);
    g_assert_cmpint(write(fd, h.json->str, n), ==, (gssize)n);
    g_assert_cmpint(ftruncate(fd, (off_t)(8 + n + h.at)), ==, 0);
    close(fd);
    g_string_free(h.json, TRUE);
    return dir;
}

static void remove_model(char *dir)
{
    g_autofree char *config = g_build_filename(dir, "config.json", NULL);
    g_autofree char *file = g_build_filename(dir, "model.safetensors", NULL);
    g_unlink(config);
    g_unlink(file);
    g_rmdir(dir);
    g_free(dir);
}

/* ---- peak memory ---- */

static const DavitPlanOptions direct = {.purposes = DAVIT_MAP | DAVIT_RUN,
                                        .access = DAVIT_ACCESS_FORCE_DIRECT};

static uint64_t data_bytes(void)
{
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents("/proc/self/status", &text, NULL, NULL));
    return g_ascii_strtoull(strstr(text, "VmData:") + strlen("VmData:"), NULL, 10) * 1024;
}

/* In a child: plan, limit private memory to the predicted peak and @more, load. */
static int load_limited(const char *path, uint64_t window, int64_t more)
{
    const pid_t child = fork();
    int status = 0;
    if (child != 0) {
        g_assert_cmpint(waitpid(child, &status, 0), ==, child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    DavitPlanOptions options = direct;
    options.window_bytes = window;
    Model m = open_model(path, &options);
    const uint64_t most = data_bytes() + m.plan->peak_bytes - m.plan->constant_bytes;
    const struct rlimit limit = {(rlim_t)((int64_t)most + more), RLIM_INFINITY};
    if (setrlimit(RLIMIT_DATA, &limit) != 0)
        _exit(99);
    if (davit_budget_check(m.plan, m.report))
        _exit(has_code(m.report, DAVIT_R_MEMORY_SHORT) ? 3 : 98);
    _exit(davit_weights_load(m.plan, NULL, m.report) ? 0 : 97);
}

static void peak_is_predicted(void)
{
    if (DAVIT_SANITIZED) {
        g_test_skip("sanitizers map more than the limit");
        return;
    }
    char *dir = large_model(4400000); /* 537 MiB */
    static const uint64_t windows[] = {8, 32, 128, 256};
    for (size_t i = 0; i < G_N_ELEMENTS(windows); i++) {
        if (i % 3 == 0)
            g_assert_cmpint(load_limited(dir, windows[i] * MIB, 16 * MIB), ==, 0);
        g_assert_cmpint(load_limited(dir, windows[i] * MIB, -64 * (int64_t)MIB), ==, 3);
    }
    remove_model(dir);
}

/* ---- what goes wrong ---- */

static bool stop_at_once(void *ctx, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    ++*(int *)ctx;
    return false;
}

static void cancel_ends_the_load(void)
{
    char *dir = large_model(400000);
    g_auto(Model) m = open_model(dir, &direct);
    int calls = 0;
    const DavitLoadOptions options = {.progress = stop_at_once, .ctx = &calls};
    g_assert_nonnull(m.plan);
    g_assert_null(davit_weights_load(m.plan, &options, m.report));
    g_assert_true(has_code(m.report, DAVIT_R_CANCELLED));
    g_assert_cmpint(calls, ==, 1);
    remove_model(dir);
}

static void changed_file_is_refused(const void *data)
{
    static const DavitAccessChoice accesses[] = {DAVIT_ACCESS_AUTO, DAVIT_ACCESS_FORCE_DIRECT,
                                                 DAVIT_ACCESS_FORCE_STREAM};
    const bool cut = strcmp(data, "cut") == 0;
    for (size_t a = 0; a < G_N_ELEMENTS(accesses); a++) {
        char *dir = large_model(1000);
        g_autofree char *file = g_build_filename(dir, "model.safetensors", NULL);
        DavitPlanOptions options = direct;
        options.access = accesses[a];
        g_auto(Model) m = open_model(dir, &options);
        g_assert_nonnull(m.plan);
        const int fd = g_open(file, O_WRONLY, 0);
        if (cut)
            g_assert_cmpint(ftruncate(fd, 4096), ==, 0);
        else
            g_assert_cmpint(pwrite(fd, "x", 1, 5000), ==, 1);
        close(fd);
        if (!cut) { /* a clock tick may be shared */
            const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
            g_assert_cmpint(utimensat(AT_FDCWD, file, times, 0), ==, 0);
        }
        g_assert_null(davit_weights_load(m.plan, NULL, m.report));
        g_assert_true(has_code(m.report, DAVIT_R_FILE_CHANGED));
        remove_model(dir);
    }
}

/* A scale that is NaN in a file whose weights stay where they are. */
static void borrowed_nan_is_named(void)
{
    static const char from[] = DAVIT_SOURCE_DIR "/tests/golden/models/gguf_q4_0/model.gguf";
    const DavitPlanOptions options = {.purposes = DAVIT_MAP | DAVIT_RUN,
                                      .access = DAVIT_ACCESS_FORCE_BORROW};
    g_autofree char *dir = g_dir_make_tmp("davit-nan-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(dir, "model.gguf", NULL);
    g_autofree char *bytes = NULL;
    gsize n;
    const DavitRecord *said;

    g_assert_true(g_file_get_contents(from, &bytes, &n, NULL));
    {
        g_auto(Model) whole = open_model(from, &options);
        const davit_tensor_info *t =
            davit_checkpoint_find(whole.checkpoint, "blk.0.ffn_down.weight");
        const uint64_t second_row = t->n_bytes / t->shape[0];
        g_assert_cmpstr(t->dtype, ==, "q4_0/1");
        g_assert_cmpint(davit_borrowed_verify(whole.plan, whole.report), ==, DAVIT_OK);
        bytes[t->off + second_row] = 0x00; /* float16 NaN */
        bytes[t->off + second_row + 1] = 0x7e;
    }
    g_assert_true(g_file_set_contents(file, bytes, (gssize)n, NULL));
    {
        g_auto(Model) m = open_model(file, &options);

        g_assert_nonnull(m.plan);
        g_assert_cmpint(davit_borrowed_verify(m.plan, m.report), ==, DAVIT_E_CORRUPT);
        said = davit_report_first_error(m.report, 0);
        g_assert_nonnull(said);
        g_assert_cmpuint(said->code, ==, DAVIT_R_VALUE_NOT_FINITE);
        g_assert_true(g_str_has_prefix(said->subject, "blk.0.ffn_down: "));
        g_assert_nonnull(strstr(said->subject, "row 1"));
    }
    g_unlink(file);
    g_rmdir(dir);
}

/* An open file that loses its name keeps its bytes. */
static void removed_file_still_loads(void)
{
    char *dir = large_model(1000);
    g_autofree char *file = g_build_filename(dir, "model.safetensors", NULL);
    g_auto(Model) m = open_model(dir, &direct);
    g_unlink(file);
    g_autoptr(DavitWeights) weights = davit_weights_load(m.plan, NULL, m.report);
    g_assert_nonnull(weights);
    remove_model(dir);
}

/* ---- a budget ---- */

static uint64_t file_pages(void)
{
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents("/proc/self/status", &text, NULL, NULL));
    return g_ascii_strtoull(strstr(text, "RssFile:") + strlen("RssFile:"), NULL, 10) * 1024;
}

static void dropped_pages_are_given_back(void)
{
    char *dir = large_model(262144); /* 32 MiB */
    const DavitPlanOptions options = {.purposes = DAVIT_MAP | DAVIT_RUN};
    g_auto(Model) m = open_model(dir, &options);
    const davit_tensor_info *t =
        davit_checkpoint_find(m.checkpoint, "model.embed_tokens.weight");
    const DavitSource *source = davit_checkpoint_file(m.checkpoint, t->file).source;
    const uint8_t *bytes;
    volatile uint8_t sum = 0;
    g_assert_cmpint(davit_checkpoint_view(m.checkpoint, t->file, t->off, t->n_bytes, &bytes,
                                          m.report),
                    ==, 0);
    const uint64_t before = file_pages();
    for (uint64_t i = 0; i < t->n_bytes; i += 4096)
        sum = (uint8_t)(sum + bytes[i]);
    g_assert_cmpuint(file_pages(), >=, before + 30 * MIB);
    davit_source_drop(source, t->off, t->n_bytes);
    g_assert_cmpuint(file_pages(), <=, before + 2 * MIB);
    g_assert_cmpuint(bytes[4096], ==, 0); /* and come again */
    remove_model(dir);
}

static void budget_decides(void)
{
    g_autofree char *path =
        g_build_filename(DAVIT_SOURCE_DIR, "tests/golden/models/llama_mini", NULL);
    DavitPlanOptions options = {.purposes = DAVIT_MAP | DAVIT_RUN, .n_lanes = 1};
    g_auto(Model) all = open_model(path, &options);
    options.memory_bytes = all.plan->resident_bytes;
    g_auto(Model) fits = open_model(path, &options);
    options.memory_bytes--;
    g_auto(Model) less = open_model(path, &options);
    options.memory_bytes = less.plan->resident_bytes;
    g_auto(Model) least = open_model(path, &options);
    options.memory_bytes--;
    g_auto(Model) none = open_model(path, &options);
    uint64_t n_deferred[2] = {0};
    for (size_t i = 0; i < all.plan->n_slots; i++) {
        n_deferred[0] += fits.plan->slots[i].way == DAVIT_WAY_DEFER;
        n_deferred[1] += least.plan->slots[i].way == DAVIT_WAY_DEFER;
    }
    g_assert_cmpuint(n_deferred[0], ==, 0);
    g_assert_cmpuint(n_deferred[1], >, 0);
    g_assert_cmpuint(less.plan->resident_bytes, <, all.plan->resident_bytes);
    g_assert_null(none.plan);
    g_assert_true(has_code(none.report, DAVIT_R_MEMORY_SHORT));
}

/* ---- again and again ---- */

static unsigned count_fds(void)
{
    g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
    unsigned n = 0;
    while (dir && g_dir_read_name(dir))
        n++;
    return n;
}

/* LOADS=10000 in the environment for the long run. */
static void loads_leave_nothing(void)
{
    const char *asked = g_getenv("LOADS");
    const int n = asked ? atoi(asked) : 100;
    g_autofree char *path =
        g_build_filename(DAVIT_SOURCE_DIR, "tests/golden/models/llama_mini", NULL);
    const DavitPlanOptions options = {.purposes = DAVIT_MAP | DAVIT_RUN,
                                      .access = DAVIT_ACCESS_FORCE_STREAM};
    unsigned fds = 0;
    uint64_t bytes = 0;
    for (int i = 0; i < n; i++) {
        g_auto(Model) m = open_model(path, &options);
        g_autoptr(DavitWeights) weights = davit_weights_load(m.plan, NULL, m.report);
        g_assert_nonnull(weights);
        if (i == 20) { /* caches of the C library are warm */
            fds = count_fds();
            bytes = data_bytes();
        }
        if (i > 20)
            g_assert_cmpuint(count_fds(), ==, fds);
    }
    if (!DAVIT_SANITIZED)
        g_assert_cmpuint(data_bytes(), <=, bytes + 1 * MIB);
}

int main(int argc, char **argv)
{
    static const char models[] = DAVIT_SOURCE_DIR "/tests/golden/models";
    g_autoptr(GDir) dir = g_dir_open(models, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *name;
    g_test_init(&argc, &argv, NULL);
    while (dir && (name = g_dir_read_name(dir))) {
        char *path = g_build_filename(models, name, NULL);
        g_autofree char *test = g_strconcat("/weights/plan/", name, NULL);
        g_ptr_array_add(names, path);
        if (g_file_test(path, G_FILE_TEST_IS_DIR))
            g_test_add_data_func(test, path, plan_is_what_happens);
        g_autofree char *ranks = g_strconcat("/weights/ranks/", name, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_DIR))
            g_test_add_data_func(ranks, path, ranks_hold_the_whole);
    }
    g_test_add_func("/weights/peak", peak_is_predicted);
    g_test_add_func("/weights/cancel", cancel_ends_the_load);
    g_test_add_data_func("/weights/cut", "cut", changed_file_is_refused);
    g_test_add_data_func("/weights/written", "written", changed_file_is_refused);
    g_test_add_func("/weights/borrowed_nan", borrowed_nan_is_named);
    g_test_add_func("/weights/removed", removed_file_still_loads);
    g_test_add_func("/weights/dropped", dropped_pages_are_given_back);
    g_test_add_func("/weights/budget", budget_decides);
    g_test_add_func("/weights/again", loads_leave_nothing);
    return g_test_run();
}
