/* SPDX-License-Identifier: Apache-2.0
 * DavitPlan: pure data made from headers only. What goes where, through which transforms,
 * by which kernel; what is missing, left over, mismatched, tied; bytes. The executor does
 * exactly what it says. Immutable after davit_plan_make; shared by all threads.
 *
 * Way through the folder: series.h, module.h (tensors of a module claimed by a quant plugin),
 * slot.h (slot table -> sources and transforms), coverage.c (nothing missing, nothing
 * left over), build.h (the builder behind the arch's forward), program.h (ops, values,
 * states), choose.c (kernel and layout per slot and call), plan.c (all of it in order),
 * cross.h (which device does what, and what crosses between them).
 */
#ifndef DAVIT_PLAN_PLAN_H
#define DAVIT_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <davit/arch.h>

#include "base/report.h"
#include "checkpoint/checkpoint.h"
#include "config/config.h"
#include "plugin/registry.h"

/* ---- modules: stored tensors as a quant plugin understands them ---- */

/* What makes a module a part of another (part.h). */
typedef struct DavitModuleCut {
    const struct DavitModule *whole; /* (borrowed, plan) what it was cut from */
    davit_quant_box box;
    davit_quant_range ranges[DAVIT_MAX_PARTS]; /* of whole's tensors */
} DavitModuleCut;

/* Small: a checkpoint has tens of thousands. */
typedef struct DavitModule {
    const char *name; /* (borrowed, with the module) "model.layers.0.mlp.up_proj" */
    uint32_t n_parts;               /* stored tensors of the module, sorted by suffix */
    uint32_t tensor[DAVIT_MAX_PARTS]; /* catalogue index of each */
    uint32_t name_len;              /* bytes of name */
    DavitComponent *quant;          /* (borrowed) who claimed it */
    const davit_quant_iface *iface; /* (borrowed) */
    void *self;                     /* (borrowed) instance of quant */
    const davit_quant_desc *desc;   /* (borrowed, with the module) after check, before it all
                                     * zeros; modules that are alike share one.
                                     * desc->parts[p].index -> tensor[] */
    const DavitModuleCut *cut;      /* (owned) NULL = whole tensors */
} DavitModule;

/* Modules with all that they borrow. */
typedef struct DavitModules {
    DavitModule *at;     /* (owned) [len], in name order of each one's first tensor */
    size_t len;
    char *names;         /* (owned, with at) all of them */
    GPtrArray *descs;    /* (owned) davit_quant_desc */
} DavitModules;
void davit_modules_free(DavitModules *modules); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitModules, davit_modules_free)

/* ---- slots ---- */

typedef enum DavitAccess {
    DAVIT_ACCESS_BORROW, /* kernel reads the mapped file */
    DAVIT_ACCESS_COPY,   /* stored bytes, rows re-ordered or uploaded, private memory */
    DAVIT_ACCESS_PACK,   /* packed layout of a kernels component, private memory */
    DAVIT_ACCESS_DECODE, /* float32, private memory */
} DavitAccess;
const char *davit_access_name(DavitAccess access); /* "borrow" ... */

/* How the bytes travel to where the kernels read them. */
typedef enum DavitWay {
    DAVIT_WAY_BORROW, /* they stay in the file's mapping */
    DAVIT_WAY_DIRECT, /* read straight into the slot's memory */
    DAVIT_WAY_STREAM, /* read into a lane, made there, written once to the slot's memory */
    DAVIT_WAY_DEFER,  /* as borrow, but its pages are given back after its layer has run */
} DavitWay;
const char *davit_way_name(DavitWay way); /* "BORROW" "DIRECT" "STREAM" "DEFER" */

/* Rows of a module that fill part of a slot. */
typedef struct DavitSlotSource {
    const DavitModule *module; /* (borrowed, plan) */
    uint64_t slot_expert;      /* first expert of the slot that it fills */
    uint64_t n_experts;        /* of the module, = experts filled */
    uint64_t slot_row;         /* first row of the slot that it fills */
    uint64_t row;              /* first row within the module's matrix; with
                                * DAVIT_VALUE_TRANSPOSE its first column */
    uint64_t n_rows;
    uint64_t expert;           /* first expert of the module that it takes */
} DavitSlotSource;

