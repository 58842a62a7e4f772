/* SPDX-License-Identifier: Apache-2.0
 * Ranks as processes: what they sum, gather and broadcast, and what they see when one dies, comes
 * twice, or does not come. A rank's checks are its exit: 0, or a signal of g_assert. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>

#include <davit/comm.h>

#define MOST 4u
#define ENOUGH_MS 60000u /* for a loaded machine; nothing here waits so long */

static const davit_comm_iface *iface;

static void load(void)
{
    void *file = dlopen(DAVIT_PLUGIN_DIR "/davit-shm.so", RTLD_NOW | RTLD_LOCAL);
    void *symbol = file ? dlsym(file, "davit_plugin_entry_v1") : NULL;
    davit_entry_v1_fn enter = NULL;

    g_assert_nonnull(symbol);
    memcpy(&enter, &symbol, sizeof enter);
    iface = enter(NULL, NULL)->components[0]->iface;
}

/* ---- records ---- */

typedef struct Said {
    uint32_t code;
    char found[128], message[128];
} Said;

static void note(void *ctx, const davit_refusal *r)
{
    Said *said = ctx;

    said->code = r->code;
    g_strlcpy(said->found, r->found ? r->found : "", sizeof said->found);
    g_strlcpy(said->message, r->message ? r->message : "", sizeof said->message);
}

static davit_sink sink_of(Said *said)
{
    return (davit_sink){
        .struct_size = DAVIT_END(davit_sink, refuse), .ctx = said, .refuse = note};
}

static int32_t give_up(void *ctx)
{
    return *(int *)ctx;
}

static int32_t come(const char *address, uint64_t rank, uint64_t size, uint64_t timeout_ms,
                    void **group, Said *said)
{
    static int up;
    const davit_sink sink = sink_of(said);
    const davit_comm_open_in in = {.struct_size = DAVIT_END(davit_comm_open_in, ctx),
                                   .address = address,
                                   .rank = rank,
                                   .size = size,
                                   .timeout_ms = timeout_ms,
                                   .cancelled = give_up,
                                   .ctx = &up};

    memset(said, 0, sizeof *said);
    return iface->open(NULL, &in, group, &sink);
}

static void *must_come(const char *address, uint64_t rank, uint64_t size)
{
    void *group = NULL;
    Said said;

    if (come(address, rank, size, ENOUGH_MS, &group, &said))
        g_error("rank %u: %s: %s", (unsigned)rank, said.message, said.found);
    return group;
}

/* ---- processes ---- */

typedef void RankFn(const char *address, uint64_t rank, uint64_t size);

static pid_t start(RankFn *fn, const char *address, uint64_t rank, uint64_t size)
{
    const pid_t pid = fork();

    g_assert_cmpint(pid, >=, 0);
    if (pid == 0) {
        fn(address, rank, size);
        _exit(0);
    }
    return pid;
}

static int end_of(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        g_assert_cmpint(errno, ==, EINTR);
    return status;
}

static void run_ranks(RankFn *fn, const char *address, uint64_t size)
{
    pid_t pid[MOST];

    for (uint64_t r = 0; r < size; r++)
        pid[r] = start(fn, address, r, size);
    for (uint64_t r = 0; r < size; r++)
        g_assert_cmpint(end_of(pid[r]), ==, 0);
}

static void fresh_address(char out[DAVIT_COMM_ADDRESS], uint64_t size)
{
    Said said;
    const davit_sink sink = sink_of(&said);

    g_assert_cmpint(iface->new_address(NULL, size, out, &sink), ==, 0);
}

static void forget_address(const char *address)
{
    close(atoi(address + 3));
}

/* Names of this test's own, so that two test runs at once do not meet. */
static char *fresh_name(const char *what)
{
    return g_strdup_printf("test-%s-%d", what, (int)getpid());
}

static bool name_is_there(const char *name)
{
    g_autofree char *path =
        g_strdup_printf("/dev/shm/davit-%u-%s", (unsigned)geteuid(), name);

    return g_file_test(path, G_FILE_TEST_EXISTS);
}

/* ---- collectives ---- */

/* Values whose float32 sum depends on the order. */
static float value_at(uint64_t rank, uint64_t i)
{
    static const float scale[MOST] = {1.0f, 1e7f, -1e7f, 3e-3f};

    return scale[rank] * (float)(i % 97 + 1) + (float)rank * 0.37f;
}

static void sums(const char *address, uint64_t rank, uint64_t size)
{
    static const uint64_t lengths[] = {1, 3, 65536, 65537, 200001};
    void *group = must_come(address, rank, size);

    for (size_t l = 0; l < G_N_ELEMENTS(lengths); l++) {
        g_autofree float *data = g_new(float, lengths[l]);

        for (uint64_t i = 0; i < lengths[l]; i++)
            data[i] = value_at(rank, i);
        g_assert_cmpint(iface->all_reduce(group, data, lengths[l], NULL), ==, 0);
        for (uint64_t i = 0; i < lengths[l]; i++) {
            float sum = value_at(0, i);
            for (uint64_t r = 1; r < size; r++)
                sum += value_at(r, i);
            g_assert_cmpmem(&sum, sizeof sum, &data[i], sizeof sum);
        }
    }
    iface->close(group);
}

