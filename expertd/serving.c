/*
 * Memory: what requests and workers need is fixed by the shape and the options; the slots take
 * the rest of the budget, but no more than there are experts. Two slots are the floor: one
 * being read, one being computed.
 */
#include "expertd/serving.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "expertd/counts_file.h"
#include "expertd/dispatch.h"
#include "expertd/serving_sources.h"

#define SLOTS_LEAST 2
#define GREETINGS   16 /* requests under way beside the Computes */

struct serving {
    struct serving_options options;
    struct serving_sources sources;
    struct memory memory;
    struct tally tally;
    struct job_pool pool;
    struct crew crew;
    struct drive *drive; /* one for each source */
    size_t drives_open, drives_run;
    struct dispatch dispatch;
    struct queue incoming;
    struct link_server *server;
    const struct kernels *kernels;
    uint8_t secret[SECRET_BYTES];
    int counts; /* how loading them ended */
    bool dispatch_runs;
};

static size_t requests_most(const struct serving *s)
{
    return (size_t)s->options.requests + GREETINGS;
}

static int choose_kernels(struct serving *s, struct problems *p)
{
    const char *reason = "";
    s->kernels = kernels_best(s->options.isa, &reason);
    if (s->kernels)
        return 0;
    problems_add(p, "--isa: %s", reason);
    return -EINVAL;
}

/* ---- memory ---------------------------------------------------------------------------- */

/* Bytes that one more slot in every drive takes. */
static uint64_t slot_bytes(const struct serving *s)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < s->sources.count; i++)
        bytes += drive_slot_bytes(&s->sources.source[i]) + sizeof(struct cache_entry);
    return bytes;
}

/* Wants of one request at most. */
static size_t wants_most(const struct serving *s)
{
    return s->sources.shape.experts * s->sources.count;
}

/* Without slots. */
static uint64_t fixed_bytes(const struct serving *s)
{
    const struct shape *h = &s->sources.shape;
    uint32_t rows = (uint32_t)s->options.rows;
    uint64_t bytes = s->memory.taken + 16 * DISK_PAGE; /* areas are rounded up to a page */
    for (size_t i = 0; i < s->sources.count; i++)
        bytes += drive_bytes(&s->sources.source[i], 0);
    return bytes + job_pool_bytes(h, s->options.requests, rows, wants_most(s)) +
           crew_bytes(h, (unsigned)s->options.threads, rows);
}

static int choose_slots(const struct serving *s, size_t *ret_slots, struct problems *p)
{
    uint64_t budget = s->options.memory, fixed = fixed_bytes(s), each = slot_bytes(s);
    uint64_t floor = fixed + SLOTS_LEAST * each, most = SLOTS_LEAST;
    if (budget < floor) {
        problems_add(p,
                     "--memory: %" PRIu64 " bytes given, at least %" PRIu64
                     " are needed: %d experts of %" PRIu64 " and %" PRIu64 " for %" PRIu64
                     " requests of %" PRIu64 " rows and %" PRIu64 " threads",
                     budget, floor, SLOTS_LEAST, each, fixed, s->options.requests,
                     s->options.rows, s->options.threads);
        return -ENOMEM;
    }
    for (size_t i = 0; i < s->sources.count; i++)
        if (s->sources.source[i].experts_held > most)
            most = s->sources.source[i].experts_held;
    uint64_t slots = (budget - fixed) / each;
    *ret_slots = (size_t)(slots < most ? slots : most);
    return 0;
}

static int open_drives(struct serving *s, size_t slots)
{
    size_t wants = s->options.requests * s->sources.shape.experts;
    int r = 0;
    s->drive = calloc(s->sources.count, sizeof *s->drive);
    if (!s->drive)
        return -ENOMEM;
    for (size_t i = 0; !r && i < s->sources.count; i++) {
        r = drive_open(&s->drive[i], &s->sources.source[i], &s->crew, slots, wants, &s->memory);
        s->drives_open += !r;
    }
    return r;
}

static int take_memory(struct serving *s, struct problems *p)
{
    const struct shape *h = &s->sources.shape;
    size_t slots = 0;
    int r = choose_slots(s, &slots, p);
    if (r)
        return r;
    s->memory.budget = s->options.memory;
    r = job_pool_open(&s->pool, h, s->options.requests, (uint32_t)s->options.rows,
                      wants_most(s), &s->memory);
    s->pool.tally = &s->tally;
    if (!r)
        r = crew_open(&s->crew, &s->pool, s->kernels, (unsigned)s->options.threads, &s->memory);
    if (!r)
        r = open_drives(s, slots);
    if (r)
        problems_add(p, "--memory: taking %" PRIu64 " bytes: %s", s->options.memory,
                     strerror(-r));
    return r;
}