/* Value transforms that need float32. */
#define DAVIT_VALUE_TRANSPOSE 1u
#define DAVIT_VALUE_ADD1      2u
#define DAVIT_VALUE_NEG_EXP   4u

typedef struct DavitSlot {
    char *id;           /* "attn.q" */
    int64_t layer;      /* -1 = global */
    davit_slot_row row; /* copy of the arch's row; strings borrowed from the plugin */
    bool present;       /* false: optional and absent */
    int32_t tied_to;    /* slot index whose bytes it shares, -1 = own */
    uint32_t rank;      /* as declared */
    uint64_t shape[3];  /* as declared, outermost first; vectors [N] */
    uint64_t n_experts; /* E, 1 unless class exp */
    uint64_t n_rows;    /* N */
    uint64_t n_cols;    /* K, 1 for vectors */
    size_t n_sources;
    DavitSlotSource *sources;
    char *source_text; /* which alternative matched: "self_attn.q_proj", "blk.0.attn_q" */
    uint64_t perm_heads; /* row order to undo while copying, 0 = none */
    bool interleaved;    /* rows stay in rotary inter order: forward was told */
    uint32_t value_ops;  /* DAVIT_VALUE_ */
    const char *cut;     /* (static) how it was cut for the rank: "rows" "columns" "experts"
                          * "rows, shared" (some ranks hold the same); NULL = not */
    uint64_t cut_first, cut_whole; /* what this rank has starts here, of so many */
    bool used;           /* an op of the program reads it */
    /* chosen */
    DavitAccess access;
    DavitWay way;
    const char *stored_layout; /* of the first source, interned */
    const char *layout;        /* what the kernels get, interned */
    const davit_pack *pack;    /* PACK only */
    void *pack_self;
    uint64_t borrowed_bytes; /* of the file, in place */
    uint64_t private_bytes;  /* memory this slot owns after loading: every source, expert
                              * and  (COPY) part rounded up to its device's align */
    uint64_t read_bytes;     /* file bytes that loading reads */
    uint64_t made_bytes;     /* bytes that it writes: private_bytes without the padding */
    const char *reason;      /* why this access: static text */
    const char *home;        /* interned: the device that a device map gave it, or "disk"; NULL =
                              * the plan's device */
    uint32_t device;         /* of plan->devices, whose kernels read it */
} DavitSlot;

/* ---- program ---- */

typedef struct DavitValue {
    const char *dtype; /* interned "f32/1" "i32/1" */
    uint32_t rows;     /* DAVIT_ROWS_ */
    uint64_t width;
    char *name;          /* NULL or tap name */
    int32_t first, last; /* indexes of the ops between which it lives */
    uint32_t device;     /* of plan->devices, in whose memory it lies */
} DavitValue;

typedef struct DavitInstr {
    const char *op; /* interned */
    int64_t layer;  /* -1 = none */
    void *attr;     /* (owned) copy */
    int32_t state;
    uint32_t n_in, n_out, n_weights;
    int32_t in[DAVIT_MAX_IN], out[DAVIT_MAX_OUT];
    int32_t weight[DAVIT_MAX_WEIGHTS]; /* >= 0: weight handle, see program.weights */
    /* chosen */
    uint32_t device;                 /* of plan->devices, that does it */
    const davit_kernel_entry *entry; /* (borrowed) NULL: an op of the core (ranks.h, cross.h) */
    DavitComponent *kernels;         /* (borrowed) */
    void *self;
} DavitInstr;

/* What a weight handle of an instruction means. */
typedef struct DavitWeightRef {
    int32_t slot;    /* >= 0: index of the slot; -1: a constant */
    float *constant; /* (owned) [n_rows, n_cols] */
    uint64_t n_rows, n_cols;
    uint32_t device; /* of plan->devices, whose calls read it */
    bool is_copy;    /* a constant that another device reads too: @constant is (borrowed) its */
} DavitWeightRef;

