/* SPDX-License-Identifier: Apache-2.0
 * Device maps: what a file may say, which slot goes where, what is not split; layers that a budget
 * leaves on disk. Devices here are rows of a table, no component has to be there. */
#include "plan/device_map.h"

#include <string.h>

#include "plan/devices.h"
#include "plan/homes.h"
#include "plan/place.h"
#include "plan/test_model.h"

/* cpu, fake and two of several. (owned) */
static GArray *make_devices(void)
{
    static const struct {
        const char *name, *kind;
        uint64_t index;
    } rows[] = {{"cpu", "cpu", 0}, {"fake", "fake", 0}, {"many:0", "many", 0},
                {"many:1", "many", 1}};
    GArray *out = g_array_new(FALSE, TRUE, sizeof(DavitDevice));

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        const DavitDevice device = {.name = davit_intern(rows[i].name),
                                    .kind = davit_intern(rows[i].kind),
                                    .index = rows[i].index};
        g_array_append_val(out, device);
    }
    return out;
}

static DavitDeviceMap *parse(const char *text, DavitReport *report)
{
    g_autoptr(GArray) devices = make_devices();

    return davit_device_map_parse("map.json", text, strlen(text), devices, report);
}

/* ---- the file ---- */

static void devices_are_found_by_name_and_number(void)
{
    g_autoptr(GArray) devices = make_devices();
    static const struct {
        const char *text, *name;
    } rows[] = {{"cpu", "cpu"},     {"cpu:0", "cpu"},     {"fake", "fake"}, {"fake:0", "fake"},
                {"0", "fake"},      {"1", "many:0"},      {"2", "many:1"},  {"many", "many:0"},
                {"many:1", "many:1"}, {"3", NULL},        {"fake:1", NULL}, {"fak", NULL},
                {"fakes", NULL},    {"many:", NULL},      {"many:+1", NULL}, {":0", NULL},
                {"-1", NULL},       {"18446744073709551616", NULL}};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        const DavitDevice *d = davit_devices_named(devices, rows[i].text);

        g_assert_cmpstr(d ? d->name : NULL, ==, rows[i].name);
    }
}

static void longest_name_counts(void)
{
    g_autoptr(DavitReport) report = davit_report_new();
    g_autoptr(DavitDeviceMap) map =
        parse("{\"\": \"cpu\", \"a.b\": 0, \"a.b.c\": \"disk\", \"a.bc\": \"many:0\"}", report);
    static const struct {
        const char *name, *entry;
    } rows[] = {{"a.b.c.weight", "a.b.c"}, {"a.b.cd", "a.b"}, {"a.b", "a.b"}, {"a.bc.d", "a.bc"},
                {"a", ""}, {"x.y", ""}, {".b", ""}, {".", ""}, {"", ""}};

    g_assert_nonnull(map);
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        g_assert_cmpstr(davit_device_map_find(map, rows[i].name)->name, ==, rows[i].entry);
}

/* Every fault is told, and no map comes out. */
static void faults_of_the_file(void)
{
    static const struct {
        const char *text;
        size_t n_records;
        uint32_t code; /* of the last */
    } rows[] = {
        {"", 1, DAVIT_R_USAGE},
        {"[]", 1, DAVIT_R_USAGE},
        {"{}", 1, DAVIT_R_USAGE},
        {"{\"a\": 0, \"a\": 1}", 1, DAVIT_R_USAGE}, /* a name twice */
        {"{\"a\": true, \"b\": 1.5, \"c\": null, \"d\": {}, \"e\": \"\"}", 5, DAVIT_R_USAGE},
        {"{\"a.\": \"cpu\", \".b\": \"cpu\", \"c..d\": \"disk\"}", 3, DAVIT_R_USAGE},
        {"{\"a\": \"cuda:0\", \"b\": 7, \"c\": \"meta\"}", 3, DAVIT_R_DEVICE_MISSING},
        {"{\"a\": \"many:1\", \"b\": \"many:2\"}", 1, DAVIT_R_DEVICE_MISSING},
        {"{\"a\": -1}", 1, DAVIT_R_DEVICE_MISSING},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(DavitReport) report = davit_report_new();
        g_autoptr(DavitDeviceMap) map = parse(rows[i].text, report);

        g_assert_null(map);
        g_assert_cmpuint(davit_report_count(report), ==, rows[i].n_records);
        g_assert_cmpuint(davit_report_get(report, rows[i].n_records - 1)->code, ==,
                         rows[i].code);
    }
}

/* ---- slots ---- */

typedef struct Mapped {
    TestModel *m;
    DavitDeviceMap *map;
    DavitPlan *plan; /* NULL if it was refused */
} Mapped;

