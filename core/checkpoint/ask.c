/* SPDX-License-Identifier: Apache-2.0
 * Asking the formats whose a file or directory is. All are asked, in candidate order; a
 * final refusal ends it; the best answer that covers the purposes wins; when nobody takes
 * it, every refusal is reported and then who declined. */
#include <limits.h>
#include <string.h>

#include "checkpoint/checkpoint_private.h"
#include "plugin/running.h"
#include "source/hub_cache.h"

void davit_asked_free(void *p)
{
    DavitAsked *asked = p;

    g_free(asked->who);
    g_free(asked->subject);
    davit_report_free(asked->records);
    g_free(asked);
}

/* An acceptance below this is a guess by name: a refusal of somebody who knows the bytes
 * counts for more. */
#define SURE 200u

/* Answers to one question. */
typedef struct Round {
    DavitCheckpoint *ckpt;
    const char *subject;
    guint first; /* index of its first answer in ckpt->asked */
    const DavitFormat *best;
    DavitAsked *best_answer;
    DavitAsked *final;   /* a refusal that ends it */
    bool refused;        /* somebody knows the bytes and refuses */
    DavitAsked *partial; /* accepts, but not for all purposes */
    char best_entry[NAME_MAX + 1];
} Round;

/* Exit code of a refusal: the file is damaged, or sound and not supported. */
static int32_t status_of(const DavitReport *records)
{
    const DavitRecord *first = davit_report_first_error(records, 0);

    if (!first || first->code == DAVIT_R_PICKLE_UNSAFE)
        return DAVIT_E_UNSUPPORTED;
    return first->code >= 300 && first->code < 400 ? DAVIT_E_CORRUPT
                                                   : DAVIT_E_UNSUPPORTED;
}

static bool is_entry(const davit_probe_in *in)
{
    if (in->head)
        return true;
    in->out_entry[in->out_entry_cap - 1] = '\0';
    for (uint64_t i = 0; i < in->n_names; i++)
        if (strcmp(in->names[i], in->out_entry) == 0)
            return true;
    return false;
}

static void take_accept(Round *round, const DavitFormat *format, DavitAsked *answer,
                        const davit_probe_in *in)
{
    const uint64_t wanted = round->ckpt->purposes;

    if ((answer->purposes & wanted) != wanted) {
        round->partial = answer;
        return;
    }
    if (!is_entry(in)) {
        davit_report_add(
            answer->records,
            &(DavitFinding){.code = DAVIT_R_NO_REASON,
                            .status = DAVIT_E_UNSUPPORTED,
                            .stage = "probe",
                            .who = format->id,
                            .subject = round->subject,
                            .found = in->out_entry,
                            .message = "the plugin chose a file that is not there"});
        answer->verdict = DAVIT_DECLINE;
        return;
    }
    /* the user's rank goes before the score */
    if (round->best && (format->user_rank < round->best->user_rank ||
                        (format->user_rank == round->best->user_rank &&
                         answer->score <= round->best_answer->score)))
        return;
    round->best = format;
    round->best_answer = answer;
    if (!in->head)
        g_strlcpy(round->best_entry, in->out_entry, sizeof round->best_entry);
}

/* One format's answer. */
static void ask_one(Round *round, const DavitFormat *format, const davit_probe_in *in)
{
    DavitAsked *answer = g_new0(DavitAsked, 1);
    davit_verdict verdict = {.struct_size = DAVIT_END(davit_verdict, flags)};
    DavitRunning outside;
    DavitSink sink;
    int32_t status = DAVIT_OK;

    answer->who = g_strdup(format->id);
    answer->subject = g_strdup(round->subject);
    answer->records = davit_report_new();
    g_ptr_array_add(round->ckpt->asked, answer);
    if (!format->probe)
        return;
    davit_sink_init(&sink, answer->records, format->id, "probe");
    outside = davit_running_set(format->id, "probe");
    status = format->probe(in, &verdict, &sink.abi);
    davit_running_back(outside);
    answer->verdict = status ? DAVIT_REFUSE : verdict.verdict;
    answer->score = verdict.score;
    answer->purposes = verdict.purposes;
    if (answer->verdict == DAVIT_ACCEPT)
        take_accept(round, format, answer, in);
    else if (answer->verdict == DAVIT_REFUSE)
        davit_sink_done(&sink, status ? status : status_of(answer->records));
    round->refused = round->refused || answer->verdict == DAVIT_REFUSE;
    if (answer->verdict == DAVIT_REFUSE && (verdict.flags & DAVIT_REFUSAL_FINAL))
        round->final = answer;
}

