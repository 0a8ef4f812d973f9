/*
 * base/disk.h as if every disk that is opened were a device of its own with a fixed rate: for
 * measuring several disks on a machine that has one. Linked in place of the real one.
 */
#ifndef TESTS_EXPERTD_THROTTLED_DISK_H
#define TESTS_EXPERTD_THROTTLED_DISK_H

/* Bytes a second of the disks opened from now on. */
void throttled_disk_rate(double rate);

#endif
