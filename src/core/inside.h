/* inside - short questions to a sandbox's init: is anything running, and please end it.
 *
 * Whoever is root inside may have taken init over, so every answer is bounded in size and every
 * wait has a deadline; a failure means only that we go on without the courtesy. */
#pragma once
#include <stdint.h>

#include "core/core.h"
#include "wire/broker.h"

int inside_ping(struct core *core, const char *id, uint64_t *ret_procs);
/* Whether something in it takes connections on this port of its loopback; with a path, what an
 * HTTP GET there is answered with. */
int inside_probe(struct core *core, const char *id, uint32_t port, const char *path,
                 uint64_t *ret_status);
/* Which programs have these sockets open: `n` texts, "" where it is not known. */
int inside_who(struct core *core, const char *id, const uint32_t *inodes, size_t n,
               char (*ret_programs)[BROKER_PROGRAM_SIZE]);
/* The TCP sockets of it that listen: at most `max` were put into ret_list. */
struct inside_listener {
    unsigned port;
    char address[48];
    uint32_t inode;
};
int inside_listeners(struct core *core, const char *id, struct inside_listener *ret_list,
                     size_t max, size_t *ret_n);
/* Asks what runs to end, waits for it a little; what stays is the keeper's to kill. */
void inside_shutdown(struct core *core, const char *id);