/* ---- nobody takes it ---- */

/* First bytes for people: first bytes 68 65 6c 6c "hell"; the text only if it is some. (owned) */
static char *show_head(const davit_probe_in *in)
{
    const uint64_t n = MIN(in->head_len, 8);
    GString *s = g_string_new("first bytes");
    bool is_text = n > 0;

    for (uint64_t i = 0; i < n; i++) {
        g_string_append_printf(s, " %02x", in->head[i]);
        is_text = is_text && g_ascii_isprint(in->head[i]);
    }
    if (is_text)
        g_string_append_printf(s, " \"%.*s\"", (int)n, (const char *)in->head);
    return g_string_free(s, FALSE);
}

/* Is there a name in the directory whose extension some format lists? */
static bool has_weights(const DavitCheckpoint *ckpt)
{
    for (guint i = 0; i < ckpt->path.names->len; i++) {
        const char *dot = strrchr(g_ptr_array_index(ckpt->path.names, i), '.');

        for (guint f = 0; dot && f < ckpt->formats->len; f++) {
            const char *capability =
                g_array_index(ckpt->formats, DavitFormat, f).capability;

            if (capability && davit_capability_has(capability, "ext", dot + 1))
                return true;
        }
    }
    return false;
}

/* (owned) "org.davit.format.gguf, ...": who declined; "" = nobody did */
static char *list_declined(const Round *round)
{
    GString *who = g_string_new(NULL);

    for (guint i = round->first; i < round->ckpt->asked->len; i++) {
        const DavitAsked *answer = g_ptr_array_index(round->ckpt->asked, i);

        if (answer->verdict == DAVIT_DECLINE)
            g_string_append_printf(who, who->len ? ", %s" : "%s", answer->who);
    }
    return g_string_free(who, FALSE);
}

/* Somebody knows the bytes and refused them; the others are told beside it. */
static void report_others(const Round *round, const char *who, DavitReport *report)
{
    if (!*who)
        return;
    davit_report_add(report, &(DavitFinding){.code = DAVIT_R_ALL_DECLINED,
                                             .stage = "probe",
                                             .subject = round->subject,
                                             .expected = "a format that takes it",
                                             .found = who,
                                             .message = "the other formats declined it"});
}

static void report_declined(const Round *round, const davit_probe_in *in, DavitReport *report)
{
    g_autofree char *who = list_declined(round);
    g_autofree char *head = in->head ? show_head(in) : g_strdup("a directory");
    const bool is_bare = !in->head && !has_weights(round->ckpt);
    g_autofree char *hub_id = is_bare ? davit_hub_id_of(round->ckpt->path.dir) : NULL;

    davit_report_add(
        report,
        &(DavitFinding){.code = DAVIT_R_ALL_DECLINED,
                        .status = DAVIT_E_UNSUPPORTED,
                        .stage = "probe",
                        .subject = round->subject,
                        .expected = "a file of a known format",
                        .found = head,
                        .message = is_bare ? "the directory holds no weights"
                                           : davit_report_text(
                                                 report, "no format recognises it (declined: %s)",
                                                 *who ? who : "none was asked"),
                        .hint = hub_id ? davit_report_text(
                                             report,
                                             "this folder of a hub cache holds snapshots: "
                                             "name one of them, or give the model's id, %s",
                                             hub_id)
                                : is_bare  ? "download the model's weights, too; if "
                                             "they lie in a folder below, name that"
                                : in->head ? "name the model's folder, or a weights file of a "
                                             "format that `davit plugin list` shows; weights of "
                                             "another format are to be saved as safetensors first"
                                           : "name the weights file that is meant, or its folder; "
                                             "weights of a format that `davit plugin list` does "
                                             "not show are to be saved as safetensors first"});
}

