/* What the parts of a layer share: see the header. */
#include "trunk/pass.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#define PASS_GRAIN 32 /* floats */

void pass_fail(struct pass *p, int error, const char *format, ...)
{
    if (p->error)
        return;
    p->error = error;
    va_list values;
    va_start(values, format);
    vsnprintf(p->reason, sizeof p->reason, format, values);
    va_end(values);
}

size_t pass_room(size_t n)
{
    return (n + PASS_GRAIN - 1) / PASS_GRAIN * PASS_GRAIN;
}

float *pass_floats(struct pass *p, size_t n)
{
    float *at = p->scratch + p->scratch_used;
    p->scratch_used += pass_room(n);
    assert(p->scratch_used <= p->scratch_room);
    return at;
}

size_t pass_mark(const struct pass *p)
{
    return p->scratch_used;
}

void pass_release(struct pass *p, size_t mark)
{
    p->scratch_used = mark;
}

float *pass_own(const struct pass *p, unsigned thread)
{
    return p->own + thread * p->own_room;
}

float *pass_source(const struct pass *p, uint32_t i)
{
    return p->source + (size_t)i * p->rows_most * p->shape->hidden;
}

float *pass_running(const struct pass *p)
{
    return pass_source(p, p->sources - 1);
}

bool pass_block(struct pass *p, enum weights_role role, struct weights_block *ret_block)
{
    if (p->error)
        return false;
    int r = weights_take(p->weights, ret_block);
    if (r) {
        pass_fail(p, r, "%s", weights_error(p->weights));
        return false;
    }
    assert(ret_block->entry->role == role);
    (void)role;
    return true;
}
