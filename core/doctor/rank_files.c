/* SPDX-License-Identifier: Apache-2.0
 * D44: weights that were written per rank. davit writes none in this version; other programs do,
 * under names with the rank in them (vLLM's sharded_state: model-rank-R-part-P.safetensors;
 * TensorRT-LLM: rankR.safetensors), and cut and fused as their own kernels wanted. */
#include <string.h>

#include "doctor/doctor_private.h"

#define MAX_RANKS 4096u

/* The rank in a file's name, -1 = none. */
static int64_t rank_of(const char *name)
{
    static const char *const stems[] = {"model-rank-", "rank"};
    char *end;

    if (!g_str_has_suffix(name, ".safetensors"))
        return -1;
    for (size_t i = 0; i < G_N_ELEMENTS(stems); i++) {
        const size_t n = strlen(stems[i]);
        guint64 rank;

        if (strncmp(name, stems[i], n) != 0 || !g_ascii_isdigit(name[n]))
            continue;
        rank = g_ascii_strtoull(name + n, &end, 10);
        if (rank < MAX_RANKS && (*end == '.' || g_str_has_prefix(end, "-part-")))
            return (int64_t)rank;
    }
    return -1;
}

static void say_found(DavitDoctor *d, uint64_t n_ranks, const char *first)
{
    davit_doctor_say(
        d, "D44",
        &(DavitFinding){.severity = DAVIT_WARNING,
                        .subject = first,
                        .expected = "a checkpoint that was not cut for ranks",
                        .found = davit_doctor_text(d, "files of %" PRIu64 " ranks", n_ranks),
                        .message = "the weights were written per rank by another program: cut and "
                                   "joined for its own kernels, they fit no other number of ranks",
                        .hint = "take the model's own files; davit cuts them with --tp N while it "
                                "reads"});
}

/* The first of @n_ranks ranks that @seen lacks, -1 = all are there. */
static int64_t first_hole(const uint8_t *seen, uint64_t n_ranks)
{
    for (uint64_t r = 0; r < n_ranks; r++)
        if (!seen[r])
            return (int64_t)r;
    return -1;
}

void davit_check_rank_files(DavitDoctor *d)
{
    const GPtrArray *names = d->patient.path.names;
    g_autofree uint8_t *seen = g_new0(uint8_t, MAX_RANKS);
    const char *first = NULL;
    uint64_t n_ranks = 0;
    int64_t hole;

    if (!d->patient.path.dir) {
        davit_doctor_skip(d, "D44", "a directory of files");
        return;
    }
    for (guint i = 0; names && i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);
        const int64_t rank = rank_of(name);

        if (rank < 0)
            continue;
        first = first ? first : name;
        seen[rank] = 1;
        n_ranks = MAX(n_ranks, (uint64_t)rank + 1);
    }
    if (!first) {
        davit_doctor_fact(d, "D44", "no file was written for one rank");
        return;
    }
    say_found(d, n_ranks, first);
    hole = first_hole(seen, n_ranks);
    if (hole >= 0)
        davit_doctor_say(d, "D44",
                         /* beside weights that open they are leftovers */
                         &(DavitFinding){.severity = DAVIT_WARNING,
                                         .status = d->patient.checkpoint ? DAVIT_OK
                                                                         : DAVIT_E_MISMATCH,
                                         .subject = first,
                                         .expected = davit_doctor_text(
                                             d, "files of ranks 0 to %" PRIu64, n_ranks - 1),
                                         .found = davit_doctor_text(
                                             d, "none of rank %" PRId64, hole),
                                         .message = "a rank's part of the weights is not there"});
}
