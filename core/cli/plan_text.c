/* SPDX-License-Identifier: Apache-2.0
 * A plan document as text. Layers whose slots are alike in all that is shown are printed once,
 * so that a model of 60 layers fits a screen. */
#include <stdio.h>
#include <string.h>

#include "cli/plan.h"

#define MOST_LEGS 16u /* that are printed one by one */
#define MOST_REFUSALS 3u /* that are told in front */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "-";
}

static uint64_t number_of(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

char *davit_layers_text(const GArray *layers)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < layers->len;) {
        const uint64_t first = g_array_index(layers, uint64_t, i);
        uint64_t last = first;
        for (i++; i < layers->len && g_array_index(layers, uint64_t, i) == last + 1; i++)
            last++;
        g_string_append_printf(text, "%s%" G_GUINT64_FORMAT, text->len ? "," : "", first);
        if (last > first)
            g_string_append_printf(text, "-%" G_GUINT64_FORMAT, last);
    }
    return g_string_free(text, FALSE);
}

/* ---- one slot ---- */

/* "q8_0/1" without the version that every name of ours has. */
static void append_layout(GString *out, const char *layout)
{
    const size_t n = strlen(layout);
    g_string_append_len(out, layout,
                        n > 2 && strcmp(layout + n - 2, "/1") == 0 ? (gssize)n - 2 : (gssize)n);
}

static char *shape_text(const json_t *slot)
{
    GString *text = g_string_new("[");
    size_t i;
    json_t *n;
    json_array_foreach(json_object_get(slot, "shape"), i, n)
    {
        g_string_append_printf(text, "%s%" JSON_INTEGER_FORMAT, i ? ", " : "",
                               json_integer_value(n));
    }
    g_string_append_c(text, ']');
    return g_string_free(text, FALSE);
}

static char *joined(const json_t *list, const char *between)
{
    GString *text = g_string_new(NULL);
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)(uintptr_t)list, i, one)
    {
        g_string_append_printf(text, "%s%s", i ? between : "", json_string_value(one));
    }
    return g_string_free(text, FALSE);
}

static char *layouts_text(const json_t *slot)
{
    GString *text = g_string_new(NULL);
    size_t i;
    json_t *other;
    append_layout(text, text_of(slot, "stored"));
    json_array_foreach(json_object_get(slot, "also_stored"), i, other)
    {
        g_string_append_c(text, '+');
        append_layout(text, json_string_value(other));
    }
    if (strcmp(text_of(slot, "stored"), text_of(slot, "layout")) != 0) {
        g_string_append(text, " -> ");
        append_layout(text, text_of(slot, "layout"));
    }
    return g_string_free(text, FALSE);
}

/* Everything that the text shows of a slot, without its place. */
static char *slot_text(const json_t *slot)
{
    g_autofree char *shape = shape_text(slot);
    if (json_is_string(json_object_get(slot, "tied_to")))
        return g_strdup_printf("%-14s %-16s is %s", text_of(slot, "slot"), shape,
                               text_of(slot, "tied_to"));
    g_autofree char *layouts = layouts_text(slot);
    g_autofree char *kernels = joined(json_object_get(slot, "kernels"), ", ");
    g_autofree char *transforms = joined(json_object_get(slot, "transforms"), " ");
    g_autofree char *bytes = davit_bytes_text(number_of(slot, "borrowed_bytes") +
                                              number_of(slot, "private_bytes"));
    const bool used = json_is_true(json_object_get(slot, "used"));
    return g_strdup_printf("%-14s %-16s %-16s %-6s %10s  %s%s%s%s", text_of(slot, "slot"),
                           shape, layouts, text_of(slot, "access"), bytes,
                           *kernels ? kernels : used ? "" : "no op reads it",
                           *transforms ? " (" : "", transforms, *transforms ? ")" : "");
}

/* ---- groups ---- */

typedef struct Group {
    char *text;     /* (owned) its slots' lines, the key */
    GArray *layers; /* (owned) uint64_t */
} Group;

static void group_free(void *p)
{
    Group *group = p;
    g_free(group->text);
    g_array_unref(group->layers);
    g_free(group);
}

/* " on disk", " on memdev, disk": where the slots of a group lie when that is not the plan's
 * device alone. (owned) */
static char *places_text(const GPtrArray *places, const char *device)
{
    GString *text = g_string_new(NULL);
    if (places->len == 1 && strcmp(g_ptr_array_index(places, 0), device) == 0)
        return g_string_free(text, FALSE);
    for (guint i = 0; i < places->len; i++)
        g_string_append_printf(text, "%s%s", i ? ", " : " on ",
                               (const char *)g_ptr_array_index(places, i));
    return g_string_free(text, FALSE);
}