static void mapped_clear(Mapped *x)
{
    davit_plan_free(x->plan);
    davit_device_map_free(x->map);
    test_model_free(x->m);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Mapped, mapped_clear)

/* The tiny decoder, without its head if @tied, planned with the map @text. */
static Mapped plan_mapped(const char *text, bool tied, DavitDtypeChoice dtype)
{
    g_autofree TestTensor *tensors = g_memdup2(test_tiny, test_tiny_count * sizeof *test_tiny);
    Mapped x = {0};

    for (size_t i = 0; tied && i < test_tiny_count; i++) {
        if (strcmp(tensors[i].name, "lm_head.weight") == 0)
            tensors[i].name = NULL;
    }
    x.m = test_model_new(test_tiny_config, tensors, test_tiny_count);
    x.map = parse(text, x.m->report);
    g_assert_nonnull(x.map);
    x.m->tools.map = x.map;
    x.m->options.device_map = "map.json";
    x.m->options.dtype = dtype;
    x.m->options.force_tie = tied;
    x.plan = test_model_plan(x.m);
    return x;
}

static const DavitSlot *slot_of(const DavitPlan *plan, const char *id, int64_t layer)
{
    for (size_t i = 0; i < plan->n_slots; i++) {
        if (strcmp(plan->slots[i].id, id) == 0 && plan->slots[i].layer == layer)
            return &plan->slots[i];
    }
    g_assert_not_reached();
}

static void layers_stay_on_disk(void)
{
    g_auto(Mapped) x =
        plan_mapped("{\"\": \"cpu\", \"model.layers.1\": \"disk\", \"lm_head\": \"disk\", "
                    "\"model.layers.0.mlp.up_proj.weight\": \"disk\", \"model.rotary_emb\": \"cpu\"}",
                    false, DAVIT_DTYPE_STORED);

    g_assert_nonnull(x.plan);
    g_assert_cmpint(slot_of(x.plan, "attn.q", 1)->way, ==, DAVIT_WAY_DEFER);
    g_assert_cmpint(slot_of(x.plan, "attn.q", 0)->way, ==, DAVIT_WAY_BORROW);
    g_assert_cmpint(slot_of(x.plan, "head", -1)->way, ==, DAVIT_WAY_DEFER);
    /* layer 0 holds norms [4], q k v [4,4] F32 and two BF16 [6,4]; layer 1 comes and goes whole,
     * globals are kept in the sum, and so is what is in memory of layer 0 */
    g_assert_cmpuint(x.plan->resident_bytes, ==,
                     x.plan->peak_bytes + 2 * 128 + (3 * 64 + 48) + (3 * 64 + 2 * 48));
    /* a vector is made into float32 and stays */
    g_assert_cmpint(slot_of(x.plan, "attn.norm", 1)->way, ==, DAVIT_WAY_STREAM);
    g_assert_cmpstr(slot_of(x.plan, "attn.norm", 1)->home, ==, "cpu");
}

static void tied_head_goes_with_the_embedding(void)
{
    g_auto(Mapped) x = plan_mapped("{\"\": \"cpu\", \"model.embed_tokens\": \"disk\"}", true,
                                   DAVIT_DTYPE_STORED);

    g_assert_nonnull(x.plan);
    g_assert_cmpstr(slot_of(x.plan, "head", -1)->home, ==, "disk");
    g_assert_cmpint(slot_of(x.plan, "head", -1)->tied_to, >=, 0);
}

