/* SPDX-License-Identifier: Apache-2.0
 * Architectures: tables that parse, settings that make no sense. A plan without weights
 * (core/plan/outline.h) asks everything of a plugin that a plan with weights asks. */
#include "check/suite.h"

#include <string.h>

#include "config/expr.h"
#include "plan/outline.h"
#include "plan/table.h"

#define N_CONFIGS 300

static void look_at_arch(Check *check, DavitComponent *c)
{
    const davit_arch_iface *iface = c->load->iface;

    if (!iface->hf && !iface->model_types && !iface->gguf)
        check_fail(check, c->id, "hf, model_types, gguf", "at least one name", "none",
             "no model can ask for it");
    if ((c->purposes & DAVIT_RUN) && !iface->build)
        check_fail(check, c->id, "build", "a function, with DAVIT_RUN among the purposes", "NULL",
             "what cannot run must not claim it: DAVIT_REFUSES says forward-absent");
}

void check_arch_names(Check *check)
{
    check_each(check, DAVIT_KIND_ID_ARCH, look_at_arch);
}

/* ---- tables ---- */

/* Row @i of the settings, NULL past the last; rows may be longer or shorter than ours. */
static const davit_config_row *config_row(const davit_arch_iface *arch, size_t i)
{
    static davit_config_row row;
    const uint64_t stride = arch->config_stride ? arch->config_stride : sizeof row;

    memset(&row, 0, sizeof row);
    if (arch->config)
        memcpy(&row, (const uint8_t *)arch->config + i * stride, MIN(stride, sizeof row));
    return row.sym ? &row : NULL;
}

typedef struct Symbols {
    const davit_arch_iface *arch;
    char unknown[64]; /* the last one that there is not */
} Symbols;

/* Every symbol has a value that most numbers divide. */
static bool look_up(void *ctx, const char *sym, int64_t *out)
{
    Symbols *symbols = ctx;
    const davit_config_row *row;

    *out = 322560;
    if (strcmp(sym, "i") == 0)
        return true;
    for (size_t i = 0; (row = config_row(symbols->arch, i)) != NULL; i++)
        if (strcmp(row->sym, sym) == 0)
            return true;
    g_strlcpy(symbols->unknown, sym, sizeof symbols->unknown);
    return false;
}

/* Symbols that there are, and a syntax; not values, which depend on the model. */
static void parse_list(Check *check, Symbols *symbols, const char *slot, const char *text)
{
    g_autoptr(DavitReport) said = davit_report_new();
    const DavitScope scope = {look_up, symbols};
    const DavitRecord *r;
    int64_t values[8];

    symbols->unknown[0] = '\0';
    if (davit_expr_list(text, &scope, slot, values, G_N_ELEMENTS(values), said) >= 0)
        return;
    r = davit_report_first_error(said, 0);
    if (symbols->unknown[0])
        check_fail(check, NULL, slot, "a symbol of the settings", symbols->unknown,
                   "an expression of the slots uses a symbol that the settings lack");
    else if (r && strstr(r->message, "parse"))
        check_fail(check, NULL, slot, r->expected, text, "an expression does not parse");
}

static void read_tables(Check *check, DavitComponent *c)
{
    const davit_arch_iface *arch = c->load->iface;
    Symbols symbols = {.arch = arch};

    check_step(check, "tables");
    for (int gguf = 0; gguf < 2; gguf++) {
        g_autoptr(DavitReport) said = davit_report_new();
        g_autoptr(GArray) table = davit_table_read(arch, gguf, said);

        if (!table) {
            davit_report_append(check->report, said);
            return;
        }
        for (guint r = 0; gguf == 0 && r < table->len; r++) {
            const DavitTableRow *row = &g_array_index(table, DavitTableRow, r);

            parse_list(check, &symbols, row->row.id, row->row.shape);
            if (row->row.when)
                parse_list(check, &symbols, row->row.id, row->row.when);
        }
    }
}

void check_arch_tables(Check *check)
{
    check_each(check, DAVIT_KIND_ID_ARCH, read_tables);
}

/* ---- settings ---- */

/* Spelling of a row that stands at the top of config.json, NULL if it has none. (owned) */
static char *top_key(const davit_config_row *row)
{
    g_auto(GStrv) names = g_strsplit(row->json ? row->json : "", "|", -1);

    return names[0] && *names[0] && !strchr(names[0], '.') ? g_strdup(names[0]) : NULL;
}

/* (owned) a value of the row's type that a small model may have. */
static json_t *plain_value(const davit_config_row *row)
{
    static const struct {
        const char *sym;
        json_int_t value;
    } usual[] = {{"V", 64}, {"L", 2},   {"H", 32},  {"nh", 4},      {"nkv", 2},
                 {"hd", 8}, {"I", 48},  {"E", 4},   {"k", 2},       {"max_pos", 64}};

    if (strncmp(row->type, "bool", 4) == 0)
        return json_false();
    if (strncmp(row->type, "float", 5) == 0)
        return json_real(1);
    if (strncmp(row->type, "str", 3) == 0 && row->bound)
        return json_stringn(row->bound, strcspn(row->bound, "|"));
    for (size_t i = 0; i < G_N_ELEMENTS(usual); i++)
        if (strcmp(usual[i].sym, row->sym) == 0)
            return json_integer(usual[i].value);
    return json_integer(4);
}

