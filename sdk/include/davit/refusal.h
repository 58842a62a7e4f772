/* SPDX-License-Identifier: Apache-2.0
 * Refusal records: the one shape in which core and plugins say "no, and why".
 *
 * A record crosses the ABI through a write-only davit_sink; the host copies it at once and
 * stamps who spoke and at which stage. Codes are stable: a number never changes its meaning.
 */
#ifndef DAVIT_REFUSAL_H
#define DAVIT_REFUSAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* End of field @f in struct type @T: what `struct_size` holds for the last known field.
 * sizeof would miss a field that lands in tail padding. */
#define DAVIT_END(T, f) (offsetof(T, f) + sizeof(((T *)0)->f))

/* True if the struct behind @p is large enough to contain field @f. */
#define DAVIT_HAS(p, T, f) ((p) != NULL && (p)->struct_size >= DAVIT_END(T, f))

/* Status of every fallible ABI function: DAVIT_OK or one of the negatives. Detail goes to
 * the sink. A code exists only where a caller acts on it. */
#define DAVIT_OK            0
#define DAVIT_E_IO          (-1) /* a read failed, memory or a device is gone */
#define DAVIT_E_CORRUPT     (-2) /* bytes break the rules of their format */
#define DAVIT_E_UNSUPPORTED (-3) /* understood, but not supported here */
#define DAVIT_E_LIMIT       (-4) /* a bound was exceeded (size, depth, memory) */
#define DAVIT_E_MISMATCH    (-5) /* two sources disagree */
#define DAVIT_E_USAGE       (-6) /* the caller asked for something impossible */

/* Purposes: bits of what a model or component may be used for. */
#define DAVIT_INSPECT 1u /* list tensors and keys */
#define DAVIT_MAP     2u /* map names onto slots, plan */
#define DAVIT_CONVERT 4u /* read weights, dump, write another layout */
#define DAVIT_RUN     8u /* compute */

/* Code table: X(NUMBER, NAME, "string-form", "one line: when"). One row is the whole truth of
 * a code; docs and tests are generated from it. Ranges as in the stage they belong to:
 * 10x-11x file, 12x manifest, 13x policy, 14x version, 15x load, 16x probe helper and start,
 * 2xx environment, 3xx malformed input, 4xx understood but unsupported, 5xx selection,
 * 6xx run time, 7xx notes and warnings, 8xx usage. */
