/* SPDX-License-Identifier: Apache-2.0
 * The two documents: what is accepted, what is refused and by which path. */
#include <string.h>

#include <glib.h>

#include "config/document.h"

/* ---- helpers ---- */

typedef int32_t (*Parse)(const char *text, DavitReport *report);

static int32_t offload(const char *text, DavitReport *report)
{
    DavitOffloadConfig c;
    int32_t status = davit_offload_parse(text, strlen(text), &c, report);

    if (!status)
        status = davit_offload_check_built(&c, report);
    davit_offload_clear(&c);
    return status;
}

static int32_t speculative(const char *text, DavitReport *report)
{
    DavitSpeculativeConfig c;
    int32_t status = davit_speculative_parse(text, strlen(text), &c, report);

    if (!status)
        status = davit_speculative_check_built(&c, report);
    davit_speculative_clear(&c);
    return status;
}

typedef struct Row {
    const char *text;
    int32_t status;
    const char *subject;  /* end of the first error's subject */
    const char *expected; /* part of it; NULL = not compared */
    const char *message;  /* part of it */
} Row;

static void check_row(Parse parse, const Row *row)
{
    g_autoptr(DavitReport) report = davit_report_new();
    const int32_t status = parse(row->text, report);
    const DavitRecord *r = davit_report_first_error(report, 0);

    if (status != row->status)
        g_test_message("%s", row->text);
    g_assert_cmpint(status, ==, row->status);
    if (row->status == DAVIT_OK) {
        g_assert_null(r);
        return;
    }
    if (!g_str_has_suffix(r->subject, row->subject))
        g_test_message("%s: %s", row->text, r->subject);
    g_assert_true(g_str_has_suffix(r->subject, row->subject));
    g_assert_nonnull(strstr(r->message, row->message));
    if (row->expected)
        g_assert_nonnull(strstr(r->expected, row->expected));
    g_assert_cmpuint(r->code, ==,
                     row->status == DAVIT_E_USAGE ? DAVIT_R_USAGE
                                                  : DAVIT_R_FLAG_UNSUPPORTED);
}

#define OK DAVIT_OK
#define U  DAVIT_E_USAGE
#define N  DAVIT_E_UNSUPPORTED
#define P  "vllm_cpp.placement."

/* ---- offload ---- */