/* (owned) Names of the model and a plain value for every setting without a default. */
static json_t *plain_config(const davit_arch_iface *arch)
{
    g_auto(GStrv) classes = g_strsplit(arch->hf ? arch->hf : "Nobody", "|", -1);
    g_auto(GStrv) types = g_strsplit(arch->model_types ? arch->model_types : "nobody", "|", -1);
    json_t *config = json_pack("{s:[s], s:s}", "architectures", classes[0], "model_type", types[0]);
    const davit_config_row *row;

    for (size_t i = 0; (row = config_row(arch, i)) != NULL; i++) {
        g_autofree char *key = top_key(row);

        if (key && row->type && (!row->absent || !*row->absent))
            json_object_set_new(config, key, plain_value(row));
    }
    return config;
}

static const json_int_t odd_numbers[] = {0,  1,          -1,          3,          7,         255,
                                         100000, G_MAXINT32, G_MAXUINT32, G_MAXINT64, G_MININT64};
#define N_ODD (G_N_ELEMENTS(odd_numbers) + 7)

/* (owned) value @i < N_ODD that no model should have. */
static json_t *odd_value(size_t i)
{
    switch (i) {
    case 0: return json_null();
    case 1: return json_string("nonsense");
    case 2: return json_pack("[i, i]", 1, 2);
    case 3: return json_pack("{s:i}", "a", 1);
    case 4: return json_real(-0.5);
    case 5: return json_real(1e300);
    case 6: return json_true();
    default: return json_integer(odd_numbers[i - 7]);
    }
}

/* What a plan with weights asks beside what one without asks. */
static void ask_check(Check *check, DavitComponent *c, const DavitSettings *settings)
{
    const davit_arch_iface *arch = c->load->iface;
    g_autoptr(DavitReport) said = davit_report_new();
    g_autoptr(davit_config) config = davit_config_bind(settings, arch, said);
    DavitSink sink;

    if (!config || !arch->check)
        return;
    davit_sink_init(&sink, said, c->id, "check");
    check_step(check, "check");
    if (arch->check(c->load->self, config, &sink.abi) < 0 && sink.n_errors == 0)
        check_fail(check, NULL, "check", "a record with the negative status", "none",
                   "settings are refused without a reason");
}

static void plan_with(Check *check, DavitComponent *c, const json_t *config)
{
    g_autoptr(DavitReport) said = davit_report_new();
    g_autoptr(DavitSettings) settings = NULL;
    g_autoptr(DavitPlan) plan = NULL;
    char *text = json_dumps(config, JSON_COMPACT);

    if (text)
        settings = davit_settings_parse(text, strlen(text), NULL, 0, "config.json", said);
    free(text);
    if (!settings)
        return;
    ask_check(check, c, settings);
    check_step(check, "build");
    plan = davit_plan_outline(check->file->load->registry, settings, said);
    if (!plan && !davit_report_failed(said))
        check_fail(check, NULL, "build", "a plan or a record", "neither",
                   "settings are refused without a reason");
}

/* Each setting in turn absent, and each odd value. */
static void damage_one(Check *check, DavitComponent *c, const json_t *base)
{
    const davit_config_row *row;

    for (size_t r = 0; (row = config_row(c->load->iface, r)) != NULL; r++) {
        g_autofree char *key = top_key(row);

        for (size_t i = 0; key && i <= N_ODD; i++) {
            json_t *config = json_deep_copy(base);

            if (i == N_ODD)
                json_object_del(config, key);
            else
                json_object_set_new(config, key, odd_value(i));
            plan_with(check, c, config);
            json_decref(config);
        }
    }
}

/* Two or three at once. */
static void damage_some(Check *check, DavitComponent *c, const json_t *base)
{
    const davit_arch_iface *arch = c->load->iface;
    davit_test *t = test_adopt(&(davit_component){0}, NULL, check->seed);
    size_t n_rows = 0;

    while (config_row(arch, n_rows))
        n_rows++;
    for (unsigned i = 0; n_rows && i < N_CONFIGS * check->repeat; i++) {
        json_t *config = json_deep_copy(base);

        for (uint64_t k = davit_test_between(t, 2, 3); k > 0; k--) {
            g_autofree char *key =
                top_key(config_row(arch, davit_test_between(t, 0, n_rows - 1)));

            if (key)
                json_object_set_new(config, key, odd_value(davit_test_between(t, 0, N_ODD - 1)));
        }
        plan_with(check, c, config);
        json_decref(config);
    }
    test_drop(t);
}

static void damage_config(Check *check, DavitComponent *c, const json_t *base)
{
    plan_with(check, c, base);
    damage_one(check, c, base);
    damage_some(check, c, base);
}

static void damage_configs(Check *check, DavitComponent *c)
{
    json_t *plain = plain_config(c->load->iface);

    damage_config(check, c, plain);
    json_decref(plain);
    for (size_t i = 0; check->samples[i]; i++) {
        json_t *config = json_load_file(check->samples[i], JSON_ALLOW_NUL, NULL);

        if (json_is_object(config))
            damage_config(check, c, config);
        else
            check_fail(check, NULL, check->samples[i], "a config.json", "something else",
                       "a sample cannot be read");
        json_decref(config);
    }
}

void check_arch_damage(Check *check)
{
    check_each(check, DAVIT_KIND_ID_ARCH, damage_configs);
}
