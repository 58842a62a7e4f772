/* SPDX-License-Identifier: Apache-2.0
 * What filters take as `attribute`: "a.b.0". Private to core/template. */
#ifndef DAVIT_TEMPLATE_GETTER_H
#define DAVIT_TEMPLATE_GETTER_H

#include "template/text.h"

/* "a.b.0" as parts: names, and numbers where a part is all digits. */
typedef struct Getter {
    Value *parts;
    size_t n;
    Value fallback; /* for undefined values; V_MISSING or none = no fallback */
    bool fold;      /* strings in lower case */
} Getter;

/* @attribute may be missing or none: the getter gives the item itself then. */
Getter tmpl_getter_of(Vm *vm, Value attribute);
Value tmpl_get(Vm *vm, const Getter *getter, Value item);

#endif