static void gathers(const char *address, uint64_t rank, uint64_t size)
{
    static const uint64_t lengths[] = {1, 7, 262144, 262145, 600001};
    void *group = must_come(address, rank, size);

    for (size_t l = 0; l < G_N_ELEMENTS(lengths); l++) {
        const uint64_t n = lengths[l], root = l % size;
        g_autofree uint8_t *mine = g_new(uint8_t, n), *all = g_new0(uint8_t, n * size);

        for (uint64_t i = 0; i < n; i++)
            mine[i] = (uint8_t)(i * 31 + rank * 7 + l);
        g_assert_cmpint(iface->all_gather(group, mine, all, n, NULL), ==, 0);
        for (uint64_t i = 0; i < n * size; i++)
            if (all[i] != (uint8_t)(i % n * 31 + i / n * 7 + l))
                g_error("byte %u of %u", (unsigned)i, (unsigned)n);
        g_assert_cmpint(iface->broadcast(group, mine, n, root, NULL), ==, 0);
        g_assert_true(memcmp(mine, all + root * n, n) == 0);
        g_assert_cmpint(iface->barrier(group), ==, 0);
    }
    iface->close(group);
}

static void looks_through_window(const char *address, uint64_t rank, uint64_t size)
{
    void *group = must_come(address, rank, size), *base = NULL;
    uint64_t *word;

    for (uint64_t round = 0; round < 2; round++) { /* two windows, both zeroed */
        g_assert_cmpint(iface->window(group, 5000, &base), ==, 0);
        word = base;
        g_assert_cmpint(word[rank], ==, 0);
        word[rank] = rank + 10 * round + 1;
        g_assert_cmpint(iface->barrier(group), ==, 0);
        for (uint64_t r = 0; r < size; r++)
            g_assert_cmpint(word[r], ==, r + 10 * round + 1);
    }
    g_assert_cmpint(iface->window(group, UINT64_MAX, &base), <, 0);
    g_assert_cmpint(iface->barrier(group), ==, 0); /* that was not the end of the group */
    iface->close(group);
}

static void test_collective(const void *fn)
{
    RankFn *const *rank_fn = fn;

    for (uint64_t size = 1; size <= MOST; size++) {
        char address[DAVIT_COMM_ADDRESS];

        fresh_address(address, size);
        run_ranks(*rank_fn, address, size);
        forget_address(address);
    }
}

/* ---- ends ---- */

static int come_pipe[2]; /* a byte for each rank that has met the others */

/* Works on until something is wrong, then must be told who is gone. */
static void works_until_lost(const char *address, uint64_t rank, uint64_t size)
{
    void *group = must_come(address, rank, size);
    float data[100] = {0};
    Said said = {0};
    const davit_sink sink = sink_of(&said);

    g_assert_cmpint(write(come_pipe[1], "", 1), ==, 1);
    while (iface->all_reduce(group, data, G_N_ELEMENTS(data), NULL) == 0)
        ;
    g_assert_cmpint(iface->status(group, &sink), ==, DAVIT_E_IO);
    g_assert_cmpint(said.code, ==, DAVIT_R_RANK_LOST);
    g_assert_cmpstr(said.found, ==, "rank 1");
    g_assert_cmpint(iface->barrier(group), <, 0); /* sticky */
    iface->close(group);
}

static void killed_rank_hangs_the_others(void)
{
    for (uint64_t size = 2; size <= MOST; size++) {
        char address[DAVIT_COMM_ADDRESS], byte;
        pid_t pid[MOST];

        fresh_address(address, size);
        for (uint64_t r = 0; r < size; r++)
            pid[r] = start(works_until_lost, address, r, size);
        for (uint64_t r = 0; r < size; r++) /* one that never came would be waited for */
            g_assert_cmpint(read(come_pipe[0], &byte, 1), ==, 1);
        g_usleep(30000); /* wherever it is by then */
        kill(pid[1], SIGKILL);
        for (uint64_t r = 0; r < size; r++) {
            const int status = end_of(pid[r]);
            g_assert_cmpint(status, ==, r == 1 ? SIGKILL : 0);
        }
        forget_address(address);
    }
}

static void leaves_after_three(const char *address, uint64_t rank, uint64_t size)
{
    void *group = must_come(address, rank, size);

    for (int i = 0; i < 3; i++)
        g_assert_cmpint(iface->barrier(group), ==, 0);
    iface->close(group);
}

static void leaving_rank_hangs_the_others(void)
{
    char address[DAVIT_COMM_ADDRESS];
    pid_t stays, leaves;

    fresh_address(address, 2);
    stays = start(works_until_lost, address, 0, 2);
    leaves = start(leaves_after_three, address, 1, 2);
    g_assert_cmpint(end_of(leaves), ==, 0);
    g_assert_cmpint(end_of(stays), ==, 0);
    forget_address(address);
}

/* ---- names ---- */

