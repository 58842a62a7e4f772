/* SPDX-License-Identifier: Apache-2.0
 * The plugin door, ABI 1.0: hello, bundle, component, host table, verdict, manifest notes.
 *
 * A plugin is one shared object that exports davit_plugin_entry_v1 and nothing else. It
 * links no symbol of the core: everything it needs comes through davit_host. Interfaces of
 * the five kinds are in format.h, arch.h, quant.h, tokenizer.h and kernels.h.
 *
 * Strings are UTF-8 and NUL-terminated. Descriptor strings live as long as the process.
 * Integers are fixed width; no struct has implicit padding. Fields are only ever appended.
 *
 * Every struct begins with struct_size (the bundle: after its magic), the end of the last field
 * that its author knew. A reader copies the smaller of its own and that, so fields past it read
 * as absent: 0 or NULL. What is not said to be required may be 0 or NULL.
 *
 * Words for pointers: (borrowed) valid while what is named lives; (owned) the receiver frees it;
 * (static) valid as long as the process. A plugin keeps no pointer that it got in a call past
 * that call, but for davit_host and the suites' tables.
 */
#ifndef DAVIT_PLUGIN_H
#define DAVIT_PLUGIN_H

#include "refusal.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DAVIT_ABI_MAJOR 1
#define DAVIT_ABI_MINOR 0
/* Highest host minor whose fields the author uses; raise it to opt in to newer ones. */
#ifndef DAVIT_TARGET_MINOR
#define DAVIT_TARGET_MINOR 0
#endif

#define DAVIT_MAGIC 0x314c505449564144ull /* bytes "DAVITPL1" */

/* Interface version of each kind, as three macro arguments: name, major, minor. A 1.x kind
 * accepts older minors; a 0.x kind must match exactly. */
#define DAVIT_KIND_FORMAT    "format", 1, 0
#define DAVIT_KIND_TOKENIZER "tokenizer", 1, 0
#define DAVIT_KIND_ARCH      "arch", 0, 1
#define DAVIT_KIND_QUANT     "quant", 0, 6
#define DAVIT_KIND_KERNELS   "kernels", 0, 3
#define DAVIT_KIND_COMM      "comm", 0, 2

typedef struct davit_host davit_host;
typedef struct davit_probe_in davit_probe_in;

/* Told by the host at entry. Frozen for major 1: it never grows. */
typedef struct davit_hello {
    uint64_t struct_size;      /* DAVIT_END(davit_hello, host_version) */
    uint32_t abi_major;        /* what the host implements */
    uint32_t abi_minor;
    uint32_t abi_minor_oldest; /* oldest plugin minor that the host accepts */
    uint32_t flags;            /* bit 0: inside the probe helper */
    const char *host_name;     /* "davit" */
    const char *host_version;  /* SemVer */
} davit_hello;
#define DAVIT_HELLO_IN_HELPER 1u

/* Verdicts of a probe. */
#define DAVIT_DECLINE 0u /* not mine */
#define DAVIT_ACCEPT  1u /* mine; see score and purposes */
#define DAVIT_REFUSE  2u /* mine, and no: at least one record is in the sink */

typedef struct davit_verdict {
    uint64_t struct_size; /* set by the host; the rest comes zeroed, which is DECLINE */
    uint32_t verdict;     /* DAVIT_DECLINE, _ACCEPT or _REFUSE */
    uint32_t score;       /* 0..1000, with ACCEPT: how sure */
    uint64_t purposes;    /* with ACCEPT: the purposes that it can serve for this input */
    uint64_t flags;       /* with REFUSE: DAVIT_REFUSAL_FINAL, else 0 */
} davit_verdict;

/* Argument of create. */
typedef struct davit_create_in {
    uint64_t struct_size;
    const davit_host *host; /* (borrowed) valid until quiesce */
    const char *component;  /* id of the component that is created */
} davit_create_in;

