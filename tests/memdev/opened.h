/* SPDX-License-Identifier: Apache-2.0
 * A golden model, opened beside plugins that tests bring. */
#ifndef DAVIT_TEST_OPENED_H
#define DAVIT_TEST_OPENED_H

#include "checkpoint/checkpoint.h"
#include "config/config.h"

/* (owned) all of it. */
typedef struct Opened {
    DavitRegistry *registry;
    DavitCheckpoint *checkpoint;
    DavitSettings *settings;
    DavitReport *report;
} Opened;

/* @model: a name under tests/golden/models; @plugins: directories, ended by NULL, that are looked
 * through beside the built ones. A model that cannot be opened fails the test with its records. */
Opened open_model(const char *model, const char *const *plugins);
void opened_clear(Opened *o);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Opened, opened_clear)

/* Fails the test with the records of @report. */
G_NORETURN void fail_with(const DavitReport *report);

#endif
