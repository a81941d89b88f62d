/* archive_program - warren-archive, started: where archives, and streams that strangers wrote, are
 * parsed without rights.
 *
 * It has a few descriptors and nothing else: no environment, no signal blocked or ignored. Who
 * starts it talks with it by those (archiver.h, chunker.h) and waits for its end. */
#pragma once
#include <sys/types.h>

#include "core/core.h"

struct archive_ends {
    int in, out; /* its 0 and 1; -1: /dev/null */
    int third;   /* its 3, as the job has it; -1: none */
    int report;  /* its 4; -1: none */
};

/* words: the arguments behind the program's name, NULL-terminated; the ends are borrowed. ENOENT,
 * not_supported, where it is not installed. */
int archive_program_start(struct core *core, const char *const *words,
                          const struct archive_ends *ends, pid_t *ret_pid, struct err *err);
