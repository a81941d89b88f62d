/* resolvers - whom this machine asks for names, as /etc/resolv.conf has it. */
#pragma once

#define RESOLVERS_SIZE 160 /* three addresses with commas */

/* The first three that are plain addresses; empty: there are none. */
void resolvers_read(const char *path, char out[RESOLVERS_SIZE]);
