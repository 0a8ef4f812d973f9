/*
 * The sub-commands of `kapok`: one file each. argv[0] is the command's name as it is typed
 * ("kapok run"), so that --help and errors say it. The result is the program's exit code.
 */
#ifndef CLIENT_COMMAND_H
#define CLIENT_COMMAND_H

enum command_exit { /* what scripts rely on (docs) */
                    COMMAND_DONE = 0,
                    COMMAND_FAILED = 1,
                    COMMAND_USAGE = 2,
                    COMMAND_UNAVAILABLE = 3, /* the coordinator does not answer */
                    COMMAND_INTERRUPTED = 130,
};

int command_up(int argc, char **argv);
int command_run(int argc, char **argv);
int command_status(int argc, char **argv);
int command_pack(int argc, char **argv);
int command_verify(int argc, char **argv);
int command_version(int argc, char **argv);

#endif
