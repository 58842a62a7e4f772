/* SPDX-License-Identifier: Apache-2.0
 * Manifest notes through gate 3 and policy. Input: one note a line, the first byte of a
 * line is the note's type ('1' bundle, '2' component, '3' refusal), the rest its text. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "plugin/policy.h"

static void judge(const DavitManifest *m, DavitReport *report)
{
    davit_policy_file(m, false, "fuzz.so", report);
    davit_version_compare(m->version, "1.2.3-rc.1");
    for (size_t i = 0; i < m->components->len; i++) {
        const DavitManifestComponent *c = g_ptr_array_index(m->components, i);

        davit_policy_component(c, false, false, "fuzz.so", report);
        davit_capability_has(c->capability, "hf", "LlamaForCausalLM");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(GArray) notes = g_array_new(FALSE, FALSE, sizeof(DavitElfNote));
    g_autoptr(DavitManifest) m = NULL;

    for (size_t at = 0; at < size;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        const size_t n = end ? (size_t)(end - (data + at)) : size - at;

        if (n > 0) {
            const DavitElfNote note = {.type = (uint32_t)(data[at] - '0'),
                                       .n_text = (uint32_t)(n - 1),
                                       .text = (const char *)data + at + 1};

            g_array_append_val(notes, note);
        }
        at += n + 1;
    }
    m = davit_manifest_read(notes, "fuzz.so", report);
    g_assert(m || davit_report_failed(report));
    if (m)
        judge(m, report);
    return 0;
}