/* Heads of a state: which of the model's, where ranks share it, and what the checkpoint says of each.
 */
typedef struct DavitStatePart {
    uint64_t first;
    uint64_t whole;             /* of the model; 0 = this process has all */
    float *k_scales, *v_scales; /* (owned) [spec.n_heads], what the spec points at; or NULL */
} DavitStatePart;

typedef struct DavitProgram {
    DavitValue *values;
    size_t n_values;
    DavitInstr *instrs;
    size_t n_instrs;
    DavitWeightRef *weights;
    size_t n_weights;
    davit_state_spec *states; /* spec per state; dtype set */
    size_t n_states;
    DavitStatePart *state_part; /* [n_states] */
    uint64_t *state_block_bytes; /* [n_states] per block of block_tokens */
    uint32_t *state_device;      /* [n_states] of plan->devices */
    int32_t output;              /* value [R, V] */
} DavitProgram;

/* ---- plan ---- */

typedef enum DavitActivations {
    DAVIT_ACTIVATIONS_AUTO, /* int8 where an entry gains from it */
    DAVIT_ACTIVATIONS_F32,
    DAVIT_ACTIVATIONS_INT8,
} DavitActivations;

typedef enum DavitLayoutChoice {
    DAVIT_LAYOUT_AUTO,   /* stored and borrowed first, packed where the score gains */
    DAVIT_LAYOUT_STORED, /* never pack */
    DAVIT_LAYOUT_PACKED, /* pack whatever can be */
} DavitLayoutChoice;

typedef enum DavitAccessChoice {
    DAVIT_ACCESS_AUTO,         /* borrow what kernels take as it lies */
    DAVIT_ACCESS_FORCE_BORROW, /* the same; packed is what no kernel takes as it lies */
    DAVIT_ACCESS_FORCE_DIRECT, /* private copies, read into place */
    DAVIT_ACCESS_FORCE_STREAM, /* private copies, through a lane */
} DavitAccessChoice;

typedef enum DavitDtypeChoice {
    DAVIT_DTYPE_STORED, /* matrices keep the type they are stored in */
    DAVIT_DTYPE_F32,
    DAVIT_DTYPE_F16,
    DAVIT_DTYPE_BF16,
} DavitDtypeChoice;

/* How much of a device a plan may use. */
typedef struct DavitDeviceBudget {
    const char *device; /* as a device map names it: "cuda:0" */
    uint64_t n_bytes;
} DavitDeviceBudget;

typedef struct DavitPlanOptions {
    uint64_t purposes; /* DAVIT_RUN, or DAVIT_MAP for plan and dump only */
    DavitActivations activations;
    DavitLayoutChoice layout;
    const char *device;   /* "cpu" (NULL) or a device's name */
    const char *kv_dtype; /* "f32/1" "f16/1" "f8_e4m3/1"; NULL = f32 with activations f32, else f16 */
    uint64_t block_tokens; /* KV block, 0 = 64 */
    bool force_tie, force_untie;
    const char *const
        *ignore; /* globs of tensors to leave out, NULL-terminated; may be NULL */
    bool allow_not_invariant;
    GPtrArray *candidates; /* (borrowed) NULL, or gets a DavitKernelCandidate (owned, free
                            * with davit_kernel_candidate_free) for every kernel entry that
                            * was considered for each op and layouts */
    bool candidates_by_shape; /* ... and each shape of their weights and values */
    DavitAccessChoice access;
    DavitDtypeChoice dtype; /* of matrices in memory */
    uint64_t window_bytes;  /* bound of temporary memory while loading, 0 = 256 MiB */
    unsigned n_lanes;       /* threads that read and make, 0 = CPUs, 4 to 16 */
    uint64_t memory_bytes;  /* budget of the host for weights, 0 = none; with device_map "auto"
                             * for all that a run takes */
    const char *device_map; /* NULL, "auto" or the file of a device map (device_map.h) */
    const DavitDeviceBudget *budgets; /* (borrowed) of other devices than the host */
    size_t n_budgets;
    uint64_t ctx;       /* context that "auto" leaves room for, 0 = the model's, at most 4096 */
    uint64_t chunk;     /* tokens that are computed at a time, 0 = 512 */
    unsigned n_threads; /* that compute, 0 = CPUs */
    unsigned tp, rank;      /* tensor parallel: so many ranks (0 and 1 = none), this one */
    bool keep_refused;      /* hand out the plan even if an error blocks it */
    uint32_t quant_allow; /* DAVIT_QUANT_ALLOW_ bits */
} DavitPlanOptions;

