/* Inputs and comparisons of kernelcheck: see the header. */
#include "tests/kernels/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FAILURES_SHOWN 20

bool check_turn(struct check *c)
{
    return c->shapes++ % c->every == 0;
}

/* splitmix64: the same inputs in every run */
uint64_t check_random(struct check *c)
{
    uint64_t z = c->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

size_t check_below(struct check *c, size_t end)
{
    return (size_t)(check_random(c) % end);
}

float check_value(struct check *c, enum check_fill fill)
{
    uint64_t r = check_random(c);
    float sign = r & 1 ? -1.0f : 1.0f, unit = (float)(r >> 40) * 0x1p-24f;
    switch (fill) {
    case CHECK_FILL_ZERO:
        return sign * (float)((r >> 1) % 8 == 0);
    case CHECK_FILL_DENORMAL:
        return sign * ldexpf(unit, -126 - (int)((r >> 1) % 20));
    case CHECK_FILL_EXTREME:
        return sign * ldexpf(1.0f + unit, (int)((r >> 1) % 120) - 60);
    case CHECK_FILL_CANCEL:
        return sign * (float)((r >> 1) % 3);
    default:
        return sign * 4.0f * unit * unit;
    }
}

static size_t slack;

void check_slack(size_t bytes)
{
    slack = bytes;
}

static size_t whole_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page + page;
}

void *check_take(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), all = whole_pages(bytes + slack);
    uint8_t *area = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED || mprotect(area + all - page, page, PROT_NONE)) {
        perror("kernelcheck: memory");
        exit(1);
    }
    return area + all - page - bytes - slack;
}

void check_give(void *area, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), all = whole_pages(bytes + slack);
    munmap((uint8_t *)area + bytes + slack + page - all, all);
}

void check_fill_floats(struct check *c, float *x, size_t n, enum check_fill fill)
{
    for (size_t i = 0; i < n; i++)
        x[i] = check_value(c, fill);
}

float *check_floats(struct check *c, size_t n, enum check_fill fill)
{
    float *x = check_take(n * sizeof *x);
    check_fill_floats(c, x, n, fill);
    return x;
}

static bool same(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

void check_same(struct check *c, const char *what, const float *want, const float *got,
                size_t n)
{
    c->cases++;
    for (size_t i = 0; i < n; i++) {
        if (same(want[i], got[i]))
            continue;
        if (c->failures++ < FAILURES_SHOWN)
            printf("%s: %s: element %zu of %zu is %a, not %a\n", c->got->name, what, i, n,
                   (double)got[i], (double)want[i]);
        return;
    }
}

void check_true(struct check *c, const char *what, bool is_true)
{
    c->cases++;
    if (!is_true && c->failures++ < FAILURES_SHOWN)
        printf("%s: %s\n", c->got->name, what);
}
