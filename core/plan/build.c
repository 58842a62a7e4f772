/* SPDX-License-Identifier: Apache-2.0
 * The "build" suite. Errors are sticky: the first one is recorded, everything after it is
 * answered with -1 or 0 and changes nothing, so that a forward checks nothing. */
#include "plan/build.h"

#include <string.h>

#include "plan/ranks.h"
#include "plugin/running.h"

#define MAX_VALUES   (1u << 20)
#define MAX_INSTRS   (1u << 20)
#define MAX_ATTR     4096u
#define MAX_WIDTH    (1ull << 32) /* of a value: no model is near it */
#define MAX_CONSTANT (1ull << 28) /* float32 elements */

struct davit_builder {
    DavitDraft *draft;
    const char *who; /* (borrowed) the architecture's id */
    GHashTable
        *by_name; /* slot id (borrowed) -> GArray of slot indexes, ascending layer */
    int32_t *handle_of; /* [n_slots] weight handle, -1 = not asked for yet */
    GArray *values, *instrs, *weights, *states;
    int64_t layer;
    int32_t output;
    bool failed;
};

/* ---- sticky errors ---- */

static void fail(davit_builder *b, const char *subject, const char *found,
                 const char *message)
{
    if (b->failed)
        return;
    b->failed = true;
    davit_report_add(
        b->draft->report,
        &(DavitFinding){.code = DAVIT_R_FORWARD_ABSENT,
                        .status = DAVIT_E_UNSUPPORTED,
                        .purposes = DAVIT_RUN,
                        .stage = "build",
                        .who = b->who,
                        .subject = subject,
                        .found = found,
                        .message = message,
                        .hint = "this is a fault of the architecture plugin"});
}

static void build_fail(davit_builder *b, const davit_refusal *record)
{
    DavitSink sink;

    if (b->failed)
        return;
    b->failed = true;
    davit_sink_init(&sink, b->draft->report, b->who, "build");
    if (record)
        sink.abi.refuse(sink.abi.ctx, record);
    davit_sink_done(&sink, DAVIT_E_UNSUPPORTED);
}

static DavitValue *value_at(davit_builder *b, int32_t handle)
{
    if (handle < 0 || (guint)handle >= b->values->len)
        return NULL;
    return &g_array_index(b->values, DavitValue, handle);
}

static const DavitWeightRef *weight_at(davit_builder *b, int32_t handle)
{
    if (handle < 0 || (guint)handle >= b->weights->len)
        return NULL;
    return &g_array_index(b->weights, DavitWeightRef, handle);
}

/* ---- slots ---- */

static const davit_config *build_config(davit_builder *b)
{
    return b->draft->plan->config;
}

