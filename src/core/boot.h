/* boot - what a sandbox of a template does by itself when it starts, and when it counts as ready.
 *
 * A start command runs as a process of its own, labelled "start"; a probe is tried again and again
 * until it succeeds or the time is up: a command that exits with 0, a port that takes connections
 * on the loopback, or an HTTP answer there. */
#pragma once
#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum ready_kind { READY_AT_ONCE, READY_COMMAND, READY_PORT, READY_HTTP };

struct boot {
    char **argv; /* NULL-terminated, owned; NULL: no start command */
    enum ready_kind ready;
    char **ready_argv; /* READY_COMMAND; likewise */
    uint32_t port;     /* READY_PORT, READY_HTTP */
    char *path;        /* READY_HTTP */
    uint32_t status;
    int64_t timeout_ms;
};

#define BOOT_TIMEOUT_MS 60000
#define BOOT_TIMEOUT_MAX_S 3600

int boot_copy(const struct boot *from, struct boot *ret_to); /* -ENOMEM */
void boot_done(struct boot *b);
bool boot_any(const struct boot *b); /* it has a start command or a probe: a start takes a while */
int boot_check(const struct boot *b, struct err *err); /* -EINVAL, invalid_field */
json_t *boot_to_json(const struct boot *b);            /* NULL: no memory */
int boot_from_json(const json_t *o, struct boot *ret_b);

struct core;
struct sandbox;
/* Runs it in a sandbox that is up; blocks until it is ready. -ETIME, template_not_ready, with the
 * end of its output. Gives up early when *cancel (NULL: none) is set. `told`: the change feed hears of
 * the start command. */
int boot_run(struct core *core, const struct sandbox *s, bool told, const _Atomic bool *cancel,
             struct err *err);
