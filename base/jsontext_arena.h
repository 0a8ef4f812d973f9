/*
 * Memory for JSON trees that are read once and dropped whole, such as half a million tensors'
 * headers: one mapping per thread, handed out by counting up, emptied at once. malloc and free
 * of the small nodes were two fifths of the time to open a checkpoint. It also bounds what a
 * hostile document can make the parser take.
 *
 * Between enter and leave, on this thread, all of jansson's memory is the arena's: nothing made
 * there may be used, or freed with json_decref(), after leave. Other threads and other times
 * keep malloc.
 */
#ifndef BASE_JSONTEXT_ARENA_H
#define BASE_JSONTEXT_ARENA_H

#include <stddef.h>

struct jsontext_arena {
    char *start;
    size_t size, used;
};

/* Reserves `size` bytes of addresses; only what a tree touches becomes memory. -ENOMEM. */
int jsontext_arena_open(struct jsontext_arena *a, size_t size);
void jsontext_arena_close(struct jsontext_arena *a);

void jsontext_arena_enter(struct jsontext_arena *a);
void jsontext_arena_leave(struct jsontext_arena *a); /* empties it */

#endif
