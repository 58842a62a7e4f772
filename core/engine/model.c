/* SPDX-License-Identifier: Apache-2.0
 * davit_model: registry, checkpoint, settings, tokenizer, plan and weights in that order. */
#include "engine/private.h"

#include <string.h>
#include <sys/resource.h>

#include "checkpoint/rename.h"
#include "exec/budget.h"
#include "plan/kv_scale.h"
#include "plan/place.h"
#include "tokenizer/beyond.h"

static const davit_model *checked(const davit_model *model)
{
    return model && model->magic == DAVIT_MAGIC_MODEL ? model : NULL;
}

static bool known_params(const davit_model_params *p)
{
    return p && p->struct_size >= offsetof(davit_model_params, plugin_paths) && p->model &&
           p->activations <= DAVIT_LIB_ACTIVATIONS_INT8 && p->layout <= DAVIT_LIB_LAYOUT_PACKED;
}

static double seconds_since(int64_t start)
{
    return (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
}

static const char *kv_dtype_name(const char *given, DavitReport *report, int32_t *status)
{
    if (!given)
        return NULL;
    if (strcmp(given, "f32") == 0)
        return "f32/1";
    if (strcmp(given, "f16") == 0)
        return "f16/1";
    if (strcmp(given, "fp8") == 0)
        return DAVIT_KV_FP8;
    *status = davit_report_add(report, &(DavitFinding){.code = DAVIT_R_FLAG_UNSUPPORTED,
                                                       .status = DAVIT_E_UNSUPPORTED,
                                                       .stage = "plan",
                                                       .subject = "kv-dtype",
                                                       .expected = "f32, f16 or fp8",
                                                       .found = given,
                                                       .message = "KV storage type is not known"});
    return NULL;
}

/* Most that the process had resident until now. */
static uint64_t peak_rss(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss * 1024;
}

/* "auto" takes the CPU: no plugin that owns another device ships with this version. */
static const char *device_name(const char *given)
{
    return given && strcmp(given, "auto") == 0 ? NULL : given;
}

/* A vocabulary larger than the embedding would index past it. */
static void check_vocab(const davit_model *m, DavitReport *report)
{
    const DavitProgram *program = m->plan->program;
    if (m->tokenizer)
        davit_tokenizer_tell_beyond(m->tokenizer, program->values[program->output].width,
                                    "vocabulary", report);
}

static void name_parts(davit_model *m)
{
    DavitTokenizerFacts facts;
    if (m->tokenizer) {
        davit_tokenizer_facts(m->tokenizer, &facts);
        m->tokenizer_family = g_strdup(facts.family);
    }
    const DavitProgram *program = m->plan->program;
    g_autoptr(GPtrArray) ids = g_ptr_array_new();
    for (size_t i = 0; i < program->n_instrs; i++) {
        const DavitComponent *kernels = program->instrs[i].kernels;
        if (kernels && !g_ptr_array_find(ids, kernels->id, NULL))
            g_ptr_array_add(ids, kernels->id);
    }
    g_ptr_array_add(ids, NULL);
    m->kernels_id = g_strjoinv(", ", (char **)ids->pdata);
}

/* The library's progress callback says 0 to cancel; the executor's false. */
typedef struct Progress {
    int (*fn)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
} Progress;

static bool forward_progress(void *ctx, uint64_t done, uint64_t total)
{
    const Progress *progress = ctx;
    return progress->fn(progress->ctx, done, total) != 0;
}

/* Does this process start the other ranks? Only with a plan of its own: what cannot be shared out is
 * refused before there are any. */
static bool starts_ranks(const davit_model_params *p)
{
    return p->tp > 1 && !p->comm && p->rank == 0 && p->start_ranks;
}

/* Before anything is loaded: what is wrong with one rank, all learn soon. */
static int32_t join_ranks(davit_model *m, const davit_model_params *p, DavitReport *report)
{
    g_autofree char *fresh = NULL;
    DavitCommPlace place = {.address = p->comm,
                            .rank = p->rank,
                            .size = p->tp,
                            .timeout_s = p->comm_timeout_s,
                            .cancelled = p->comm_cancelled,
                            .ctx = p->comm_ctx};
    if (p->tp <= 1)
        return DAVIT_OK;
    if (starts_ranks(p)) {
        fresh = davit_comm_new_address(m->registry, p->tp, report);
        if (!fresh)
            return DAVIT_E_IO;
        if (p->start_ranks(p->comm_ctx, fresh))
            return davit_report_add(report,
                                    &(DavitFinding){.code = DAVIT_R_RANK_LOST,
                                                    .status = DAVIT_E_IO,
                                                    .stage = "ranks",
                                                    .subject = "ranks",
                                                    .message = "the other ranks did not start"});
        place.address = fresh;
    }
    m->comm = davit_comm_open(m->registry, &place, report);
    return m->comm ? DAVIT_OK : DAVIT_E_IO;
}

/* (owned) */
static DavitDeviceBudget *copy_budgets(const davit_model_params *p)
{
    DavitDeviceBudget *out = g_new0(DavitDeviceBudget, p->n_budgets + 1);
    for (uint64_t i = 0; i < p->n_budgets; i++)
        out[i] = (DavitDeviceBudget){p->budgets[i].device, p->budgets[i].n_bytes};
    return out;
}

static int32_t open_model(davit_model *m, const davit_model_params *p, DavitReport *report)
{
    const int64_t start = g_get_monotonic_time();
    const DavitRegistryOptions where = {.plugin_paths = p->plugin_paths,
                                        .trust_dirs = p->trust_dirs,
                                        .allow_draft = p->allow_draft != 0};
    m->registry = davit_registry_open(&where, report);
    if (davit_report_failed(report))
        return -1;
    m->checkpoint = davit_checkpoint_open(m->registry, p->model, DAVIT_RUN, report);
    if (!m->checkpoint ||
        davit_checkpoint_repair(m->checkpoint, p->strip_prefix, p->rename, report))
        return -1;
    m->settings = davit_settings_open(m->checkpoint, report);
    if (!m->settings)
        return -1;
    m->open_seconds = seconds_since(start);

    int32_t status = DAVIT_OK;
    g_autofree DavitDeviceBudget *budgets = copy_budgets(p);
    DavitPlanOptions plan = {.purposes = DAVIT_RUN,
                                   .activations = (DavitActivations)p->activations,
                                   .layout = (DavitLayoutChoice)p->layout,
                                   .device = device_name(p->device),
                                   .kv_dtype = kv_dtype_name(p->kv_dtype, report, &status),
                                   .block_tokens = p->block_tokens,
                                   .force_tie = p->tie == 1,
                                   .force_untie = p->tie == 2,
                                   .ignore = p->ignore,
                                   .access = (DavitAccessChoice)p->access,
                                   .dtype = (DavitDtypeChoice)p->dtype,
                                   .window_bytes = p->window_bytes,
                                   .n_lanes = p->n_io_threads,
                                   .memory_bytes = p->memory_bytes,
                                   .device_map = p->device_map,
                                   .budgets = budgets,
                                   .n_budgets = (size_t)p->n_budgets,
                                   .ctx = p->ctx,
                                   .chunk = p->chunk,
                                   .n_threads = p->n_threads,
                                   .quant_allow = p->quant_allow,
                                   .tp = p->tp,
                                   .rank = p->rank};
    if (davit_place_is_auto(&plan) && !plan.memory_bytes)
        plan.memory_bytes = davit_budget_free(NULL);
    if (!status && !starts_ranks(p))
        status = join_ranks(m, p, report);
    if (status)
        return status;
    const int64_t planned = g_get_monotonic_time();
    m->plan = davit_plan_make(m->registry, m->checkpoint, m->settings, &plan, report);
    m->plan_seconds = seconds_since(planned);
    if (m->plan && starts_ranks(p))
        status = join_ranks(m, p, report);
    if (status)
        return status;
    /* the tokenizer is asked even when the plan failed: all findings at once */
    g_autoptr(DavitReport) aside = davit_report_new(); /* why a tokenizer nobody needs is absent */
    const int64_t before = g_get_monotonic_time();
    if (p->no_tokenizer < 2)
        m->tokenizer =
            davit_tokenizer_of(m->checkpoint, m->registry, p->no_tokenizer ? aside : report);
    m->tokenizer_seconds = seconds_since(before);
    if (!m->plan || (!p->no_tokenizer && !m->tokenizer))
        return -1;

    if (davit_budget_check(m->plan, report))
        return -1;
    Progress progress = {p->progress, p->progress_ctx};
    const DavitLoadOptions load = {.progress = p->progress ? forward_progress : NULL,
                                   .ctx = &progress,
                                   .cache = (DavitCacheChoice)p->page_cache};
    m->weights = davit_weights_load(m->plan, &load, report);
    m->peak_rss_bytes = peak_rss();
    if (m->weights)
        check_vocab(m, report);
    return m->weights ? DAVIT_OK : -1;
}

static int status_of(const DavitReport *report)
{
    const DavitRecord *r = davit_report_first_error(report, 0);
    return r && r->status ? r->status : DAVIT_LIB_IO;
}

int davit_model_load(const davit_model_params *params, davit_model **out_model,
                     davit_records **out_records)
{
    if (!known_params(params) || !out_model)
        return davit_usage("davit_model_load needs parameters with a model and a place for it",
                           out_records);
    davit_model_params p = {0};
    memcpy(&p, params, MIN(sizeof p, params->struct_size));
    if (p.rank > 0 && p.rank >= p.tp)
        return davit_usage("the rank of davit_model_load is not below tp", out_records);
    if (p.dtype > DAVIT_LIB_DTYPE_BF16 || p.access > DAVIT_LIB_ACCESS_STREAM ||
        p.page_cache > DAVIT_LIB_CACHE_SKIP)
        return davit_usage("dtype, access or page_cache of davit_model_load is not known",
                           out_records);

    DavitReport *report = davit_report_new();
    davit_model *m = g_new0(davit_model, 1);
    m->magic = DAVIT_MAGIC_MODEL;
    if (open_model(m, &p, report)) {
        const int status = status_of(report);
        davit_model_free(m);
        davit_records_give(report, out_records);
        return status;
    }
    name_parts(m);
    davit_records_give(report, out_records);
    *out_model = m;
    return DAVIT_LIB_OK;
}

void davit_model_free(davit_model *model)
{
    if (!model || model->magic != DAVIT_MAGIC_MODEL)
        return;
    davit_comm_close(model->comm);
    davit_weights_free(model->weights);
    davit_plan_free(model->plan);
    davit_tokenizer_free(model->tokenizer);
    davit_settings_free(model->settings);
    davit_checkpoint_free(model->checkpoint);
    davit_registry_free(model->registry);
    g_free(model->tokenizer_family);
    g_free(model->kernels_id);
    model->magic = 0;
    g_free(model);
}

static uint64_t count_weights(const DavitCheckpoint *c)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < davit_checkpoint_n_tensors(c); i++) {
        const davit_tensor_info *t = davit_checkpoint_tensor(c, i);
        uint64_t n = 1;
        for (uint32_t r = 0; r < t->rank; r++)
            n *= t->shape[r]; /* bounded by the file's size when it was opened */
        sum += n;
    }
    return sum;
}