static void refusals_of_a_map(void)
{
    static const struct {
        const char *text;
        bool tied;
        DavitDtypeChoice dtype;
        const char *code, *subject, *found;
    } rows[] = {
        {"{\"\": \"cpu\", \"model.layer.0\": \"disk\"}", false, DAVIT_DTYPE_STORED, "usage",
         "map.json: model.layer.0", NULL},
        {"{\"\": \"cpu\", \"model.layers.2\": \"disk\"}", false, DAVIT_DTYPE_STORED, "usage",
         "map.json: model.layers.2", NULL},
        {"{\"model.layers\": \"cpu\", \"model.norm\": \"cpu\", \"lm_head\": 0}", false,
         DAVIT_DTYPE_STORED, "usage", "map.json: embed", NULL},
        {"{\"\": \"cpu\", \"model.layers.1.mlp\": 0}", false, DAVIT_DTYPE_STORED, "ambiguous",
         "layer 1", "\"\": cpu, \"model.layers.1.mlp\": fake"},
        {"{\"\": \"disk\", \"model.layers.1.mlp\": 0}", false, DAVIT_DTYPE_STORED, "ambiguous",
         "layer 1", "\"\": disk, \"model.layers.1.mlp\": fake"},
        {"{\"\": \"cpu\", \"lm_head\": 0}", true, DAVIT_DTYPE_STORED, "ambiguous", "head",
         "\"lm_head\": fake, \"\": cpu"},
        {"{\"\": \"cpu\", \"model.layers.0\": \"disk\"}", false, DAVIT_DTYPE_F32,
         "flag-unsupported", "ffn.up of layer 0", "decode: another type, by --dtype"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(Mapped) x = plan_mapped(rows[i].text, rows[i].tied, rows[i].dtype);
        const DavitRecord *r = test_find(x.m, rows[i].code, rows[i].subject);

        g_assert_null(x.plan);
        g_assert_nonnull(r);
        if (rows[i].found)
            g_assert_cmpstr(r->found, ==, rows[i].found);
    }
}

/* ---- a budget ---- */

typedef struct Golden {
    DavitRegistry *registry;
    DavitCheckpoint *checkpoint;
    DavitSettings *settings;
    DavitReport *report;
} Golden;

static void golden_clear(Golden *g)
{
    davit_settings_free(g->settings);
    davit_checkpoint_free(g->checkpoint);
    davit_registry_free(g->registry);
    davit_report_free(g->report);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Golden, golden_clear)

static Golden open_golden(const char *model)
{
    const DavitRegistryOptions where = {.builtin_dir = DAVIT_PLUGIN_DIR, .only_paths = true};
    g_autofree char *path = g_build_filename(DAVIT_SOURCE_DIR, "tests/golden/models", model, NULL);
    Golden g = {.report = davit_report_new()};

    g.registry = davit_registry_open(&where, g.report);
    g.checkpoint = davit_checkpoint_open(g.registry, path, DAVIT_MAP, g.report);
    g_assert_nonnull(g.checkpoint);
    g.settings = davit_settings_open(g.checkpoint, g.report);
    g_assert_nonnull(g.settings);
    return g;
}

/* Layers that are deferred: the last ones, or none. */
static uint64_t count_deferred(const DavitPlan *plan)
{
    uint64_t first = plan->n_layers;

    for (size_t i = 0; i < plan->n_slots; i++) {
        if (plan->slots[i].way == DAVIT_WAY_DEFER)
            first = MIN(first, (uint64_t)plan->slots[i].layer);
    }
    for (size_t i = 0; i < plan->n_slots; i++)
        g_assert_true(plan->slots[i].access != DAVIT_ACCESS_BORROW ||
                      plan->slots[i].layer < (int64_t)first || plan->slots[i].layer < 0 ||
                      plan->slots[i].way == DAVIT_WAY_DEFER);
    return plan->n_layers - first;
}

/* From the budget of everything down to the least in small steps: never more than it, and never
 * a layer more on disk than one that would fit. */
static void budget_keeps_what_fits(gconstpointer map)
{
    g_auto(Golden) g = open_golden("gemma3");
    DavitPlanOptions options = {.purposes = DAVIT_MAP | DAVIT_RUN,
                                .n_lanes = 1,
                                .n_threads = 2,
                                .device_map = map,
                                .memory_bytes = map ? 1ull << 40 : 0,
                                .ctx = 32};
    g_autoptr(DavitPlan) all =
        davit_plan_make(g.registry, g.checkpoint, g.settings, &options, g.report);
    uint64_t last = 0, n_kinds = 0, budget;

    g_assert_nonnull(all);
    g_assert_cmpuint(all->n_layers, >=, 3);
    g_assert_true(map ? all->beside_bytes > 0 : all->beside_bytes == 0);
    for (budget = all->resident_bytes + all->beside_bytes;; budget -= 256) {
        g_autoptr(DavitReport) said = davit_report_new();
        g_autoptr(DavitPlan) plan = NULL;
        uint64_t n;

        options.memory_bytes = budget;
        plan = davit_plan_make(g.registry, g.checkpoint, g.settings, &options, said);
        if (!plan)
            break;
        n = count_deferred(plan);
        g_assert_cmpuint(plan->resident_bytes + plan->beside_bytes, <=, budget);
        g_assert_cmpuint(n, >=, last);
        n_kinds += n != last;
        last = n;
    }
    g_assert_cmpuint(last, ==, all->n_layers);
    g_assert_cmpuint(n_kinds, >=, 2); /* some kept, some not */
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/device-map/devices", devices_are_found_by_name_and_number);
    g_test_add_func("/device-map/longest-name", longest_name_counts);
    g_test_add_func("/device-map/faults", faults_of_the_file);
    g_test_add_func("/device-map/disk", layers_stay_on_disk);
    g_test_add_func("/device-map/tied", tied_head_goes_with_the_embedding);
    g_test_add_func("/device-map/refusals", refusals_of_a_map);
    g_test_add_data_func("/device-map/budget", NULL, budget_keeps_what_fits);
    g_test_add_data_func("/device-map/budget-auto", "auto", budget_keeps_what_fits);
    return g_test_run();
}
