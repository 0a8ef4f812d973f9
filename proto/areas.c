/* The memory table in a StatsReply: see the header. */
#include "proto/areas.h"

void areas_write(struct areas *a, const struct memory *m, Kapok__StatsReply *r)
{
    for (size_t i = 0; i < m->areas; i++) {
        kapok__area_stats__init(&a->area[i]);
        a->area[i].name = (char *)m->area[i].name;
        a->area[i].bytes = m->area[i].bytes;
        a->list[i] = &a->area[i];
    }
    r->n_areas = m->areas;
    r->areas = a->list;
}
