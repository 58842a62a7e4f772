/* SPDX-License-Identifier: Apache-2.0
 * Snapshots of process state around foreign code. */
#include "plugin/process_state.h"

#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#define N_SIGNALS 65 /* 1 to 64 on Linux */

struct DavitProcessState {
    fenv_t fenv;
    uint32_t fp_control;
    struct sigaction signals[N_SIGNALS];
    bool has_signal[N_SIGNALS];
    long umask;   /* -1 = unknown */
    long threads; /* -1 = unknown */
    char *locale;
    char *cwd;  /* NULL = unknown */
    int cwd_fd; /* -1 = none */
};

/* Rounding, flush-to-zero and masks; not the sticky exception flags. */
static uint32_t fp_control(void)
{
#if defined(__x86_64__)
    return _mm_getcsr() & ~0x3fu;
#elif defined(__aarch64__)
    uint64_t fpcr;

    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return (uint32_t)fpcr;
#else
    return (uint32_t)fegetround();
#endif
}

/* Number behind "@key:" in /proc/self/status in @base, -1 if it is not there. Reading
 * umask this way does not change it for a moment, as umask(2) would. */
static long status_number(const char *status, const char *key, int base)
{
    const char *line = strstr(status, key);

    return line ? strtol(line + strlen(key), NULL, base) : -1;
}

static void read_status(DavitProcessState *s)
{
    g_autofree char *text = NULL;

    s->umask = s->threads = -1;
    if (!g_file_get_contents("/proc/self/status", &text, NULL, NULL))
        return;
    s->umask = status_number(text, "\nUmask:", 8);
    s->threads = status_number(text, "\nThreads:", 10);
}

DavitProcessState *davit_process_state_take(void)
{
    DavitProcessState *s = g_new0(DavitProcessState, 1);

    fegetenv(&s->fenv);
    s->fp_control = fp_control();
    for (int i = 1; i < N_SIGNALS; i++)
        s->has_signal[i] = sigaction(i, NULL, &s->signals[i]) == 0;
    s->locale = g_strdup(setlocale(LC_ALL, NULL));
    s->cwd = g_get_current_dir();
    s->cwd_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    read_status(s);
    return s;
}

void davit_process_state_free(DavitProcessState *state)
{
    if (!state)
        return;
    if (state->cwd_fd >= 0)
        close(state->cwd_fd);
    g_free(state->locale);
    g_free(state->cwd);
    g_free(state);
}

/* ---- comparing ---- */

typedef struct Compare {
    const char *who, *stage;
    DavitReport *report;
    size_t n;
} Compare;

static void differs(Compare *c, const char *what, const char *before, const char *after,
                    bool restored)
{
    davit_report_add(
        c->report,
        &(DavitFinding){.code = DAVIT_R_SIDE_EFFECT,
                        .severity = DAVIT_WARNING,
                        .stage = c->stage,
                        .who = c->who,
                        .subject = what,
                        .expected = before ? before : "unchanged",
                        .found = after ? after : "changed",
                        .message = restored ? "plugin code changed process state; it was "
                                              "put back"
                                            : "plugin code changed process state; it "
                                              "cannot be put back",
                        .hint = "tell the plugin's author"});
    c->n++;
}

static bool same_handler(const struct sigaction *a, const struct sigaction *b)
{
    const bool info_a = (a->sa_flags & SA_SIGINFO) != 0;

    if (info_a != ((b->sa_flags & SA_SIGINFO) != 0))
        return false;
    return info_a ? a->sa_sigaction == b->sa_sigaction : a->sa_handler == b->sa_handler;
}

static void restore_signals(const DavitProcessState *before, const DavitProcessState *now,
                            Compare *c)
{
    for (int i = 1; i < N_SIGNALS; i++) {
        if (!before->has_signal[i] || !now->has_signal[i] ||
            same_handler(&before->signals[i], &now->signals[i]))
            continue;
        differs(c, davit_report_text(c->report, "handler of signal %d", i), NULL,
                strsignal(i), sigaction(i, &before->signals[i], NULL) == 0);
    }
}

static void restore_numbers(const DavitProcessState *before, const DavitProcessState *now,
                            Compare *c)
{
    if (before->fp_control != now->fp_control)
        differs(c, "floating-point control",
                davit_report_text(c->report, "0x%x", before->fp_control),
                davit_report_text(c->report, "0x%x", now->fp_control),
                fesetenv(&before->fenv) == 0);
    if (before->umask != now->umask && before->umask >= 0) {
        umask((mode_t)before->umask);
        differs(c, "umask", davit_report_text(c->report, "%03lo", before->umask),
                davit_report_text(c->report, "%03lo", now->umask), true);
    }
    if (now->threads > before->threads && before->threads >= 0)
        differs(c, "threads", davit_report_text(c->report, "%ld", before->threads),
                davit_report_text(c->report, "%ld", now->threads), false);
}

static void restore_places(const DavitProcessState *before, const DavitProcessState *now,
                           Compare *c)
{
    if (g_strcmp0(before->locale, now->locale) != 0)
        differs(c, "locale", before->locale, now->locale,
                setlocale(LC_ALL, before->locale) != NULL);
    if (g_strcmp0(before->cwd, now->cwd) != 0)
        differs(c, "working directory", before->cwd, now->cwd,
                before->cwd_fd >= 0 && fchdir(before->cwd_fd) == 0);
}

size_t davit_process_state_restore(const DavitProcessState *before, const char *who,
                                   const char *stage, DavitReport *report)
{
    g_autoptr(DavitProcessState) now = davit_process_state_take();
    Compare c = {.who = who, .stage = stage, .report = report};

    restore_numbers(before, now, &c);
    restore_signals(before, now, &c);
    restore_places(before, now, &c);
    return c.n;
}