static void add_place(GPtrArray *places, const json_t *slot)
{
    const char *device = text_of(slot, "device");
    for (guint i = 0; i < places->len; i++)
        if (strcmp(g_ptr_array_index(places, i), device) == 0)
            return;
    g_ptr_array_add(places, (gpointer)(uintptr_t)device);
}

/* @lines: empty, or slots of the layer, which end up behind where they lie. */
static void end_layer(GPtrArray *groups, GHashTable *by_text, GString *lines, GPtrArray *places,
                      const char *device, uint64_t layer)
{
    if (!lines->len)
        return;
    g_autofree char *where = places_text(places, device);
    g_string_prepend(lines, "\n");
    g_string_prepend(lines, where);
    g_ptr_array_set_size(places, 0);
    Group *group = g_hash_table_lookup(by_text, lines->str);
    if (!group) {
        group = g_new0(Group, 1);
        group->text = g_strdup(lines->str);
        group->layers = g_array_new(FALSE, FALSE, sizeof(uint64_t));
        g_ptr_array_add(groups, group);
        g_hash_table_insert(by_text, group->text, group);
    }
    g_array_append_val(group->layers, layer);
    g_string_truncate(lines, 0);
}

/* Slots come as globals, then layer by layer. */
static GPtrArray *group_layers(const json_t *document, const json_t *slots)
{
    GPtrArray *groups = g_ptr_array_new_with_free_func(group_free);
    g_autoptr(GHashTable) by_text = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GString) lines = g_string_new(NULL);
    g_autoptr(GPtrArray) places = g_ptr_array_new();
    const char *device = text_of(document, "device");
    uint64_t layer = 0;
    size_t i;
    json_t *slot;
    json_array_foreach((json_t *)(uintptr_t)slots, i, slot)
    {
        if (json_is_null(json_object_get(slot, "layer")))
            continue;
        if (number_of(slot, "layer") != layer)
            end_layer(groups, by_text, lines, places, device, layer);
        layer = number_of(slot, "layer");
        g_autofree char *line = slot_text(slot);
        g_string_append_printf(lines, "    %s\n", line);
        add_place(places, slot);
    }
    end_layer(groups, by_text, lines, places, device, layer);
    return groups;
}

/* Does @slot lie where the plan computes? */
static bool on_host(const json_t *document, const json_t *slot)
{
    return strcmp(text_of(slot, "device"), text_of(document, "device")) == 0;
}

static void print_slots(const json_t *document)
{
    const json_t *slots = json_object_get(document, "slots");
    g_autoptr(GPtrArray) groups = group_layers(document, slots);
    size_t i;
    json_t *slot;
    printf("slots (name, shape, stored -> in memory, access, bytes, kernel)\n  whole model\n");
    json_array_foreach((json_t *)(uintptr_t)slots, i, slot)
    {
        if (!json_is_null(json_object_get(slot, "layer")))
            continue;
        g_autofree char *line = slot_text(slot);
        printf("    %s%s%s\n", line, on_host(document, slot) ? "" : "  on ",
               on_host(document, slot) ? "" : text_of(slot, "device"));
    }
    for (guint g = 0; g < groups->len; g++) {
        const Group *group = g_ptr_array_index(groups, g);
        g_autofree char *layers = davit_layers_text(group->layers);
        printf("  %s %s%s%s", group->layers->len > 1 ? "layers" : "layer", layers,
               group->layers->len > 1 ? ", each" : "", group->text);
    }
}

/* ---- the rest ---- */

static void print_files(const json_t *document)
{
    size_t i;
    json_t *file;
    json_array_foreach(json_object_get(document, "files"), i, file)
    {
        g_autofree char *bytes = davit_bytes_text(number_of(file, "bytes"));
        printf("file %s  %s  %" G_GUINT64_FORMAT " tensors\n",
               davit_shown(text_of(file, "name")), bytes, number_of(file, "tensors"));
    }
}

static void print_decisions(const json_t *document)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(document, "decisions"), i, one)
    {
        const json_t *value = json_object_get(one, "value");
        const json_t *effect = json_object_get(one, "effect");
        printf("by your %s%s%s%s%s\n", text_of(one, "flag"), json_is_string(value) ? " " : "",
               json_is_string(value) ? davit_shown(text_of(one, "value")) : "",
               json_is_string(effect) ? ": " : "",
               json_is_string(effect) ? davit_shown(text_of(one, "effect")) : "");
    }
}

static void print_ignored(const json_t *document)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(document, "ignored"), i, one)
    {
        g_autofree char *bytes = davit_bytes_text(number_of(one, "bytes"));
        printf("ignored by rule %s (%s): %zu tensors, %s: %s\n",
               davit_shown(text_of(one, "rule")), text_of(one, "by"),
               json_array_size(json_object_get(one, "tensors")), bytes,
               davit_shown(text_of(one, "reason")));
    }
}

