/*
 * The log. The line is put together on the stack and leaves in one write(2), which the kernel
 * does not mix with another process's on a pipe up to PIPE_BUF and practically never on a file
 * or terminal. A line that does not fit ends in "...".
 *
 * The level and the program's name are the one piece of state of a process that is not passed
 * around: they are set once, before threads.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_ROOM 4096 /* PIPE_BUF */

static const char *const level_names[] = {"debug", "info", "warn", "error"};

static const char *log_program = "kapok";
static enum log_level log_lowest = LOG_INFO;

void log_init(const char *program, enum log_level lowest)
{
    log_program = program;
    log_lowest = lowest;
}

int log_level_parse(const char *name, enum log_level *ret_level)
{
    for (size_t i = 0; i < sizeof level_names / sizeof level_names[0]; i++)
        if (!strcmp(name, level_names[i])) {
            *ret_level = (enum log_level)i;
            return 0;
        }
    return -EINVAL;
}

static size_t put_head(char *line, size_t room, enum log_level level)
{
    struct timespec now;
    struct tm utc;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t used = strftime(line, room, "%Y-%m-%dT%H:%M:%S", &utc);
    int head = snprintf(line + used, room - used, ".%03ldZ %s %.64s ", now.tv_nsec / 1000000,
                        level_names[level], log_program);
    return used + (head > 0 ? (size_t)head : 0);
}

static void write_all(const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = write(STDERR_FILENO, bytes, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* nobody listens; there is no other place to say so */
        bytes += n;
        length -= (size_t)n;
    }
}

void log_write(enum log_level level, const char *format, ...)
{
    char line[LINE_ROOM];
    int saved = errno;
    va_list args;

    if (level < log_lowest)
        return;
    size_t head = put_head(line, sizeof line, level);
    size_t room = sizeof line - head - 1; /* the newline's byte is kept free */
    va_start(args, format);
    int wanted = vsnprintf(line + head, room, format, args);
    va_end(args);

    size_t length = wanted < 0 ? 0 : (size_t)wanted;
    if (length >= room) {
        length = room - 1;
        memcpy(line + head + length - 3, "...", 3);
    }
    for (size_t i = head; i < head + length; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 127)
            line[i] = ' ';
    line[head + length] = '\n';
    write_all(line, head + length + 1);
    errno = saved;
}

void log_problems(enum log_level level, const struct problems *p)
{
    for (const char *line = p->text; *line;) {
        size_t n = strcspn(line, "\n");
        log_write(level, "%.*s", (int)n, line);
        line += n + (line[n] == '\n');
    }
}
