/* doctor - what a machine offers to sandboxes and what it lacks, and how to get it.
 *
 * Lists of checks, none of which changes anything: of this machine, each a short look at /proc, /sys
 * or a file; and of what the daemon says of its own (GET /v1/host). Works without a daemon and
 * without rights, and says where rights would have shown more. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define FINDING_TEXT_MAX 200 /* a line or two */

enum finding_mark {
    FINDING_OK,
    FINDING_WARN, /* works, but less well or less than all of it */
    FINDING_FAIL, /* essential, and missing */
};

struct finding {
    enum finding_mark mark;
    char detail[FINDING_TEXT_MAX]; /* what was found */
    char fix[FINDING_TEXT_MAX];    /* how to get what is missing; empty where nothing is */
};

struct check {
    const char *name;
    void (*look)(struct finding *f);
};

struct daemon_check {
    const char *name;
    void (*look)(struct finding *f, const json_t *host); /* the answer of GET /v1/host */
    bool remote; /* only for a daemon elsewhere: here a check of this machine says more */
};

extern const struct daemon_check doctor_daemon_checks[];
extern const size_t doctor_daemon_checks_n;
extern const struct check doctor_future_checks[]; /* instead, where no daemon answers */
extern const size_t doctor_future_checks_n;
extern const struct check doctor_checks[];
extern const size_t doctor_checks_n;
extern const struct check doctor_walls[]; /* walls between sandboxes, and what weakens them */
extern const size_t doctor_walls_n;

/* "5.15.0-91-generic" as KERNEL(5, 15), which compares; 0 when unreadable. */
unsigned kernel_release(const char *text);
#define KERNEL(major_, minor_) ((major_)*1000u + (minor_))

/* Whether a file of /sys/devices/system/cpu/vulnerabilities says that the processor leaks. */
bool vulnerability_open(const char *text);
/* The build date in uname's version, in days since 1970: "#1 SMP Debian 6.1.55-1 (2023-09-29)",
 * "#1 SMP Mon Sep 4 12:00:00 UTC 2023". -1: it has none. */
long kernel_built(const char *version);
