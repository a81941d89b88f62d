/* wire - raw bytes to the API's port, and the raw answer. Blocks, with limits. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct attack;

int wire_open(const struct attack *a); /* a socket, or -errno */
bool wire_send(int fd, const void *p, size_t n);
/* Read until the peer closes (true) or is silent for quiet_ms (false). */
bool wire_read(int fd, struct buf *out, int quiet_ms);
int wire_status(const struct buf *answer);    /* of the first answer; 0: none */
unsigned wire_answers(const struct buf *all); /* how many answers begin in there */
const char *wire_host(const struct attack *a, char *out, size_t n); /* for the field Host */