/* One format, architecture, quant layout family, tokenizer family or kernel set. */
typedef struct davit_component {
    uint64_t struct_size;    /* DAVIT_END(davit_component, iface); filled by DAVIT_COMPONENT */
    const char *kind;        /* "format" "arch" "quant" "tokenizer" "kernels" "comm". Required */
    uint32_t kind_major;     /* interface it was built with */
    uint32_t kind_minor;
    uint32_t kind_min_minor; /* oldest minor of the host's kind that it needs */
    int32_t priority;        /* 0..100, tie-break only; 50 is usual */
    const char *id;          /* reverse DNS, never reused: "com.acme.quant.nvfp4". Required */
    /* Claims, "key=value|value;key=value"; shown in lists, and two that claim the same are told
     * as a conflict. Keys that davit reads: format ext, magic (@OFFSET:HEX); arch hf, model_type,
     * gguf (davit_arch_iface's: loads the right one first); quant layout, suffix (ends of names of
     * its modules' tensors), part (suffixes, dtypes: not asked about modules without); tokenizer
     * family; kernels op, layout, device (not loaded for another). Others are free. Required */
    const char *capability;
    const char *needs;       /* for people: what it needs from others, same grammar */
    uint64_t purposes;       /* purposes it can ever serve. Required */
    uint64_t flags;          /* DAVIT_COMPONENT_ bits */

    /* Does this input belong to the component? Fills *out; returns DAVIT_OK, or a negative
     * status after a record when it could not tell (counts as DECLINE). Reads only @in; no
     * state, no allocation left behind, budget 5 ms. Required for formats; other kinds are asked
     * through their own interface and leave it NULL. [any thread, concurrently] */
    int32_t (*probe)(const davit_probe_in *in, davit_verdict *out, const davit_sink *sink);

    /* Make the instance that is handed as @self to the interface's functions; *out_self may stay
     * NULL. A negative status after a record: the component is refused on this machine (a
     * feature, driver or device is missing) and others are used. @bundle_ctx is start's.
     * NULL = the component is stateless and self is NULL. [one call at a time] */
    int32_t (*create)(void *bundle_ctx, const davit_create_in *in, void **out_self,
                      const davit_sink *sink);
    /* After the last use of @self, also where create left it NULL. NULL allowed when create is
     * NULL. [one call at a time] */
    void (*destroy)(void *self);

    /* Refusals known without any input; NULL-terminated, NULL = none. They are in the
     * manifest too (DAVIT_REFUSES), so that listing shows them without loading. */
    const davit_refusal *const *refuses;

    const void *iface; /* the kind's table; its first field is struct_size. Required */
} davit_component;

/* Functions that take @self may run on several threads at once. The tags of the interfaces say so
 * anyway where davit does that ([any thread]: claim, check, decode, open ...); the flag tells that
 * the author knows, and a later host may take turns where it is missing. */
#define DAVIT_COMPONENT_CONCURRENT    1u
#define DAVIT_COMPONENT_FINAL_REFUSER 2u /* its job is to refuse, and its word is final */

/* What one shared object holds. */
typedef struct davit_bundle {
    uint64_t magic;          /* DAVIT_MAGIC */
    uint64_t struct_size;    /* DAVIT_END(davit_bundle, quiesce) */
    uint32_t abi_major;      /* header it was built with */
    uint32_t abi_minor;
    uint32_t min_host_minor; /* oldest host it can live with: enforced */
    uint32_t flags;          /* 0 */
    const char *id;          /* reverse DNS. Required */
    const char *name;        /* for people; NULL = id */
    const char *vendor;      /* NULL = unknown */
    const char *version;     /* SemVer. Required */
    const char *license;     /* SPDX expression. Required */
    const char *url;         /* NULL = none */
    const char *build_tag;   /* DAVIT_BUILD_TAG */
    const davit_component *const *components; /* NULL-terminated array of pointers. Required */

    /* Once per process before any create; *out_bundle_ctx (may stay NULL) is handed to create
     * and quiesce. A negative status after a record refuses the whole file. No device is
     * touched here, nothing is printed, no thread is left running that quiesce does not join.
     * NULL = nothing to do. [any thread] */
    int32_t (*start)(const davit_host *host, void **out_bundle_ctx, const davit_sink *sink);
    /* Once, after every destroy, unless the process dies; must join its threads. The host table
     * is not used afterwards. NULL = nothing to do. */
    void (*quiesce)(void *bundle_ctx);
} davit_bundle;