/* What became of the stored tensors. */
static void count_tensors(const DavitPlan *plan, davit_model_info *out)
{
    for (size_t i = 0; i < plan->n_ignored; i++)
        out->ignored_tensors += plan->ignored[i].n_tensors;
    /* nothing is left over in a plan that was not refused */
    out->used_tensors = davit_checkpoint_n_tensors(plan->checkpoint) - out->ignored_tensors;
    for (size_t i = 0; i < plan->n_slots; i++)
        out->tied_slots += plan->slots[i].tied_to >= 0;
    for (size_t i = 0; i < davit_checkpoint_n_files(plan->checkpoint); i++)
        out->header_bytes += davit_checkpoint_file(plan->checkpoint, i).n_bytes;
    out->header_bytes -= davit_checkpoint_n_bytes(plan->checkpoint);
}

static void count_ways(const DavitPlan *plan, uint64_t out[4])
{
    for (size_t i = 0; i < plan->n_slots; i++)
        if (plan->slots[i].present && plan->slots[i].used && plan->slots[i].tied_to < 0)
            out[plan->slots[i].way]++;
}

int davit_model_describe(const davit_model *model, davit_model_info *out)
{
    if (!checked(model) || !out)
        return DAVIT_LIB_USAGE;
    const DavitPlan *plan = model->plan;
    DavitLoadStats s;
    davit_weights_stats(model->weights, &s);
    davit_model_info full = {
        .struct_size = out->struct_size,
        .arch = plan->arch->id,
        .format = davit_checkpoint_format(model->checkpoint),
        .kernels = model->kernels_id,
        .tokenizer = model->tokenizer_family,
        .n_vocab = plan->program->values[plan->program->output].width,
        .n_layers = plan->n_layers,
        .max_ctx = plan->max_ctx,
        .n_weights = count_weights(model->checkpoint),
        .borrowed_bytes = s.borrowed_bytes,
        .private_bytes = s.private_bytes,
        .read_bytes = s.read_bytes,
        .copied_bytes = s.copied_bytes,
        .packed_bytes = s.packed_bytes,
        .decoded_bytes = s.decoded_bytes,
        .uploaded_bytes = s.uploaded_bytes,
        .window_bytes = s.window_bytes,
        .load_seconds = s.seconds,
        .planned_borrowed_bytes = plan->borrowed_bytes,
        .planned_read_bytes = plan->read_bytes,
        .planned_private_bytes = plan->private_bytes,
        .planned_made_bytes = plan->made_bytes,
        .planned_window_bytes = plan->window_bytes,
        .planned_peak_bytes = plan->peak_bytes,
        .compared_bytes = s.compared_bytes,
        .n_reads = s.n_reads,
        .n_pieces = s.n_pieces,
        .n_io_threads = s.n_lanes,
        .probed_pages = s.probed_pages,
        .cached_pages = s.cached_pages,
        .open_seconds = model->open_seconds,
        .plan_seconds = model->plan_seconds,
        .tokenizer_seconds = model->tokenizer_seconds,
        .memory_bytes = plan->memory_bytes,
        .resident_bytes = plan->resident_bytes,
        .direct_bytes = s.direct_bytes,
        .direct_files = s.direct_files,
        .direct_refused = s.direct_refused,
        .beside_bytes = s.beside_bytes,
        .read_seconds = s.read_seconds,
        .make_seconds = s.make_seconds,
        .upload_seconds = s.upload_seconds,
        .peak_rss_bytes = model->peak_rss_bytes};
    count_tensors(plan, &full);
    count_ways(plan, full.access_slots);
    memcpy(out, &full, MIN(sizeof full, out->struct_size));
    return DAVIT_LIB_OK;
}

