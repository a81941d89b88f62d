/* worker - a copy of init that does one FILE operation, or another slow thing, and ends.
 *
 * Init never touches a file: it hands the connection over and goes on. The worker is born in the
 * workload's control groups, so what it reads, writes and computes counts against the sandbox;
 * it keeps no descriptor but its connection, becomes the user, and can be traced by nobody. All
 * workers share one family. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define WORKERS_MAX 256 /* at once; each watches or moves something */

/* Hand `fd` over with a request's payload (writable up to payload[n]) and what came behind it. The
 * caller closes its own copy of fd. */
int worker_start(int fd, char *payload, size_t n, const char *rest, size_t rest_n, struct err *err);
/* The same for a job of one frame: fn answers on the descriptor it is given. */
int worker_start_job(int fd, void (*fn)(int fd, char *payload, size_t n), char *payload, size_t n,
                     struct err *err);
bool worker_is(pid_t pid);
bool worker_reaped(pid_t pid); /* true: it was one */
void workers_signal_all(int signo);
size_t workers_count(void);
struct family;
void worker_family(void (*fn)(struct family *f)); /* call fn with the one they share */