/* What the host gives. Plugins get suites by name; see suites.h. Valid until quiesce. Each
 * function gets the field ctx as its first argument. */
struct davit_host {
    uint64_t struct_size; /* test newer fields with DAVIT_HAS */
    uint32_t abi_major;   /* of the host */
    uint32_t abi_minor;
    void *ctx;            /* the host's; hand it back unread */

    /* (static) a table of functions whose first field is struct_size, or NULL if this host has
     * no such suite in @major or its minor is below @min_minor. A 0.x suite must be asked for
     * in exactly the host's minor. [any thread] */
    const void *(*suite)(void *ctx, const char *name, uint32_t major, uint32_t min_minor);

    /* Debug trace, shown with -v only. @level 0 error .. 3 debug. [any thread] */
    void (*log)(void *ctx, uint32_t level, const char *component_id, const char *utf8);

    /* Memory that the HOST will free, or that the plugin frees with @free; not zeroed. @align is
     * a power of two, or 0 = any. NULL when memory is gone. Memory of malloc must never be freed
     * by the other side. [any thread] */
    void *(*alloc)(void *ctx, size_t n_bytes, size_t align);
    void (*free)(void *ctx, void *p); /* NULL is a no-op */

    int32_t (*cancelled)(void *ctx); /* 1 = the user wants out. [any thread] */
};

/* The entry. Pure: returns a pointer to static const data, or NULL after a record in @sink.
 * No allocation, thread, file, device, locale or print. [once, under the loader's lock] */
#if defined(__GNUC__)
#define DAVIT_EXPORT __attribute__((visibility("default")))
#else
#define DAVIT_EXPORT
#endif
DAVIT_EXPORT const davit_bundle *davit_plugin_entry_v1(const davit_hello *hello,
                                                       const davit_sink *sink);
typedef const davit_bundle *(*davit_entry_v1_fn)(const davit_hello *hello,
                                                 const davit_sink *sink);

/* ---- build facts ---- */

#define DAVIT_STR_I(x) #x
#define DAVIT_STR(x) DAVIT_STR_I(x)

#if defined(__x86_64__)
#define DAVIT_BUILD_ARCH "x86_64"
#elif defined(__aarch64__)
#define DAVIT_BUILD_ARCH "aarch64"
#elif defined(__riscv)
#define DAVIT_BUILD_ARCH "riscv64"
#else
#define DAVIT_BUILD_ARCH "unknown"
#endif
#if defined(__clang__)
#define DAVIT_BUILD_CC                                                                    \
    "clang-" DAVIT_STR(__clang_major__) "." DAVIT_STR(__clang_minor__)
#elif defined(__GNUC__)
#define DAVIT_BUILD_CC "gcc-" DAVIT_STR(__GNUC__) "." DAVIT_STR(__GNUC_MINOR__)
#else
#define DAVIT_BUILD_CC "unknown"
#endif
#if defined(__FAST_MATH__)
#define DAVIT_BUILD_FAST_MATH "yes"
#else
#define DAVIT_BUILD_FAST_MATH "no"
#endif
#if defined(__SANITIZE_THREAD__)
#define DAVIT_BUILD_SANITIZER "thread"
#elif defined(__SANITIZE_ADDRESS__)
#define DAVIT_BUILD_SANITIZER "address"
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DAVIT_BUILD_SANITIZER "thread"
#elif __has_feature(address_sanitizer)
#define DAVIT_BUILD_SANITIZER "address"
#endif
#endif
#ifndef DAVIT_BUILD_SANITIZER
#define DAVIT_BUILD_SANITIZER "none"
#endif
/* Instructions that the compiler may use in the object with the entry; a host refuses the file
 * on a processor without them before any of it runs. Levels as ld.so --help names them. */
