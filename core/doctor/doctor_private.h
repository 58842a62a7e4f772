/* SPDX-License-Identifier: Apache-2.0
 * What the checks share. Reading order: table.c (all checks), examine.c (opening what can
 * be opened), sort.c (which check a record of other parts belongs to), then the checks by
 * what they look at: files.c links.c cache.c copies.c absent_shards.c revisions.c names.c wrappers.c
 * experts.c shapes.c head.c quant.c quant_claims.c settings.c rotary.c strict.c gguf_heads.c gguf_types.c vocabulary.c
 * second_tokenizer.c words.c adapter.c no_model.c conflict_marks.c rank_files.c machine.c devices.c base.c deep.c zeros.c load.c. */
#ifndef DAVIT_DOCTOR_PRIVATE_H
#define DAVIT_DOCTOR_PRIVATE_H

#include <inttypes.h>

#include "checkpoint/checkpoint.h"
#include "config/config.h"
#include "doctor/doctor.h"
#include "plan/plan.h"
#include "source/path.h"
#include "tokenizer/tokenizer.h"

/* A model as far as it can be opened. Every pointer may be NULL. */
typedef struct DavitPatient {
    DavitRegistry *registry; /* (borrowed) */
    const char *model;       /* (borrowed) as the user gave it */
    DavitModelPath path;     /* dir NULL = MODEL is not there */
    DavitCheckpoint *checkpoint;
    DavitSettings *settings;
    json_t *config;           /* config.json as it stands */
    json_t *generation;       /* generation_config.json */
    json_t *tokenizer_config; /* tokenizer_config.json */
    char *template;           /* chat template as text */
    DavitTokenizer *tokenizer;
    bool is_part;    /* one file of a set was named: what lies elsewhere is not missing */
    DavitPlan *plan; /* for DAVIT_MAP: does not ask kernels */
    DavitPlan *refused; /* in its place where an error blocks it; NULL = not even begun */
} DavitPatient;

struct DavitDoctor {
    DavitCheck *checks;
    size_t n_checks;
    const DavitDoctorOptions *options; /* (borrowed) while examining */
    DavitPatient patient;
    bool stopped;
};

/* ---- saying ---- */

