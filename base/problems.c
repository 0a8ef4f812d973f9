/*
 * The list of sentences. Nothing is allocated: a check that runs out of memory while it says
 * what is wrong would say nothing. Sentences quote names from outside, so control characters
 * become spaces and a line of the list is always one sentence.
 */
#include "base/problems.h"

#include <stdarg.h>
#include <stdio.h>

void problems_init(struct problems *p)
{
    p->text[0] = '\0';
    p->length = 0;
    p->count = 0;
}

void problems_add(struct problems *p, const char *format, ...)
{
    char sentence[sizeof p->text - 1]; /* alone in the list, the longest still fits */
    va_list args;

    p->count++;
    va_start(args, format);
    int wanted = vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    if (wanted < 0)
        return;
    size_t length = (size_t)wanted < sizeof sentence ? (size_t)wanted : sizeof sentence - 1;

    size_t newline = p->length > 0;
    if (p->length + newline + length >= sizeof p->text)
        return;
    if (newline)
        p->text[p->length++] = '\n';
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)sentence[i];
        p->text[p->length++] = c < ' ' || c == 127 ? ' ' : sentence[i];
    }
    p->text[p->length] = '\0';
}
