/* SPDX-License-Identifier: Apache-2.0
 * Slots looked up in a device map by the names of their stored tensors, and by the name that the
 * Hugging Face model has for them where the file calls them otherwise (GGUF, other prefixes) or
 * holds nothing of theirs (a tied head). */
#include "plan/homes.h"

#include <string.h>

#define MAX_TOLD 8u /* records of one kind; a wrong map has hundreds */

bool davit_home_is_disk(const char *home)
{
    return home && strcmp(home, "disk") == 0;
}

const char *davit_home_device(const char *home)
{
    return davit_home_is_disk(home) ? davit_intern("cpu") : home;
}

const char **davit_homes_of_layers(const DavitPlan *plan)
{
    const char **out = g_new(const char *, plan->n_layers + 1);

    for (uint64_t i = 0; i <= plan->n_layers; i++)
        out[i] = davit_intern(plan->device);
    for (size_t s = plan->n_slots; s-- > 0;) { /* the first slot of a layer counts */
        const DavitSlot *slot = &plan->slots[s];
        const bool global = slot->layer < 0 || (uint64_t)slot->layer >= plan->n_layers;

        if (slot->home)
            out[global ? plan->n_layers : (uint64_t)slot->layer] =
                davit_home_device(slot->home);
    }
    return out;
}

/* ---- names ---- */

/* The first alternative of @hf without transforms and marks: "mlp.experts.0.down_proj". */
static void append_hf_name(GString *out, const char *hf, int64_t layer)
{
    const size_t n = strcspn(hf, "#|!");

    for (size_t i = 0; i < n; i++) {
        if (strncmp(hf + i, "{i}", 3) == 0) {
            g_string_append_printf(out, "%" PRId64, MAX(layer, 0));
            i += 2;
        } else {
            g_string_append_c(out, hf[i] == '*' ? '0' : hf[i]);
        }
    }
}

/* The name of @slot in a Hugging Face model of its kind; the head stands beside the text stack.
 * False if the table has none. */
static bool hf_name(const DavitSlot *slot, GString *out)
{
    if (!slot->row.hf)
        return false;
    g_string_assign(out, strncmp(slot->row.hf, "lm_head", 7) == 0 ? "" : "model.");
    if (slot->layer >= 0 && !strstr(slot->row.hf, "{i}"))
        g_string_append_printf(out, "layers.%" PRId64 ".", slot->layer);
    append_hf_name(out, slot->row.hf, slot->layer);
    return true;
}

/* ---- one slot ---- */

typedef struct Homes {
    DavitDraft *draft;
    DavitPlan *plan;
    const DavitDeviceMap *map;
    GString *name;
    uint64_t n_uncovered, n_split;
} Homes;

static const char *slot_text(const Homes *h, const DavitSlot *slot)
{
    return slot->layer < 0 ? slot->id
                           : davit_report_text(h->draft->report, "%s of layer %" PRId64, slot->id,
                                               slot->layer);
}

/* Whichever says more than "everything". */
static DavitMapEntry *better(DavitMapEntry *stored, DavitMapEntry *hf)
{
    return stored && (!davit_map_entry_is_rest(stored) || !hf) ? stored : hf;
}

static void split(Homes *h, const char *subject, const char *expected,
                  const DavitMapEntry *a, const DavitMapEntry *b)
{
    DavitReport *report = h->draft->report;

    if (h->n_split++ >= MAX_TOLD)
        return;
    davit_report_add(
        report,
        &(DavitFinding){.code = DAVIT_R_AMBIGUOUS,
                        .status = DAVIT_E_UNSUPPORTED,
                        .stage = "plan",
                        .subject = subject,
                        .expected = expected,
                        .found = davit_report_text(report, "\"%s\": %s, \"%s\": %s", a->name,
                                                   a->home, b->name, b->home),
                        .message = "the device map splits what cannot be split",
                        .hint = "give both entries the same device, or name what holds both"});
}

/* The entry for all stored tensors of @slot; NULL if it has none, or no entry covers one. */
static DavitMapEntry *stored_entry(Homes *h, const DavitSlot *slot, DavitMapEntry *hf)
{
    DavitMapEntry *first = NULL;

    for (size_t s = 0; s < slot->n_sources; s++) {
        const DavitModule *m = slot->sources[s].module;

        for (uint32_t p = 0; p < m->desc->n_parts; p++) {
            const davit_tensor_info *t = davit_checkpoint_tensor(
                h->plan->checkpoint, m->tensor[m->desc->parts[p].index]);
            DavitMapEntry *entry = better(davit_device_map_find(h->map, t->name), hf);

            if (!entry)
                return NULL;
            if (first && first->home != entry->home) {
                split(h, slot_text(h, slot), "one device for what one weight is made of", first,
                      entry);
                return first;
            }
            first = first ? first : entry;
        }
    }
    return first;
}

static void uncovered(Homes *h, const DavitSlot *slot)
{
    if (h->n_uncovered++ >= MAX_TOLD)
        return;
    davit_report_add(h->draft->report,
                     &(DavitFinding){.code = DAVIT_R_USAGE,
                                     .status = DAVIT_E_USAGE,
                                     .stage = "plan",
                                     .subject = davit_report_text(h->draft->report, "%s: %s",
                                                                  h->map->file,
                                                                  slot_text(h, slot)),
                                     .expected = davit_report_text(
                                         h->draft->report, "an entry above %s", h->name->str),
                                     .message = "the device map does not say where it goes",
                                     .hint = "\"\": \"cpu\" stands for all that is not named"});
}

