/* SPDX-License-Identifier: Apache-2.0
 * What several plugin commands print: components and files as JSON, purposes, gates.
 */
#ifndef DAVIT_CLI_PLUGIN_SHOW_H
#define DAVIT_CLI_PLUGIN_SHOW_H

#include "cli/command.h"

#define DAVIT_N_PURPOSES 4
extern const char *const davit_purpose_names[DAVIT_N_PURPOSES]; /* bit i is name i */

/* (owned) all below */
json_t *davit_show_purposes(uint64_t purposes);
json_t *davit_show_records(const DavitReport *report);
json_t *davit_show_strings(const GPtrArray *strings);
/* With "not_served": a reason for each purpose that the component does not serve. */
json_t *davit_show_component(const DavitComponent *component);
/* @full: exports, libraries, gates, probe and the rest of `inspect`. */
json_t *davit_show_file(const DavitPluginFile *file, bool full);

/* Why @component does not serve the purpose of bit @index: the record, or NULL when it does
 * not claim the purpose at all. @out_served: it does serve it. */
const DavitRecord *davit_show_not_served(const DavitComponent *component, size_t index,
                                         bool *out_served);

/* The record that explains a state: an error, else the first. NULL = nothing to say. */
const DavitRecord *davit_show_reason(const DavitComponent *component);

/* (owned) one line of at most @max bytes for a column: "R401 forward-absent: message". */
char *davit_show_note(const DavitRecord *record, size_t max);

/* The records of a report as blocks of lines. */
void davit_show_print(const DavitReport *report);

/* A registry in which @file (NULL = none) is listed too; what is wrong with that file stays
 * with it. NULL after an error. */
DavitRegistry *davit_show_registry(DavitCall *call, const char *file);
/* @word means no component and no file: usage error that says what to give. */
int davit_show_unknown(DavitCall *call, const char *word);
/* Is @word a path rather than an id? */
bool davit_show_is_path(const char *word);
/* The file that @word (path, bundle id or component id) means, or NULL. */
DavitPluginFile *davit_show_find(const DavitRegistry *registry, const char *word);

#endif
