/* peer - one end of a conversation that `warren attack` drives: an HTTP server that shows what
 * reached it, a socket or a pipe in a shared directory, a connection to an address. */
#pragma once

/* argv[0] is the command. Exit status 0: it printed what happened. */
int peer_main(int argc, char **argv);
