#include "base/err.h"

#include <stdarg.h>
#include <string.h>

_printf_(4, 0) static int set_va(struct err *err, int code, enum failure failure, const char *fmt,
                                 va_list ap)
{
    if (err) {
        err->code = code;
        err->failure = failure;
        if (vsnprintf(err->msg, sizeof(err->msg), fmt, ap) < 0)
            err->msg[0] = '\0';
    }
    return -code;
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int r = set_va(err, code, FAIL_NONE, fmt, ap);
    va_end(ap);
    return r;
}

int err_fail(struct err *err, enum failure failure, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int r = set_va(err, failure_errno(failure), failure, fmt, ap);
    va_end(ap);
    return r;
}

int err_fail_as(struct err *err, int code, enum failure failure, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int r = set_va(err, code, failure, fmt, ap);
    va_end(ap);
    return r;
}

int err_wrap(struct err *err, int r, const char *fmt, ...)
{
    if (!err || r >= 0)
        return r;
    char inner[ERR_MSG_MAX];
    memcpy(inner, err->msg, sizeof(inner));

    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    if (n < 0)
        n = 0;
    if ((size_t)n < sizeof(err->msg)) {
        size_t left = sizeof(err->msg) - (size_t)n;
        const char *rest = inner[0] ? inner : strerror(-r);
        size_t room = left > 3 ? left - 3 : 0; /* a cut sentence is still a sentence */
        (void)snprintf(err->msg + n, left, ": %.*s", (int)room, rest);
    }
    err->code = -r;
    return r;
}