/* Slots of one id stand in the list by ascending layer. */
static int32_t slot_index(davit_builder *b, const char *id, int64_t layer)
{
    const GArray *list = g_hash_table_lookup(b->by_name, id);
    guint low = 0, high = list ? list->len : 0;

    while (low < high) {
        const guint middle = low + (high - low) / 2;
        const int32_t at = g_array_index(list, int32_t, middle);

        if (b->draft->plan->slots[at].layer == layer)
            return at;
        if (b->draft->plan->slots[at].layer < layer)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

static int32_t build_slot(davit_builder *b, const char *id, int64_t layer)
{
    DavitPlan *plan = b->draft->plan;
    int32_t at;

    if (b->failed || !id)
        return -1;
    at = slot_index(b, id, layer);
    if (at < 0 || !plan->slots[at].present)
        return -1;
    plan->slots[at].used = true;
    if (plan->slots[at].tied_to >= 0)
        plan->slots[plan->slots[at].tied_to].used = true;
    if (b->handle_of[at] < 0) {
        const DavitWeightRef ref = {.slot = at,
                                    .n_rows = plan->slots[at].n_rows,
                                    .n_cols = plan->slots[at].n_cols};

        b->handle_of[at] = (int32_t)b->weights->len;
        g_array_append_val(b->weights, ref);
    }
    return b->handle_of[at];
}

static uint64_t build_slot_dim(davit_builder *b, int32_t handle, uint32_t axis)
{
    const DavitWeightRef *ref = weight_at(b, handle);

    if (b->failed)
        return 0;
    if (!ref) {
        fail(b, "slot_dim", NULL, "a forward asks for the size of an absent slot");
        return 0;
    }
    if (ref->slot < 0)
        return axis == 0 ? ref->n_rows : axis == 1 ? ref->n_cols : 0;
    if (axis >= b->draft->plan->slots[ref->slot].rank) {
        fail(b, b->draft->plan->slots[ref->slot].id, NULL,
             "a forward asks for an axis that a slot does not have");
        return 0;
    }
    return b->draft->plan->slots[ref->slot].shape[axis];
}

static uint32_t build_slot_flags(davit_builder *b, int32_t handle)
{
    const DavitWeightRef *ref = weight_at(b, handle);
    const DavitSlot *slot;

    if (b->failed || !ref || ref->slot < 0)
        return 0;
    slot = &b->draft->plan->slots[ref->slot];
    return slot->row.flags | (slot->interleaved ? DAVIT_SLOT_INTERLEAVED : 0);
}

static int32_t build_constant(davit_builder *b, const float *data, uint64_t n_rows,
                              uint64_t n_cols)
{
    DavitWeightRef ref = {.slot = -1, .n_rows = n_rows, .n_cols = n_cols};
    uint64_t n;

    if (b->failed)
        return -1;
    if (!data || n_rows == 0 || n_cols == 0 ||
        __builtin_mul_overflow(n_rows, n_cols, &n) || n > MAX_CONSTANT ||
        b->weights->len >= MAX_VALUES) {
        fail(b, "constant", NULL,
             "a forward gives an empty table or one that is too large");
        return -1;
    }
    ref.constant = g_try_malloc(n * sizeof(float));
    if (!ref.constant) {
        fail(b, "constant", NULL, "no memory for a table of the forward");
        return -1;
    }
    memcpy(ref.constant, data, n * sizeof(float));
    g_array_append_val(b->weights, ref);
    return (int32_t)b->weights->len - 1;
}

/* ---- values and states ---- */

static int32_t build_value(davit_builder *b, const char *dtype, uint32_t rows,
                           uint64_t width)
{
    DavitValue value = {.dtype = davit_intern(dtype), .rows = rows, .width = width};

    if (b->failed)
        return -1;
    if (!dtype || (strcmp(dtype, "f32/1") != 0 && strcmp(dtype, "i32/1") != 0)) {
        fail(b, dtype, NULL, "values are f32/1 or i32/1");
        return -1;
    }
    if (rows > DAVIT_ROWS_R || width == 0 || width > MAX_WIDTH ||
        b->values->len >= MAX_VALUES) {
        fail(b, "value", NULL, "a forward makes a value without width, or too many");
        return -1;
    }
    g_array_append_val(b->values, value);
    return (int32_t)b->values->len - 1;
}

static uint64_t build_value_width(davit_builder *b, int32_t handle)
{
    const DavitValue *value = value_at(b, handle);

    if (!b->failed && !value)
        fail(b, "value_width", NULL, "a forward names a value that does not exist");
    return b->failed ? 0 : value->width;
}

static int32_t build_state(davit_builder *b, const davit_state_spec *spec)
{
    davit_state_spec own = {0};

    if (b->failed)
        return -1;
    if (!spec || spec->struct_size < DAVIT_END(davit_state_spec, window)) {
        fail(b, "state", NULL, "a forward gives no description of a state");
        return -1;
    }
    memcpy(&own, spec, MIN((size_t)spec->struct_size, sizeof own));
    own.struct_size = DAVIT_END(davit_state_spec, v_scales);
    own.dtype = NULL; /* the plan's to choose, as the scales are */
    own.k_scale = own.v_scale = 0;
    own.k_scales = own.v_scales = NULL;
    g_array_append_val(b->states, own);
    return (int32_t)b->states->len - 1;
}

static void build_layer(davit_builder *b, int64_t layer)
{
    b->layer = layer < 0 ? -1 : layer;
}

static void build_name(davit_builder *b, int32_t handle, const char *name)
{
    DavitValue *value = value_at(b, handle);

    if (b->failed)
        return;
    if (!value) {
        fail(b, name, NULL, "a forward names a value that does not exist");
        return;
    }
    g_free(value->name);
    value->name = g_strdup(name);
}

static void build_output(davit_builder *b, int32_t handle)
{
    if (!b->failed && !value_at(b, handle))
        fail(b, "output", NULL, "a forward names a value that does not exist");
    if (!b->failed)
        b->output = handle;
}

/* ---- ops ---- */

static bool handles_fit(davit_builder *b, const davit_op_rec *rec)
{
    for (uint32_t i = 0; i < rec->n_in; i++) {
        if (!value_at(b, rec->in[i]))
            return false;
    }
    for (uint32_t i = 0; i < rec->n_out; i++) {
        if (!value_at(b, rec->out[i]))
            return false;
    }
    for (uint32_t i = 0; i < rec->n_weights; i++) {
        if (rec->weight[i] != -1 && !weight_at(b, rec->weight[i]))
            return false;
    }
    return rec->state == -1 || (rec->state >= 0 && (guint)rec->state < b->states->len);
}

/* Bytes of an attribute struct, which its first field tells; 0 = none. */
static uint64_t attr_bytes(const void *attr)
{
    uint64_t n = 0;

    if (attr)
        memcpy(&n, attr, sizeof n);
    return n;
}

static const char *op_fault(davit_builder *b, const davit_op_rec *rec)
{
    const uint64_t n_attr = rec ? attr_bytes(rec->attr) : 0;

    if (!rec || !DAVIT_HAS(rec, davit_op_rec, weight) || !rec->op || !*rec->op)
        return "an op without name or record";
    if (rec->n_in > DAVIT_MAX_IN || rec->n_out > DAVIT_MAX_OUT ||
        rec->n_weights > DAVIT_MAX_WEIGHTS)
        return "an op with more operands than there may be";
    if (!handles_fit(b, rec))
        return "an op with an operand that does not exist";
    if (rec->attr && (n_attr < sizeof(uint64_t) || n_attr > MAX_ATTR))
        return "attributes of an impossible size";
    if (b->instrs->len >= MAX_INSTRS)
        return "too many ops";
    return NULL;
}

static void build_op(davit_builder *b, const davit_op_rec *rec)
{
    const char *fault = b->failed ? NULL : op_fault(b, rec);
    DavitInstr instr = {0};

    if (b->failed)
        return;
    if (fault) {
        fail(b, rec && rec->op ? rec->op : "op",
             davit_report_text(b->draft->report, "op %u, layer %" PRId64, b->instrs->len,
                               b->layer),
             fault);
        return;
    }
    instr.op = davit_intern(rec->op);
    instr.layer = b->layer;
    instr.attr = rec->attr ? g_memdup2(rec->attr, attr_bytes(rec->attr)) : NULL;
    instr.state = rec->state;
    instr.n_in = rec->n_in;
    instr.n_out = rec->n_out;
    instr.n_weights = rec->n_weights;
    memcpy(instr.in, rec->in, sizeof instr.in);
    memcpy(instr.out, rec->out, sizeof instr.out);
    memcpy(instr.weight, rec->weight, sizeof instr.weight);
    g_array_append_val(b->instrs, instr);
}

/* ---- the suite ---- */

static const davit_build_suite suite = {
    .struct_size = DAVIT_END(davit_build_suite, fail),
    .config = build_config,
    .slot = build_slot,
    .slot_dim = build_slot_dim,
    .slot_flags = build_slot_flags,
    .constant = build_constant,
    .value = build_value,
    .value_width = build_value_width,
    .state = build_state,
    .layer = build_layer,
    .op = build_op,
    .name = build_name,
    .output = build_output,
    .fail = build_fail,
};

const davit_build_suite *davit_build_suite_get(void)
{
    return &suite;
}

static void list_free(void *p)
{
    g_array_unref(p);
}

static void index_slots(davit_builder *b)
{
    const DavitPlan *plan = b->draft->plan;

    b->by_name = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, list_free);
    b->handle_of = g_new(int32_t, MAX(plan->n_slots, 1));
    for (size_t i = 0; i < plan->n_slots; i++) {
        GArray *list = g_hash_table_lookup(b->by_name, plan->slots[i].id);
        const int32_t at = (int32_t)i;

        if (!list) {
            list = g_array_new(FALSE, FALSE, sizeof(int32_t));
            g_hash_table_insert(b->by_name, plan->slots[i].id, list);
        }
        g_array_append_val(list, at);
        b->handle_of[i] = -1;
    }
}

static DavitProgram *take_program(davit_builder *b)
{
    DavitProgram *p = g_new0(DavitProgram, 1);

    p->values = g_array_steal(b->values, &p->n_values);
    p->instrs = g_array_steal(b->instrs, &p->n_instrs);
    p->weights = g_array_steal(b->weights, &p->n_weights);
    p->states = g_array_steal(b->states, &p->n_states);
    p->state_block_bytes = g_new0(uint64_t, MAX(p->n_states, 1));
    p->state_device = g_new0(uint32_t, MAX(p->n_states, 1));
    p->state_part = g_new0(DavitStatePart, MAX(p->n_states, 1));
    p->output = b->output;
    g_array_unref(b->values);
    g_array_unref(b->instrs);
    g_array_unref(b->weights);
    g_array_unref(b->states);
    g_hash_table_unref(b->by_name);
    g_free(b->handle_of);
    return p;
}

DavitProgram *davit_program_build(DavitDraft *draft, const char *entry)
{
    const DavitTool *arch = &draft->tools->arch;
    const davit_arch_iface *iface = arch->iface;
    davit_builder b = {.draft = draft,
                       .who = arch->component->id,
                       .values = g_array_new(FALSE, TRUE, sizeof(DavitValue)),
                       .instrs = g_array_new(FALSE, TRUE, sizeof(DavitInstr)),
                       .weights = g_array_new(FALSE, TRUE, sizeof(DavitWeightRef)),
                       .states = g_array_new(FALSE, TRUE, sizeof(davit_state_spec)),
                       .layer = -1,
                       .output = -1};
    g_autoptr(DavitProgram) program = NULL;
    DavitRunning outside;
    DavitSink sink;
    int32_t status;

    index_slots(&b);
    davit_sink_init(&sink, draft->report, b.who, "build");
    outside = davit_running_set(b.who, "build");
    status = iface->build(arch->self, &suite, &b, entry, &sink.abi);
    davit_running_back(outside);
    if (!b.failed)
        status = davit_sink_done(&sink, status);
    program = take_program(&b);
    if (b.failed || status)
        return NULL;
    if (draft->plan->tp > 1 && davit_ranks_complete(draft, program, b.who))
        return NULL;
    if (davit_program_finish(program, draft->plan->vocab, b.who, draft->report))
        return NULL;
    return g_steal_pointer(&program);
}
