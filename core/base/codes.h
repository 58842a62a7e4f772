/* SPDX-License-Identifier: Apache-2.0
 * What a record of each code must say, and what to do about it when the record itself knows
 * nothing better.
 *
 * The codes themselves (number, name, when) are DAVIT_CODES of <davit/refusal.h>; a row here
 * adds to the row there, in the same order. docs/refusals.md is made from both, and
 * tests/refusals holds every record of every test to it.
 */
#ifndef DAVIT_BASE_CODES_H
#define DAVIT_BASE_CODES_H

#include "base/report.h"

/* Fields that a record of a code has, whoever makes it: s subject, e expected, f found,
 * c at least one of expected and found. Notes compare nothing: of them s alone is asked. */
typedef struct DavitCodeRule {
    uint32_t code;      /* DAVIT_R_ */
    const char *fields; /* letters of s e f c */
    const char *remedy; /* hint of a warning or an error that comes without one */
} DavitCodeRule;

/* X(NAME, "fields", "remedy") */
#define DAVIT_CODE_RULES(X)                                                               \
    X(NOT_REGULAR, "sef", "give the path of a regular file")                              \
    X(PERM_WRITABLE, "sef", "chmod go-w it, or name its directory with --trust-dir")      \
    X(WRONG_OWNER, "sef", "chown it to yourself or root")                                 \
    X(TRUNCATED, "sef", "copy or build the plugin again")                                 \
    X(NOT_ELF, "sc", "only shared objects (.so) belong in a plugin directory")           \
    X(WRONG_CLASS, "sef", "get the build for this machine")                               \
    X(WRONG_MACHINE, "sef", "get the build for this machine")                             \
    X(EXEC_STACK, "sef", "the plugin's author must link it with -z noexecstack")          \
    X(STATIC_TLS, "sc", "the plugin's author must build it with -ftls-model=global-dynamic")\
    X(BAD_RUNPATH, "sef", "the plugin's author must link it without such a RUNPATH")      \
    X(TEXT_RELOCATIONS, "sef", "the plugin's author must compile it with -fPIC")          \
    X(NO_MANIFEST, "sc", "the plugin's author must use the SDK's macros, which write it") \
    X(BAD_MANIFEST, "sc", "the plugin's author must build it again with the SDK")         \
    X(HASH_MISMATCH, "sef", "get the file again from where the hash came from")           \
    X(MANIFEST_MISMATCH, "sef", "the plugin's author must build it again with the SDK")   \
    X(DISABLED, "sc", "davit plugin enable ID takes it back")                             \
    X(SHADOWED, "sc", "remove the file that is not meant")                                \
    X(QUARANTINED, "sc", "davit plugin retry ID asks it again; a changed file is asked anyway")\
    X(NOT_IN_LOCK, "sef", "add its id and sha256 to the lock file")                       \
    X(DRAFT, "sef", "--allow-draft takes it")                                             \
    X(ABI_MAJOR, "sef", "get the build for this davit")                                   \
    X(HOST_TOO_OLD, "se", "update davit, or get an older build of the plugin")            \
    X(HOST_TOO_NEW, "sef", "get a newer build of the plugin")                             \
    X(KIND_UNKNOWN, "sef", "update davit")                                                \
    X(KIND_VERSION, "sef", "the plugin must be built again for this davit")               \
    X(BUILD_FACT, "sef", "the plugin's author must build it with the flags of the SDK")   \
    X(MISSING_DEP, "sf", "install the library: davit looks again at every run")          \
    X(UNDEFINED_SYMBOL, "sc", "the plugin's author must link what it uses (-z defs tells)")\
    X(DLOPEN_FAILED, "sc", "davit plugin inspect FILE shows its facts")                   \
    X(NO_ENTRY, "se", "the plugin's author must export the entry: DAVIT_PLUGIN does it")  \
    X(BAD_MAGIC, "sef", "the plugin's author must use DAVIT_PLUGIN of the SDK")           \
    X(BAD_SIZE, "sef", "the plugin's author must use DAVIT_END for struct_size")          \
    X(MISSING_FIELD, "sc", "the plugin's author must fill the field")                     \
    X(DUPLICATE_ID, "sc", "the plugin's author must take an id of his own")               \
    X(LIBRARY_CLASH, "sef", "the plugin's author must link the library statically or rename it")\
    X(CRASHED, "sf", "tell the plugin's author; davit goes on without it")                \
    X(TIMEOUT, "sc", "tell the plugin's author; davit goes on without it")                \
    X(EXITED_EARLY, "sc", "tell the plugin's author; davit goes on without it")           \
    X(OUT_OF_MEMORY, "s", "free memory, or ask for less: a smaller --ctx or model")       \
    X(BAD_REPORT, "sc", "install davit again as a whole: its helper is another version's")\
    X(SIDE_EFFECT, "sef", "tell the plugin's author: loading must change nothing")        \
    X(START_FAILED, "sc", "davit plugin inspect ID shows every record about it")          \
    X(CONTRACT_BROKEN, "s", "the plugin's author must mend it: the header states the rule")\
    X(NO_REASON, "s", "this is a fault of the component, tell its author")                \
    X(CPU_UNSUPPORTED, "sef", "use a build for an older processor")                       \
    X(DRIVER_MISSING, "s", "install the device's driver, or use --device cpu")            \
    X(DRIVER_TOO_OLD, "sef", "update the device's driver, or use --device cpu")           \
    X(DEVICE_MISSING, "s", "davit plugin list shows the devices")                         \
    X(DEVICE_ARCH, "sef", "get a build for this device, or use --device cpu")             \
    X(NEEDS_UNMET, "sc", "install what it needs, or update davit")                        \
    X(PICKLE_UNSAFE, "s", "take the model's safetensors files, or have it converted")     \
    X(HEADER_INVALID, "sc", "download the file again; if it stays so, its writer is at fault")\
    X(TENSOR_OUT_OF_FILE, "sc", "the file is cut short or damaged: download it again")    \
    X(TENSOR_OVERLAP, "sc", "download the file again; if it stays so, its writer is at fault")\
    X(TENSOR_SIZE, "sef", "download the file again; if it stays so, its writer is at fault")\
    X(DUPLICATE_KEY, "sc", "take one of the two out")                                     \
    X(JSON_INVALID, "sc", "correct the text, or download the file again")                 \
    X(FILE_TRUNCATED, "sf", "download the file again")                                    \
    X(SHARD_MISSING, "sc", "download the missing file into the model's directory")        \
    X(TENSOR_MISSING, "sc", "take weights and config.json of one model, with all shards") \
    X(TENSOR_DUPLICATE, "sef", "remove the file that does not belong to the model")       \
    X(SHARD_MISMATCH, "sef", "download the model again, all of its files")                \
    X(CONFIG_INVALID, "sc", "take the file from where the weights came from")             \
    X(CONFIG_MISSING, "sc", "take the file from where the weights came from")             \
    X(SHAPE_MISMATCH, "sef", "take weights and config.json of one model")                 \
    X(TENSOR_UNEXPECTED, "sf", "--ignore GLOB leaves it out; davit doctor names causes")  \
    X(DTYPE_UNKNOWN, "sef", "convert the model to a dtype that is listed, or update davit")\
    X(VALUE_NOT_FINITE, "sc", "compare the file's checksum with the origin's")            \
    X(TOKENIZER_INVALID, "sc", "take tokenizer.json from where the weights came from")    \
    X(LFS_POINTER, "sf", "run git lfs pull in the directory, or download the file itself")\
    X(EMPTY_FILE, "s", "download the file again")                                         \
    X(QUANT_SCALE_ARITY, "sef", "the config's sizes belong to another model: restore both")\
    X(QUANT_SCALE_VALUE, "sc", "download the file again; if it stays so, quantise again") \
    X(QUANT_WEIGHT_NAN, "sc", "download the file again; if it stays so, quantise again")  \
    X(QUANT_INDEX_RANGE, "sef", "download the file again; if it stays so, quantise again")\
    X(QUANT_ZERO_CONVENTION, "sef", "restore quantization_config from the model's origin")\
    X(QUANT_DTYPE, "sef", "convert the tensor to a dtype of the layout")                  \
    X(QUANT_ORPHAN, "sc", "take all files of the model, or quantise it again")            \
    X(QUANT_CONFIG_CONFLICT, "sc", "restore quantization_config from the model's origin") \
    X(QUANT_CONFIG_MISSING, "sc", "restore quantization_config from the model's origin")  \
    X(QUANT_CONFIG_VALUE, "sc", "restore quantization_config from the model's origin")    \
    X(QUANT_TARGET_AMBIGUOUS, "sc", "make the targets of the groups differ")              \
    X(TEMPLATE_INVALID, "sc", "take the template from the model's origin, or give --chat-template")\
    X(TEXT_INVALID, "sc", "iconv -t UTF-8 converts a text in another encoding")           \
    X(FORWARD_ABSENT, "s", "inspect, plan and dump work; running needs a newer davit or plugin")\
    X(QUANT_PARAMS, "sc", "use a variant with the parameters that are listed")            \
    X(PRETOKENIZER_UNKNOWN, "sc", "install a tokenizer plugin that claims this shape")    \
    X(MAP_INCOMPLETE, "sc", "take weights and config.json of one model, with all shards") \
    X(OP_MISSING, "s", "davit plugin ops shows every kernel and why it was not taken")    \
    X(QUANT_UNKNOWN, "s", "take an unquantised model, or install a plugin for the layout")\
    X(FORMAT_UNSUPPORTED, "s", "take the model as safetensors or GGUF")                   \
    X(VERSION_UNSUPPORTED, "sef", "convert the model with a current tool, or update davit")\
    X(CONFIG_UNSUPPORTED, "sc", "update davit, or install a plugin that knows the setting")\
    X(TOKENIZER_UNSUPPORTED, "sc", "install a tokenizer plugin that knows it, or update davit")\
    X(CONTEXT_EXCEEDED, "sc", "shorten the prompt, lower --max-tokens or raise --ctx")    \
    X(FLAG_UNSUPPORTED, "sc", "use one of the values that are listed")                    \
    X(QUANT_LAYOUT, "sc", "take another variant of the model, or update davit")           \
    X(TEMPLATE_UNSUPPORTED, "sc", "shorten the messages or give a simpler template: --chat-template FILE") \
    X(TEMPLATE_RAISED, "s", "give the template the messages that it asks for")            \
    X(TEMPLATE_MISSING, "se", "give one with --chat-template FILE")                       \
    X(IDS_DIFFER, "sc", "the likely causes are listed with it")                           \
    X(AMBIGUOUS, "sc", "name the one that is meant")                                      \
    X(ALL_DECLINED, "sc", "davit why MODEL shows each answer; a plugin can add what is missing")\
    X(NO_PLUGINS, "sc", "davit plugin list shows where plugins are looked for")           \
    X(IO_FAILED, "sc", "check the path, its rights and the disk")                         \
    X(FILE_CHANGED, "sf", "wait until the file is complete, then start again")           \
    X(NON_FINITE_LOGITS, "sf", "davit doctor --deep finds NaN in the weights")            \
    X(DEVICE_LOST, "sc", "look at the device's driver log, and start again")              \
    X(MEMORY_SHORT, "s", "use a smaller --ctx, a quantised model, or raise the limit")    \
    X(CANCELLED, "s", "start it again")                                                   \
    X(NOT_FOUND, "sc", "check the spelling")                                              \
    X(RANK_LOST, "s", "what that rank said before tells why; start all of them again")    \
    X(ASSUMED, "sc", "state it in the model's own files")                                 \
    X(IGNORED_BY_RULE, "sf", "nothing to do, if it is meant")                             \
    X(STRAY_TENSOR, "sc", "download the index again, if the tensor is needed")            \
    X(STRAY_SHARD, "sc", "remove it, or name the file that is meant")                     \
    X(HEAD_COMPARED, "sef", "compare with the model's origin")                            \
    X(SOURCE_CHOSEN, "s", "remove the source that is not meant")                          \
    X(GENERATION_DEFAULTS, "s", "--sampling model follows the files")                     \
    X(USER_DECISION, "s", "leave the flag out, if it is not meant")                       \
    X(CONTENT_TRUST, "s", "--trust-content reads them as control tokens")                 \
    X(USAGE, "s", "davit COMMAND --help shows the flags and examples")                   \
    X(NOT_BUILT, "s", "leave it out, or update davit")

/* Rows in the order of DAVIT_CODES; @out_n is set to their number. (static) */
const DavitCodeRule *davit_code_rules(size_t *out_n);
/* (static) NULL for a number that is not in the table (the doctor's checks, a plugin's own). */
const DavitCodeRule *davit_code_rule(uint32_t code);

/* What @record lacks of what its code asks for: "subject", "expected", "found", "expected or
 * found", "sentence" or "hint"; NULL = complete. (static) */
const char *davit_record_lacks(const DavitRecord *record);

#endif
