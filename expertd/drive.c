/*
 * The drive's loop: mail, start what can be started, reap, again. With nothing under way it
 * sleeps on its mailbox; with reads under way it sleeps on the disk, in naps short enough that
 * new mail does not wait noticeably (a read of an expert takes milliseconds).
 */
#include "expertd/drive.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "expertd/trial.h"

#define NAP        0.0002 /* seconds */
#define REREADS    1      /* of a tile with a wrong checksum */
#define AHEAD_ROOM 4096   /* experts; older hints than that are stale */

static size_t reads_room(const struct source *s)
{
    return DRIVE_DEPTH + s->reads_most;
}

size_t drive_slot_bytes(const struct source *s)
{
    return (s->slot_bytes + DISK_PAGE - 1) / DISK_PAGE * DISK_PAGE;
}

uint64_t drive_bytes(const struct source *s, size_t slots)
{
    return cache_table_bytes(s->shape, slots) + reads_room(s) * sizeof(struct drive_read) +
           AHEAD_ROOM * sizeof(struct drive_ahead) +
           (uint64_t)DRIVE_HINTS * s->shape->experts * sizeof(uint16_t) + 4 * DISK_PAGE;
}

static int take_memory(struct drive *d, struct memory *m)
{
    void *reads, *ahead, *experts;
    size_t hint = d->source->shape->experts * sizeof(uint16_t);
    int r = memory_take(m, "reads", reads_room(d->source) * sizeof *d->read, &reads);
    if (!r)
        r = memory_take(m, "read-ahead", AHEAD_ROOM * sizeof *d->ahead, &ahead);
    if (!r)
        r = memory_take(m, "hints", DRIVE_HINTS * hint, &experts);
    if (r)
        return r;
    d->read = reads;
    d->ahead = ahead;
    d->ahead_room = AHEAD_ROOM;
    for (size_t i = 0; i < DRIVE_HINTS; i++) {
        d->hint[i].note.kind = NOTE_HINT;
        d->hint[i].expert = (uint16_t *)((uint8_t *)experts + i * hint);
    }
    return 0;
}

int drive_open(struct drive *d, struct source *s, struct crew *crew, size_t slots, size_t wants,
               struct memory *m)
{
    *d = (struct drive){.source = s, .crew = crew, .pool = crew->pool, .tally = crew->tally};
    d->stop.kind = NOTE_STOP;
    int r = take_memory(d, m);
    if (!r)
        r = cache_open(&d->cache, s->shape, slots, drive_slot_bytes(s), m);
    if (!r)
        r = queue_open(&d->mail, wants + DRIVE_HINTS + 1);
    if (!r)
        r = queue_open(&d->hints, DRIVE_HINTS);
    if (!r)
        r = disk_open(&d->disk, DRIVE_DEPTH);
    if (r) {
        drive_close(d);
        return r;
    }
    for (size_t i = 0; i < DRIVE_HINTS; i++)
        queue_offer(&d->hints, &d->hint[i]);
    for (size_t i = 0; i < reads_room(s); i++) {
        d->read[i].next = d->idle;
        d->idle = &d->read[i];
    }
    d->reads_idle = reads_room(s);
    return 0;
}

void drive_close(struct drive *d)
{
    disk_close(d->disk);
    d->disk = NULL;
    if (d->hints.item)
        queue_free(&d->hints);
    if (d->mail.item)
        queue_free(&d->mail);
    d->hints.item = d->mail.item = NULL;
}

/* ---- what others say ------------------------------------------------------------------- */

void drive_want(struct drive *d, struct want *w)
{
    w->note.kind = NOTE_WANT;
    queue_put(&d->mail, w);
}

void drive_done(struct drive *d, struct want *w)
{
    w->note.kind = NOTE_DONE;
    queue_put(&d->mail, w);
}

void drive_bad(struct drive *d, struct want *w)
{
    w->note.kind = NOTE_BAD;
    queue_put(&d->mail, w);
}

void drive_hint(struct drive *d, uint32_t layer, const uint32_t *expert, size_t count)
{
    void *item;
    if (queue_take(&d->hints, 0, &item))
        return;
    struct drive_hint *h = item;
    h->layer = layer;
    h->count = 0;
    for (size_t i = 0; i < count && i < d->source->shape->experts; i++)
        if (source_bands(d->source, layer, expert[i]))
            h->expert[h->count++] = (uint16_t)expert[i];
    queue_put(&d->mail, h);
}

struct region_tile drive_tile(const struct drive *d, const struct cache_entry *e,
                              const uint32_t place[3])
{
    struct source_plan plan;
    source_plan(d->source, place, e->bands, &plan);
    return source_tile(d->source, &plan, place, e->bytes);
}

bool drive_sound(const struct drive *d, struct cache_entry *e, const uint32_t place[3],
                 const struct region_tile *t, uint8_t *scratch)
{
    uint64_t band = (uint64_t)1 << place[2];
    if (!d->source->sums || e->checked & band)
        return true;
    if (!source_sound(d->source, t, place, scratch))
        return false;
    e->checked |= band;
    return true;
}

