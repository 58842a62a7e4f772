/* SPDX-License-Identifier: Apache-2.0
 * The list of commands. Those without a function are documented parts of later versions: they
 * answer "not in this version" with exit 2. */
#include "cli/commands.h"

#define LATER(symbol, name_, args_, summary_)                                             \
    static const DavitCommand symbol = {                                                  \
        .name = name_, .args = args_, .max_args = 8, .summary = summary_}

LATER(convert, "convert", "MODEL", "write another layout");
LATER(merge, "merge", "MODEL", "merge an adapter");
LATER(shard, "shard", "MODEL", "write per-rank shards");
LATER(pull, "pull", "ORG/NAME", "download a model");
LATER(cache, "cache", NULL, "list downloaded models");
LATER(bench, "bench", "MODEL", "measure loading and generation");

const DavitCommand *const davit_commands[] = {
    &davit_command_run,
    &davit_command_plan,
    &davit_command_inspect,
    &davit_command_doctor,
    &davit_command_estimate,
    &davit_command_dump,
    &davit_command_eval,
    &davit_command_tokenize,
    &davit_command_template,
    &davit_command_why,
    &davit_command_plugin_list,
    &davit_command_plugin_inspect,
    &davit_command_plugin_check,
    &davit_command_plugin_ops,
    &davit_command_plugin_retry,
    &davit_command_plugin_rescan,
    &davit_command_plugin_clear,
    &davit_command_plugin_disable,
    &davit_command_plugin_enable,
    &davit_command_plugin_new,
    &davit_command_version,
    &convert,
    &merge,
    &shard,
    &pull,
    &cache,
    &bench,
    NULL,
};
