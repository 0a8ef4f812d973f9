/* The rounds of kernelcheck --bench: memory, threads, times and the table. */
#include "tests/kernels/bench.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "kernels/pack12.h"

#define ROUNDS    5
#define CASES     64
#define HUGE_PAGE ((size_t)2 << 20)
#define STATES    (69 * BENCH_HEADS / 2) /* of heads: 207 MB */
#define X_FLOATS  ((size_t)BENCH_COLS * BENCH_VECTORS)
#define SMALL     (16 * BENCH_COLS)

struct worker {
    struct bench_thread t;
    const struct bench_case *work; /* NULL ends the thread */
    double taken;                  /* by the work */
    pthread_barrier_t *start, *stop;
    pthread_t thread;
};

/* Of this thread on a processor: what others take from it in between does not count. */
static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *area(size_t bytes)
{
    size_t whole = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    uint8_t *p = aligned_alloc(HUGE_PAGE, whole);
    if (!p) {
        fprintf(stderr, "kernelcheck: no memory for %zu MB\n", bytes >> 20);
        exit(1);
    }
    madvise(p, whole, MADV_HUGEPAGE);
    memset(p, 0, whole);
    return p;
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* About a normal distribution, as trained weights have. */
static float weight(uint64_t *state)
{
    float sum = 0;
    for (int i = 0; i < 8; i++)
        sum += (float)next_random(state) * 0x1p-31f - 0.5f;
    return sum * 0.03f;
}

static void fill(float *x, size_t n, uint64_t *state)
{
    for (size_t i = 0; i < n; i++)
        x[i] = weight(state) * 20.0f;
}

static void repeat(uint8_t *area, size_t bytes, size_t piece)
{
    for (size_t at = piece; at < bytes; at += piece)
        memcpy(area + at, area, bytes - at < piece ? bytes - at : piece);
}

static void open_data(struct bench_data *d)
{
    uint64_t state = 1;
    const size_t weights = (size_t)512 * BENCH_COLS;
    d->set = area(BENCH_SET_BYTES);
    for (size_t i = 0; i < weights; i++) {
        float w = weight(&state);
        memcpy(d->set + 2 * i, (uint8_t *)&w + 2, 2);
    }
    d->packed = area(BENCH_SET_BYTES / 4 * 3);
    d->packed_block = pack12_encode(d->packed, 2 * weights, d->set, 512, BENCH_COLS);
    d->packed_blocks = BENCH_SET_BYTES / 4 * 3 / d->packed_block;
    repeat(d->packed, d->packed_block * d->packed_blocks, d->packed_block);
    repeat(d->set, BENCH_SET_BYTES, 2 * weights);
    d->scale = area(BENCH_SET_BYTES / 16);
    for (size_t i = 0; i < BENCH_SET_BYTES / 16; i++)
        d->scale[i] = (uint8_t)(118 + i * 7 % 6);
    d->state_floats = (size_t)STATES * BENCH_DIM * BENCH_DIM;
    d->state = area(4 * d->state_floats);
    fill(d->state, (size_t)BENCH_DIM * BENCH_DIM, &state);
    repeat((uint8_t *)d->state, 4 * d->state_floats, 4 * BENCH_DIM * BENCH_DIM);
}

static void close_data(struct bench_data *d)
{
    free(d->set);
    free(d->packed);
    free(d->scale);
    free(d->state);
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    for (;;) {
        pthread_barrier_wait(w->start);
        if (!w->work)
            return NULL;
        double begin = seconds();
        w->work->run(&w->t, w->work->vectors);
        w->taken = seconds() - begin;
        pthread_barrier_wait(w->stop);
    }
}

/* y has room for the longest run of outputs: one vector over the rows of a band. */
static void worker_open(struct worker *w, const struct bench_data *d, size_t i, size_t threads)
{
    uint64_t state = i + 2;
    w->t = (struct bench_thread){.d = d, .index = i, .threads = threads};
    w->t.x = area(4 * X_FLOATS);
    w->t.y = area(4 * (BENCH_SET_BYTES / 128));
    w->t.small = area(4 * SMALL);
    fill(w->t.x, X_FLOATS, &state);
    fill(w->t.small, SMALL, &state);
}

static void report(const struct bench_case *c, double best, const double limit[3],
                   size_t threads)
{
    double rate = c->limit == BENCH_LIMIT_FMA ? c->flops / best : c->bytes / best;
    printf("%-16s", c->name);
    if (c->vectors)
        printf(" %4zu", c->vectors);
    else
        printf("     ");
    printf(" %8zu %10.3f", threads, best * 1e3);
    printf(c->bytes > 0 ? " %8.2f" : "        -", c->bytes / best * 1e-9);
    printf(c->flops > 0 ? " %8.1f" : "        -", c->flops / best * 1e-9);
    if (c->run && limit[c->limit] > 0)
        printf(" %5.1f %% of %s", 100.0 * rate / limit[c->limit],
               c->limit == BENCH_LIMIT_READ   ? "reading"
               : c->limit == BENCH_LIMIT_COPY ? "scaling in place"
                                              : "fma");
    printf("\n");
}

static double slowest(const struct worker *w, size_t threads)
{
    double most = 0;
    for (size_t i = 0; i < threads; i++)
        most = w[i].taken > most ? w[i].taken : most;
    return most;
}

static void measure(struct worker *w, size_t threads, const char *only)
{
    struct bench_case cases[CASES];
    double best[CASES], limit[3] = {0};
    size_t n = bench_cases(w->t.d, cases, CASES);
    for (size_t round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < n; i++) {
            if (i >= 3 && only && strncmp(cases[i].name, only, strlen(only)))
                continue;
            for (size_t j = 0; j < threads; j++)
                w[j].work = &cases[i];
            pthread_barrier_wait(w->start);
            pthread_barrier_wait(w->stop);
            double taken = slowest(w, threads);
            best[i] = round && best[i] < taken ? best[i] : taken;
        }
    cases[2].flops *= (double)threads;
    for (size_t i = 0; i < 3; i++)
        limit[i] = (i == 2 ? cases[i].flops : cases[i].bytes) / best[i];
    for (size_t i = 0; i < n; i++)
        if (i < 3 || !only || !strncmp(cases[i].name, only, strlen(only)))
            report(&cases[i], best[i], limit, threads);
}

static const struct bench_machine *machine_of(const char *set)
{
#if defined(__x86_64__)
    if (strcmp(set, "c"))
        return strcmp(set, "avx2") ? &bench_peak_avx512 : &bench_peak_avx2;
#endif
    return &bench_peak_c;
}

int bench_run(const struct kernels *k, size_t threads, const char *only)
{
    struct bench_data d = {.k = k, .machine = machine_of(k->name)};
    struct worker worker[BENCH_THREADS];
    pthread_barrier_t start, stop;
    open_data(&d);
    pthread_barrier_init(&start, NULL, (unsigned)threads + 1);
    pthread_barrier_init(&stop, NULL, (unsigned)threads + 1);
    for (size_t i = 0; i < threads; i++) {
        worker_open(&worker[i], &d, i, threads);
        worker[i].start = &start;
        worker[i].stop = &stop;
        pthread_create(&worker[i].thread, NULL, worker_main, &worker[i]);
    }
    printf("%s, best of %d rounds by the slowest thread's processor time, working set %zu MB\n",
           k->name, ROUNDS, BENCH_SET_BYTES >> 20);
    printf("kernel              T  threads         ms     GB/s  GFLOP/s\n");
    measure(worker, threads, only);
    for (size_t i = 0; i < threads; i++)
        worker[i].work = NULL;
    pthread_barrier_wait(&start);
    for (size_t i = 0; i < threads; i++) {
        pthread_join(worker[i].thread, NULL);
        free(worker[i].t.x);
        free(worker[i].t.y);
        free(worker[i].t.small);
    }
    close_data(&d);
    return 0;
}
