/* kapok: the command a person types. Finds the sub-command and hands it the rest of the line.
 */
#include <stdio.h>
#include <string.h>

#include "client/command.h"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *purpose;
} commands[] = {
    {"up", command_up, "start a pipeline on this machine, and stop it on Ctrl-C"},
    {"run", command_run, "continue a prompt"},
    {"status", command_status, "show what a pipeline is doing"},
    {"pack", command_pack, "pack experts into a region for serving"},
    {"verify", command_verify, "read a region or a checkpoint and compare its checksums"},
    {"version", command_version, "print the version"},
};

#define COMMANDS (sizeof commands / sizeof commands[0])

static void usage(FILE *out)
{
    fputs("usage: kapok COMMAND [OPTIONS]\n\n", out);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-8s  %s\n", commands[i].name, commands[i].purpose);
    fputs("\nkapok COMMAND --help says more.\n", out);
}

int main(int argc, char **argv)
{
    if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help"))) {
        usage(stdout);
        return COMMAND_DONE;
    }
    if (argc > 1 && !strcmp(argv[1], "--version"))
        return command_version(argc - 1, argv + 1);
    for (size_t i = 0; argc > 1 && i < COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name))
            continue;
        char name[32];
        snprintf(name, sizeof name, "kapok %s", argv[1]);
        argv[1] = name;
        return commands[i].run(argc - 1, argv + 1);
    }
    if (argc > 1)
        fprintf(stderr, "kapok: there is no command '%s'\n", argv[1]);
    usage(stderr);
    return COMMAND_USAGE;
}
