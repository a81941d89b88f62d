/* peer - one end of a conversation: an HTTP server that shows what reached it, a socket or a pipe
 * in a shared directory, a connection to an address. `warren attack` drives both ends. */
#pragma once

/* argv[0] is the word. Exit status 0: it was said what happened. */
int peer_main(int argc, char **argv);