static void offload_rows(void)
{
    static const Row rows[] = {
        {"{}", OK, NULL, NULL, NULL},
        {"{\"offload_backend\":null,\"uva\":null}", OK, NULL, NULL, NULL},
        {"{\"uva\":{\"cpu_offload_gb\":0,\"cpu_offload_params\":[]}}", OK, NULL, NULL, NULL},
        {"{\"vllm_cpp\":{\"mmap\":{\"enabled\":true},\"placement\":{\"overrides\":[]}}}", OK,
         NULL, NULL, NULL},
        {"[]", U, "document", "one JSON object", ""},
        {"{\"a\":1,\"a\":2}", U, "document", NULL, ""},
        {"{\"uvaa\":{}}", U, ": uvaa", "offload_backend, uva, prefetch, vllm_cpp", "unknown"},
        {"{\"uva\":{\"cpu_offload_gbs\":1}}", U, ": uva.cpu_offload_gbs",
         "cpu_offload_gb, cpu_offload_params", "unknown"},
        {"{\"uva.cpu_offload_gb\":1}", U, ": uva.cpu_offload_gb", NULL, "unknown"},
        {"{\"vllm_cpp\":{\"placement\":{\"x\":1}}}", U, P "x", "overrides, cpu_moe", "unknown"},
        {"{\"uva\":1}", U, ": uva", "an object", "wrong type"},
        {"{\"offload_backend\":\"gpu\"}", U, "offload_backend", "auto|uva|prefetch", ""},
        {"{\"uva\":{\"cpu_offload_gb\":-1}}", U, "cpu_offload_gb", "at least 0", "range"},
        {"{\"uva\":{\"cpu_offload_gb\":\"1\"}}", U, "cpu_offload_gb", NULL, "wrong type"},
        {"{\"uva\":{\"cpu_offload_params\":[\"\"]}}", U, "params", NULL, "wrong type"},
        {"{\"uva\":{\"cpu_offload_params\":\"x\"}}", U, "params", NULL, "wrong type"},
        {"{\"prefetch\":{\"offload_group_size\":1.5}}", U, "group_size", "whole", "wrong"},
        {"{\"prefetch\":{\"offload_num_in_group\":0}}", U, "num_in_group", "at least 1", ""},
        {"{\"prefetch\":{\"offload_group_size\":2,\"offload_num_in_group\":3}}", U,
         "num_in_group", "at most offload_group_size, 2", "range"},
        {"{\"prefetch\":{\"offload_group_size\":2,\"offload_prefetch_step\":0}}", U,
         "prefetch_step", "at least 1", "range"},
        {"{\"prefetch\":{\"offload_group_size\":0,\"offload_prefetch_step\":0}}", OK, NULL,
         NULL, NULL},
        {"{\"vllm_cpp\":{\"expert_stream\":{\"slots\":0}}}", U, "slots", "at least 1", ""},
        {"{\"vllm_cpp\":{\"mmap\":{\"enabled\":1}}}", U, "mmap.enabled", "true or false", ""},
        {"{\"vllm_cpp\":{\"placement\":{\"n_cpu_moe\":10001}}}", U, "n_cpu_moe", "10000", ""},
        {"{\"vllm_cpp\":{\"placement\":{\"overrides\":[1]}}}", U, "overrides[0]", NULL, ""},
        {"{\"vllm_cpp\":{\"placement\":{\"overrides\":[{\"pattern\":\"(\",\"device\":\"cpu\"}]"
         "}}}", U, "overrides[0].pattern", NULL, "does not compile"},
        {"{\"vllm_cpp\":{\"placement\":{\"overrides\":[{\"pattern\":\"x\",\"device\":\"cuda\"}"
         "]}}}", U, "overrides[0].device", "cpu", "no target"},
        {"{\"vllm_cpp\":{\"placement\":{\"overrides\":[{\"pattern\":\"x\",\"device\":\"cpu\","
         "\"z\":1}]}}}", U, "overrides[0].z", "pattern, device", "unknown"},
        {"{\"vllm_cpp\":{\"placement\":{\"overrides\":[{\"device\":\"cpu\"}]}}}", U,
         "overrides[0].pattern", NULL, "wrong type"},
        {"{\"vllm_cpp\":{\"placement\":{\"fit\":true,\"cpu_moe\":true}}}", U, P "fit", NULL,
         "exclude"},
        {"{\"uva\":{\"cpu_offload_gb\":1.5}}", N, "uva.cpu_offload_gb", NULL, "known, not"},
        {"{\"prefetch\":{\"offload_group_size\":2}}", N, "offload_group_size", NULL, "known"},
        {"{\"vllm_cpp\":{\"mmap\":{\"enabled\":false}}}", N, "mmap.enabled", NULL, "known"},
        {"{\"vllm_cpp\":{\"expert_stream\":{\"enabled\":true}}}", N, "enabled", NULL, "known"},
        {"{\"vllm_cpp\":{\"placement\":{\"n_cpu_moe\":2}}}", N, "n_cpu_moe", NULL, "known"},
        {"{\"vllm_cpp\":{\"placement\":{\"overrides\":[{\"pattern\":\"x\",\"device\":\"cpu\"}]"
         "}}}", N, "overrides", NULL, "known"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        check_row(offload, &rows[i]);
}

static void offload_values(void)
{
    static const char text[] =
        "{\"offload_backend\":\"prefetch\",\"uva\":{\"cpu_offload_gb\":2.5},"
        "\"prefetch\":{\"offload_group_size\":8,\"offload_num_in_group\":2,"
        "\"offload_prefetch_step\":3},\"vllm_cpp\":{\"expert_stream\":{\"slot_bytes\":7},"
        "\"device_fit\":{\"weight_budget_bytes\":0}}}";
    g_autoptr(DavitReport) report = davit_report_new();
    DavitOffloadConfig c;

    g_assert_cmpint(davit_offload_parse(text, strlen(text), &c, report), ==, DAVIT_OK);
    g_assert_cmpstr(c.backend, ==, "prefetch");
    g_assert_cmpfloat(c.cpu_offload_gb, ==, 2.5);
    g_assert_cmpint(c.group_size, ==, 8);
    g_assert_cmpint(c.num_in_group, ==, 2);
    g_assert_cmpint(c.prefetch_step, ==, 3);
    g_assert_cmpint(c.slots, ==, 64); /* the default */
    g_assert_cmpint(c.slot_bytes, ==, 7);
    g_assert_cmpint(c.weight_budget_bytes, ==, 0);
    g_assert_null(c.overrides); /* absent is not the same as empty */
    /* uva's field beside the backend prefetch: told, not refused */
    g_assert_cmpuint(davit_report_count(report), ==, 1);
    g_assert_cmpint(davit_report_get(report, 0)->severity, ==, DAVIT_WARNING);
    davit_offload_clear(&c);
}

/* One look at a document tells all of its mistakes. */
static void all_findings_at_once(void)
{
    g_autoptr(DavitReport) report = davit_report_new();

    g_assert_cmpint(offload("{\"x\":1,\"uva\":{\"y\":2,\"cpu_offload_gb\":-1}}", report), ==,
                    DAVIT_E_USAGE);
    g_assert_cmpuint(davit_report_count(report), ==, 3);
}

/* ---- speculative ---- */

static void speculative_rows(void)
{
    static const Row rows[] = {
        {"{}", OK, NULL, NULL, NULL},
        {"{\"method\":null}", U, "method", "mtp|dflash", "missing"},
        {"{\"methods\":\"mtp\"}", U, ": methods", "method, num_speculative_tokens", "unknown"},
        {"{\"method\":\"eagle\"}", U, "method", "mtp|dflash|dspark|ngram|draft_model", ""},
        {"{\"method\":\"ngram\"}", U, "num_speculative_tokens", "ngram", "missing"},
        {"{\"method\":\"mtp\",\"num_speculative_tokens\":0}", U, "tokens", "at least 1", ""},
        {"{\"method\":\"draft_model\"}", U, "model", NULL, "missing"},
        {"{\"method\":\"ngram\",\"num_speculative_tokens\":3,\"prompt_lookup_min\":6,"
         "\"prompt_lookup_max\":4}", U, "prompt_lookup_min", "prompt_lookup_max, 4", "range"},
        {"{\"method\":\"mtp\",\"draft_sample_method\":\"random\"}", U, "draft_sample_method",
         "greedy", ""},
        {"{\"method\":\"mtp\",\"rejection_sample_method\":\"x\"}", U,
         "rejection_sample_method", "standard", ""},
        {"{\"method\":\"mtp\",\"enforce_eager\":true}", N, "enforce_eager", NULL, "known, not"},
        {"{\"method\":\"mtp\",\"suffix_decoding_max_tree_depth\":1}", N,
         "suffix_decoding_max_tree_depth", NULL, "known, not"},
        {"{\"vllm_cpp\":{\"drafter_chains\":[]}}", U, "vllm_cpp.drafter_chains",
         "drafter_chain", "unknown"},
        {"{\"vllm_cpp\":{\"drafter_chain\":[{\"method\":\"draft_model\"}]}}", U,
         "drafter_chain[0].method", "mtp|dflash|dspark|ngram", ""},
        {"{\"vllm_cpp\":{\"drafter_chain\":[{\"x\":1}]}}", U, "drafter_chain[0].x", NULL,
         "unknown"},
        {"{\"vllm_cpp\":{\"drafter_chain\":[3]}}", U, "drafter_chain", "objects", ""},
        {"{\"vllm_cpp\":{\"drafter_chain\":[{\"method\":\"mtp\"}]}}", N, "drafter_chain", NULL,
         "known, not"},
        {"{\"method\":\"mtp\"}", N, "method", NULL, "known, not"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        check_row(speculative, &rows[i]);
}

static void speculative_values(void)
{
    static const char text[] =
        "{\"method\":\"ngram\",\"num_speculative_tokens\":4,\"prompt_lookup_max\":7}";
    g_autoptr(DavitReport) report = davit_report_new();
    DavitSpeculativeConfig c;

    g_assert_cmpint(davit_speculative_parse(text, strlen(text), &c, report), ==, DAVIT_OK);
    g_assert_cmpstr(c.method, ==, "ngram");
    g_assert_cmpint(c.n_tokens, ==, 4);
    g_assert_cmpint(c.lookup_max, ==, 7);
    g_assert_cmpint(c.lookup_min, ==, 7);
    davit_speculative_clear(&c);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/document/offload_rows", offload_rows);
    g_test_add_func("/document/offload_values", offload_values);
    g_test_add_func("/document/all_findings_at_once", all_findings_at_once);
    g_test_add_func("/document/speculative_rows", speculative_rows);
    g_test_add_func("/document/speculative_values", speculative_values);
    return g_test_run();
}
