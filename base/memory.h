/*
 * Memory taken at start, by name, from a budget: what a process holds is a table that can be
 * printed, and nothing is allocated in a step.
 *
 * Large areas lie on 2 MiB huge pages (aligned mmap, MADV_HUGEPAGE): first touch is five times
 * cheaper and O_DIRECT reads into them much faster. One thread takes; any thread uses.
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MEMORY_AREAS 96
#define MEMORY_HUGE  ((size_t)2 << 20)

struct memory_area {
    const char *name; /* static text */
    void *start;
    size_t bytes;
};

struct memory {
    uint64_t budget; /* bytes; 0: unbounded */
    uint64_t taken;
    size_t areas;
    struct memory_area area[MEMORY_AREAS];
};

void memory_init(struct memory *m, uint64_t budget);
void memory_fini(struct memory *m); /* gives everything back */

/* Zeroed, 4096-aligned (2 MiB-aligned from 2 MiB on). -ENOMEM when the budget or the machine
 * has no room, -ENOSPC when the table is full. bytes 0 gives a valid pointer of no use. */
int memory_take(struct memory *m, const char *name, size_t bytes, void **ret_start);

/* Once, at the start of a program that exchanges large messages: the allocator keeps what it
 * was given. Otherwise every large message is mapped and faulted in anew, which is dear. */
void memory_keep_freed(void);

/* Bytes the process holds by the kernel's account (VmRSS), 0 when unknown. */
uint64_t memory_resident(void);

/* The table, one area a line, largest first, with budget and total. */
void memory_print(const struct memory *m, FILE *out);

#endif