size_t davit_model_eos(const davit_model *model, const int32_t **out)
{
    size_t n = 0;
    if (!checked(model))
        return 0;
    *out = davit_settings_eos_ids(model->settings, &n);
    return n;
}

int davit_model_sampling_defaults(const davit_model *model, davit_model_sampling *out)
{
    if (!checked(model) || !out)
        return DAVIT_LIB_USAGE;
    DavitGenerationDefaults g;
    davit_settings_generation(model->settings, &g);
    const davit_model_sampling full = {.struct_size = out->struct_size,
                                       .temperature = g.temperature,
                                       .top_p = g.top_p,
                                       .min_p = g.min_p,
                                       .repeat_penalty = g.repetition_penalty,
                                       .top_k = g.top_k,
                                       .do_sample = g.do_sample};
    memcpy(out, &full, MIN(sizeof full, out->struct_size));
    return DAVIT_LIB_OK;
}

int davit_model_tokenize(const davit_model *model, const char *text, size_t n, uint32_t flags,
                         int32_t **out_ids, size_t *out_n, davit_records **out_records)
{
    if (!checked(model) || !text || !out_ids || !out_n || !model->tokenizer)
        return davit_usage("davit_model_tokenize needs a model with a tokenizer and text",
                           out_records);
    DavitReport *report = davit_report_new();
    g_autoptr(DavitEncoder) encoder = davit_encoder_new(model->tokenizer);
    DavitIds ids = {0};
    const uint32_t how = (flags & DAVIT_LIB_NO_SPECIAL ? 0 : DAVIT_ENCODE_SPECIAL) |
                         (flags & DAVIT_LIB_SAFE ? DAVIT_ENCODE_SAFE : 0);
    const int32_t status = davit_encode(encoder, text, n, how, &ids, report);
    davit_records_give(report, out_records);
    if (status) {
        davit_ids_clear(&ids);
        return status;
    }
    *out_ids = g_memdup2(ids.ids, ids.n * sizeof *ids.ids);
    *out_n = ids.n;
    davit_ids_clear(&ids);
    return DAVIT_LIB_OK;
}

int davit_model_detokenize(const davit_model *model, const int32_t *ids, size_t n,
                           int skip_special, char **out_text, size_t *out_len,
                           davit_records **out_records)
{
    if (!checked(model) || (!ids && n) || !out_text || !model->tokenizer)
        return davit_usage("davit_model_detokenize needs a model with a tokenizer and ids",
                           out_records);
    GString *text = g_string_new(NULL);
    davit_decode(model->tokenizer, ids, n, skip_special != 0, text);
    if (out_len)
        *out_len = text->len;
    *out_text = g_string_free(text, FALSE);
    davit_records_give(davit_report_new(), out_records);
    return DAVIT_LIB_OK;
}

const char *davit_version(void)
{
    return DAVIT_VERSION;
}