/* Returns the entry that counts, or NULL. */
static DavitMapEntry *place_slot(Homes *h, DavitSlot *slot)
{
    DavitMapEntry *hf = NULL, *entry;

    g_string_truncate(h->name, 0);
    if (hf_name(slot, h->name))
        hf = davit_device_map_find(h->map, h->name->str);
    entry = slot->n_sources ? stored_entry(h, slot, hf) : hf;
    if (!entry && slot->present)
        uncovered(h, slot);
    slot->home = entry ? entry->home : NULL;
    return entry;
}

/* ---- what belongs together ---- */

/* A tied head has no bytes of its own: it goes with the embedding unless it is named. */
static void place_tied(Homes *h, DavitSlot *slot, DavitMapEntry *own, DavitMapEntry *owner)
{
    if (own && owner && !davit_map_entry_is_rest(own) && own->home != owner->home)
        split(h, slot_text(h, slot), "the device of the embedding, whose bytes it shares", own,
              owner);
    slot->home = h->plan->slots[slot->tied_to].home;
}

static void check_layers(Homes *h, DavitMapEntry *const *entries)
{
    g_autofree DavitMapEntry **first = g_new0(DavitMapEntry *, h->plan->n_layers + 1);
    g_autofree bool *told = g_new0(bool, h->plan->n_layers + 1);

    for (size_t s = 0; s < h->plan->n_slots; s++) {
        const int64_t layer = h->plan->slots[s].layer;
        const bool global = layer < 0 || (uint64_t)layer >= h->plan->n_layers;

        if (global || !entries[s] || told[layer])
            continue;
        if (first[layer] &&
            davit_home_device(first[layer]->home) != davit_home_device(entries[s]->home)) {
            told[layer] = true;
            split(h, davit_report_text(h->draft->report, "layer %" PRId64, layer),
                  "one device that computes a layer, whose residual sum is there", first[layer],
                  entries[s]);
        }
        first[layer] = first[layer] ? first[layer] : entries[s];
    }
}

/* ---- names of the map ---- */

/* Modules that hold no weights, and stand in Transformers' own maps. */
static bool has_no_weights(const char *name)
{
    const char *dot = strrchr(name, '.');

    return strcmp(dot ? dot + 1 : name, "rotary_emb") == 0;
}

static void refuse_unknown(Homes *h)
{
    uint64_t n = 0;

    for (guint i = 0; i < h->map->entries->len; i++) {
        const DavitMapEntry *entry = g_ptr_array_index(h->map->entries, i);

        if (entry->known || has_no_weights(entry->name) || n++ >= MAX_TOLD)
            continue;
        davit_report_add(
            h->draft->report,
            &(DavitFinding){.code = DAVIT_R_USAGE,
                            .status = DAVIT_E_USAGE,
                            .stage = "plan",
                            .subject = davit_report_text(h->draft->report, "%s: %s", h->map->file,
                                                         entry->name),
                            .expected = davit_report_text(
                                h->draft->report, "a module of the model, like %s", h->name->str),
                            .message = "the device map names a module that the model does not have",
                            .hint = "davit inspect MODEL lists the tensors; a module is the name "
                                    "without its last word"});
    }
    if (n > MAX_TOLD)
        davit_report_add(h->draft->report,
                         &(DavitFinding){.code = DAVIT_R_USAGE,
                                         .status = DAVIT_E_USAGE,
                                         .stage = "plan",
                                         .subject = h->map->file,
                                         .found = davit_report_text(h->draft->report,
                                                                    "%" PRIu64 " more",
                                                                    n - MAX_TOLD),
                                         .message = "the device map names more modules that the "
                                                    "model does not have"});
}

/* The tensors that no slot takes may be named too. */
static void know_stored(Homes *h)
{
    for (size_t t = 0; t < davit_checkpoint_n_tensors(h->plan->checkpoint); t++)
        davit_device_map_find(h->map, davit_checkpoint_tensor(h->plan->checkpoint, t)->name);
}

static void place_all(Homes *h)
{
    const size_t n = h->plan->n_slots;
    g_autofree DavitMapEntry **entries = g_new0(DavitMapEntry *, n + 1);

    for (size_t s = 0; s < n; s++) {
        if (h->plan->slots[s].present)
            entries[s] = place_slot(h, &h->plan->slots[s]);
    }
    for (size_t s = 0; s < n; s++) {
        DavitSlot *slot = &h->plan->slots[s];

        if (slot->tied_to >= 0)
            place_tied(h, slot, entries[s], entries[slot->tied_to]);
    }
    check_layers(h, entries);
    know_stored(h);
    g_string_assign(h->name, "model.layers.0");
    refuse_unknown(h);
}

void davit_homes_set(DavitDraft *draft)
{
    DavitPlan *plan = draft->plan;
    Homes h = {.draft = draft, .plan = plan, .map = draft->tools->map};

    if (draft->tools->homes) {
        for (size_t s = 0; s < plan->n_slots; s++)
            plan->slots[s].home = draft->tools->homes[s];
        return;
    }
    if (!h.map || plan->n_slots == 0)
        return;
    h.name = g_string_new(NULL);
    place_all(&h);
    g_string_free(h.name, TRUE);
}
