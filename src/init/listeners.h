/* listeners - the TCP ports that something in this sandbox listens on.
 *
 * Read from /proc/net, which the kernel writes, by a worker. What is said of a socket is its address,
 * its port and its inode, by which who.h finds the program. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LISTENERS_MAX 256

struct listener {
    bool v6;
    unsigned char address[16]; /* in network order; of IPv4 the first four */
    uint16_t port;
    uint64_t inode;
};

/* The listening ones of /proc/net/tcp or tcp6: how many were put into `out`, at most `max`. What is
 * no such line is passed over. Pure. */
size_t listeners_parse(const char *p, size_t n, bool v6, struct listener *out, size_t max);
void listeners_run(int fd, char *payload, size_t n); /* answers on fd */
