/* SPDX-License-Identifier: Apache-2.0
 * Reading and looking up a device map. */
#include "plan/device_map.h"

#include <string.h>

#include <jansson.h>

#include "base/small_file.h"
#include "plan/devices.h"

#define MAX_MAP_BYTES (4u << 20) /* a map that names every tensor of the largest model */

static void entry_free(void *p)
{
    DavitMapEntry *entry = p;

    g_free(entry->name);
    g_free(entry);
}

void davit_device_map_free(DavitDeviceMap *map)
{
    if (!map)
        return;
    g_free(map->file);
    g_hash_table_unref(map->by_name);
    g_ptr_array_unref(map->entries);
    g_free(map);
}

bool davit_map_entry_is_rest(const DavitMapEntry *entry)
{
    return entry->name[0] == '\0';
}

/* ---- reading ---- */

static const char *subject_of(const DavitDeviceMap *map, const char *key, DavitReport *report)
{
    return davit_report_text(report, "%s: %s", map->file, *key ? key : "\"\"");
}

static void fault(const DavitDeviceMap *map, const char *key, const char *found,
                  const char *message, DavitReport *report)
{
    davit_report_add(
        report,
        &(DavitFinding){.code = DAVIT_R_USAGE,
                        .status = DAVIT_E_USAGE,
                        .stage = "options",
                        .subject = subject_of(map, key, report),
                        .expected = "{\"model.layers.0\": 0, \"lm_head\": \"disk\", \"\": \"cpu\"}",
                        .found = found,
                        .message = message});
}

/* Text of a value as davit_devices_named takes it, NULL = it is none. (owned) */
static char *device_text(const json_t *value)
{
    if (json_is_string(value))
        return g_strdup(json_string_value(value));
    return json_is_integer(value)
               ? g_strdup_printf("%" JSON_INTEGER_FORMAT, json_integer_value(value))
               : NULL;
}

/* Home of @value; NULL after a record. */
static const char *home_of(const DavitDeviceMap *map, const char *key, const json_t *value,
                           const GArray *devices, DavitReport *report)
{
    g_autofree char *text = device_text(value);
    const DavitDevice *device;

    if (!text || !*text) {
        fault(map, key, text ? "\"\"" : "neither a name nor a whole number",
              "the value is not a device", report);
        return NULL;
    }
    if (strcmp(text, "disk") == 0)
        return davit_intern("disk");
    device = davit_devices_named(devices, text);
    if (!device) {
        davit_devices_refuse(devices, subject_of(map, key, report), text, report);
        return NULL;
    }
    return device->name;
}

/* A name ends where a dot or nothing follows: "layers.0." and "a..b" stand for nothing. */
static bool is_module_name(const char *key)
{
    return *key == '\0' ||
           (key[0] != '.' && key[strlen(key) - 1] != '.' && !strstr(key, ".."));
}

static void read_entries(DavitDeviceMap *map, json_t *document, const GArray *devices,
                         DavitReport *report)
{
    const char *key;
    json_t *value;

    json_object_foreach(document, key, value)
    {
        const char *home = home_of(map, key, value, devices, report);
        DavitMapEntry *entry;

        if (!is_module_name(key))
            fault(map, key, NULL, "the name is not a module's: words joined by dots", report);
        if (!home)
            continue;
        entry = g_new0(DavitMapEntry, 1);
        entry->name = g_strdup(key);
        entry->home = home;
        entry->known = !*key;
        g_ptr_array_add(map->entries, entry);
        g_hash_table_insert(map->by_name, entry->name, entry);
    }
}

DavitDeviceMap *davit_device_map_parse(const char *file, const char *text, size_t n,
                                       const GArray *devices, DavitReport *report)
{
    g_autoptr(DavitDeviceMap) map = g_new0(DavitDeviceMap, 1);
    const size_t before = davit_report_count(report);
    json_error_t error;
    json_t *document = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);

    map->file = g_strdup(file);
    map->entries = g_ptr_array_new_with_free_func(entry_free);
    map->by_name = g_hash_table_new(g_str_hash, g_str_equal);
    if (!document)
        fault(map, davit_report_text(report, "line %d", error.line), error.text,
              "the device map is not JSON", report);
    else if (!json_is_object(document) || json_object_size(document) == 0)
        fault(map, "the document", json_is_object(document) ? "{}" : "no object",
              "the device map is not an object of module names and devices", report);
    else
        read_entries(map, document, devices, report);
    json_decref(document);
    return davit_report_count(report) > before ? NULL : g_steal_pointer(&map);
}

DavitDeviceMap *davit_device_map_read(const char *path, const GArray *devices,
                                      DavitReport *report)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *name = g_path_get_basename(path);
    size_t n = 0;
    g_autofree char *text = davit_small_file_read(path, MAX_MAP_BYTES, &n, &error);

    if (text)
        return davit_device_map_parse(name, text, n, devices, report);
    davit_report_add(report, &(DavitFinding){.code = DAVIT_R_IO_FAILED,
                                             .status = DAVIT_E_IO,
                                             .stage = "options",
                                             .subject = path,
                                             .expected = "auto, or a JSON file of at most 4 MiB",
                                             .found = error->message,
                                             .message = "the device map could not be read"});
    return NULL;
}

/* ---- looking up ---- */

DavitMapEntry *davit_device_map_find(const DavitDeviceMap *map, const char *name)
{
    g_autofree char *above = g_strdup(name);
    DavitMapEntry *best = NULL;

    for (;;) {
        DavitMapEntry *entry = *above ? g_hash_table_lookup(map->by_name, above) : NULL;
        char *dot = strrchr(above, '.');

        if (entry)
            entry->known = true;
        best = best ? best : entry;
        if (!dot)
            break;
        *dot = '\0';
    }
    return best ? best : g_hash_table_lookup(map->by_name, "");
}
