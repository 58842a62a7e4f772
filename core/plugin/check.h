/* SPDX-License-Identifier: Apache-2.0
 * The conformance suite behind `davit plugin check`: tests of one plugin file, each in a probe
 * helper of its own, so that one that crashes costs its test only.
 *
 * A test looks at what every user of the plugin relies on: the rules of davit/plugin.h and of
 * its kind. It cannot prove that numbers are right; that is for the plugin's own tests.
 */
#ifndef DAVIT_PLUGIN_CHECK_H
#define DAVIT_PLUGIN_CHECK_H

#include "plugin/registry_private.h"

typedef struct DavitCheckResult {
    const char *test; /* (static) "entry_twice" */
    const char *what; /* (static) the rule, one sentence */
    bool passed;
    bool skipped;         /* nothing of the kind in this file */
    DavitReport *records; /* (owned) why it failed */
} DavitCheckResult;

/* (owned) DavitCheckResult of every test, in order. @file has passed gates 1 to 4.
 * Returns NULL with a record if there is no helper. */
GPtrArray *davit_check_file(DavitRegistry *registry, DavitPluginFile *file,
                            DavitReport *report);

/* In the helper: run test @index on the loaded @file; false = there is no such test. Findings
 * of severity error fail it; *out_skipped as above. */
bool davit_check_run(size_t index, DavitPluginFile *file, DavitReport *report,
                     bool *out_skipped);

#endif