#define DAVIT_CODES(X)                                                                    \
    X(101, NOT_REGULAR, "not-regular", "plugin path is not a regular file")               \
    X(102, PERM_WRITABLE, "perm-writable", "file or a parent is group- or world-writable")\
    X(103, WRONG_OWNER, "wrong-owner", "owner is neither root nor the effective user")    \
    X(104, TRUNCATED, "truncated", "file is shorter than its headers say")                \
    X(105, NOT_ELF, "not-elf", "file is not a loadable ELF shared object")                \
    X(106, WRONG_CLASS, "wrong-class", "ELF class or byte order of another machine")      \
    X(107, WRONG_MACHINE, "wrong-machine", "ELF machine of another processor")            \
    X(108, EXEC_STACK, "exec-stack", "object asks for an executable stack")               \
    X(109, STATIC_TLS, "static-tls", "static TLS is larger than the loader can give")     \
    X(110, BAD_RUNPATH, "bad-runpath", "RUNPATH has an empty or relative part")           \
    X(111, TEXT_RELOCATIONS, "text-relocations", "object would write to its own code")    \
    X(121, NO_MANIFEST, "no-manifest", "exports the entry but carries no manifest note")  \
    X(122, BAD_MANIFEST, "bad-manifest", "manifest note does not parse or lacks a field") \
    X(123, HASH_MISMATCH, "hash-mismatch", "file hash differs from the recorded one")     \
    X(124, MANIFEST_MISMATCH, "manifest-mismatch", "descriptor and manifest disagree")    \
    X(131, DISABLED, "disabled", "switched off by the user")                              \
    X(132, SHADOWED, "shadowed", "another file provides the same component id")           \
    X(133, QUARANTINED, "quarantined", "crashed earlier and has not changed since")       \
    X(134, NOT_IN_LOCK, "not-in-lock", "a lock file exists and does not list it")         \
    X(135, DRAFT, "draft", "draft interface; needs --allow-draft")                        \
    X(141, ABI_MAJOR, "abi-major", "built for another ABI major")                         \
    X(142, HOST_TOO_OLD, "host-too-old", "plugin needs a newer host")                     \
    X(143, HOST_TOO_NEW, "host-too-new", "plugin states a ceiling below this host")       \
    X(144, KIND_UNKNOWN, "kind-unknown", "component kind is not known to this host")      \
    X(145, KIND_VERSION, "kind-version", "kind interface version does not fit")           \
    X(146, BUILD_FACT, "build-fact", "build facts of plugin and host clash")              \
    X(151, MISSING_DEP, "missing-dep", "a needed library is not on this machine")         \
    X(152, UNDEFINED_SYMBOL, "undefined-symbol", "a symbol is provided by nobody")        \
    X(153, DLOPEN_FAILED, "dlopen-failed", "the dynamic loader refused the file")         \
    X(154, NO_ENTRY, "no-entry", "davit_plugin_entry_v1 is not exported")                 \
    X(155, BAD_MAGIC, "bad-magic", "bundle does not start with the magic number")         \
    X(156, BAD_SIZE, "bad-size", "struct_size is too small or absurd")                    \
    X(157, MISSING_FIELD, "missing-field", "a required field is absent")                  \
    X(158, DUPLICATE_ID, "duplicate-id", "component id is taken or belongs to davit")     \
    X(159, LIBRARY_CLASH, "library-clash", "another library of the same name is loaded")  \
    X(161, CRASHED, "crashed", "plugin code died from a signal")                          \
    X(162, TIMEOUT, "timeout", "plugin code did not return in time")                      \
    X(163, EXITED_EARLY, "exited-early", "plugin code ended the process")                 \
    X(164, OUT_OF_MEMORY, "out-of-memory", "memory could not be allocated")               \
    X(165, BAD_REPORT, "bad-report", "probe helper's report does not parse")              \
    X(166, SIDE_EFFECT, "side-effect", "loading changed process state")                   \
    X(167, START_FAILED, "start-failed", "start or create of a component failed")         \
    X(168, CONTRACT_BROKEN, "contract-broken", "plugin check: a rule of the interface fails")\
    X(199, NO_REASON, "no-reason", "a component failed without giving a reason")          \
    X(201, CPU_UNSUPPORTED, "cpu-unsupported", "the CPU lacks a needed feature")          \
    X(202, DRIVER_MISSING, "driver-missing", "device driver is not installed")            \
    X(203, DRIVER_TOO_OLD, "driver-too-old", "device driver is older than needed")        \
    X(204, DEVICE_MISSING, "device-missing", "no such device")                            \
    X(205, DEVICE_ARCH, "device-arch", "device generation is not in the build")           \
    X(206, NEEDS_UNMET, "needs-unmet", "another component that it needs is absent")       \
    X(301, PICKLE_UNSAFE, "pickle-unsafe", "pickle can run code; never read")             \
    X(302, HEADER_INVALID, "header-invalid", "a header breaks the rules of its format")   \
    X(303, TENSOR_OUT_OF_FILE, "tensor-out-of-file", "tensor bytes lie outside the file") \
    X(304, TENSOR_OVERLAP, "tensor-overlap", "two tensors share bytes, or a hole is left")\
    X(305, TENSOR_SIZE, "tensor-size", "byte length does not follow from shape and dtype")\
    X(306, DUPLICATE_KEY, "duplicate-key", "a name is given twice")                       \
    X(307, JSON_INVALID, "json-invalid", "JSON text does not parse")                      \
    X(308, FILE_TRUNCATED, "file-truncated", "file ends before its header says")          \
    X(309, SHARD_MISSING, "shard-missing", "a shard that the index names is absent")      \
    X(310, TENSOR_MISSING, "tensor-missing", "a tensor that is needed is absent")         \
    X(311, TENSOR_DUPLICATE, "tensor-duplicate", "a tensor lies in two shards")           \
    X(312, SHARD_MISMATCH, "shard-mismatch", "shard set or size contradicts the index")   \
    X(313, CONFIG_INVALID, "config-invalid", "a config value has a wrong type or range")  \
    X(314, CONFIG_MISSING, "config-missing", "a config key without default is absent")    \
    X(315, SHAPE_MISMATCH, "shape-mismatch", "tensor shape differs from the slot's")      \
    X(316, TENSOR_UNEXPECTED, "tensor-unexpected", "a tensor no slot and no rule takes")  \
    X(317, DTYPE_UNKNOWN, "dtype-unknown", "dtype name or id is not known")               \
    X(318, VALUE_NOT_FINITE, "value-not-finite", "NaN or infinity where none may be")     \
    X(319, TOKENIZER_INVALID, "tokenizer-invalid", "tokenizer file contradicts itself")   \
    X(320, LFS_POINTER, "lfs-pointer", "Git LFS pointer instead of the file")             \
    X(321, EMPTY_FILE, "empty-file", "file has no bytes")                                 \
    X(322, QUANT_SCALE_ARITY, "quant-scale-arity", "a scale has a wrong number of elements")\
    X(323, QUANT_SCALE_VALUE, "quant-scale-value", "a scale has a value it cannot have")  \
    X(324, QUANT_WEIGHT_NAN, "quant-weight-nan", "a quantised weight holds NaN or infinity")\
    X(325, QUANT_INDEX_RANGE, "quant-index-range", "a group index is out of range")       \
    X(326, QUANT_ZERO_CONVENTION, "quant-zero-convention", "zeros contradict the config") \
    X(327, QUANT_DTYPE, "quant-dtype", "dtype not in the layout's list")                  \
    X(328, QUANT_ORPHAN, "quant-tensor-orphan", "a companion that the layout has not")    \
    X(329, QUANT_CONFIG_CONFLICT, "quant-config-conflict", "config against config or tensors")\
    X(330, QUANT_CONFIG_MISSING, "quant-config-missing", "tensors alone leave a choice open")\
    X(331, QUANT_CONFIG_VALUE, "quant-config-value", "a quantisation setting is invalid") \
    X(332, QUANT_TARGET_AMBIGUOUS, "quant-target-ambiguous", "two groups fit one module") \
    X(341, TEMPLATE_INVALID, "template-invalid", "chat template does not parse")          \
    X(342, TEXT_INVALID, "text-invalid", "a text is not UTF-8")                           \
    X(401, FORWARD_ABSENT, "forward-absent", "weight map known, no forward in this build")\
    X(402, QUANT_PARAMS, "quant-params", "parameters of a quantised layout do not fit")   \
    X(403, PRETOKENIZER_UNKNOWN, "pretokenizer-unknown", "pre-tokenizer shape unknown")   \
    X(404, MAP_INCOMPLETE, "map-incomplete", "slots are not all filled")                  \
    X(405, OP_MISSING, "op-missing", "no kernel takes this op with these layouts")        \
    X(406, QUANT_UNKNOWN, "quant-unknown", "quantised layout known by name, not built")   \
    X(407, FORMAT_UNSUPPORTED, "format-unsupported", "file format recognised, not read")  \
    X(408, VERSION_UNSUPPORTED, "version-unsupported", "format version not supported")    \
    X(409, CONFIG_UNSUPPORTED, "config-unsupported", "config asks for unknown math")      \
    X(410, TOKENIZER_UNSUPPORTED, "tokenizer-unsupported", "tokenizer stage is not known")\
    X(411, CONTEXT_EXCEEDED, "context-exceeded", "prompt is longer than the context")     \
    X(412, FLAG_UNSUPPORTED, "flag-unsupported", "flag value understood, not supported")  \
    X(413, QUANT_LAYOUT, "quant-layout", "a variant of a known quantised layout, not read")\
    X(441, TEMPLATE_UNSUPPORTED, "template-unsupported", "chat template asks for too much")\
    X(442, TEMPLATE_RAISED, "template-raised", "chat template refused its input")         \
    X(443, TEMPLATE_MISSING, "template-missing", "the model has no chat template")        \
    X(444, IDS_DIFFER, "ids-differ", "a prompt's ids are not those of the training")      \
    X(501, AMBIGUOUS, "ambiguous", "several candidates and no rule between them")         \
    X(502, ALL_DECLINED, "all-declined", "no component recognises the input")             \
    X(503, NO_PLUGINS, "no-plugins", "no plugin of the needed kind was found")            \
    X(601, IO_FAILED, "io-failed", "a read, map or open failed")                          \
    X(602, FILE_CHANGED, "file-changed", "a file changed or shrank under the load")       \
    X(603, NON_FINITE_LOGITS, "non-finite-logits", "the model produced NaN or infinity")  \
    X(604, DEVICE_LOST, "device-lost", "a device stopped answering")                      \
    X(605, MEMORY_SHORT, "memory-short", "the plan needs more memory than there is")      \
    X(606, CANCELLED, "cancelled", "the caller cancelled")                                \
    X(607, NOT_FOUND, "not-found", "no such file, directory, tensor or id")               \
    X(608, RANK_LOST, "rank-lost", "another rank of the model is gone or did not come")   \
    X(701, ASSUMED, "assumed", "a value that the file omits was taken from a default")    \
    X(702, IGNORED_BY_RULE, "ignored-by-rule", "tensor skipped by a named rule")          \
    X(703, STRAY_TENSOR, "stray-tensor", "tensor lies in a shard but not in the index")   \
    X(704, STRAY_SHARD, "stray-shard", "weight file beside the ones that are used")       \
    X(705, HEAD_COMPARED, "head-compared", "the stored head against the embedding")       \
    X(706, SOURCE_CHOSEN, "source-chosen", "one of several sources was chosen")           \
    X(707, GENERATION_DEFAULTS, "generation-defaults", "model asks for other sampling")   \
    X(708, USER_DECISION, "user-decision", "a flag of the user changed what is loaded")   \
    X(741, CONTENT_TRUST, "content-trust", "control tokens inside message contents")      \
    X(801, USAGE, "usage", "the command line or a call is wrong")                         \
    X(802, NOT_BUILT, "not-built", "a documented part that this version does not have")

