/* err - why something failed: an errno for the program, a sentence for a person.
 *
 * Functions that can fail return 0 or more, or -errno. Those whose failure an
 * operator could read about also take a struct err (NULL is fine). `failure` says
 * which one it is to a client (failure.h). */
#pragma once
#include "base/cleanup.h"
#include "base/failure.h"

#define ERR_MSG_MAX 400 /* a sentence with two paths in it */

struct err {
    int code;              /* positive errno; 0 while nothing failed */
    enum failure failure;  /* FAIL_NONE: clients learn no more than that it failed */
    char msg[ERR_MSG_MAX]; /* in place, so reporting a failure cannot itself fail */
};

#define ERR_INIT         \
    {                    \
        0, FAIL_NONE, "" \
    }

/* Each returns the negative code, so that `return err_set(...)` works. err_fail takes the errno
 * from the table of failures; err_fail_as says which one callers shall see instead. */
int err_set(struct err *err, int code, const char *fmt, ...) _printf_(3, 4);
int err_fail(struct err *err, enum failure failure, const char *fmt, ...) _printf_(3, 4);
int err_fail_as(struct err *err, int code, enum failure failure, const char *fmt, ...)
    _printf_(4, 5);

/* Put "outer: " before what err already says; r is passed through. */
int err_wrap(struct err *err, int r, const char *fmt, ...) _printf_(3, 4);
