/* SPDX-License-Identifier: Apache-2.0
 * Facts: tokenizers, utils/truncation.rs, utils/padding.rs and TokenizerImpl::post_process.
 */
#include "tokenizer/fit.h"

#include <string.h>

#include "tokenizer/node.h"

#define MOST_PADS (1u << 20) /* ids that a file may ask to fill up to */

static int32_t read_side(const DavitNodePlace *place, const json_t *node, bool *out_left)
{
    const json_t *side = json_object_get(node, "direction");
    const char *text = side ? json_string_value(side) : "Right";

    *out_left = g_strcmp0(text, "Left") == 0;
    if (!*out_left && g_strcmp0(text, "Right") != 0)
        return davit_node_invalid(place, "direction", "Left or Right", side);
    return DAVIT_OK;
}

static int32_t read_truncation(DavitFit *out, const DavitNodePlace *place,
                               const json_t *node)
{
    const json_t *strategy = json_object_get(node, "strategy");
    const char *text = json_string_value(strategy);
    size_t most, stride;
    int32_t status = davit_node_count(place, node, "max_length", &most);

    if (status == DAVIT_OK)
        status = davit_node_count(place, node, "stride", &stride);
    if (status == DAVIT_OK)
        status = read_side(place, node, &out->cut_left);
    if (status != DAVIT_OK)
        return status;
    if (g_strcmp0(text, "LongestFirst") != 0)
        return davit_node_unsupported(place, "strategy", "LongestFirst",
                                      text ? text : "another");
    if (stride > 0)
        return davit_node_unsupported(place, "stride", "0", "more");
    out->cuts = true;
    out->most = most;
    return DAVIT_OK;
}

static int32_t read_padding(DavitFit *out, const DavitNodePlace *place,
                            const json_t *node)
{
    const json_t *strategy = json_object_get(node, "strategy");
    const json_t *multiple = json_object_get(node, "pad_to_multiple_of");
    size_t pad, number = 0;
    int32_t status = davit_node_count(place, node, "pad_id", &pad);

    if (status == DAVIT_OK && json_is_object(strategy))
        status = davit_node_count(place, strategy, "Fixed", &number);
    if (status == DAVIT_OK)
        status = read_side(place, node, &out->pad_left);
    if (status != DAVIT_OK)
        return status;
    if (!json_is_object(strategy) &&
        g_strcmp0(json_string_value(strategy), "BatchLongest") != 0)
        return davit_node_invalid(place, "strategy", "BatchLongest or Fixed", strategy);
    if (pad > DAVIT_TOK_MAX_ID || number > MOST_PADS)
        return davit_node_invalid(place, "pad_id", "an id, and at most 1048576 of them",
                                  json_object_get(node, "pad_id"));
    out->least = number;
    out->fixed = json_is_object(strategy);
    if (multiple && !json_is_null(multiple)) {
        status = davit_node_count(place, node, "pad_to_multiple_of", &number);
        if (status == DAVIT_OK && number > MOST_PADS)
            status = davit_node_invalid(place, "pad_to_multiple_of", "at most 1048576",
                                        multiple);
        out->multiple = number;
    }
    out->pads = true;
    out->pad = (int32_t)pad;
    return status;
}

int32_t davit_fit_init(DavitFit *out, const json_t *truncation, const json_t *padding,
                       const char *subject, DavitReport *report)
{
    const DavitNodePlace cut = {subject, "truncation", report};
    const DavitNodePlace pad = {subject, "padding", report};
    int32_t status = DAVIT_OK;

    if (truncation && !json_is_null(truncation))
        status = read_truncation(out, &cut, truncation);
    if (status == DAVIT_OK && padding && !json_is_null(padding))
        status = read_padding(out, &pad, padding);
    return status;
}

DavitFitting davit_fit(const DavitFit *fit, size_t n, size_t added)
{
    DavitFitting out = {.n = n};
    size_t total, want;

    if (fit->cuts) {
        /* Where not even the added ids have room, Hugging Face's subtraction wraps, and nothing is cut. */
        const size_t room = fit->most >= added ? fit->most - added : SIZE_MAX;

        if (n > room) {
            out.from = fit->cut_left ? n - room : 0;
            out.n = room;
        }
    }
    total = want = out.n + added;
    if (fit->pads) {
        want = fit->fixed ? fit->least : total; /* a longer text is not filled up to a multiple */
        if (fit->multiple > 0 && want % fit->multiple > 0)
            want += fit->multiple - want % fit->multiple;
        want = MAX(want, total);
    }
    if (fit->pad_left)
        out.front = want - total;
    else
        out.back = want - total;
    return out;
}
