/* SPDX-License-Identifier: Apache-2.0
 * D04: tensors that lie in two files: are the copies equal? The beginnings of a few are
 * compared, all of all with --deep. */
#include <string.h>

#include "doctor/doctor_private.h"

#define WINDOW   4096u /* bytes compared at a time, and the only ones without --deep */
#define MAX_LOOK 16u   /* tensors that are looked at without --deep */

/* 1 = equal as far as was looked, 0 = different, -1 = unreadable. */
static int compare(const DavitDoctor *d, const davit_tensor_info *a, const davit_tensor_info *b)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    const uint64_t n = d->options->deep ? a->n_bytes : MIN(a->n_bytes, WINDOW);
    g_autoptr(DavitReport) aside = davit_report_new();
    uint8_t x[WINDOW], y[WINDOW];

    if (a->n_bytes != b->n_bytes || strcmp(a->dtype, b->dtype) != 0 || a->rank != b->rank ||
        memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0)
        return 0;
    for (uint64_t off = 0; off < n; off += WINDOW) {
        const uint64_t step = MIN(WINDOW, n - off);

        if (davit_checkpoint_read(c, a->file, a->off + off, x, step, aside) ||
            davit_checkpoint_read(c, b->file, b->off + off, y, step, aside))
            return -1;
        if (memcmp(x, y, (size_t)step) != 0)
            return 0;
    }
    return 1;
}

void davit_check_copies(DavitDoctor *d)
{
    const DavitCheckpoint *c = d->patient.checkpoint;
    const size_t n = c ? davit_checkpoint_n_copies(c) : 0;
    const davit_tensor_info *odd = NULL;
    size_t n_seen = 0, n_odd = 0;

    for (size_t i = 0; i < n && (i < MAX_LOOK || d->options->deep); i++) {
        const davit_tensor_info *other = davit_checkpoint_copy(c, i);
        const davit_tensor_info *kept = davit_checkpoint_find(c, other->name);
        const int equal = kept ? compare(d, kept, other) : -1;

        n_seen += equal >= 0;
        n_odd += equal == 0;
        odd = equal == 0 && !odd ? other : odd;
    }
    if (!n_seen)
        return;
    davit_doctor_say(
        d, "D04",
        &(DavitFinding){
            .severity = DAVIT_NOTE,
            .subject = odd ? odd->name : davit_checkpoint_copy(c, 0)->name,
            .expected = "copies that are equal",
            .found = n_odd ? davit_doctor_text(d, "%zu of %zu that were looked at differ", n_odd,
                                               n_seen)
                           : davit_doctor_text(d, "%zu are equal%s", n_seen,
                                               d->options->deep ? "" : " where looked at"),
            .message = n_odd ? "the tensors that are stored twice have other values in the other "
                               "file: which one a program takes decides what it answers"
                             : "the tensors that are stored twice are the same",
            .hint = n_odd ? "take both files from one revision; the copy that the index names is "
                            "the likelier one"
                          : "take the copies out of one file; --deep compares all bytes"});
}
