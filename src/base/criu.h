/* criu - the program that keeps and brings back processes' memory, as set-up found it.
 *
 * Which one works depends on the kernel, so set-up tries it once and leaves a record: what to run, its
 * version and where it is from, or why there is none. This reads the record and runs nothing; what it
 * names is run by root, so the record must be root's own. WARREN_CRIU names another record. */
#pragma once
#include "base/err.h"

#define CRIU_RECORD "/var/cache/warren/criu/record"
#define CRIU_ARGS_MAX 8 /* a loader, where its libraries are, the program: four */
#define CRIU_RECORD_MAX 4096

struct criu {
    char *argv[CRIU_ARGS_MAX + 1]; /* what comes before a command of its own; NULL ends it */
    const char *version, *from;    /* "" where the record does not say */
    char text[CRIU_RECORD_MAX];    /* what the above points into: copy none of this */
};

/* -ENOENT: there is none, and the sentence says why; -EPERM: the record is not to be trusted. */
int criu_find(struct criu *ret, struct err *err);
int criu_parse(struct criu *c, struct err *err); /* c->text, ended by NUL, into the rest */
