/* SPDX-License-Identifier: Apache-2.0
 * Methods of str that search, split and join (str_search.c). Private to core/template. */
#ifndef DAVIT_TEMPLATE_STR_SEARCH_H
#define DAVIT_TEMPLATE_STR_SEARCH_H

#include "template/run.h"

typedef Value StrMethodFn(Vm *vm, Str *s, const Args *args);

StrMethodFn tmpl_str_split, tmpl_str_rsplit, tmpl_str_splitlines, tmpl_str_partition,
    tmpl_str_rpartition, tmpl_str_join, tmpl_str_replace, tmpl_str_startswith,
    tmpl_str_endswith, tmpl_str_find_method, tmpl_str_rfind, tmpl_str_index, tmpl_str_rindex,
    tmpl_str_count, tmpl_str_removeprefix, tmpl_str_removesuffix, tmpl_str_format;

#endif
