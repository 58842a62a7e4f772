/* SPDX-License-Identifier: Apache-2.0
 * D47: the weights are loaded as `davit run` would load them, and what that moved and took is held
 * against what the plan said. Then they are let go. */
#include "doctor/doctor_private.h"
#include "exec/budget.h"
#include "plan/speed.h"

#define SLOW 4 /* times the prediction, and */
#define LONG 1 /* seconds above it: worth a word */

static bool forward(void *ctx, uint64_t done, uint64_t total)
{
    DavitDoctor *d = ctx;
    const DavitDoctorOptions *o = d->options;

    if (o->progress && !o->progress(o->progress_ctx, done, MAX(total, done)))
        d->stopped = true;
    return !d->stopped;
}

/* Seconds at nominal speeds; *out_gb_s = that of reading, for what was cached. */
static double predict(const DavitLoadStats *s, const DavitPlan *plan, double *out_gb_s)
{
    const double in = s->probed_pages ? (double)s->cached_pages / (double)s->probed_pages : 0;
    const DavitLoadBytes bytes = {.read = plan->read_bytes + s->compared_bytes,
                                  .copy = s->copied_bytes,
                                  .pack = s->packed_bytes,
                                  .decode = s->decoded_bytes,
                                  .n_threads = s->n_lanes};

    *out_gb_s = 1 / (in / davit_read_speeds[DAVIT_READ_CACHED].gb_s +
                     (1 - in) / davit_read_speeds[DAVIT_READ_DISK].gb_s);
    return davit_load_seconds(&bytes, *out_gb_s);
}

static const char *bound(const DavitLoadStats *s)
{
    return s->read_bytes == 0                    ? "nothing, they stay in the file"
           : s->read_seconds >= s->make_seconds ? "reading"
                                                : "converting";
}

static void judge(DavitDoctor *d, const DavitPlan *plan, const DavitLoadStats *s)
{
    const uint64_t made = s->copied_bytes + s->packed_bytes + s->decoded_bytes;
    const bool equal = s->borrowed_bytes == plan->borrowed_bytes &&
                       s->read_bytes == plan->read_bytes && made == plan->made_bytes &&
                       s->private_bytes == plan->private_bytes;
    g_autofree char *in_place = davit_doctor_bytes(s->borrowed_bytes);
    g_autofree char *read = davit_doctor_bytes(s->read_bytes);
    double gb_s;
    const double seconds = predict(s, plan, &gb_s);

    davit_doctor_fact(d, "D47",
                      "%s in place, %s read, %s; %.2f s, %.2f s predicted at %.1f GB/s; bound by "
                      "%s",
                      in_place, read, equal ? "every byte as planned" : "not as planned",
                      s->seconds, seconds, gb_s, bound(s));
    if (!equal)
        davit_doctor_say(
            d, "D47",
            &(DavitFinding){
                .severity = DAVIT_WARNING,
                .subject = "bytes",
                .expected = davit_doctor_text(d, "%" PRIu64 " read, %" PRIu64 " written",
                                              plan->read_bytes, plan->made_bytes),
                .found = davit_doctor_text(d, "%" PRIu64 " read, %" PRIu64 " written",
                                           s->read_bytes, made),
                .message = "the load moved other bytes than its plan says",
                .hint = "this is a fault of davit: report it with davit plan --json"});
    if (s->seconds > SLOW * seconds + LONG)
        davit_doctor_say(d, "D47",
                         &(DavitFinding){.severity = DAVIT_NOTE,
                                         .subject = bound(s),
                                         .expected = davit_doctor_text(d, "%.1f s", seconds),
                                         .found = davit_doctor_text(d, "%.1f s", s->seconds),
                                         .message = "the load took far longer than its bytes "
                                                    "at nominal speeds",
                                         .hint = "D27 to D31 tell what the disk can do"});
}

static void load_as_run(DavitDoctor *d, const DavitPlan *plan)
{
    const DavitLoadOptions options = {.progress = forward, .ctx = d};
    g_autoptr(DavitReport) said = davit_report_new();
    g_autoptr(DavitWeights) weights = NULL;
    DavitLoadStats stats;

    if (davit_budget_check(plan, said)) {
        davit_doctor_skip(d, "D47", "memory for the weights (D24)");
        return;
    }
    weights = davit_weights_load(plan, &options, said);
    if (weights) {
        davit_weights_stats(weights, &stats);
        judge(d, plan, &stats);
    } else if (d->stopped) {
        davit_doctor_skip(d, "D47", "a pass that is not stopped");
    } else {
        davit_report_append(davit_doctor_of(d, "D47")->findings, said);
    }
}

void davit_check_load(DavitDoctor *doctor)
{
    const DavitPatient *p = &doctor->patient;
    const DavitPlanOptions options = {.purposes = DAVIT_MAP | DAVIT_RUN,
                                      .force_tie = doctor->options->tie,
                                      .force_untie = doctor->options->no_tie,
                                      .quant_allow = doctor->options->quant_allow,
                                      .kv_dtype = doctor->options->kv_dtype,
                                      .ignore = doctor->options->ignore};
    g_autoptr(DavitReport) aside = davit_report_new(); /* other checks tell what is wrong */
    g_autoptr(DavitPlan) plan = NULL;

    if (!doctor->options->deep) {
        davit_doctor_skip(doctor, "D47", "--deep");
        return;
    }
    if (!doctor->stopped && p->checkpoint && p->settings)
        plan = davit_plan_make(p->registry, p->checkpoint, p->settings, &options, aside);
    if (plan)
        load_as_run(doctor, plan);
    else
        davit_doctor_skip(doctor, "D47", "a model that this build can run");
}
