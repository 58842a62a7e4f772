/* SPDX-License-Identifier: Apache-2.0
 * Starting and ending the ranks of one command. The others run in a process group of their own:
 * Ctrl-C is rank 0's to hear, which then leaves in order; and if it is killed, they notice. */
#include "cli/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run.h"

#define MOST_RANKS 64u
#define MOST_SAID  65536u /* of what a rank wrote to stderr */
#define PATIENCE_MS 5000  /* for a rank to end by itself */

extern char **environ;

typedef struct Rank {
    pid_t pid; /* 0 = not started */
    bool ended;
    int status;
    FILE *said; /* its stderr: memory, so that nothing has to be read meanwhile, and no disk is
                 * needed */
} Rank;

struct DavitRanks {
    DavitCall *call;
    unsigned n;
    Rank rank[MOST_RANKS];
};

/* ---- flags ---- */

int davit_ranks_check(DavitCall *call)
{
    const uint64_t tp = davit_call_count(call, "tp"), rank = davit_call_count(call, "rank");
    const bool given = davit_call_has(call, "rank"), comm = davit_call_has(call, "comm");

    if (tp < 1 || tp > MOST_RANKS)
        return davit_call_usage(call, "--tp", "the number of ranks is not 1 to 64", NULL);
    if (given != comm)
        return davit_call_usage(call, given ? "--comm" : "--rank",
                                "--rank and --comm go together",
                                "--tp N alone starts the other ranks itself");
    if (given && rank >= tp)
        return davit_call_usage(call, "--rank", "the rank is not below --tp", NULL);
    return 0;
}

bool davit_ranks_follows(const DavitCall *call)
{
    return davit_call_has(call, "rank") && davit_call_count(call, "rank") > 0;
}

/* ---- starting ---- */

/* (owned) The words of this process, those of a rank after the command's name. */
static GPtrArray *words_for(unsigned rank, const char *comm, char *all, size_t len)
{
    GPtrArray *words = g_ptr_array_new_with_free_func(g_free);

    for (size_t at = 0; at < len; at += strlen(all + at) + 1) {
        g_ptr_array_add(words, g_strdup(all + at));
        if (words->len == 2) {
            g_ptr_array_add(words, g_strdup_printf("--rank=%u", rank));
            g_ptr_array_add(words, g_strdup_printf("--comm=%s", comm));
        }
    }
    g_ptr_array_add(words, NULL);
    return words;
}

