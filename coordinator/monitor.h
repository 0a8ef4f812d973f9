/*
 * The monitor: asks every stage for its Stats every MONITOR_SECONDS, on a thread of its own, so
 * that the status page never waits for anybody and the scheduler is not disturbed.
 */
#ifndef COORDINATOR_MONITOR_H
#define COORDINATOR_MONITOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "coordinator/hub.h"

#define MONITOR_SECONDS 0.25 /* a reply is a few kilobytes */

struct monitor;

int monitor_open(struct monitor **ret_monitor, struct links *links, struct hub *hub);
int monitor_start(struct monitor *m);
void monitor_stop(struct monitor *m);
void monitor_close(struct monitor *m);

/* One stage as a JSON object: address, link, layers, tiles, counters, peers, areas, latencies.
 * A new reference. */
json_t *monitor_stage(struct monitor *m, size_t stage);

#endif
