/*
 * One line per event on stderr: time, level, program, message, then key=value pairs.
 *
 * Libraries do not log; the program that decides logs, once. Any thread may call; a line is
 * one write, so lines of several processes on one descriptor do not mix.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/problems.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Once, before threads. `program` must outlive the process. */
void log_init(const char *program, enum log_level lowest);

/* "debug", "info", "warn", "error"; -EINVAL otherwise. */
int log_level_parse(const char *name, enum log_level *ret_level);

/* printf-like; no newline at the end. Control characters come out as spaces. */
void log_write(enum log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Every sentence of `p` as a line of its own. */
void log_problems(enum log_level level, const struct problems *p);

#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)  log_write(LOG_INFO, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__)

#endif