static void print_findings(const json_t *document, const char *key)
{
    const json_t *list = json_object_get(document, key);
    if (json_array_size(list))
        printf("%s: %zu (below)\n", key, json_array_size(list));
}

/* Three digits, as far as they can mean something. */
static char *seconds_text(const json_t *object, const char *key)
{
    const double s = json_real_value(json_object_get(object, key));
    return s < 0.0005 ? g_strdup("0") : g_strdup_printf(s < 1 ? "%.3f" : "%.1f", s);
}

static void print_stages(const json_t *document)
{
    size_t i;
    json_t *stage;
    printf("stages\n");
    json_array_foreach(json_object_get(document, "stages"), i, stage)
    {
        g_autofree char *bytes = davit_bytes_text(number_of(stage, "bytes"));
        if (number_of(stage, "bytes"))
            printf("  %-8s %10s  %s\n", text_of(stage, "stage"), bytes,
                   text_of(stage, "what"));
    }
}

static void print_times(const json_t *document)
{
    const json_t *times = json_object_get(document, "times");
    size_t i;
    json_t *one;
    printf("predicted seconds (nominal speeds; --read-speed GB/S for yours)\n");
    json_array_foreach(json_object_get(times, "sources"), i, one)
    {
        g_autofree char *load = seconds_text(one, "load_seconds");
        g_autofree char *touch = seconds_text(one, "touch_seconds");
        printf("  from %-18s %4.1f GB/s: %s to load, %s more as borrowed weights are first "
               "used\n",
               text_of(one, "from"), json_real_value(json_object_get(one, "gb_s")), load, touch);
    }
}

static void print_memory(const json_t *document)
{
    const json_t *memory = json_object_get(document, "memory");
    g_autofree char *peak = davit_bytes_text(number_of(memory, "peak_host_bytes"));
    g_autofree char *private = davit_bytes_text(number_of(memory, "host_private_bytes"));
    g_autofree char *constant = davit_bytes_text(number_of(memory, "constant_bytes"));
    g_autofree char *window = davit_bytes_text(number_of(memory, "window_bytes"));
    g_autofree char *stacks = davit_bytes_text(number_of(memory, "stack_bytes"));
    g_autofree char *device = davit_bytes_text(number_of(memory, "device_bytes"));
    printf("memory while loading: peak %s on the host = private %s + tables %s + window %s + "
           "stacks %s\n",
           peak, private, constant, window, stacks);
    if (number_of(memory, "budget_bytes")) {
        g_autofree char *resident = davit_bytes_text(number_of(memory, "resident_bytes"));
        g_autofree char *budget = davit_bytes_text(number_of(memory, "budget_bytes"));
        printf("  weights hold at most %s at one time, of a budget of %s\n", resident, budget);
    }
    if (number_of(memory, "device_bytes"))
        printf("  weights and tables on devices: %s\n", device);
    if (json_is_string(json_object_get(memory, "largest_private_slot")))
        printf("  largest private slot: %s\n", text_of(memory, "largest_private_slot"));
    if (json_is_string(json_object_get(memory, "window_set_by")))
        printf("  the window is set by %s: %" G_GUINT64_FORMAT " lanes\n",
               text_of(memory, "window_set_by"), number_of(memory, "lanes"));
}

static void print_placed(const json_t *document)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(document, "placed"), i, one)
    {
        g_autofree char *weights = davit_bytes_text(number_of(one, "weight_bytes"));
        g_autofree char *states = davit_bytes_text(number_of(one, "state_bytes"));
        g_autofree char *step = davit_bytes_text(number_of(one, "step_bytes"));
        g_autofree char *budget = davit_bytes_text(number_of(one, "budget_bytes"));
        printf("place %s: %" G_GUINT64_FORMAT " slots, weights %s", text_of(one, "device"),
               number_of(one, "slots"), weights);
        if (strcmp(text_of(one, "device"), "disk") != 0)
            printf(" + keys and values of %" G_GUINT64_FORMAT " tokens %s + values and scratch %s",
                   number_of(one, "ctx"), states, step);
        printf("%s%s\n", number_of(one, "budget_bytes") ? ", of " : "",
               number_of(one, "budget_bytes") ? budget : "");
    }
}

/* "layers 3 to 5" */
static char *layers_text(const json_t *leg)
{
    const uint64_t first = number_of(leg, "first_layer"), last = number_of(leg, "last_layer");
    if (!json_is_integer(json_object_get(leg, "first_layer")))
        return g_strdup("the embedding or the head");
    return first == last
               ? g_strdup_printf("layer %" G_GUINT64_FORMAT, first)
               : g_strdup_printf("layers %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT, first,
                                 last);
}

