/*
 * Areas are anonymous mappings, never malloc: they come zeroed without being touched, lie where
 * huge pages can, and count by the page. The budget counts what was taken, whether touched yet
 * or not, because all of it will be.
 */
#include "base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"

#define PAGE ((size_t)4096)

void memory_init(struct memory *m, uint64_t budget)
{
    memset(m, 0, sizeof *m);
    m->budget = budget;
}

void memory_fini(struct memory *m)
{
    for (size_t i = 0; i < m->areas; i++)
        munmap(m->area[i].start, m->area[i].bytes);
    m->areas = 0;
    m->taken = 0;
}

/* Maps one huge page more than wanted and gives back what lies outside the alignment. */
static void *map_huge(size_t bytes)
{
    uint8_t *start = mmap(NULL, bytes + MEMORY_HUGE, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    size_t before = (size_t)(-(uintptr_t)start & (MEMORY_HUGE - 1));
    if (before > 0)
        munmap(start, before);
    munmap(start + before + bytes, MEMORY_HUGE - before);
    madvise(start + before, bytes, MADV_HUGEPAGE); /* a kernel without them is only slower */
    return start + before;
}

static void *map_small(size_t bytes)
{
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

int memory_take(struct memory *m, const char *name, size_t bytes, void **ret_start)
{
    if (bytes > SIZE_MAX / 2)
        return -ENOMEM;
    size_t whole = bytes > 0 ? (bytes + PAGE - 1) & ~(PAGE - 1) : PAGE;
    if (m->areas == MEMORY_AREAS)
        return -ENOSPC;
    if (m->budget > 0 && (m->taken > m->budget || whole > m->budget - m->taken))
        return -ENOMEM;
    void *start = whole >= MEMORY_HUGE ? map_huge(whole) : map_small(whole);
    if (!start)
        return -ENOMEM;
    m->area[m->areas++] = (struct memory_area){.name = name, .start = start, .bytes = whole};
    m->taken += whole;
    *ret_start = start;
    return 0;
}

uint64_t memory_resident(void)
{
    char *text;
    size_t length;
    uint64_t kilobytes = 0;

    if (file_read("/proc/self/status", 65536, &text, &length) < 0)
        return 0;
    const char *line = strstr(text, "\nVmRSS:");
    if (line && sscanf(line + 7, "%" SCNu64, &kilobytes) != 1)
        kilobytes = 0;
    free(text);
    return kilobytes * 1024;
}

static int larger_first(const void *a, const void *b)
{
    const struct memory_area *x = a, *y = b;

    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : strcmp(x->name, y->name);
}

static void print_line(FILE *out, const char *name, uint64_t bytes)
{
    fprintf(out, "%-32s %16" PRIu64 " bytes %10.1f MiB\n", name, bytes,
            (double)bytes / (1 << 20));
}

void memory_print(const struct memory *m, FILE *out)
{
    struct memory_area sorted[MEMORY_AREAS];

    memcpy(sorted, m->area, sizeof sorted);
    qsort(sorted, m->areas, sizeof sorted[0], larger_first);
    for (size_t i = 0; i < m->areas; i++)
        print_line(out, sorted[i].name, sorted[i].bytes);
    print_line(out, "total", m->taken);
    if (m->budget > 0)
        print_line(out, "budget", m->budget);
    else
        fprintf(out, "%-32s %16s\n", "budget", "unbounded");
}

void memory_keep_freed(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_TOP_PAD, 64 << 20);
}
