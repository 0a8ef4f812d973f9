/* Rows are cut into pieces of PIECE numbers, so that one row keeps all threads busy too; only
 * the norm needs a row whole. */
#include "trunk/rowwise.h"

#include "trunk/parallel.h"

#define PIECE 1024  /* a multiple of KERNELS_GROUP */
#define LIGHT 32768 /* numbers to copy or add, below which one thread is as fast as all */
#define HEAVY 2048  /* the same for exponentials */

struct rowwise_work {
    const struct pass *pass;
    float *y;
    const float *x;
    size_t n, pieces;
};

/* Threads for so many numbers. */
static unsigned threads_for(const struct pass *p, size_t numbers, size_t alone)
{
    return numbers < alone ? 1 : p->threads;
}

/* Piece i of all: its row, its first number, how many. */
struct piece {
    size_t row, from, count;
};

static struct piece piece_of(const struct rowwise_work *w, size_t i)
{
    size_t from = i % w->pieces * PIECE;
    size_t count = w->n - from < PIECE ? w->n - from : PIECE;
    return (struct piece){i / w->pieces, from, count};
}

static void over_pieces(struct rowwise_work w, size_t rows, size_t alone, parallel_work *work)
{
    if (w.pass->error)
        return;
    w.pieces = (w.n + PIECE - 1) / PIECE;
    size_t items = rows * w.pieces;
    unsigned threads = threads_for(w.pass, rows * w.n, alone);
    parallel_run(threads, items, parallel_grain(threads, items, 1), work, &w);
}

static void lane_pieces(void *context, struct parallel_range range)
{
    const struct rowwise_work *w = context;
    size_t stride = kernels_padded(w->n);
    for (size_t i = range.first; i < range.end; i++) {
        struct piece c = piece_of(w, i);
        w->pass->kernels->lane_order(w->y + c.row * stride + c.from,
                                     w->x + c.row * w->n + c.from, c.count);
    }
}

void rowwise_lane(struct pass *p, float *out, const float *x, size_t rows, size_t n)
{
    over_pieces((struct rowwise_work){p, out, x, n, 0}, rows, LIGHT, lane_pieces);
}

static void norm_rows(void *context, struct parallel_range range)
{
    const struct rowwise_work *w = context;
    for (size_t t = range.first; t < range.end; t++)
        w->pass->kernels->rms_norm(w->y + t * w->n, w->y + t * w->n, w->x, w->n,
                                   w->pass->shape->norm_eps);
}

void rowwise_norm(struct pass *p, float *x, const float *gain, size_t rows, size_t n)
{
    struct rowwise_work w = {p, x, gain, n, 0};
    if (!p->error)
        parallel_run(threads_for(p, rows * n, LIGHT), rows, 1, norm_rows, &w);
}

static void add_pieces(void *context, struct parallel_range range)
{
    const struct rowwise_work *w = context;
    for (size_t i = range.first; i < range.end; i++) {
        struct piece c = piece_of(w, i);
        size_t at = c.row * w->n + c.from;
        for (size_t j = at; j < at + c.count; j++)
            w->y[j] = w->y[j] + w->x[j];
    }
}

void rowwise_add(struct pass *p, float *y, const float *x, size_t rows, size_t n)
{
    over_pieces((struct rowwise_work){p, y, x, n, 0}, rows, LIGHT, add_pieces);
}

static void situ_pieces(void *context, struct parallel_range range)
{
    const struct rowwise_work *w = context;
    for (size_t i = range.first; i < range.end; i++) {
        struct piece c = piece_of(w, i);
        size_t at = c.row * w->n + c.from;
        w->pass->kernels->situ_glu(w->y + at, w->y + at, w->x + at, c.count,
                                   w->pass->shape->situ);
    }
}

void rowwise_situ(struct pass *p, float *gate, const float *up, size_t rows, size_t n)
{
    over_pieces((struct rowwise_work){p, gate, up, n, 0}, rows, HEAVY, situ_pieces);
}

static void gate_pieces(void *context, struct parallel_range range)
{
    const struct rowwise_work *w = context;
    for (size_t i = range.first; i < range.end; i++) {
        struct piece c = piece_of(w, i);
        size_t at = c.row * w->n + c.from;
        w->pass->kernels->gate(w->y + at, w->y + at, w->x + at, c.count);
    }
}

void rowwise_gate(struct pass *p, float *y, const float *gate, size_t rows, size_t n)
{
    over_pieces((struct rowwise_work){p, y, gate, n, 0}, rows, HEAVY, gate_pieces);
}