#if defined(__AVX512F__)
#define DAVIT_BUILD_CPU ";cpu=x86-64-v4"
#elif defined(__AVX2__)
#define DAVIT_BUILD_CPU ";cpu=x86-64-v3"
#elif defined(__SSE4_2__)
#define DAVIT_BUILD_CPU ";cpu=x86-64-v2"
#else
#define DAVIT_BUILD_CPU ""
#endif
/* "key=value;..." of what the object was built for and with. */
#define DAVIT_BUILD_TAG                                                                   \
    "arch=" DAVIT_BUILD_ARCH ";bits=64;cc=" DAVIT_BUILD_CC                                \
    ";fast_math=" DAVIT_BUILD_FAST_MATH ";sanitizer=" DAVIT_BUILD_SANITIZER DAVIT_BUILD_CPU

/* ---- descriptor and manifest from one macro ----
 *
 * Each macro writes an ELF note (section .note.davit, owner "DAVIT") beside the descriptor
 * it fills, so that a host can list the file without running it. Note types: 1 bundle,
 * 2 component, 3 refusal; each holds one JSON object. Arguments are string literals without
 * characters that JSON would escape. */

#define DAVIT_NOTE_BUNDLE    1
#define DAVIT_NOTE_COMPONENT 2
#define DAVIT_NOTE_REFUSAL   3

#define DAVIT_NOTE_I(sym, type_, json)                                                    \
    static const struct {                                                                 \
        uint32_t n_name, n_desc, type;                                                    \
        char name[8];                                                                     \
        char desc[(sizeof(json) + 3) & ~(size_t)3];                                       \
    } sym##_davit_note __attribute__((used, section(".note.davit"), aligned(4))) = {      \
        6, sizeof(json), type_, "DAVIT", json}

/* A component. @kind_args is DAVIT_KIND_..., @purposes_ an OR of purpose names written as
 * such, the rest of the arguments are designated initialisers (.probe, .create, .iface ...).
 *   DAVIT_COMPONENT(toy, DAVIT_KIND_FORMAT, "org.me.format.toy", "ext=toy",
 *                   DAVIT_INSPECT | DAVIT_MAP, 50, .probe = toy_probe, .iface = &toy_format);
 */
#define DAVIT_COMPONENT(sym, kind_args, id_, capability_, purposes_, priority_, ...)      \
    DAVIT_COMPONENT_J(sym, #purposes_, kind_args, id_, capability_, purposes_, priority_, \
                      __VA_ARGS__)
#define DAVIT_COMPONENT_J(sym, ptext, kind_args, ...)                                     \
    DAVIT_COMPONENT_I(sym, ptext, kind_args, __VA_ARGS__)
#define DAVIT_COMPONENT_I(sym, ptext, kind_, major_, minor_, id_, capability_, purposes_, \
                          priority_, ...)                                                 \
    DAVIT_NOTE_I(sym, DAVIT_NOTE_COMPONENT,                                               \
                 "{\"id\":\"" id_ "\",\"kind\":\"" kind_ "\",\"kind_abi\":\"" #major_     \
                 "." #minor_ "\",\"priority\":" #priority_ ",\"capability\":\""           \
                 capability_ "\",\"purposes\":\"" ptext "\"}");                           \
    static const davit_component sym = {.struct_size = DAVIT_END(davit_component, iface), \
                                        .kind = kind_,                                    \
                                        .kind_major = major_,                             \
                                        .kind_minor = minor_,                             \
                                        .kind_min_minor = 0,                              \
                                        .priority = priority_,                            \
                                        .id = id_,                                        \
                                        .capability = capability_,                        \
                                        .purposes = purposes_,                            \
                                        __VA_ARGS__}

