/* SPDX-License-Identifier: Apache-2.0
 * A fixed table that the handler can read without a lock. Calls in the handler are mmap,
 * sigaction and raise: the last two are async-signal-safe, the first is a bare system call. */
#include "source/guard.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_RANGES 4096u

typedef struct Range {
    _Atomic uintptr_t base; /* 0 = free */
    _Atomic size_t n_bytes; /* 0 while the entry is being filled */
} Range;

static Range ranges[MAX_RANGES];
static atomic_uint losses;
static uintptr_t page_size;
static struct sigaction before; /* handler that was there */

unsigned davit_guard_losses(void)
{
    return atomic_load(&losses);
}

void davit_guard_add(const void *base, size_t n_bytes)
{
    for (size_t i = 0; i < MAX_RANGES; i++) {
        uintptr_t expected = 0;
        if (atomic_compare_exchange_strong(&ranges[i].base, &expected, (uintptr_t)base)) {
            atomic_store(&ranges[i].n_bytes, n_bytes);
            return;
        }
    }
}

void davit_guard_remove(const void *base)
{
    for (size_t i = 0; i < MAX_RANGES; i++)
        if (atomic_load(&ranges[i].base) == (uintptr_t)base) {
            atomic_store(&ranges[i].n_bytes, 0);
            atomic_store(&ranges[i].base, 0);
            return;
        }
}

/* Zeros from the lost page to the end of the range: what follows a cut is lost, too. */
static int cover(uintptr_t at, uintptr_t end)
{
    const uintptr_t page = at & ~(page_size - 1);
    return mmap((void *)page, end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                0) != MAP_FAILED;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    (void)context;
    const uintptr_t at = (uintptr_t)info->si_addr;
    for (size_t i = 0; i < MAX_RANGES; i++) {
        const uintptr_t base = atomic_load(&ranges[i].base);
        const size_t n_bytes = atomic_load(&ranges[i].n_bytes);
        if (base && at >= base && at - base < n_bytes && cover(at, base + n_bytes)) {
            atomic_fetch_add(&losses, 1);
            return;
        }
    }
    sigaction(number, &before, NULL); /* whoever was there: the fault is none of ours */
    raise(number);
}

void davit_guard_install(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &before);
}
