/* SPDX-License-Identifier: Apache-2.0
 * DavitDoctor: a model examined for known faults. Every check has a stable id (D01 ...),
 * evidence, a meaning and one remedy; a check whose part is not there says what it needs.
 *
 * Works on whatever part of the model is there: a missing shard does not hide a wrong
 * config, an unknown architecture does not hide a broken tokenizer. Reads headers and
 * small files only, unless options->deep. What other commands would say of the same
 * fault is the same record here, sorted under its check.
 *
 * Threads: one examination on one thread. Immutable afterwards.
 */
#ifndef DAVIT_DOCTOR_DOCTOR_H
#define DAVIT_DOCTOR_DOCTOR_H

#include "base/report.h"
#include "plugin/registry.h"

/* Record code of a finding that only the doctor makes: davit_code_name gives "D12". */
#define DAVIT_CODE_DOCTOR(n) (9000u + (n))

typedef struct DavitDoctorOptions {
    const char *base;   /* MODEL to compare with, NULL = none */
    uint64_t n_ranks;   /* tensor-parallel ranks to be judged, 0 = not asked */
    uint64_t n_context; /* tokens for the memory verdict, 0 = 4096 or the model's maximum */
    const char *dtype;  /* dtype the weights are wanted in ("f16/1"); NULL = as stored */
    bool deep;          /* read payloads: values, hashes, device rate */
    bool tie, no_tie;   /* the user's decision about the head, as plan and run take it */
    uint32_t quant_allow; /* DAVIT_QUANT_ALLOW_ bits, as plan and run take them */
    const char *kv_dtype; /* how keys and values would be stored ("f8_e4m3/1"); NULL = not asked */
    const char *strip_prefix; /* taken away from tensor names; NULL = none */
    const char *rename;       /* file of renaming rules; NULL = none */
    const char *const *ignore; /* globs left out, NULL-terminated; may be NULL */
    /* Called now and then with payload bytes done and to do; returning false stops.
     * NULL = no calls. */
    bool (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *progress_ctx;
} DavitDoctorOptions;

/* One row of the fixed table (table.c). */
typedef struct DavitCheckInfo {
    const char *id;      /* "D12" */
    const char *title;   /* a few words, lower case */
    const char *meaning; /* why a finding matters: one sentence */
    const char *remedy;  /* what to do when the finding itself names nothing better */
} DavitCheckInfo;

typedef struct DavitCheck {
    const DavitCheckInfo *info; /* (static) */
    DavitReport *findings;      /* (owned) empty = nothing wrong */
    char *skipped;              /* (owned) "needs X" when it could not be made; else NULL */
    char *fact;                 /* (owned) what was seen, one line; NULL = nothing to say */
} DavitCheck;

typedef struct DavitDoctor DavitDoctor;

/* Examine MODEL. Returns: (owned) always; a model that cannot even be reached is a
 * finding. Records that are no finding about the model (a plugin that does not load) go
 * to @report. */
DavitDoctor *davit_doctor_examine(DavitRegistry *registry, const char *model,
                                  const DavitDoctorOptions *options, DavitReport *report);
void davit_doctor_free(DavitDoctor *doctor); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DavitDoctor, davit_doctor_free)

/* Checks in the order of their ids. */
size_t davit_doctor_n_checks(const DavitDoctor *doctor);
/* (borrowed) @index < n_checks. */
const DavitCheck *davit_doctor_check(const DavitDoctor *doctor, size_t index);
/* (borrowed) NULL if there is no such id. */
const DavitCheck *davit_doctor_find(const DavitDoctor *doctor, const char *id);
/* Was it stopped by options->progress? */
bool davit_doctor_stopped(const DavitDoctor *doctor);
/* Status of the gravest error (CORRUPT and MISMATCH before UNSUPPORTED before IO),
 * DAVIT_OK if there is none. */
int32_t davit_doctor_status(const DavitDoctor *doctor);

/* "ok" "note" "warning" "error" "skipped". (static) */
const char *davit_check_state(const DavitCheck *check);

#endif
