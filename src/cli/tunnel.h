/* tunnel - one local connection, carried to a port of a sandbox in a WebSocket.
 *
 * libcurl makes the connection to the daemon (TLS, proxies, the admin socket: as for every other
 * request) and is then a pipe for bytes; the caller polls. Each direction is read only as fast as the
 * other end takes it. A Close frame stands for the end of a TCP stream. Nothing blocks. */
#pragma once
#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cli/client.h"

struct tunnel;

/* Takes local_fd, also on failure. `path` is the API's; the handle joins multi, where its connection
 * is made. */
int tunnel_new(struct client *client, CURLM *multi, const char *path, int local_fd,
               struct tunnel **ret_tunnel, struct err *err);
void tunnel_free(struct tunnel *t);

void tunnel_connected(struct tunnel *t, CURLcode result); /* what multi says of its handle */
/* Moves what can be moved. 1: there is more to do at once, 0: wait, below zero: it is over, by
 * a failure if err was set. */
int tunnel_step(struct tunnel *t, struct err *err);
/* What to wait for: up to two. */
#define TUNNEL_FDS 2
unsigned tunnel_fds(const struct tunnel *t, struct curl_waitfd fds[TUNNEL_FDS]);

bool tunnel_is_open(const struct tunnel *t);
uint64_t tunnel_sent(const struct tunnel *t);     /* bytes to the sandbox */
uint64_t tunnel_received(const struct tunnel *t); /* bytes from it */
