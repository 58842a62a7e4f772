/* SPDX-License-Identifier: Apache-2.0
 * The conformance suite behind `davit plugin check`: tests of one plugin file, each in a probe
 * helper of its own, so that one that crashes costs its test only. Here: the list of tests and
 * the parent's side; the tests themselves are in core/check, which only the helper links.
 *
 * A test looks at what every user of the plugin relies on: the rules of davit/plugin.h and of
 * its kind, also with damaged input and a host that runs out of memory. It cannot prove that
 * numbers are right; that is for the plugin's own tests.
 */
#ifndef DAVIT_PLUGIN_CHECK_H
#define DAVIT_PLUGIN_CHECK_H

#include "plugin/registry_private.h"

/* X(NAME, "the rule, one sentence"), in the order in which they run. What does not pass the
 * first is not tested further. */
#define DAVIT_CHECKS(X)                                                                   \
    X(loads, "every component passes all gates and an instance is made")                  \
    X(one_export, "the entry is the only exported symbol")                                \
    X(no_side_effect, "loading and start leave the process as it was")                    \
    X(entry_pure, "the entry gives one pointer, to older and newer hosts alike")          \
    X(create_destroy, "instances come and go a hundred times")                            \
    X(strange_host, "create answers a host without suites, and a later one")              \
    X(memory, "the host's memory comes back to it, and nothing else does")                \
    X(memory_fails, "any allocation may fail: a record, no crash, nothing lost")          \
    X(refusals, "static refusals have a known code, subject, message and hint")           \
    X(claims, "the capability names what the interface declares")                         \
    X(format_probe, "noise and strange directories are declined, twice alike")            \
    X(format_threads, "probes at the same time answer as one alone")                      \
    X(format_damage, "cut and changed files are read soundly or refused with a record")   \
    X(tokenizer_scan, "pieces ascend, cover the text, and do not depend on the batch")    \
    X(tokenizer_classes, "the same where Unicode classes begin and end; cuts cut pieces") \
    X(quant_claim, "modules of unknown parts are declined")                               \
    X(quant_damage, "modules that make no sense are refused with a record")               \
    X(kernel_entries, "entries have op, name, run, and names of their own")               \
    X(kernel_damage, "check and size answer calls that make no sense")                    \
    X(kernel_values, "entries come near the reference, however tasks are split")          \
    X(arch_names, "architectures name models, and build where they claim run")            \
    X(arch_tables, "settings and slots parse, with symbols that exist")                   \
    X(arch_damage, "settings that make no sense are refused with a record")

typedef struct DavitCheckOptions {
    uint64_t seed;               /* of the random inputs */
    unsigned repeat;             /* times as many of them; 1 = the usual number */
    const char *const *samples;  /* files to cut and change: of the plugin's format, or a
                                  * config.json of its architecture; NULL-terminated, may be
                                  * NULL */
} DavitCheckOptions;

typedef struct DavitCheckResult {
    const char *test; /* (static) "entry_pure" */
    const char *what; /* (static) the rule, one sentence */
    bool passed;
    bool skipped;         /* nothing of the kind in this file */
    DavitReport *records; /* (owned) why it failed */
} DavitCheckResult;

/* (owned) DavitCheckResult of every test, in order. @file has passed gates 1 to 4.
 * Returns NULL with a record if there is no helper. */
GPtrArray *davit_check_file(DavitRegistry *registry, DavitPluginFile *file,
                            const DavitCheckOptions *options, DavitReport *report);

#endif