/* ---- counts of use ---------------------------------------------------------------------- */

static void list_worths(const struct serving *s, struct worth *list[SERVING_REGIONS])
{
    for (size_t i = 0; i < s->drives_open; i++)
        list[i] = &s->drive[i].cache.worth;
}

static void load_counts(struct serving *s)
{
    struct worth *list[SERVING_REGIONS];
    list_worths(s, list);
    if (s->options.counts)
        s->counts =
            counts_file_load(s->options.counts, s->sources.digest, list, s->drives_open);
}

static void save_counts(struct serving *s)
{
    struct worth *list[SERVING_REGIONS];
    list_worths(s, list);
    if (s->options.counts && s->dispatch_runs)
        counts_file_save(s->options.counts, s->sources.digest, list, s->drives_open);
}

/* ---- open, start, close ---------------------------------------------------------------- */

static void wire(struct serving *s)
{
    const struct shape *h = &s->sources.shape;
    s->dispatch = (struct dispatch){
        .shape = h,
        .kernels = s->kernels,
        .tiles = &s->sources.tiles,
        .memory = &s->memory,
        .tally = &s->tally,
        .pool = &s->pool,
        .crew = &s->crew,
        .drive = s->drive,
        .drives = s->sources.count,
        .incoming = &s->incoming,
        .payload_most =
            compute_bytes(h, (uint32_t)s->options.rows, s->options.rows * h->chosen),
    };
}

static int open_parts(struct serving *s, struct problems *p)
{
    int r = choose_kernels(s, p);
    if (!r)
        r = secret_load(s->options.secret, s->secret, p);
    if (!r)
        r = serving_sources_open(&s->sources, &s->options, &s->memory, p);
    if (!r)
        r = take_memory(s, p);
    if (!r)
        r = queue_open(&s->incoming, requests_most(s));
    return r;
}

int serving_open(struct serving **ret_serving, const struct serving_options *o,
                 struct problems *p)
{
    struct serving *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->options = *o;
    if (!s->options.threads)
        s->options.threads = thread_cpus();
    memory_init(&s->memory, 0); /* the budget counts from when the floor is known */
    int r = open_parts(s, p);
    if (r) {
        serving_close(s);
        return r;
    }
    load_counts(s);
    wire(s);
    *ret_serving = s;
    return 0;
}

static int listen_now(struct serving *s, struct problems *p)
{
    struct link_server_options o = {
        .address = s->options.listen,
        .payload_most = s->dispatch.payload_most,
        .requests = (unsigned)requests_most(s),
        .incoming = &s->incoming,
    };
    memcpy(o.secret, s->secret, sizeof o.secret);
    memcpy(o.model, s->sources.digest, sizeof o.model);
    return link_server_open(&s->server, &o, p);
}

static int start_threads(struct serving *s)
{
    int r = crew_start(&s->crew);
    for (; !r && s->drives_run < s->sources.count; s->drives_run += !r)
        r = drive_start(&s->drive[s->drives_run]);
    if (!r && getrandom(&s->dispatch.instance, sizeof s->dispatch.instance, 0) < 0)
        r = -errno;
    if (!r)
        r = dispatch_start(&s->dispatch, requests_most(s));
    s->dispatch_runs = !r;
    return r;
}

int serving_start(struct serving *s, struct problems *p)
{
    int r = start_threads(s);
    if (r) {
        problems_add(p, "starting threads: %s", strerror(-r));
        return r;
    }
    return listen_now(s, p);
}

void serving_close(struct serving *s)
{
    if (!s)
        return;
    if (s->incoming.item)
        queue_close(&s->incoming);
    if (s->dispatch_runs)
        dispatch_stop(&s->dispatch);
    while (s->drives_run)
        drive_stop(&s->drive[--s->drives_run]);
    if (s->crew.worker)
        crew_stop(&s->crew);
    save_counts(s);
    link_server_close(s->server);
    while (s->drives_open)
        drive_close(&s->drive[--s->drives_open]);
    free(s->drive);
    crew_close(&s->crew);
    job_pool_close(&s->pool);
    serving_sources_close(&s->sources);
    memory_fini(&s->memory);
    if (s->incoming.item)
        queue_free(&s->incoming);
    free(s);
}

const char *serving_address(const struct serving *s)
{
    return link_server_address(s->server);
}

uint64_t serving_tiles(const struct serving *s)
{
    return tile_set_count(&s->sources.tiles, &s->sources.shape);
}

bool serving_checks(const struct serving *s)
{
    for (size_t i = 0; i < s->sources.count; i++)
        if (!s->sources.source[i].sums)
            return false;
    return true;
}

int serving_counts(const struct serving *s)
{
    return s->counts;
}

void serving_print_memory(const struct serving *s, FILE *out)
{
    memory_print(&s->memory, out);
}