/* A refusal that is known without input, in the descriptor and in the manifest:
 *   DAVIT_REFUSES(no_run, "org.me.arch.foo", DAVIT_RUN, DAVIT_R_FORWARD_ABSENT,
 *                 "FooForCausalLM", "the weight map is complete, the forward is absent",
 *                 "inspect, plan and dump work");
 * then name &no_run in the component's .refuses list. */
#define DAVIT_REFUSES(sym, id_, purposes_, code_, subject_, message_, hint_)              \
    DAVIT_NOTE_I(sym, DAVIT_NOTE_REFUSAL,                                                 \
                 "{\"id\":\"" id_ "\",\"purposes\":\"" #purposes_ "\",\"code\":\"" #code_ \
                 "\",\"subject\":\"" subject_ "\",\"message\":\"" message_                \
                 "\",\"hint\":\"" hint_ "\"}");                                           \
    static const davit_refusal sym = {.struct_size = DAVIT_END(davit_refusal, url),       \
                                      .code = code_,                                      \
                                      .purposes = purposes_,                              \
                                      .subject = subject_,                                \
                                      .message = message_,                                \
                                      .hint = hint_}

/* The bundle and the entry function. @... are pointers to the components.
 *   DAVIT_PLUGIN("org.me.toy", "Toy format", "Me", "1.0.0", "Apache-2.0", &toy); */
#define DAVIT_PLUGIN(id_, name_, vendor_, version_, license_, ...)                        \
    DAVIT_PLUGIN_START(id_, name_, vendor_, version_, license_, NULL, NULL, __VA_ARGS__)
/* The same with start and quiesce functions (either may be NULL). */
#define DAVIT_PLUGIN_START(id_, name_, vendor_, version_, license_, start_, quiesce_, ...)\
    DAVIT_NOTE_I(davit_bundle_, DAVIT_NOTE_BUNDLE,                                        \
                 "{\"schema\":\"davit-plugin/1\",\"id\":\"" id_ "\",\"name\":\"" name_    \
                 "\",\"vendor\":\"" vendor_ "\",\"version\":\"" version_                  \
                 "\",\"license\":\"" license_                                             \
                 "\",\"abi_major\":" DAVIT_STR(DAVIT_ABI_MAJOR)                           \
                 ",\"abi_minor\":" DAVIT_STR(DAVIT_ABI_MINOR)                             \
                 ",\"min_host_minor\":" DAVIT_STR(DAVIT_TARGET_MINOR)                     \
                 ",\"build\":\"" DAVIT_BUILD_TAG "\"}");                                  \
    static const davit_component *const davit_components_[] = {__VA_ARGS__, NULL};        \
    static const davit_bundle davit_bundle_ = {                                           \
        .magic = DAVIT_MAGIC,                                                             \
        .struct_size = DAVIT_END(davit_bundle, quiesce),                                  \
        .abi_major = DAVIT_ABI_MAJOR,                                                     \
        .abi_minor = DAVIT_ABI_MINOR,                                                     \
        .min_host_minor = DAVIT_TARGET_MINOR,                                             \
        .flags = 0,                                                                       \
        .id = id_,                                                                        \
        .name = name_,                                                                    \
        .vendor = vendor_,                                                                \
        .version = version_,                                                              \
        .license = license_,                                                              \
        .url = NULL,                                                                      \
        .build_tag = DAVIT_BUILD_TAG,                                                     \
        .components = davit_components_,                                                  \
        .start = start_,                                                                  \
        .quiesce = quiesce_};                                                             \
    const davit_bundle *davit_plugin_entry_v1(const davit_hello *hello,                   \
                                              const davit_sink *sink)                     \
    {                                                                                     \
        (void)hello;                                                                      \
        (void)sink;                                                                       \
        return &davit_bundle_;                                                            \
    }                                                                                     \
    typedef int davit_plugin_needs_a_semicolon_

#ifdef __cplusplus
}
#endif
#endif
