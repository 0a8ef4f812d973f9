/* Command lines of a pipeline on one machine: see the header. */
#include "client/layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/port.h"

/* The folder of this program; the others lie beside it when installed and in the folders beside
 * it in a build tree. */
static int find_programs(struct layout *l, struct problems *p)
{
    ssize_t n = readlink("/proc/self/exe", l->programs, sizeof l->programs - 1);
    if (n <= 0) {
        problems_add(p, "cannot find out where this program lies: %s", strerror(errno));
        return -ENOENT;
    }
    l->programs[n] = 0;
    *strrchr(l->programs, '/') = 0;
    return 0;
}

static const char *program(const struct layout *l, const char *role, char *buf, size_t size)
{
    snprintf(buf, size, "%s/kapok-%s", l->programs, role);
    if (access(buf, X_OK))
        snprintf(buf, size, "%s/../%s/kapok-%s", l->programs, role, role);
    return buf;
}

static void add_checkpoint(struct child *c, const struct layout *l)
{
    child_add(c, "--checkpoint");
    child_add(c, "%s", l->options.checkpoint);
}

/* An address of this machine's own; port 0, when none was found, leaves it to the kernel. */
static const char *own_address(char *buf, size_t size)
{
    snprintf(buf, size, "tcp://127.0.0.1:%u", port_choose());
    return buf;
}

/* What every program is given. */
static void add_common(struct child *c, const struct layout *l, const struct rundir *d)
{
    char path[RUNDIR_PATH + 64];
    child_add(c, "--secret");
    child_add(c, "%s", rundir_file(d, "secret", path));
    if (l->options.log) {
        child_add(c, "--log");
        child_add(c, "%s", l->options.log);
    }
}

/* What the programs that compute are given besides. */
static void add_compute(struct child *c, const struct layout *l, uint64_t memory)
{
    const struct layout_options *o = &l->options;
    if (o->threads) {
        child_add(c, "--threads");
        child_add(c, "%llu", (unsigned long long)o->threads);
    }
    if (o->isa) {
        child_add(c, "--isa");
        child_add(c, "%s", o->isa);
    }
    if (memory) {
        child_add(c, "--memory");
        child_add(c, "%llu", (unsigned long long)memory);
    }
    if (o->buffered)
        child_add(c, "--buffered");
}

/* The i-th expertd's share of what is served. */
static void add_share(struct child *c, const struct layout *l, unsigned i)
{
    const struct option_list *regions = &l->options.regions;
    unsigned n = l->expertds;
    if (!regions->count) {
        add_checkpoint(c, l);
        child_add(c, "--bands");
        child_add(c, "%u-%u", l->shape.bands * i / n, l->shape.bands * (i + 1) / n - 1);
    }
    for (size_t r = regions->count * i / n; r < regions->count * (i + 1) / n; r++) {
        child_add(c, "--region");
        child_add(c, "%s", regions->item[r]);
    }
}

static void make_expertd(struct layout *l, unsigned i, const struct rundir *d)
{
    char name[32], path[600], address[40];
    struct child *c = &l->expertd[i];
    snprintf(name, sizeof name, "expertd%u", i);
    child_init(c, name, program(l, "expertd", path, sizeof path),
               own_address(address, sizeof address));
    add_common(c, l, d);
    add_compute(c, l, l->options.memory / 8 / l->expertds);
    add_share(c, l, i);
}

static int check_split(const char *flag, uint64_t parts, uint64_t things, uint64_t most,
                       const char *what, struct problems *p)
{
    uint64_t limit = things < most ? things : most;
    if (parts >= 1 && parts <= limit)
        return 0;
    problems_add(p, "--%s %llu: expected 1 to %llu (there are %llu %s)", flag,
                 (unsigned long long)parts, (unsigned long long)limit,
                 (unsigned long long)things, what);
    return -EINVAL;
}

static int check_counts(struct layout *l, struct problems *p)
{
    struct layout_options *o = &l->options;
    size_t regions = o->regions.count;
    if (regions > LAYOUT_EXPERTDS) {
        problems_add(p, "--region: %zu of them, at most %d", regions, LAYOUT_EXPERTDS);
        return -EINVAL;
    }
    if (!o->expertds)
        o->expertds = regions ? regions : 1;
    int r =
        regions
            ? check_split("expertds", o->expertds, regions, LAYOUT_EXPERTDS, "regions", p)
            : check_split("expertds", o->expertds, l->shape.bands, LAYOUT_EXPERTDS, "bands", p);
    return r ? r
             : check_split("stages", o->stages, l->shape.layers, LAYOUT_STAGES, "layers", p);
}

int layout_init(struct layout *l, const struct layout_options *o, const struct rundir *d,
                struct problems *p)
{
    *l = (struct layout){.options = *o};
    int r = shape_read(&l->shape, o->checkpoint, p);
    if (!r)
        r = find_programs(l, p);
    if (!r)
        r = check_counts(l, p);
    if (r)
        return r;
    l->expertds = (unsigned)l->options.expertds;
    l->stages = (unsigned)l->options.stages;
    for (unsigned i = 0; i < l->expertds; i++)
        make_expertd(l, i, d);
    return 0;
}

void layout_stages(struct layout *l, const struct rundir *d)
{
    char name[32], path[600], address[40];
    uint64_t memory = l->options.memory - l->options.memory / 8;
    for (unsigned i = 0; i < l->stages; i++) {
        struct child *c = &l->stage[i];
        unsigned first = l->shape.layers * i / l->stages;
        unsigned last = l->shape.layers * (i + 1) / l->stages - 1;
        snprintf(name, sizeof name, "trunk%u", i);
        child_init(c, name, program(l, "trunk", path, sizeof path),
                   own_address(address, sizeof address));
        add_checkpoint(c, l);
        add_common(c, l, d);
        add_compute(c, l, memory / l->stages);
        child_add(c, "--layers");
        child_add(c, "%u-%u", first, last);
        for (unsigned e = 0; e < l->expertds; e++) {
            child_add(c, "--expertd");
            child_add(c, "%s", child_address(&l->expertd[e]));
        }
    }
}

void layout_coordinator(struct layout *l, const struct rundir *d)
{
    char path[600];
    struct child *c = &l->coordinator;
    child_init(c, "coordinator", program(l, "coordinator", path, sizeof path),
               l->options.listen);
    add_checkpoint(c, l);
    add_common(c, l, d);
    for (unsigned i = 0; i < l->stages; i++) {
        child_add(c, "--trunk");
        child_add(c, "%s", child_address(&l->stage[i]));
    }
    if (l->options.prefill_chunk) {
        child_add(c, "--prefill-chunk");
        child_add(c, "%llu", (unsigned long long)l->options.prefill_chunk);
    }
}

void layout_print(struct layout *l, FILE *out)
{
    for (unsigned i = 0; layout_child(l, i); i++) {
        const struct child *c = layout_child(l, i);
        for (unsigned a = 0; a < c->arguments; a++)
            fprintf(out, "%s%s", a ? " " : "", c->argument[a]);
        fputc('\n', out);
    }
}

void layout_fini(struct layout *l)
{
    for (unsigned i = 0; layout_child(l, i); i++)
        child_fini(layout_child(l, i));
}

struct child *layout_child(struct layout *l, unsigned i)
{
    if (i < l->expertds)
        return &l->expertd[i];
    i -= l->expertds;
    if (i < l->stages)
        return &l->stage[i];
    return i == l->stages ? &l->coordinator : NULL;
}