static void report_no_plugins(const Round *round, DavitReport *report)
{
    davit_report_add(report,
                     &(DavitFinding){.code = DAVIT_R_NO_PLUGINS,
                                     .status = DAVIT_E_UNSUPPORTED,
                                     .stage = "probe",
                                     .subject = round->subject,
                                     .expected = "a plugin of kind format",
                                     .found = "none",
                                     .message = "no format plugin was found",
                                     .hint = "davit plugin list shows where davit "
                                             "looked"});
}

static void report_nobody(const Round *round, const davit_probe_in *in,
                          DavitReport *report)
{
    bool refused = false;

    if (round->ckpt->formats->len == 0) {
        report_no_plugins(round, report);
        return;
    }
    for (guint i = round->first; i < round->ckpt->asked->len; i++) {
        const DavitAsked *answer = g_ptr_array_index(round->ckpt->asked, i);

        if (answer->verdict != DAVIT_REFUSE)
            continue;
        refused = true;
        davit_report_append(report, answer->records);
    }
    if (round->partial && !refused) {
        refused = true;
        davit_report_add(
            report, &(DavitFinding){.code = DAVIT_R_FORMAT_UNSUPPORTED,
                                    .status = DAVIT_E_UNSUPPORTED,
                                    .stage = "probe",
                                    .who = round->partial->who,
                                    .subject = round->subject,
                                    .message = "the format reads this, but not for what "
                                               "is asked"});
    }
    if (refused) {
        g_autofree char *who = list_declined(round);

        report_others(round, who, report);
    } else {
        report_declined(round, in, report);
    }
}

/* ---- a question from start to end ---- */

static const DavitFormat *ask(Round *round, const davit_probe_in *in, DavitReport *report)
{
    const GArray *formats = round->ckpt->formats;

    round->first = round->ckpt->asked->len;
    for (guint i = 0; i < formats->len && !round->final; i++)
        ask_one(round, &g_array_index(formats, DavitFormat, i), in);
    if (round->final) {
        davit_report_append(report, round->final->records);
        return NULL;
    }
    if (!round->best || (round->refused && round->best_answer->score < SURE)) {
        report_nobody(round, in, report);
        return NULL;
    }
    round->best_answer->chosen = true;
    davit_report_append(report, round->best_answer->records);
    return round->best;
}

const DavitFormat *davit_ask_directory(DavitCheckpoint *ckpt, char **out_entry,
                                       DavitReport *report)
{
    g_autofree char *name = g_path_get_basename(ckpt->path.dir);
    char entry[NAME_MAX + 1] = "";
    Round round = {.ckpt = ckpt, .subject = name};
    const davit_probe_in in = {.struct_size = DAVIT_END(davit_probe_in, out_entry_cap),
                               .purposes = ckpt->purposes,
                               .name = name,
                               .names = (const char *const *)ckpt->path.names->pdata,
                               .n_names = ckpt->path.names->len,
                               .out_entry = entry,
                               .out_entry_cap = sizeof entry};
    const DavitFormat *best = ask(&round, &in, report);

    if (best)
        *out_entry = g_strdup(round.best_entry);
    return best;
}

const DavitFormat *davit_ask_file(DavitCheckpoint *ckpt, const DavitSource *source,
                                  DavitReport *report)
{
    uint8_t head[DAVIT_PROBE_HEAD];
    Round round = {.ckpt = ckpt, .subject = davit_source_name(source)};
    const uint64_t size = davit_source_size(source);
    const davit_probe_in in = {.struct_size = DAVIT_END(davit_probe_in, out_entry_cap),
                               .purposes = ckpt->purposes,
                               .name = round.subject,
                               .head = head,
                               .head_len = MIN(size, sizeof head),
                               .file_size = size};

    if (size == 0) {
        davit_report_add(report, &(DavitFinding){.code = DAVIT_R_EMPTY_FILE,
                                                 .status = DAVIT_E_CORRUPT,
                                                 .stage = "probe",
                                                 .subject = round.subject,
                                                 .found = "0 bytes",
                                                 .message = "the file is empty",
                                                 .hint = "download the file again"});
        return NULL;
    }
    if (davit_source_read(source, 0, head, in.head_len, report))
        return NULL;
    return ask(&round, &in, report);
}
