/* SPDX-License-Identifier: Apache-2.0
 * posix_spawn, never a bare fork: the process may have threads and devices. The child is its
 * own process group, so that Ctrl-C at the terminal is not taken for a crash and whatever it
 * started dies with it. */
#include "plugin/helper_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin/helper.h"

#define RESULT_FD    3
#define MAX_LINES    (1024 * 1024)
#define START_S      30 /* for the program itself to come up, on a machine under load */
#define POLL_MS      50 /* the child's end is looked for this often at least */

typedef struct Pipes {
    int result[2], output[2]; /* -1 = closed */
} Pipes;

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_pipes(Pipes *p)
{
    close_one(&p->result[0]);
    close_one(&p->result[1]);
    close_one(&p->output[0]);
    close_one(&p->output[1]);
}

/* The child's end away from the low numbers, where it is put by dup2. */
static bool move_up(int *fd)
{
    const int high = fcntl(*fd, F_DUPFD_CLOEXEC, RESULT_FD + 1);

    close_one(fd);
    *fd = high;
    return high >= 0;
}

static bool open_pipes(Pipes *p)
{
    *p = (Pipes){{-1, -1}, {-1, -1}};
    if (pipe2(p->result, O_CLOEXEC) == 0 && pipe2(p->output, O_CLOEXEC) == 0 &&
        fcntl(p->result[0], F_SETFL, O_NONBLOCK) == 0 &&
        fcntl(p->output[0], F_SETFL, O_NONBLOCK) == 0 && move_up(&p->result[1]) &&
        move_up(&p->output[1]))
        return true;
    close_pipes(p);
    return false;
}

/* Nothing of ours may be preloaded into the child, which must see the plugin as it is. */
static char **make_environment(void)
{
    char **env = g_get_environ();

    env = g_environ_unsetenv(env, "LD_PRELOAD");
    env = g_environ_unsetenv(env, "LD_AUDIT");
    return g_environ_unsetenv(env, "LD_DEBUG");
}

static int start_child(char *const *argv, Pipes *p, pid_t *out_pid)
{
    g_auto(GStrv) env = make_environment();
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    int error;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                        POSIX_SPAWN_SETPGROUP);
    error = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    error = error ? error : posix_spawn_file_actions_adddup2(&files, p->output[1], 1);
    error = error ? error : posix_spawn_file_actions_adddup2(&files, p->output[1], 2);
    error =
        error ? error : posix_spawn_file_actions_adddup2(&files, p->result[1], RESULT_FD);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    error = error ? error
                  : posix_spawn_file_actions_addclosefrom_np(&files, RESULT_FD + 1);
#endif
    error = error ? error : posix_spawn(out_pid, argv[0], &files, &attr, argv, env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    return error;
}

/* ---- reading ---- */

/* Append what is there; up to @max bytes are kept, the rest is read and dropped. Closes the
 * descriptor at its end. */
static void drain(int *fd, GString *to, size_t max)
{
    char buffer[4096];

    while (*fd >= 0) {
        const ssize_t n = read(*fd, buffer, sizeof buffer);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            close_one(fd);
            return;
        }
        g_string_append_len(to, buffer, (gssize)MIN((size_t)n, max - MIN(max, to->len)));
    }
}

/* Take the "=WHAT WHO" lines out of @run->lines, from *seen on, and keep the last: a test has
 * many thousand. *seen moves past complete lines of others. Returns: there was one. */
static bool note_step(DavitHelperRun *run, size_t *seen)
{
    bool is_new = false;
    char *end;

    while ((end = memchr(run->lines->str + *seen, '\n', run->lines->len - *seen))) {
        const char *line = run->lines->str + *seen;
        const size_t n = (size_t)(end - line);

        if (n < 1 || line[0] != '=') {
            *seen += n + 1;
            continue;
        }
        g_free(run->what);
        g_free(run->who);
        run->what = g_strndup(line + 1, strcspn(line + 1, " \n"));
        run->who = g_strndup(line + 1 + strlen(run->what),
                             n - 1 - strlen(run->what));
        g_strstrip(run->who);
        g_string_erase(run->lines, (gssize)*seen, (gssize)(n + 1));
        is_new = true;
    }
    return is_new;
}

/* Returns: the child has ended, and run says how. */
static bool reap(pid_t pid, DavitHelperRun *run)
{
    const pid_t got = waitpid(pid, &run->status, WNOHANG);

    if (got == pid)
        return true;
    if (got < 0 && errno != EINTR) { /* somebody ignores SIGCHLD, or waits for all */
        run->lost = true;
        return kill(pid, 0) != 0;
    }
    return false;
}

static void watch(pid_t pid, Pipes *p, unsigned step_s, DavitHelperRun *run)
{
    int64_t limit = g_get_monotonic_time() + (int64_t)START_S * G_USEC_PER_SEC;
    size_t seen = 0;
    bool ended = false;

    while (!ended) {
        struct pollfd fds[] = {{.fd = p->result[0], .events = POLLIN},
                               {.fd = p->output[0], .events = POLLIN}};

        /* without descriptors left it ends at once: no reason to sleep long */
        poll(fds, G_N_ELEMENTS(fds), p->result[0] < 0 ? 1 : POLL_MS);
        ended = reap(pid, run);
        drain(&p->result[0], run->lines, MAX_LINES);
        drain(&p->output[0], run->output, DAVIT_HELPER_OUTPUT);
        if (note_step(run, &seen))
            limit = g_get_monotonic_time() + (int64_t)step_s * G_USEC_PER_SEC;
        if (!ended && !run->timed_out && g_get_monotonic_time() > limit) {
            run->timed_out = true;
            kill(-pid, SIGKILL);
        }
    }
    kill(-pid, SIGKILL); /* what the plugin may have started */
}

int davit_helper_spawn(char *const *argv, unsigned step_s, DavitHelperRun *run)
{
    const int64_t start = g_get_monotonic_time();
    Pipes p;
    pid_t pid;
    int error;

    *run = (DavitHelperRun){
        .lines = g_string_new(NULL), .output = g_string_new(NULL), .step_s = step_s};
    if (!open_pipes(&p))
        return errno;
    error = start_child(argv, &p, &pid);
    close_one(&p.result[1]);
    close_one(&p.output[1]);
    if (error == 0)
        watch(pid, &p, step_s, run);
    close_pipes(&p);
    run->t_ms = (double)(g_get_monotonic_time() - start) / 1000.0;
    return error;
}

void davit_helper_run_clear(DavitHelperRun *run)
{
    g_string_free(run->lines, TRUE);
    g_string_free(run->output, TRUE);
    g_free(run->what);
    g_free(run->who);
}
