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

#include "expertd/dispatch.h"

#define SLOTS_LEAST 2
#define GREETINGS   16 /* requests under way beside the Computes */

struct serving {
    struct serving_options options;
    struct checkpoint checkpoint;
    struct tile_set tiles;
    struct memory memory;
    struct source source;
    struct tally tally;
    struct job_pool pool;
    struct crew crew;
    struct drive drive;
    struct dispatch dispatch;
    struct queue incoming;
    struct link_server *server;
    const struct kernels *kernels;
    uint8_t secret[SECRET_BYTES];
    bool drive_runs, dispatch_runs;
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

static size_t slot_stride(const struct serving *s)
{
    return (s->source.slot_bytes + DISK_PAGE - 1) / DISK_PAGE * DISK_PAGE;
}

static uint64_t need(const struct serving *s, size_t slots)
{
    const struct shape *h = &s->checkpoint.shape;
    uint32_t rows = (uint32_t)s->options.rows;
    uint64_t pages = 24 * DISK_PAGE; /* every area is rounded up to a page */
    return s->memory.taken + pages + job_pool_bytes(h, s->options.requests, rows, h->experts) +
           crew_bytes(h, (unsigned)s->options.threads, rows) + drive_bytes(&s->source, slots) +
           slots * slot_stride(s);
}

static int choose_slots(const struct serving *s, size_t *ret_slots, struct problems *p)
{
    uint64_t budget = s->options.memory, floor = need(s, SLOTS_LEAST);
    uint64_t each = slot_stride(s) + sizeof(struct cache_entry);
    if (budget < floor) {
        problems_add(p,
                     "--memory: %" PRIu64 " bytes given, at least %" PRIu64
                     " are needed: %d experts of %zu and %" PRIu64 " for %" PRIu64
                     " requests of %" PRIu64 " rows and %" PRIu64 " threads",
                     budget, floor, SLOTS_LEAST, slot_stride(s),
                     floor - SLOTS_LEAST * slot_stride(s), s->options.requests, s->options.rows,
                     s->options.threads);
        return -ENOMEM;
    }
    uint64_t slots = SLOTS_LEAST + (budget - floor) / each;
    if (slots > s->source.experts_held)
        slots = s->source.experts_held;
    *ret_slots = slots < SLOTS_LEAST ? SLOTS_LEAST : (size_t)slots;
    return 0;
}

static int take_memory(struct serving *s, struct problems *p)
{
    const struct shape *h = &s->checkpoint.shape;
    size_t slots = 0, wants = s->options.requests * h->experts;
    int r = choose_slots(s, &slots, p);
    if (r)
        return r;
    s->memory.budget = s->options.memory;
    r = job_pool_open(&s->pool, h, s->options.requests, (uint32_t)s->options.rows, h->experts,
                      &s->memory);
    s->pool.tally = &s->tally;
    if (!r)
        r = crew_open(&s->crew, &s->pool, s->kernels, (unsigned)s->options.threads, &s->memory);
    if (!r)
        r = drive_open(&s->drive, &s->source, &s->crew, slots, wants, &s->memory);
    if (r)
        problems_add(p, "--memory: taking %" PRIu64 " bytes: %s", s->options.memory,
                     strerror(-r));
    return r;
}

/* ---- open, start, close ---------------------------------------------------------------- */

static void wire(struct serving *s)
{
    s->dispatch = (struct dispatch){
        .shape = &s->checkpoint.shape,
        .kernels = s->kernels,
        .tiles = &s->tiles,
        .memory = &s->memory,
        .tally = &s->tally,
        .pool = &s->pool,
        .crew = &s->crew,
        .drive = &s->drive,
        .drives = 1,
        .incoming = &s->incoming,
        .payload_most = compute_bytes(&s->checkpoint.shape, (uint32_t)s->options.rows,
                                      s->options.rows * s->checkpoint.shape.chosen),
    };
}

static int open_parts(struct serving *s, struct problems *p)
{
    const struct serving_options *o = &s->options;
    int r = choose_kernels(s, p);
    if (!r)
        r = secret_load(o->secret, s->secret, p);
    if (!r)
        r = checkpoint_open(&s->checkpoint, o->checkpoint, p);
    if (!r)
        r = tile_set_parse(&s->tiles, &s->checkpoint.shape, o->layers, o->experts, o->bands, p);
    if (!r)
        r = source_open(&s->source, &s->checkpoint, &s->tiles, o->buffered, &s->memory, p);
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
    memcpy(o.model, s->checkpoint.digest, sizeof o.model);
    return link_server_open(&s->server, &o, p);
}

int serving_start(struct serving *s, struct problems *p)
{
    int r = crew_start(&s->crew);
    if (!r) {
        r = drive_start(&s->drive);
        s->drive_runs = !r;
    }
    if (!r && getrandom(&s->dispatch.instance, sizeof s->dispatch.instance, 0) < 0)
        r = -errno;
    if (!r) {
        r = dispatch_start(&s->dispatch, requests_most(s));
        s->dispatch_runs = !r;
    }
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
    if (s->drive_runs)
        drive_stop(&s->drive);
    if (s->crew.worker)
        crew_stop(&s->crew);
    link_server_close(s->server);
    drive_close(&s->drive);
    crew_close(&s->crew);
    job_pool_close(&s->pool);
    source_close(&s->source);
    checkpoint_close(&s->checkpoint);
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
    return tile_set_count(&s->tiles, &s->checkpoint.shape);
}

void serving_print_memory(const struct serving *s, FILE *out)
{
    memory_print(&s->memory, out);
}
