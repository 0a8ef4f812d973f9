/* kapok version. */
#include <stdio.h>

#include "client/command.h"

int command_version(int argc, char **argv)
{
    puts("kapok " KAPOK_VERSION);
    return COMMAND_DONE;
}
