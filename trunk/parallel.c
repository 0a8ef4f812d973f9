/*
 * Ranges are handed out as threads become free: on shared machines threads are not equally
 * fast. Which thread gets which never matters to a result.
 */
#include "trunk/parallel.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#define RANGES_PER_THREAD 4

static unsigned own_number(void)
{
#ifdef _OPENMP
    return (unsigned)omp_get_thread_num();
#else
    return 0;
#endif
}

static void run_range(size_t i, size_t items, size_t grain, parallel_work *work, void *context)
{
    size_t first = i * grain, end = items - first < grain ? items : first + grain;
    work(context, (struct parallel_range){first, end, own_number()});
}

void parallel_run(unsigned threads, size_t items, size_t grain, parallel_work *work,
                  void *context)
{
    size_t ranges = (items + grain - 1) / grain;
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads)                                                  \
    schedule(dynamic, 1) if (threads > 1 && ranges > 1)
#endif
    for (size_t i = 0; i < ranges; i++)
        run_range(i, items, grain, work, context);
}

size_t parallel_grain(unsigned threads, size_t items, size_t unit)
{
    size_t ranges = (size_t)threads * RANGES_PER_THREAD;
    size_t grain = (items + ranges - 1) / ranges;
    return (grain + unit - 1) / unit * unit;
}
