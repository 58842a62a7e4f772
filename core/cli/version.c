/* SPDX-License-Identifier: Apache-2.0
 * davit version: build, processor, libraries, plugin directories. */
#include <stdio.h>

#include "base/cpu.h"
#include "cli/commands.h"
#include "engine/libdavit.h"

#include <pcre2.h>

static const char *const examples[] = {"davit version --json", "the same as one JSON document",
                                       NULL};

static const struct {
    uint64_t bit;
    const char *name;
} features[] = {
    {DAVIT_CPU_SSE42, "sse4.2"},         {DAVIT_CPU_AVX, "avx"},
    {DAVIT_CPU_AVX2, "avx2"},            {DAVIT_CPU_FMA, "fma"},
    {DAVIT_CPU_F16C, "f16c"},            {DAVIT_CPU_BMI2, "bmi2"},
    {DAVIT_CPU_AVX512F, "avx512f"},      {DAVIT_CPU_AVX512BW, "avx512bw"},
    {DAVIT_CPU_AVX512DQ, "avx512dq"},    {DAVIT_CPU_AVX512VL, "avx512vl"},
    {DAVIT_CPU_AVX512VNNI, "avx512vnni"}, {DAVIT_CPU_AVX512BF16, "avx512bf16"},
    {DAVIT_CPU_AVXVNNI, "avxvnni"},      {DAVIT_CPU_AVX512VBMI, "avx512vbmi"},
};

static int run(DavitCall *call)
{
    g_autoptr(DavitRegistry) registry = davit_call_registry(call);
    if (!registry)
        return davit_call_exit(call);
    const uint64_t have = davit_cpu_features();
    json_t *cpu = json_array(), *dirs = json_array();
    for (size_t i = 0; i < G_N_ELEMENTS(features); i++)
        if (have & features[i].bit)
            json_array_append_new(cpu, json_string(features[i].name));
    const GPtrArray *searched = davit_registry_dirs(registry);
    for (guint i = 0; i < searched->len; i++)
        json_array_append_new(dirs, davit_json_text(g_ptr_array_index(searched, i)));
    char pcre2[64];
    pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
    g_autofree char *glib = g_strdup_printf("%u.%u.%u", glib_major_version, glib_minor_version,
                                            glib_micro_version);
    g_autofree char *abi = g_strdup_printf("%d.%d", DAVIT_ABI_MAJOR, DAVIT_ABI_MINOR);
    json_object_set_new(call->doc, "version", json_string(davit_version()));
    json_object_set_new(call->doc, "abi", json_string(abi));
    json_object_set_new(call->doc, "build", json_string(DAVIT_BUILD_TAG));
    json_object_set_new(call->doc, "cpu", cpu);
    json_object_set_new(call->doc, "libraries",
                        json_pack("{s:s, s:s, s:s}", "glib", glib, "jansson",
                                  jansson_version_str(), "pcre2", pcre2));
    json_object_set_new(call->doc, "plugin_dirs", dirs);
    if (call->json)
        return DAVIT_EXIT_OK;

    printf("davit %s, plugin ABI %s\nbuild      %s\nprocessor ", davit_version(), abi,
           DAVIT_BUILD_TAG);
    size_t at;
    json_t *item;
    json_array_foreach(cpu, at, item) printf(" %s", json_string_value(item));
    printf("\nlibraries  glib %s, jansson %s, pcre2 %s\n", glib, jansson_version_str(), pcre2);
    json_array_foreach(dirs, at, item) printf("plugins    %s\n", davit_shown(json_string_value(item)));
    return DAVIT_EXIT_OK;
}

const DavitCommand davit_command_version = {
    .name = "version",
    .summary = "print version, processor features, libraries and plugin directories",
    .examples = examples,
    .run = run,
};
