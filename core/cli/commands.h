/* SPDX-License-Identifier: Apache-2.0
 * The commands of this version, one file each.
 */
#ifndef DAVIT_CLI_COMMANDS_H
#define DAVIT_CLI_COMMANDS_H

#include "cli/command.h"

extern const DavitCommand davit_command_run;            /* run.c */
extern const DavitCommand davit_command_plan;           /* plan.c */
extern const DavitCommand davit_command_inspect;        /* inspect.c */
extern const DavitCommand davit_command_doctor;         /* doctor.c */
extern const DavitCommand davit_command_estimate;       /* estimate.c */
extern const DavitCommand davit_command_dump;           /* dump.c */
extern const DavitCommand davit_command_eval;           /* eval.c */
extern const DavitCommand davit_command_tokenize;       /* tokenize.c */
extern const DavitCommand davit_command_template;       /* template.c */
extern const DavitCommand davit_command_why;            /* why.c */
extern const DavitCommand davit_command_plugin_list;    /* plugin.c */
extern const DavitCommand davit_command_plugin_inspect; /* plugin_inspect.c */
extern const DavitCommand davit_command_plugin_check;   /* plugin_check.c */
extern const DavitCommand davit_command_plugin_ops;     /* plugin_ops.c */
extern const DavitCommand davit_command_plugin_retry;   /* plugin_manage.c */
extern const DavitCommand davit_command_plugin_rescan;  /* plugin_manage.c */
extern const DavitCommand davit_command_plugin_clear;   /* plugin_manage.c */
extern const DavitCommand davit_command_plugin_disable; /* plugin_manage.c */
extern const DavitCommand davit_command_plugin_enable;  /* plugin_manage.c */
extern const DavitCommand davit_command_plugin_new;     /* plugin_new.c */
extern const DavitCommand davit_command_version;        /* version.c */

#endif
