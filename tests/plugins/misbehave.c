/* SPDX-License-Identifier: Apache-2.0
 * A good plugin that does something it must not at one place: one build per place and deed.
 * NAME and one of CTOR, DTOR, ENTRY, START, CREATE, PROBE, DESTROY, QUIESCE (statements) come
 * from CMakeLists.txt. */
#include "toy.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef CTOR
#define CTOR (void)0
#endif
#ifndef DTOR
#define DTOR (void)0
#endif
#ifndef ENTRY
#define ENTRY (void)0
#endif
#ifndef START
#define START (void)0
#endif
#ifndef CREATE
#define CREATE (void)0
#endif
#ifndef PROBE
#define PROBE (void)0
#endif
#ifndef DESTROY
#define DESTROY (void)0
#endif
#ifndef QUIESCE
#define QUIESCE (void)0
#endif
#define UNUSED __attribute__((unused))

/* ---- deeds ---- */

/* A sanitizer would catch a real bad access and exit: the signal itself, unhandled. */
UNUSED static void die(int number)
{
    signal(number, SIG_DFL);
    raise(number);
}

UNUSED static void hang(void)
{
    for (;;)
        pause();
}

UNUSED static void burn(void)
{
    for (volatile unsigned i = 0;; i++)
        ;
}

UNUSED static void say(int fd, const char *text, size_t n)
{
    if (write(fd, text, n) != (ssize_t)n)
        _exit(1);
}

UNUSED static void print_much(void)
{
    for (int i = 0; i < 20000; i++)
        puts("=dlopen {\"status\":0} \033[31mnoise");
    fflush(stdout);
}

UNUSED static void leave_child(void)
{
    if (fork() == 0) {
        for (;;)
            pause();
    }
}

/* A mark that code of this file has run: a file in the directory of DAVIT_TEST_MARK. */
UNUSED static void leave_mark(void)
{
    const char *path = getenv("DAVIT_TEST_MARK");
    FILE *mark = path ? fopen(path, "w") : NULL;

    if (mark)
        fclose(mark);
}

/* ---- places ---- */

__attribute__((constructor)) static void constructor(void)
{
    CTOR;
}

__attribute__((destructor)) static void destructor(void)
{
    DTOR;
}

static int32_t on_probe(const davit_probe_in *in, davit_verdict *out,
                        const davit_sink *sink)
{
    PROBE;
    return toy_probe(in, out, sink);
}

static int32_t on_create(void *ctx, const davit_create_in *in, void **out_self,
                         const davit_sink *sink)
{
    static int self;

    (void)ctx;
    (void)in;
    (void)sink;
    CREATE;
    *out_self = &self;
    return DAVIT_OK;
}

static void on_destroy(void *self)
{
    (void)self;
    DESTROY;
}

static int32_t on_start(const davit_host *host, void **out_ctx, const davit_sink *sink)
{
    (void)host;
    (void)sink;
    START;
    *out_ctx = NULL;
    return DAVIT_OK;
}

static void on_quiesce(void *ctx)
{
    (void)ctx;
    QUIESCE;
}

const davit_bundle *inner_entry(const davit_hello *hello, const davit_sink *sink);
#define davit_plugin_entry_v1 inner_entry
DAVIT_COMPONENT(toy, DAVIT_KIND_FORMAT, "org.example." NAME, "ext=toy", DAVIT_INSPECT, 50,
                .probe = on_probe, .create = on_create, .destroy = on_destroy,
                .iface = &toy_format);
DAVIT_PLUGIN_START("org.example.bundle." NAME, NAME, "Example", "1.0.0", "MIT", on_start,
                   on_quiesce, &toy);
#undef davit_plugin_entry_v1

const davit_bundle *davit_plugin_entry_v1(const davit_hello *hello,
                                          const davit_sink *sink)
{
    ENTRY;
    return inner_entry(hello, sink);
}
