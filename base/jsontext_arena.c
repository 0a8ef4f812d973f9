/*
 * jansson's allocation hooks are one pair for the process. Ours go to the arena that the
 * calling thread has entered, and to malloc and free otherwise, so that having set them changes
 * nothing for anybody else.
 */
#include "base/jsontext_arena.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/mman.h>

#define ALIGN ((size_t)16)

static _Thread_local struct jsontext_arena *entered;

static void *take(size_t size)
{
    struct jsontext_arena *a = entered;

    if (!a)
        return malloc(size);
    if (size > a->size - a->used)
        return NULL;
    void *block = a->start + a->used;
    size_t whole = (size + ALIGN - 1) & ~(ALIGN - 1);
    a->used = whole < a->size - a->used ? a->used + whole : a->size;
    return block;
}

static void give(void *block)
{
    if (!entered)
        free(block);
}

int jsontext_arena_open(struct jsontext_arena *a, size_t size)
{
    void *start = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (start == MAP_FAILED)
        return -ENOMEM;
    *a = (struct jsontext_arena){.start = start, .size = size};
    json_set_alloc_funcs(take, give);
    return 0;
}

void jsontext_arena_close(struct jsontext_arena *a)
{
    munmap(a->start, a->size);
}

void jsontext_arena_enter(struct jsontext_arena *a)
{
    entered = a;
}

void jsontext_arena_leave(struct jsontext_arena *a)
{
    entered = NULL;
    a->used = 0;
}