#define DAVIT_CODE_ENUM(num, name, text, when) DAVIT_R_##name = num,
enum { DAVIT_CODES(DAVIT_CODE_ENUM) DAVIT_R_LAST_ = 0x7fffffff };
#undef DAVIT_CODE_ENUM

/* davit_refusal.flags */
#define DAVIT_REFUSAL_FINAL       1u /* no later or lower component may take the input */
#define DAVIT_REFUSAL_RETRYABLE   2u /* may succeed when tried again */
#define DAVIT_REFUSAL_ENVIRONMENT 4u /* the machine, not the input, is the cause */
#define DAVIT_REFUSAL_WARNING     8u /* a finding that blocks nothing */
#define DAVIT_REFUSAL_NOTE        16u /* information only */

typedef struct davit_refusal {
    uint64_t struct_size; /* DAVIT_END(davit_refusal, url) */
    uint32_t code;        /* DAVIT_R_ number; unknown numbers are shown as they are */
    uint32_t flags;       /* DAVIT_REFUSAL_ bits */
    uint64_t purposes;    /* purposes that this blocks; 0 = all (or none, if WARNING or NOTE) */
    /* All strings: UTF-8, valid during the call, copied, escaped and cut by the host. */
    const char *subject;  /* tensor, key, file or id; NULL = none */
    const char *expected; /* what would have been accepted; NULL = none */
    const char *found;    /* what is there; NULL = none */
    const char *message;  /* one sentence, no newline. Required */
    const char *hint;     /* what the user can do; NULL = the host's words for the code */
    const char *url;      /* further reading; NULL = none */
} davit_refusal;

/* Write-only door for records. Valid only during the call that got it.
 * [the thread of that call] */
typedef struct davit_sink {
    uint64_t struct_size; /* DAVIT_END(davit_sink, refuse) */
    void *ctx;            /* the host's; hand it back unread */
    void (*refuse)(void *ctx, const davit_refusal *record);
} davit_sink;

#ifdef __cplusplus
}
#endif
#endif
