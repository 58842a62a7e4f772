/* SPDX-License-Identifier: Apache-2.0
 * Boxes of a module as byte ranges of its parts. */
#include <stdio.h>
#include <string.h>

#include <davit/help/quant.h>

#define ORDER_UNIT 32u

uint64_t davit_q_divisor(uint64_t a, uint64_t b)
{
    while (a) {
        const uint64_t rest = b % a;

        b = a;
        a = rest;
    }
    return b;
}

uint64_t davit_q_multiple(uint64_t a, uint64_t b)
{
    return a / davit_q_divisor(a, b) * b;
}

void davit_q_cut_begin(const davit_quant_desc *desc, const davit_quant_box *box,
                       davit_quant_cut *out)
{
    out->desc = *desc;
    out->desc.n_experts = box->n_experts;
    out->desc.n_rows = box->n_rows;
    out->desc.n_cols = box->n_cols;
    for (uint32_t p = 0; p < desc->n_parts; p++)
        out->ranges[p] =
            (davit_quant_range){.struct_size = DAVIT_END(davit_quant_range, plane)};
}

static int fits(const char *what, uint64_t from, uint64_t n, uint64_t all, uint64_t unit,
                const char *layout, const davit_sink *sink)
{
    const uint64_t end = from + n;
    char want[64], have[64];

    if ((from == 0 && n == all) ||
        (unit && from % unit == 0 && (end % unit == 0 || end == all)))
        return 1;
    snprintf(want, sizeof want, unit ? "multiples of %llu %s" : "all %llu %s",
             (unsigned long long)(unit ? unit : all), what);
    snprintf(have, sizeof have, "%llu to %llu", (unsigned long long)from,
             (unsigned long long)end);
    davit_say(sink, DAVIT_E_UNSUPPORTED,
              &(davit_refusal){.code = DAVIT_R_QUANT_PARAMS,
                               .subject = layout,
                               .expected = want,
                               .found = have,
                               .message = "the stored layout cannot be cut there"});
    return 0;
}

int davit_q_cut_rows_fit(const davit_quant_desc *desc, const davit_quant_box *box,
                         uint64_t unit, const davit_sink *sink)
{
    return fits("outputs", box->row, box->n_rows, desc->n_rows, unit, desc->layout, sink);
}

int davit_q_cut_cols_fit(const davit_quant_desc *desc, const davit_quant_box *box,
                         uint64_t unit, const davit_sink *sink)
{
    return fits("inputs", box->col, box->n_cols, desc->n_cols, unit, desc->layout, sink);
}

/* Runs and planes that touch are one. */
void davit_q_cut_lines(const davit_quant_box *box, uint32_t part, const davit_q_lines *l,
                       davit_quant_cut *out)
{
    const uint64_t plane = l->n_all * l->line_bytes;
    davit_quant_range *r = &out->ranges[part];

    r->off = box->expert * plane + l->line * l->line_bytes + l->at;
    r->n_bytes = l->n_bytes;
    r->n_runs = l->n;
    r->stride = l->line_bytes;
    r->n_planes = box->n_experts;
    r->plane = plane;
    if (r->n_bytes == l->line_bytes || r->n_runs == 1) {
        r->n_bytes *= r->n_runs;
        r->n_runs = 1;
    }
    if (r->n_runs == 1 && r->n_bytes == plane) {
        r->n_bytes *= r->n_planes;
        r->n_planes = 1;
    }
}

void davit_q_cut_by_row(const davit_quant_desc *desc, const davit_quant_box *box,
                        uint32_t part, uint64_t at, uint64_t n_bytes,
                        davit_quant_cut *out)
{
    const davit_q_lines lines = {.n_all = desc->n_rows,
                                 .line_bytes = desc->parts[part].row_bytes,
                                 .line = box->row,
                                 .n = box->n_rows,
                                 .at = at,
                                 .n_bytes = n_bytes};

    davit_q_cut_lines(box, part, &lines, out);
    out->desc.parts[part].row_bytes = n_bytes;
}

void davit_q_cut_columns(const davit_quant_desc *desc, const davit_quant_box *box,
                         uint32_t part, uint32_t type, davit_quant_cut *out)
{
    const uint64_t size = davit_q_scale_bytes(type);
    const davit_quant_box all = {.n_experts = 1}; /* experts share it */

    davit_q_cut_lines(&all, part,
                      &(davit_q_lines){1, desc->n_cols * size, 0, 1, box->col * size,
                                       box->n_cols * size},
                      out);
}

int32_t davit_q_cut_blocks(const davit_quant_desc *desc, const davit_quant_box *box,
                           davit_quant_cut *out, const davit_sink *sink)
{
    const uint64_t blocks = desc->col_unit ? desc->n_cols / desc->col_unit : 1;
    const uint64_t bytes = desc->parts[0].row_bytes / blocks;

    davit_q_cut_begin(desc, box, out);
    if (!davit_q_cut_rows_fit(desc, box, desc->row_unit, sink) ||
        !davit_q_cut_cols_fit(desc, box, desc->col_unit, sink))
        return DAVIT_E_UNSUPPORTED;
    if (desc->col_unit)
        davit_q_cut_by_row(desc, box, 0, box->col / desc->col_unit * bytes,
                           box->n_cols / desc->col_unit * bytes, out);
    else
        davit_q_cut_by_row(desc, box, 0, 0, desc->parts[0].row_bytes, out);
    return DAVIT_OK;
}

int32_t davit_q_cut_nibbles(const davit_quant_desc *desc, const davit_quant_box *box,
                            uint64_t group, davit_quant_cut *out, const davit_sink *sink)
{
    davit_q_cut_begin(desc, box, out);
    if (!davit_q_cut_cols_fit(desc, box, group, sink))
        return DAVIT_E_UNSUPPORTED;
    davit_q_cut_by_row(desc, box, 0, box->col / 2, box->n_cols / 2, out);
    davit_q_cut_by_row(desc, box, 1, box->col / group, box->n_cols / group, out);
    return DAVIT_OK;
}

/* A group of n columns takes at most (n + UNIT - 1) / UNIT units; decode needs one per group. */
void davit_q_cut_order(const davit_quant_box *box, uint64_t n_groups, davit_quant_cut *out)
{
    const uint64_t units = (box->n_cols + n_groups * (ORDER_UNIT - 1)) / ORDER_UNIT;

    out->desc.codes.group = ORDER_UNIT;
    out->desc.codes.n_cols = (units > n_groups ? units : n_groups) * ORDER_UNIT;
}