/* A rule that left stored tensors out. */
typedef struct DavitIgnored {
    char *rule;   /* (owned) its glob, or "layers past the last" */
    char *reason; /* (owned) */
    const char *by; /* (static) "user" "arch" "core" */
    uint64_t n_bytes;
    size_t n_tensors;
    uint32_t *tensor; /* (owned) [n_tensors] catalogue indexes */
} DavitIgnored;

/* A device that a plan uses. */
typedef struct DavitPlanDevice {
    const char *name;        /* interned: "cpu", "cuda", "cuda:1" */
    DavitComponent *kernels; /* (borrowed) component that owns it; NULL = the host */
    uint64_t index;          /* of the component's devices */
    uint64_t align;          /* of memory there; 64 on the host */
    uint64_t private_bytes;  /* of slots that lie there */
    uint64_t constant_bytes; /* of tables that its calls read, each rounded up to align; on the
                              * host all of them, as they were made */
    uint64_t upload_bytes;   /* sent to it while loading; 0 on the host */
} DavitPlanDevice;

/* What a placement takes of one device, or of the disk. */
typedef struct DavitPlaced {
    const char *device;    /* interned */
    uint64_t budget_bytes; /* 0 = none */
    uint64_t weight_bytes; /* of slots that live there */
    uint64_t state_bytes;  /* keys and values of plan->ctx tokens */
    uint64_t step_bytes;   /* values, scratch and arrays of a step; on the host also what passes
                            * through it: values from device to device, logits */
    uint64_t n_slots;
} DavitPlaced;

typedef struct DavitPlan {
    const DavitCheckpoint *checkpoint; /* (borrowed) outlives the plan */
    const DavitSettings *settings;     /* (borrowed) */
    davit_config *config;              /* (owned) */
    DavitComponent *arch;              /* (borrowed) */
    const davit_arch_iface *arch_iface;
    bool tied;       /* tie flag: given, or the class default */
    bool tied_given; /* the file states it */
    const char *device; /* interned: where slots without a home are, and the first calls */
    DavitPlanDevice *devices; /* (owned) [n_devices] the host, whether it computes or not, then
                               * those of kernels components that do */
    uint32_t n_devices;
    uint64_t block_tokens;
    DavitModules *modules; /* (owned) */
    GPtrArray *cuts; /* (owned) DavitModule: parts of modules; NULL = none */
    DavitSlot *slots;
    size_t n_slots;
    DavitProgram *program;             /* NULL when purposes lack DAVIT_RUN */
    uint64_t vocab, n_layers, max_ctx; /* symbols V, L, max_pos; 0 = not stated */
    /* sums over slots */
    uint64_t borrowed_bytes, private_bytes, read_bytes;
    uint64_t constant_bytes; /* tables that the forward brought along */
    uint64_t made_bytes;
    uint64_t device_bytes; /* most that loading takes on all devices but the host: private bytes
                            * and constants */
    uint64_t upload_bytes; /* sent to them while loading */
    /* memory while loading */
    unsigned n_lanes;        /* threads that read and make; 0 = nothing is private */
    uint64_t lane_bytes;     /* memory of each for file bytes and values on the way */
    int32_t lane_slot;       /* the slot that makes lane_bytes so large, -1 = none */
    uint64_t window_bytes;   /* n_lanes * lane_bytes */
    uint64_t window_limit;   /* as asked for */
    uint64_t chunk_bytes;    /* of file that a lane aims to hold */
    uint64_t stack_bytes;    /* of the lanes' threads */
    uint64_t peak_bytes;     /* of the host: its private bytes + constants + window + stacks */
    int32_t peak_slot;       /* the slot with the most private bytes, -1 = none */
    uint64_t compare_bytes;  /* read once more to compare head and embedding; at most */
    bool refused;            /* an error blocks it: kept for people to read */
    DavitDtypeChoice dtype;
    DavitAccessChoice access;
    bool force_tie, force_untie; /* decisions of the user */
    DavitIgnored *ignored;
    size_t n_ignored;
    uint64_t memory_bytes;   /* budget for weights, 0 = none */
    uint64_t resident_bytes; /* most that weights hold at one time, window included; with
                              * deferred slots that of the largest layer and all globals */
    unsigned tp, rank; /* tp 1 = the whole model */
    char *device_map;  /* (owned) as given, NULL = none */
    uint64_t ctx;      /* context that a device map reckons with, 0 = none was reckoned with */
    uint64_t beside_bytes; /* of memory_bytes, for states and steps; 0 = not reckoned with */
    GArray *placed;    /* (owned) DavitPlaced, devices in order and then the disk; NULL = no map */
} DavitPlan;

