/* SPDX-License-Identifier: Apache-2.0
 * D12: the output head, stored or tied to the embedding. Of a stored one a few kilobytes are
 * compared with the embedding, which tells another head from a copy; --deep compares all. */
#include <string.h>

#include "doctor/doctor_private.h"

#define SAMPLE    1024u /* bytes */
#define N_SAMPLES 4u

static const json_t *text_part(const json_t *config)
{
    const json_t *part = json_object_get(config, "text_config");

    return part ? part : json_object_get(config, "llm_config");
}

/* No head, and no plan that says whether the embedding serves as one. */
static void check_unplanned_tie(DavitDoctor *d)
{
    const DavitReport *said = davit_doctor_find(d, "D12")->findings;
    const json_t *flag = davit_patient_value(&d->patient, "tie_word_embeddings");
    const bool misnamed = davit_report_failed(davit_doctor_find(d, "D07")->findings) ||
                          davit_report_failed(davit_doctor_find(d, "D08")->findings);

    const bool unknown = davit_report_failed(davit_doctor_find(d, "D06")->findings);

    if (davit_report_count(said) > 0 || json_is_true(flag))
        return;
    if (misnamed || !d->patient.settings || davit_settings_is_gguf(d->patient.settings) ||
        !davit_find_tail(d->patient.checkpoint, DAVIT_EMBED_TAILS, -1)) {
        davit_doctor_skip(d, "D12", "a plan, which other findings prevent");
        return;
    }
    /* unstated, the class decides, and only a plan knows the class */
    davit_doctor_say(
        d, "D12",
        &(DavitFinding){.severity = unknown ? DAVIT_NOTE : DAVIT_WARNING,
                        .status = json_is_false(flag) ? DAVIT_E_CORRUPT : DAVIT_OK,
                        .subject = "config.json: tie_word_embeddings",
                        .expected = "true, or a stored head",
                        .found = json_is_false(flag) ? "false, and no head"
                                                     : "absent, and no head",
                        .message = unknown ? "the checkpoint has no output head; many classes tie "
                                             "it to the embedding by default, and davit does not "
                                             "know this one"
                                           : "the checkpoint has no output head and does not say "
                                             "that the embedding serves as one",
                        .hint = "set tie_word_embeddings to true if the model's origin does, "
                                "or --tie"});
}

/* Do the two differ in one of a few samples? Other types and sizes are other heads. */
static bool differs(const DavitDoctor *d, const davit_tensor_info *head,
                    const davit_tensor_info *embed)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    const uint64_t n = MIN(head->n_bytes, SAMPLE);
    g_autoptr(DavitReport) aside = davit_report_new();
    uint8_t a[SAMPLE], b[SAMPLE];

    if (head->n_bytes != embed->n_bytes || strcmp(head->dtype, embed->dtype) != 0)
        return true;
    for (uint64_t i = 0; i < N_SAMPLES; i++) {
        const uint64_t off = (head->n_bytes - n) / (N_SAMPLES - 1) * i;

        if (davit_checkpoint_read(c, head->file, head->off + off, a, n, aside) ||
            davit_checkpoint_read(c, embed->file, embed->off + off, b, n, aside))
            return false;
        if (memcmp(a, b, (size_t)n) != 0)
            return true;
    }
    return false;
}

/* A head is stored though it is said, or by the class's default, to be the embedding. */
static void check_stored(DavitDoctor *d, const davit_tensor_info *head)
{
    const DavitPlan *plan = d->patient.plan;
    const json_t *flag = davit_patient_value(&d->patient, "tie_word_embeddings");
    const bool given = plan ? plan->tied_given : json_is_true(flag);
    const davit_tensor_info *embed =
        davit_find_tail(d->patient.checkpoint, DAVIT_EMBED_TAILS, -1);
    bool other;

    if ((plan ? !plan->tied : !json_is_true(flag)) || !embed ||
        (d->patient.settings && davit_settings_is_gguf(d->patient.settings)))
        return;
    other = differs(d, head, embed);
    if (!other && !d->options->deep && given) /* there D13 says the result */
        davit_doctor_say(d, "D12",
                         &(DavitFinding){.severity = DAVIT_NOTE,
                                         .subject = head->name,
                                         .expected = "no head, since the flag says tied",
                                         .found = "a head, equal to the embedding where looked at",
                                         .message = "the stored head is used; --deep compares all "
                                                    "of it with the embedding",
                                         .hint = "nothing, if they are equal"});
    if (!other || (given && d->options->deep))
        return;
    davit_doctor_say(
        d, "D12",
        &(DavitFinding){
            .code = DAVIT_R_HEAD_COMPARED,
            .severity = DAVIT_WARNING,
            .subject = head->name,
            .expected = given ? "no head, or the embedding, since tie_word_embeddings is true"
                              : "no head, or the embedding: tie_word_embeddings is not stated, "
                                "and this class's default is true",
            .found = "a head that differs from the embedding",
            .message = "davit uses the stored head; other programs tie and lose it, so that the "
                       "same files answer differently",
            .hint = "set tie_word_embeddings to false if the head was trained apart; if it is a "
                    "leftover, save the model without it"});
}

void davit_check_head(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    const json_t *top = json_object_get(d->patient.config, "tie_word_embeddings");
    const json_t *inner =
        json_object_get(text_part(d->patient.config), "tie_word_embeddings");
    const davit_tensor_info *head = c ? davit_find_tail(c, DAVIT_HEAD_TAILS, -1) : NULL;

    if (json_is_boolean(top) && json_is_boolean(inner) &&
        json_is_true(top) != json_is_true(inner))
        davit_doctor_say(
            d, "D12",
            &(DavitFinding){.severity = head ? DAVIT_NOTE : DAVIT_WARNING,
                            .subject = "config.json: tie_word_embeddings",
                            .expected = "one answer",
                            .found = json_is_true(top) ? "true outside, false inside"
                                                       : "false outside, true inside",
                            .message = "the wrapper's flag and the text model's differ; "
                                       "davit takes the wrapper's"});
    if (!c || d->patient.is_part) {
        davit_doctor_skip(d, "D12", "all weights");
        return;
    }
    if (!head && !d->patient.plan)
        check_unplanned_tie(d);
    davit_doctor_fact(d, "D12", "%s, %s",
                      head ? head->name : "no head is stored",
                      !d->patient.plan       ? "no plan"
                      : d->patient.plan->tied ? "flag: tied"
                                              : "flag: not tied");
    if (head)
        check_stored(d, head);
}