/* ---- wants ----------------------------------------------------------------------------- */

static void count_read(struct drive *d, struct want *w)
{
    struct cache_entry *e = w->entry;
    unsigned bands = (unsigned)__builtin_popcountll(w->bands);
    struct job *j = w->job;
    enum tally_count which = e->unclaimed ? TALLY_TILES_READ : TALLY_TILES_HIT;
    tally_add(d->tally, which, bands);
    if (!e->unclaimed) {
        j->tiles_hit += bands;
        return;
    }
    j->tiles_read += bands;
    j->bytes_read += e->unclaimed;
    e->unclaimed = 0;
    if (e->ahead)
        tally_add(d->tally, TALLY_AHEAD_USED, 1);
    e->ahead = false;
}

/* The want's bytes are there. */
static void serve(struct drive *d, struct want *w)
{
    count_read(d, w);
    crew_give(d->crew, w);
}

static void come_back(struct drive *d, struct want *w)
{
    if (w->entry)
        cache_unpin(&d->cache, w->entry);
    w->entry = NULL;
    job_put(d->pool, w->job);
}

static void fail(struct drive *d, struct want *w, struct cache_entry *e)
{
    job_fail(w->job, e->error, "layer %u expert %u: reading %s: %s", e->layer, e->expert,
             source_path(d->source, e->error_file), strerror(-e->error));
    crew_close_want(d->crew, w);
    come_back(d, w);
}

/* Joins an entry that holds, or will hold, the want's bands. */
static bool join(struct drive *d, struct want *w)
{
    struct cache_entry *e = cache_find(&d->cache, w->job->compute.layer, w->expert, w->bands);
    if (!e)
        return false;
    cache_pin(&d->cache, e);
    w->entry = e;
    if (e->state == CACHE_READY) {
        serve(d, w);
    } else {
        if (!e->waiting)
            d->demand++;
        w->next = e->waiting;
        e->waiting = w;
    }
    return true;
}

static void count_use(struct drive *d, const struct want *w)
{
    if (w->opens)
        cache_visit(&d->cache, w->job->compute.layer);
    cache_use(&d->cache, w->job->compute.layer, w->expert);
}

static void wait_for_slot(struct drive *d, struct want *w)
{
    w->next = NULL;
    if (d->first)
        d->last->next = w;
    else
        d->first = w;
    d->last = w;
}

/* What was read is not what was packed: forgotten, and read once more. The bands that were
 * right have been computed. */
static void read_again(struct drive *d, struct want *w)
{
    struct cache_entry *e = w->entry;
    uint32_t band = (uint32_t)__builtin_ctzll(w->bad);
    tally_add(d->tally, TALLY_TILES_BAD, (unsigned)__builtin_popcountll(w->bad));
    if (e->state == CACHE_READY)
        cache_drop(&d->cache, e);
    cache_unpin(&d->cache, e);
    w->entry = NULL;
    w->bands = w->bad;
    w->bad = 0;
    if (w->rereads++ < REREADS) {
        wait_for_slot(d, w);
        return;
    }
    job_fail(w->job, -EIO,
             "layer %u expert %u band %u: %s does not hold what was packed (checksum)",
             w->job->compute.layer, w->expert, band, source_path(d->source, e->error_file));
    crew_close_want(d->crew, w);
    come_back(d, w);
}

static void take_hint(struct drive *d, struct drive_hint *h)
{
    for (size_t i = 0; i < h->count; i++) {
        if (d->ahead_count == d->ahead_room) { /* the oldest is stale */
            d->ahead_head = (d->ahead_head + 1) % d->ahead_room;
            d->ahead_count--;
        }
        size_t at = (d->ahead_head + d->ahead_count++) % d->ahead_room;
        d->ahead[at] = (struct drive_ahead){h->layer, h->expert[i]};
    }
    queue_offer(&d->hints, h);
}

static void take_note(struct drive *d, struct note *n)
{
    switch (n->kind) {
    case NOTE_WANT:
        count_use(d, (struct want *)n);
        if (!join(d, (struct want *)n))
            wait_for_slot(d, (struct want *)n);
        break;
    case NOTE_DONE:
        come_back(d, (struct want *)n);
        break;
    case NOTE_BAD:
        read_again(d, (struct want *)n);
        break;
    case NOTE_HINT:
        take_hint(d, (struct drive_hint *)n);
        break;
    case NOTE_STOP:
        d->stopping = true;
        break;
    }
}

/* ---- reads ----------------------------------------------------------------------------- */

static void submit(struct drive *d, struct cache_entry *e)
{
    struct source_plan plan;
    source_plan(d->source, (uint32_t[]){e->layer, e->expert}, e->bands, &plan);
    e->reads_left = (unsigned)plan.reads;
    e->error = 0;
    e->unclaimed = 0;
    e->checked = 0;
    e->error_file = plan.read[0].file;
    for (size_t i = 0; i < plan.reads; i++) {
        struct drive_read *r = d->idle;
        d->idle = r->next;
        d->reads_idle--;
        r->file = plan.read[i].file;
        r->disk.fd = d->source->fd[r->file];
        r->disk.offset = plan.read[i].offset;
        r->disk.length = plan.read[i].length;
        r->disk.buffer = e->bytes + plan.read[i].at;
        r->disk.owner = e;
        d->bytes_flying += r->disk.length;
        disk_submit(d->disk, &r->disk);
    }
}