/* The host is always there. */
#define DAVIT_ON_HOST 0u

/* Stack of a lane's thread. */
#define DAVIT_LANE_STACK (512u << 10)

/* Make the plan. All findings go to @report (missing, unexpected, mismatched ...
 * together). Returns: (owned) the plan, or NULL when an error blocks @options->purposes.
 * Arch choice: every usable arch component whose hf/model_types/gguf names one of the
 * settings' names, in registry order; none -> all-declined with who declined. */
DavitPlan *davit_plan_make(DavitRegistry *registry, const DavitCheckpoint *checkpoint,
                           const DavitSettings *settings, const DavitPlanOptions *options,
                           DavitReport *report);
void davit_plan_free(DavitPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitPlan, davit_plan_free)

/* (borrowed) The whole stored tensor of the slot with @flag (DAVIT_SLOT_HEAD, _EMBED) if it is
 * one plain tensor of its own, else NULL. */
const davit_tensor_info *davit_plan_whole_tensor(const DavitPlan *plan, uint32_t flag);

/* Modules without an architecture, for inspect and dump: every tensor of the checkpoint
 * as (part of) a module. Returns: (owned) Modules no quant plugin claims have quant NULL. */
DavitModules *davit_modules_find(DavitRegistry *registry, const DavitCheckpoint *checkpoint,
                                 const DavitSettings *settings, uint32_t allow,
                                 DavitReport *report);

/* Decode a module's rows [row, row+n_rows) of expert @expert to float32 [n_rows, K] in
 * canonical order. */
int32_t davit_module_decode(const DavitModule *module, const DavitCheckpoint *checkpoint,
                            uint64_t expert, uint64_t row, uint64_t n_rows, float *out,
                            DavitReport *report);

/* One kernel entry considered for one op with the layouts of its weights. */
typedef struct DavitKernelCandidate {
    char *op, *layouts;      /* layouts: "q4_k/1, f32/1", empty = no matrices */
    char *component, *entry; /* ids */
    uint32_t score;
    int32_t rank;     /* the user's, 0 = none */
    bool chosen;
    char *why;        /* why it cannot compute it; NULL = it can */
    uint32_t n_calls; /* ops of the program that are alike */
    char *shape;      /* by_shape: stored layouts and sizes, alike for alike ops; else NULL */
    uint32_t instr;   /* the first of them */
    const davit_kernel_entry *call; /* (borrowed) the entry */
    void *self;                     /* (borrowed) its component's instance */
} DavitKernelCandidate;
void davit_kernel_candidate_free(void *candidate);

/* Which arch components were asked and what they said, for `why`: one note each. */
void davit_plan_explain_archs(DavitRegistry *registry, const DavitSettings *settings,
                              DavitReport *report);

/* The "build" suite of the ABI. */
const davit_build_suite *davit_build_suite_get(void);

/* Interned string: equal text, equal pointer, lives as long as the process. [any thread]
 */
const char *davit_intern(const char *text);

#endif