static void name_stays_behind(void)
{
    g_autofree char *name = fresh_name("meet");

    for (int again = 0; again < 3; again++) {
        run_ranks(sums, name, 3);
        g_assert_false(name_is_there(name));
    }
}

static void waits_in_vain(const char *address, uint64_t rank, uint64_t size)
{
    void *group = NULL;
    Said said;

    g_assert_cmpint(come(address, rank, size, 150, &group, &said), ==, DAVIT_E_IO);
    g_assert_cmpint(said.code, ==, DAVIT_R_RANK_LOST);
    g_assert_cmpstr(said.found, ==, "1");
    g_assert_false(name_is_there(address));
}

static void absent_rank_is_waited_for_forever(void)
{
    g_autofree char *name = fresh_name("vain");

    g_assert_cmpint(end_of(start(waits_in_vain, name, 0, 2)), ==, 0);
}

static void waits_long(const char *address, uint64_t rank, uint64_t size)
{
    must_come(address, rank, size);
}

/* Until a rank waits at @name. */
static void until_there(const char *name)
{
    while (!name_is_there(name))
        g_usleep(2000);
    g_usleep(50000); /* from the name to the place */
}

static void second_run_meets_the_first(void)
{
    g_autofree char *name = fresh_name("taken");
    pid_t first = start(waits_long, name, 0, 2), other;
    void *group = NULL;
    Said said;

    until_there(name);
    g_assert_cmpint(come(name, 0, 2, 100, &group, &said), ==, DAVIT_E_USAGE);
    g_assert_cmpstr(said.found, ==, "rank 0 is there already");
    g_assert_cmpint(come(name, 0, 3, 100, &group, &said), ==, DAVIT_E_USAGE); /* another size */
    other = start(waits_long, name, 1, 2); /* and the first was not harmed */
    g_assert_cmpint(end_of(other), ==, 0);
    g_assert_cmpint(end_of(first), ==, 0);
    g_assert_false(name_is_there(name));
}

static void killed_run_blocks_its_name(void)
{
    g_autofree char *name = fresh_name("stale");
    pid_t first = start(waits_long, name, 0, 3);

    until_there(name);
    kill(first, SIGKILL);
    end_of(first);
    g_assert_true(name_is_there(name));
    run_ranks(sums, name, 2); /* with another number of ranks even */
    g_assert_false(name_is_there(name));
}

static void has_no_room(const char *address, uint64_t rank, uint64_t size)
{
    const struct rlimit page = {4096, 4096}; /* a segment has a head and buffers */
    void *group = NULL;
    Said said;

    signal(SIGXFSZ, SIG_IGN); /* as davit does */
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &page), ==, 0);
    g_assert_cmpint(come(address, rank, size, 100, &group, &said), ==, DAVIT_E_IO);
    g_assert_cmpint(said.code, ==, DAVIT_R_IO_FAILED);
    g_assert_nonnull(strstr(said.found, "1028 KiB: ")); /* 2 sets of 2 buffers, and the head */
    g_assert_false(name_is_there(address));
}

static void name_stays_where_there_is_no_room(void)
{
    g_autofree char *name = fresh_name("full");

    g_assert_cmpint(end_of(start(has_no_room, name, 0, 2)), ==, 0);
}

static void impossible_place_is_taken(void)
{
    static const struct {
        const char *address;
        uint64_t rank, size;
    } wrong[] = {{"fd=0", 0, 2},  {"fd=", 0, 2},    {"fd=9999", 0, 2}, {"fd=7x", 0, 2},
                 {"a/b", 0, 2},   {"", 0, 2},       {"fine", 2, 2},    {"fine", 0, 0},
                 {"fine", 0, 65}, {"..%", 0, 2},    {NULL, 0, 2}};
    void *group = NULL;
    Said said;

    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_assert_cmpint(
            come(wrong[i].address, wrong[i].rank, wrong[i].size, 100, &group, &said), ==,
            DAVIT_E_USAGE);
        g_assert_cmpint(said.code, ==, DAVIT_R_USAGE);
    }
    g_assert_null(group);
}

int main(int argc, char **argv)
{
    static RankFn *const fns[] = {sums, gathers, looks_through_window};

    g_test_init(&argc, &argv, NULL);
    g_assert_cmpint(pipe(come_pipe), ==, 0);
    load();
    g_test_add_data_func("/shm/sums", &fns[0], test_collective);
    g_test_add_data_func("/shm/gathers", &fns[1], test_collective);
    g_test_add_data_func("/shm/window", &fns[2], test_collective);
    g_test_add_func("/shm/killed_rank", killed_rank_hangs_the_others);
    g_test_add_func("/shm/leaving_rank", leaving_rank_hangs_the_others);
    g_test_add_func("/shm/name_stays_behind", name_stays_behind);
    g_test_add_func("/shm/absent_rank", absent_rank_is_waited_for_forever);
    g_test_add_func("/shm/second_run", second_run_meets_the_first);
    g_test_add_func("/shm/killed_run", killed_run_blocks_its_name);
    g_test_add_func("/shm/no_room", name_stays_where_there_is_no_room);
    g_test_add_func("/shm/impossible_place", impossible_place_is_taken);
    return g_test_run();
}
