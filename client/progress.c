/* Rate and time left come from the whole run so far: disks are bursty. */
#include "client/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/thread.h"

#define WIDTH 30

void progress_init(struct progress *p, const char *what, uint64_t total, uint64_t done)
{
    *p = (struct progress){.what = what,
                           .total = total,
                           .first = done,
                           .terminal = isatty(STDERR_FILENO),
                           .begun = thread_now()};
}

static void line(const struct progress *p, uint64_t done, const char *end)
{
    double share = p->total ? (double)done / (double)p->total : 1;
    double seconds = thread_now() - p->begun;
    double rate = seconds > 0 ? (double)(done - p->first) / seconds : 0;
    char bar[WIDTH + 1], left[48] = "";
    for (int i = 0; i < WIDTH; i++)
        bar[i] = i < (int)(share * WIDTH) ? '#' : '.';
    bar[WIDTH] = '\0';
    if (rate > 0 && done < p->total) {
        unsigned long s = (unsigned long)((double)(p->total - done) / rate);
        snprintf(left, sizeof left, ", %lu:%02lu:%02lu left", s / 3600, s / 60 % 60, s % 60);
    }
    fprintf(stderr, "%s%s [%s] %5.1f %%  %.2f of %.2f GB, %.0f MB/s%s%s",
            p->terminal ? "\r\033[K" : "", p->what, bar, 100 * share, 1e-9 * (double)done,
            1e-9 * (double)p->total, 1e-6 * rate, left, end);
}

void progress_draw(struct progress *p, uint64_t done)
{
    double now = thread_now(), pause = p->terminal ? 0.2 : 10;
    if (now - (p->drawn ? p->drawn : p->begun) < pause)
        return;
    p->drawn = now;
    line(p, done, p->terminal ? "" : "\n");
}

void progress_fini(struct progress *p, uint64_t done)
{
    line(p, done, "\n");
}
