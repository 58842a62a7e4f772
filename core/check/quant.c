/* SPDX-License-Identifier: Apache-2.0
 * Quant layouts: modules of unknown parts, modules that make no sense. */
#include "check/suite.h"

#define N_MODULES 6000

static void claim_nonsense(Check *check, DavitComponent *c)
{
    const davit_quant_iface *iface = c->load->iface;
    const davit_tensor_info info = {.struct_size = DAVIT_END(davit_tensor_info, file),
                                    .name = "block.nonsense_7",
                                    .dtype = "org.example.never/1",
                                    .rank = 5};
    const davit_quant_part_in part = {
        .struct_size = DAVIT_END(davit_quant_part_in, reserved),
        .suffix = "nonsense_7",
        .info = &info,
        .dtype = info.dtype,
        .rank = info.rank};
    const davit_quant_part_in *parts[] = {&part};
    const davit_quant_module module = {.struct_size = DAVIT_END(davit_quant_module, want_rank),
                                       .name = "block",
                                       .parts = parts,
                                       .n_parts = 1};
    davit_verdict verdict = {.struct_size = DAVIT_END(davit_verdict, flags)};
    g_autoptr(DavitReport) said = davit_report_new();
    DavitSink sink;
    int32_t status;

    davit_sink_init(&sink, said, c->id, "claim");
    check_step(check, "claim");
    status = iface->claim(c->load->self, &module, &verdict, &sink.abi);
    if (status < 0 || verdict.verdict != DAVIT_DECLINE)
        check_fail(check, c->id, "a module of unknown parts", "DECLINE",
             davit_report_text(check->report, "status %d, verdict %u", status,
                               verdict.verdict),
             "a quant plugin leaves what it does not know");
}

void check_quant_claim(Check *check)
{
    check_each(check, DAVIT_KIND_ID_QUANT, claim_nonsense);
}

static void damage_modules(Check *check, DavitComponent *c)
{
    davit_test *t = check_library(check, c, c->load->self);

    check->subject = "claim, check, verify, decode";
    check_step(check, "check");
    davit_test_quant_broken(t, (uint64_t)N_MODULES * check->repeat);
    test_drop(t);
}

void check_quant_damage(Check *check)
{
    check_each(check, DAVIT_KIND_ID_QUANT, damage_modules);
}
