/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as a template; whatever parses is rendered with variables of every
 * type under small limits. Behind a zero byte, the rest is the messages' JSON. Registered in
 * tests/fuzz/CMakeLists.txt. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "template/template.h"

static const char messages[] =
    "[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"h\xc3\xa9\\n<b>\"},"
    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"name\":\"f\",\"arguments\":"
    "{\"a\":[1,2.5,true,null]}}]},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}]";

#define VAR(name_, json_) {.name = name_, .json = json_, .len = sizeof json_ - 1, .trusted = true}

static void check_output(const DavitRendered *out)
{
    g_assert_true(g_utf8_validate(out->text, (gssize)out->len, NULL) ||
                  memchr(out->text, 0, out->len));
    for (size_t i = 0; i < out->len; i++)
        g_assert_true(out->untrusted[i] <= 1);
    for (size_t i = 0; i < out->n_generation; i++)
        g_assert_true(out->generation[i].start <= out->generation[i].end &&
                      out->generation[i].end <= out->len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *zero = memchr(text, 0, size);
    const size_t n = zero ? (size_t)(zero - text) : size;
    const DavitTemplateVar vars[] = {
        {.name = "messages",
         .json = zero ? zero + 1 : messages,
         .len = zero ? size - n - 1 : sizeof messages - 1,
         .messages = true},
        VAR("s", "\"Hello W\xc3\xb6rld\""),
        VAR("l", "[3,1,2]"),
        VAR("d", "{\"b\":1,\"a\":[\"x\"]}"),
        VAR("n", "7"),
        VAR("f", "2.5"),
        VAR("t", "true"),
        VAR("tools", "null")};
    const DavitTemplateArgs args = {.vars = vars,
                                    .n_vars = G_N_ELEMENTS(vars),
                                    .fixed_clock = true,
                                    .now = 1700000000,
                                    .max_output = 1u << 16,
                                    .max_memory = 8u << 20,
                                    .max_steps = 200000};
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitTemplate) t = davit_template_parse(text, n, "fuzz", report);
    DavitRendered out = {0};

    if (!t || davit_template_render(t, &args, &out, report)) {
        g_assert_true(davit_report_failed(report));
        g_assert_null(out.text);
        return 0;
    }
    g_assert_false(davit_report_failed(report));
    check_output(&out);
    davit_rendered_clear(&out);
    return 0;
}
