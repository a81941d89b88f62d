/* probe - does something in this sandbox answer on a port of its loopback?
 *
 * Done by a worker, with plain blocking calls that each have a deadline. What it talks to is the
 * sandbox's own and may say anything: of an HTTP answer only the first line is read. */
#pragma once
#include <stddef.h>

void probe_run(int fd, char *payload, size_t n); /* answers on fd */