static int spawn(Rank *r, char **words)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    int failed;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, fileno(r->said), STDERR_FILENO);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
    failed = posix_spawn(&r->pid, "/proc/self/exe", &files, &attr, words, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

static FILE *open_said(void)
{
    const int fd = memfd_create("davit-said", MFD_CLOEXEC);
    FILE *said = fd >= 0 ? fdopen(fd, "r") : NULL;

    if (!said && fd >= 0)
        close(fd);
    return said;
}

static int start_ranks(void *ctx, const char *comm)
{
    DavitRanks *ranks = ctx;
    g_autoptr(GError) error = NULL;
    g_autofree char *all = NULL;
    gsize len = 0;
    int failed = 0;

    if (!g_file_get_contents("/proc/self/cmdline", &all, &len, &error))
        failed = ENOSYS;
    for (unsigned r = 1; !failed && r < ranks->n; r++) {
        g_autoptr(GPtrArray) words = words_for(r, comm, all, len);

        ranks->rank[r].said = open_said();
        failed = ranks->rank[r].said ? spawn(&ranks->rank[r], (char **)words->pdata) : errno;
        if (failed)
            ranks->rank[r].pid = 0;
    }
    if (failed)
        davit_report_add(ranks->call->report,
                         &(DavitFinding){.code = DAVIT_R_IO_FAILED,
                                         .status = DAVIT_E_IO,
                                         .stage = "ranks",
                                         .subject = "--tp",
                                         .found = error ? error->message : g_strerror(failed),
                                         .message = "a rank's process could not be started"});
    return failed != 0;
}

/* ---- watching ---- */

static bool has_ended(Rank *r)
{
    if (r->pid > 0 && !r->ended)
        r->ended = waitpid(r->pid, &r->status, WNOHANG) == r->pid;
    return r->pid <= 0 || r->ended;
}

/* Nobody waits for a rank that is gone. */
static int given_up(void *ctx)
{
    DavitRanks *ranks = ctx;

    if (davit_interrupted())
        return 1;
    for (unsigned r = 1; r < ranks->n; r++)
        if (ranks->rank[r].pid > 0 && has_ended(&ranks->rank[r]) && ranks->rank[r].status != 0)
            return 1;
    return 0;
}

DavitRanks *davit_ranks_new(DavitCall *call, davit_model_params *params)
{
    DavitRanks *ranks = g_new0(DavitRanks, 1);

    ranks->call = call;
    ranks->n = (unsigned)davit_call_count(call, "tp");
    params->tp = ranks->n;
    params->rank = davit_call_has(call, "rank") ? (uint32_t)davit_call_count(call, "rank") : 0;
    params->comm = davit_call_text(call, "comm");
    params->start_ranks = start_ranks;
    params->comm_cancelled = given_up;
    params->comm_ctx = ranks;
    return ranks;
}

/* ---- ending ---- */

static bool all_ended(DavitRanks *ranks)
{
    bool all = true;

    for (unsigned r = 1; r < ranks->n; r++)
        all &= has_ended(&ranks->rank[r]);
    return all;
}

/* Give the ranks time, then a signal. */
static void wait_ms(DavitRanks *ranks, int ms, int signal_after)
{
    for (int t = 0; t < ms && !all_ended(ranks); t += t < 50 ? 1 : 20)
        g_usleep(t < 50 ? 1000 : 20000);
    for (unsigned r = 1; r < ranks->n; r++)
        if (!has_ended(&ranks->rank[r]))
            kill(ranks->rank[r].pid, signal_after);
}

/* (owned) The first error that a rank wrote, NULL = none. */
static char *first_error(FILE *said)
{
    g_autofree char *text = g_malloc0(MOST_SAID + 1);
    const char *at;

    rewind(said);
    text[fread(text, 1, MOST_SAID, said)] = '\0';
    at = strstr(text, "davit: error: ");
    at = at ? at + strlen("davit: error: ") : text;
    return *at ? g_strndup(at, strcspn(at, "\n")) : NULL;
}

static void tell(DavitRanks *ranks, unsigned number)
{
    Rank *r = &ranks->rank[number];
    DavitReport *report = ranks->call->report;
    g_autofree char *error = first_error(r->said);

    if (WIFEXITED(r->status) && WEXITSTATUS(r->status) == 0)
        return;
    davit_report_add(
        report,
        &(DavitFinding){
            .code = DAVIT_R_RANK_LOST,
            .status = DAVIT_E_IO,
            .stage = "ranks",
            .subject = davit_report_text(report, "rank %u", number),
            .found = WIFSIGNALED(r->status)
                         ? davit_report_text(report, "ended by signal %d", WTERMSIG(r->status))
                         : davit_report_text(report, "exit %d", WEXITSTATUS(r->status)),
            .message = error ? error : "the rank has ended"});
}

void davit_ranks_end(DavitRanks *ranks, bool failed)
{
    if (!ranks)
        return;
    wait_ms(ranks, PATIENCE_MS, SIGTERM);
    wait_ms(ranks, PATIENCE_MS, SIGKILL);
    while (!all_ended(ranks))
        g_usleep(1000);
    for (unsigned r = 1; r < ranks->n; r++) {
        if (!ranks->rank[r].said)
            continue;
        if (failed && ranks->rank[r].pid > 0)
            tell(ranks, r);
        fclose(ranks->rank[r].said);
    }
    g_free(ranks);
}