static void print_crossing(const json_t *leg, const char *layers, const json_t *one)
{
    g_autofree char *token = davit_bytes_text(number_of(one, "bytes_per_token"));
    g_autofree char *row = davit_bytes_text(number_of(one, "bytes_per_logit_row"));
    const bool per_token = number_of(one, "bytes_per_token") > 0;
    const bool per_row = number_of(one, "bytes_per_logit_row") > 0;
    printf("  %" G_GUINT64_FORMAT " value%s from %s to %s before %s: ", number_of(one, "values"),
           number_of(one, "values") == 1 ? " crosses" : "s cross", text_of(one, "from"),
           text_of(leg, "device"), layers);
    printf("%s%s%s%s%s\n", per_token ? token : "", per_token ? " a token" : "",
           per_token && per_row ? ", " : "", per_row ? row : "",
           per_row ? " a row of logits" : "");
}

/* Of a way with too many legs for a screen. */
static void print_leg_sums(const json_t *legs)
{
    uint64_t values = 0, token = 0, row = 0;
    size_t i, k;
    json_t *leg, *one;
    json_array_foreach(legs, i, leg)
        json_array_foreach(json_object_get(leg, "crossings"), k, one)
        {
            values += number_of(one, "values");
            token += number_of(one, "bytes_per_token");
            row += number_of(one, "bytes_per_logit_row");
        }
    g_autofree char *token_text = davit_bytes_text(token);
    g_autofree char *row_text = davit_bytes_text(row);
    printf("  %zu legs, %" G_GUINT64_FORMAT
           " values cross between them: %s a token, %s a row of logits (--json lists them)\n",
           json_array_size(legs), values, token_text, row_text);
}

/* Nothing where all is on one device. */
static void print_legs(const json_t *document)
{
    const json_t *legs = json_object_get(document, "legs");
    size_t i, k;
    json_t *leg, *one;
    if (json_array_size(legs) < 2)
        return;
    printf("the way of a token\n");
    if (json_array_size(legs) > MOST_LEGS) {
        print_leg_sums(legs);
        return;
    }
    json_array_foreach(legs, i, leg)
    {
        g_autofree char *layers = layers_text(leg);
        json_array_foreach(json_object_get(leg, "crossings"), k, one)
            print_crossing(leg, layers, one);
        printf("  %-10s %s, %" G_GUINT64_FORMAT " calls\n", text_of(leg, "device"), layers,
               number_of(leg, "calls"));
    }
}

/* Why it is refused, in front of all else: the first of @report's errors, and how many there are. */
static void print_refusal(const DavitReport *report)
{
    size_t n = 0;
    puts("run would refuse it:");
    for (size_t i = 0; i < davit_report_count(report); i++) {
        const DavitRecord *r = davit_report_get(report, i);
        if (r->severity != DAVIT_ERROR || ++n > MOST_REFUSALS)
            continue;
        g_autofree char *text = davit_record_sentence(r);
        printf("  %s\n", text);
    }
    if (n > MOST_REFUSALS)
        printf("  and %zu more (below)\n", n - MOST_REFUSALS);
}

void davit_plan_print(const json_t *document, const DavitReport *report, bool all_slots)
{
    const bool runs = json_is_true(json_object_get(document, "runs"));
    const json_t *totals = json_object_get(document, "totals");
    printf("plan of %s: %s from %s on %s, %" G_GUINT64_FORMAT " layers\n",
           davit_shown(text_of(document, "model")), text_of(document, "arch"),
           text_of(document, "format"), text_of(document, "device"),
           number_of(document, "layers"));
    if (number_of(document, "tp") > 1)
        printf("rank %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT "\n",
               number_of(document, "rank"), number_of(document, "tp"));
    if (!runs)
        print_refusal(report);
    print_files(document);
    print_decisions(document);
    if (runs || all_slots)
        print_slots(document);
    else
        printf("slots: %" G_GUINT64_FORMAT " were looked for in the files (-v and --json list them)\n",
               number_of(totals, "slots"));
    print_ignored(document);
    print_findings(document, "missing");
    print_findings(document, "unexpected");
    print_findings(document, "mismatched");
    if (runs || all_slots || number_of(json_object_get(document, "memory"), "budget_bytes")) {
        print_stages(document);
        print_times(document);
        print_memory(document);
    }
    print_placed(document);
    print_legs(document);
    printf("%" G_GUINT64_FORMAT " tensors in %" G_GUINT64_FORMAT " slots, %" G_GUINT64_FORMAT
           " ignored, %" G_GUINT64_FORMAT " tied; run %s\nhash %s\n",
           number_of(totals, "tensors"), number_of(totals, "slots"),
           number_of(totals, "ignored_tensors"), number_of(totals, "tied"),
           runs ? "would load it" : "would refuse it",
           text_of(document, "hash"));
}
