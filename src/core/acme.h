/* acme - a certificate for a name from an authority that speaks ACME (RFC 8555), by way of the program
 * uacme.
 *
 * The authority asks under http://NAME/.well-known/acme-challenge/TOKEN; uacme has a hook put the answer
 * into a file of a directory, where certs.c finds it. Runs a program and waits for it: minutes, bounded.
 * All that uacme gets is a directory and the hook. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct acme {
    int dir_fd;  /* with conf/ (uacme's own) and challenges/ */
    int hook_fd; /* the hook's program */
    const char *directory, *email;
};

/* Makes what is missing in the directory. */
int acme_prepare(const struct acme *a, struct err *err);
/* Appends chain and key in PEM. err says what uacme said last. *stop makes it end early. */
int acme_issue(const struct acme *a, const char *name, const _Atomic bool *stop, struct buf *out,
               struct err *err);