static bool may_submit(const struct drive *d)
{
    return d->bytes_flying < d->bytes_wanted + d->source->slot_bytes &&
           disk_pending(d->disk) < DRIVE_DEPTH && d->reads_idle >= d->source->reads_most;
}

/* Gives demands their slots, in order, as far as slots and depth go. */
static void start_demands(struct drive *d)
{
    while (d->first && may_submit(d)) {
        struct want *w = d->first;
        struct want *next = w->next;
        if (!join(d, w)) { /* another may have begun the same expert meanwhile */
            uint32_t layer = w->job->compute.layer;
            struct cache_entry *e = cache_take(&d->cache, layer, w->expert, w->bands);
            if (!e)
                return;
            e->ahead = false;
            e->waiting = NULL;
            submit(d, e);
            join(d, w);
        }
        d->first = next;
    }
}

static void start_ahead(struct drive *d)
{
    while (!d->first && !d->demand && d->ahead_count && may_submit(d)) {
        struct drive_ahead a = d->ahead[d->ahead_head];
        uint64_t bands = source_bands(d->source, a.layer, a.expert);
        if (!cache_find(&d->cache, a.layer, a.expert, bands)) {
            struct cache_entry *e = cache_take(&d->cache, a.layer, a.expert, bands);
            if (!e)
                return;
            e->ahead = true;
            e->waiting = NULL;
            tally_add(d->tally, TALLY_AHEAD_READ, 1);
            submit(d, e);
        }
        d->ahead_head = (d->ahead_head + 1) % d->ahead_room;
        d->ahead_count--;
    }
}

static void arrived(struct drive *d, struct cache_entry *e)
{
    struct want *w = e->waiting, *next;
    if (w)
        d->demand--;
    e->waiting = NULL;
    if (e->error)
        cache_drop(&d->cache, e);
    else
        e->state = CACHE_READY;
    for (; w; w = next) {
        next = w->next;
        if (e->error) {
            fail(d, w, e);
            continue;
        }
        uint64_t us = (uint64_t)(1e6 * (thread_now() - w->job->begun));
        if (us > w->job->us_reading)
            w->job->us_reading = us;
        serve(d, w);
    }
    cache_unpin(&d->cache, e);
}

static void reaped(struct drive *d, struct disk_read *disk)
{
    struct drive_read *r = (struct drive_read *)disk;
    struct cache_entry *e = disk->owner;
    d->bytes_flying -= disk->length;
    tally_add(d->tally, TALLY_READS, 1);
    tally_add(d->tally, TALLY_BYTES_READ, disk->fetched);
    tally_time(d->tally, TALLY_READ, disk->ended - disk->started);
    e->unclaimed += disk->fetched;
    if (disk->error) {
        tally_add(d->tally, TALLY_READS_FAILED, 1);
        e->error = disk->error;
        e->error_file = r->file;
    }
    r->next = d->idle;
    d->idle = r;
    d->reads_idle++;
    if (--e->reads_left == 0)
        arrived(d, e);
}

/* ---- the thread ------------------------------------------------------------------------ */

static void take_mail(struct drive *d, double wait)
{
    void *note;
    for (; !queue_take(&d->mail, wait, &note); wait = 0)
        take_note(d, note);
}

static bool has_mail(void *context)
{
    struct drive *d = context;
    return queue_count(&d->mail) > 0;
}

/* Slots lie one after the other, so the first of them are the room for it. */
static void measure(struct drive *d)
{
    struct trial t = {.disk = d->disk,
                      .source = d->source,
                      .room = d->cache.entry[0].bytes,
                      .wanted = has_mail,
                      .context = d};
    bool room = d->cache.slots * d->cache.slot_bytes >= TRIAL_ROOM;
    d->bytes_wanted = room ? trial(&t) : TRIAL_UNDER;
    tally_add(d->tally, TALLY_BYTES_AHEAD, d->bytes_wanted);
}

/* When nothing is under way after all that can be started has been, only mail changes that. */
static void run(void *context)
{
    struct drive *d = context;
    measure(d);
    while (!d->stopping) {
        start_demands(d);
        start_ahead(d);
        if (!disk_pending(d->disk)) {
            take_mail(d, -1);
            continue;
        }
        take_mail(d, 0);
        struct disk_read *r = disk_reap(d->disk, NAP);
        for (; r; r = disk_reap(d->disk, 0))
            reaped(d, r);
    }
    while (disk_pending(d->disk))
        reaped(d, disk_reap(d->disk, -1));
}

int drive_start(struct drive *d)
{
    return thread_start(&d->thread, "drive", run, d);
}

void drive_stop(struct drive *d)
{
    queue_put(&d->mail, &d->stop);
    thread_join(&d->thread);
}
