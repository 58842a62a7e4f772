/* SPDX-License-Identifier: Apache-2.0
 * Blocks of tensors whose names differ in one number: the layers of a model, the experts of a layer.
 * In name order a checkpoint is mostly such blocks, so that modules of one are those of the block
 * before with other names, and a module is found by reckoning where a number stands in its name.
 *
 *   model.layers. 0 .mlp.experts. 0 .down_proj.weight      head "model.layers.0.mlp.experts.",
 *   model.layers. 0 .mlp.experts. 0 .up_proj.weight        two tensors a block
 *   model.layers. 0 .mlp.experts. 1 .down_proj.weight      ... in the order of "1", "10", "11", "2"
 *
 * Nothing is taken for granted of what lies between: a block joins a series only if every name
 * of it is that of the first block with another number, and no name more has its head and number.
 */
#ifndef DAVIT_PLAN_SERIES_H
#define DAVIT_PLAN_SERIES_H

#include "plan/plan.h"

/* Equal blocks behind one another. The first is the template; modules of block b are those of the
 * template, b * n_modules further on. */
typedef struct DavitSeries {
    size_t head_len;       /* bytes of a name in front of the number */
    size_t digits;         /* of the template's number */
    uint32_t first_tensor; /* of the template, in the catalogue; that of block b follows
                            * b * n_tensors later */
    uint32_t n_tensors;    /* of a block */
    uint32_t first_module; /* of the template */
    uint32_t n_modules;    /* of a block */
    GArray *numbers;       /* (owned) uint32_t, of each block */
} DavitSeries;

typedef struct DavitSeriesSet DavitSeriesSet;

/* @checkpoint and @modules, which grows, are borrowed until free. (owned) */
DavitSeriesSet *davit_series_set_new(const DavitCheckpoint *checkpoint,
                                     const DavitModules *modules);
void davit_series_set_free(DavitSeriesSet *set); /* NULL is fine */

/* Are the tensors from @tensor on a block like the one that ends in front of it, whose modules
 * are all made? Then it is added: (borrowed, until the next call) its series; the caller makes
 * its modules. NULL = they are not. */
const DavitSeries *davit_series_extend(DavitSeriesSet *set, uint32_t tensor);

/* @name with numbers replaced by those of templates: *out_offset modules in front of the module of
 * @name lies that of the name in @out [@cap]. Returns: length of that; 0 = it does not fit, and
 * then @name is in no series. Remembers the last one. */
size_t davit_series_template(DavitSeriesSet *set, const char *name, size_t len, char *out,
                             size_t cap, size_t *out_offset);

/* All series whose head is @head, numbers in it replaced as above. (borrowed) NULL = none;
 * uint32_t numbers for davit_series_at. */
const GArray *davit_series_of_head(const DavitSeriesSet *set, const char *head, size_t len);
const DavitSeries *davit_series_at(const DavitSeriesSet *set, uint32_t series);

#endif
