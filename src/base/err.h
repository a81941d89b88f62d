/* err - why something failed: an errno for the program, a sentence for a person.
 *
 * Functions that can fail return 0 or more, or -errno. Those whose failure an
 * operator could read about also take a struct err (NULL is fine). `what`, if
 * set, is a stable machine-readable name of the failure, always a string
 * literal; the API's error codes come from it. */
#pragma once
#include "base/cleanup.h"

#define ERR_MSG_MAX 400 /* a sentence with two paths in it */

struct err {
    int code;              /* positive errno; 0 while nothing failed */
    const char *what;      /* NULL, or a literal such as "image_not_found" */
    char msg[ERR_MSG_MAX]; /* in place, so reporting a failure cannot itself fail */
};

#define ERR_INIT    \
    {               \
        0, NULL, "" \
    }

/* Both return the negative code, so that `return err_set(...)` works. */
int err_set(struct err *err, int code, const char *fmt, ...) _printf_(3, 4);
int err_name(struct err *err, int code, const char *what, const char *fmt, ...) _printf_(4, 5);

/* Put "outer: " before what err already says; r is passed through. */
int err_wrap(struct err *err, int r, const char *fmt, ...) _printf_(3, 4);
