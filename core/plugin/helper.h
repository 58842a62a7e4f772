/* SPDX-License-Identifier: Apache-2.0
 * Gate 5: the probe helper. A plugin file that was never seen runs in a child process first,
 * so that a crash, a hang or an exit() costs that process and is a record here.
 *
 * The child is the program davit-probe (helper_main.c). It gets the file's path and writes
 * lines to descriptor 3: "=WHAT WHO" before each step, and at the end one JSON object:
 *   {"status", "records": [...], "ms": {"dlopen", "entry", "start"}, "skipped": bool}
 * What the plugin prints goes to another pipe and is kept, cut to DAVIT_HELPER_OUTPUT bytes.
 *
 *   what the child did                       record              remembered as
 *   died of a signal                         crashed             quarantine
 *   no step for DAVIT_HELPER_STEP_S seconds  timeout             quarantine for a day
 *   ended without its object                 exited-early        quarantine
 *   an object that does not parse            bad-report          quarantine
 *   killed from outside                      out-of-memory       nothing
 *   reported a refusal                       as it says          shown, asked again next time
 *   reported success                         -                   loaded without it from now on
 */
#ifndef DAVIT_PLUGIN_HELPER_H
#define DAVIT_PLUGIN_HELPER_H

#include "plugin/registry_private.h"

#define DAVIT_HELPER_STEP_S 5    /* wall-clock seconds for one step */
#define DAVIT_HELPER_TEST_S 20   /* the same for one of a test, which says "again" meanwhile */
#define DAVIT_HELPER_OUTPUT 4096 /* bytes of the plugin's own output that are kept */

/* Called once per file, after gates 1 to 4 and before it is loaded into this process.
 * Returns: DAVIT_OK if the file may be loaded here. [the loader's lock is held] */
int32_t davit_helper_probe(DavitPluginFile *file, DavitReport *report);

/* The same, whatever is remembered. */
int32_t davit_helper_probe_again(DavitPluginFile *file, DavitReport *report);

/* Part of gate 4: fill file->probe from the cache; a file in quarantine gets its records and
 * the state QUARANTINED; components that their own bytes made refused get theirs and REFUSED. */
void davit_helper_recall(DavitPluginFile *file);

/* (owned) the helper program for davit's own plugin directory @builtin_dir (may be NULL):
 * beside it, or below the directory of libdavit. NULL = there is none. */
char *davit_helper_find(const char *builtin_dir);

/* Run a test of check.h on @file in a helper; what is wrong goes to @report. @words: what the
 * helper's command line says behind the file, NULL-terminated. */
void davit_helper_test(DavitPluginFile *file, const char *const *words, DavitReport *report,
                       bool *out_skipped);

/* Runs the test that @words ask for on the loaded @file. Findings of severity error fail it;
 * *out_skipped: there was nothing to look at. */
typedef void (*DavitHelperTestFn)(const char *const *words, DavitPluginFile *file,
                                  DavitReport *report, bool *out_skipped);

/* In the child: look at @path, load it, use its components, write to @fd. @words: NULL, or what
 * @test is to do instead. Returns: the program's exit status, 0 also for a refusal. */
int davit_helper_serve(int fd, const char *path, bool is_builtin, const char *const *words,
                       DavitHelperTestFn test);

#endif