/* (borrowed) the check @id; the id must be in the table. */
DavitCheck *davit_doctor_of(DavitDoctor *doctor, const char *id);
/* Add @finding to check @id. A finding without code gets the check's own. */
void davit_doctor_say(DavitDoctor *doctor, const char *id, const DavitFinding *finding);
/* The check could not be made; @needs is "a tokenizer". The first reason stays. */
void davit_doctor_skip(DavitDoctor *doctor, const char *id, const char *needs);
void davit_doctor_fact(DavitDoctor *doctor, const char *id, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/* (owned by the doctor) */
const char *davit_doctor_text(DavitDoctor *doctor, const char *format, ...)
    G_GNUC_PRINTF(2, 3);
/* (owned, g_free) "1.2 GiB" */
char *davit_doctor_bytes(uint64_t n);

/* Findings of check @id that another one explains go away. */
void davit_doctor_drop(DavitDoctor *doctor, const char *id,
                       bool (*is)(const DavitRecord *r, const void *ctx), const void *ctx);

/* ---- what the checks read ---- */

/* Open all of @model that can be opened; records go to the checks of @doctor, or
 * nowhere when @doctor is NULL. */
void davit_patient_open(DavitPatient *patient, DavitRegistry *registry, const char *model,
                        const DavitDoctorOptions *options, DavitDoctor *doctor,
                        DavitReport *report);
void davit_patient_clear(DavitPatient *patient);
/* Read a small file beside the weights. NULL: absent, or unreadable with a record in
 * @report. (owned) */
GBytes *davit_patient_read(const DavitPatient *patient, const char *name,
                           DavitReport *report);
/* Value of @key in the config, nested ones resolved; JSON null counts as absent. */
const json_t *davit_patient_value(const DavitPatient *patient, const char *key);
/* The same as a whole number; false if absent or something else. */
bool davit_patient_int(const DavitPatient *patient, const char *key, int64_t *out);

/* Rows of the embedding, else vocab_size; 0 = neither is known. */
uint64_t davit_patient_rows(const DavitPatient *patient);

/* Does component @who (an id, or NULL) say that it takes files of this extension? Formats are
 * known by what they take, never by their names. */
bool davit_takes_extension(DavitRegistry *registry, const char *who, const char *extension);
/* Put records of other parts where they belong. @from: first record that is new. */
void davit_doctor_sort(DavitDoctor *doctor, const DavitReport *said);

/* ---- names of tensors ---- */

/* For davit_find_tail. */
#define DAVIT_EMBED_TAILS                                                                \
    "embed_tokens.weight|wte.weight|tok_embeddings.weight|token_embd.weight|"            \
    "word_embeddings.weight|embed_in.weight"
#define DAVIT_HEAD_TAILS "lm_head.weight|output.weight|embed_out.weight"

/* A name with its numbers replaced: "model.layers.{}.mlp.up_proj.weight". (owned) */
char *davit_name_pattern(const char *name);
/* The first number of a name that follows "layers." "blk." "h." ...; -1 = none. */
int64_t davit_name_layer(const char *name);
/* Highest layer index + 1 of a checkpoint, 0 = no layers. */
int64_t davit_count_layers(const DavitCheckpoint *checkpoint);
/* (borrowed) tensor whose name ends in one of '|'-joined @tails, in layer @layer (-1 =
 * any); NULL if none. */
const davit_tensor_info *davit_find_tail(const DavitCheckpoint *checkpoint,
                                         const char *tails, int64_t layer);

/* Does a finding of D07 speak of a missing tensor with one of '|'-joined @tails? */
bool davit_doctor_misses(const DavitDoctor *doctor, const char *tails);

/* ---- checks, one function per file ---- */

void davit_check_files(DavitDoctor *doctor);    /* D05 D38 D39 D42 D43 D45 D48 D49 */
void davit_check_links(DavitDoctor *doctor);    /* D35 D39 */
void davit_check_revisions(DavitDoctor *doctor); /* D04 D15: files of a set against each other */
void davit_check_absent_shards(DavitDoctor *doctor); /* D04 */
void davit_check_copies(DavitDoctor *doctor);   /* D04: tensors stored twice */
void davit_check_cache(DavitDoctor *doctor);    /* D35 D36 D40 D41 */
void davit_check_names(DavitDoctor *doctor);    /* D06 D09, wrappers and experts */
void davit_check_experts(DavitDoctor *doctor);  /* D11 */
void davit_check_wrappers(DavitDoctor *doctor); /* D08 */
void davit_check_shapes(DavitDoctor *doctor);   /* D10 D14 D15 D23, and the head */
void davit_check_head(DavitDoctor *doctor);     /* D12 */
void davit_check_quant(DavitDoctor *doctor);    /* D17 D18 D19 */
void davit_check_quant_claims(DavitDoctor *doctor); /* D17 D19: at its end */
void davit_check_settings(DavitDoctor *doctor); /* D20 */
void davit_check_rotary(DavitDoctor *doctor);   /* D20: frequencies that the weights hold */
void davit_check_strict(DavitDoctor *doctor);   /* D10: what is no JSON in config.json */
void davit_check_gguf_heads(DavitDoctor *doctor); /* D10 */
void davit_check_gguf_types(DavitDoctor *doctor); /* D03: types of settings */
void davit_check_vocabulary(DavitDoctor *doctor); /* D14: ids of the tokenizer's files */
void davit_check_second_tokenizer(DavitDoctor *doctor); /* D14: two files of one model */
void davit_check_words(DavitDoctor *doctor);    /* D14 D21 */
void davit_check_token_settings(DavitDoctor *doctor); /* D14: tokenizer_config.json */
void davit_check_adapter(DavitDoctor *doctor);  /* D22 */
/* D22 D10: not a model; after the checks of names and shapes, whose findings it explains. */
void davit_check_no_model(DavitDoctor *doctor);
void davit_check_conflict_marks(DavitDoctor *doctor); /* JSON_INVALID of any check */
void davit_check_machine(DavitDoctor *doctor);  /* D24 to D33 */
void davit_check_devices(DavitDoctor *doctor);  /* D34 */
void davit_check_rank_files(DavitDoctor *doctor); /* D44 */
void davit_check_deep(DavitDoctor *doctor);     /* D13 D16 D31 D37 */
void davit_check_zeros(DavitDoctor *doctor);    /* D02: a reserved end; after D16 */
void davit_check_load(DavitDoctor *doctor);     /* D47 */
/* D20 and whatever differs from options->base. */
void davit_check_base(DavitDoctor *doctor, const DavitPatient *base);

#endif
