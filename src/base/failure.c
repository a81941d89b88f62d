#include "base/failure.h"

#include <errno.h>
#include <string.h>

static const struct {
    const char *name;
    int code;
    unsigned status;
    enum rpc_code rpc;
    enum failure_teller tellers;
} failures[FAILURES_END] = { [FAIL_NONE] = { "internal", EIO, 500, RPC_INTERNAL, FAILURE_BY_US },
#define FAILURE_ROW(id_, name_, errno_, status_, rpc_, by_) \
    [FAIL_##id_] = { name_, errno_, status_, RPC_##rpc_, FAILURE_BY_##by_ },
                             FAILURES(FAILURE_ROW)
#undef FAILURE_ROW
};

const char *failure_name(enum failure failure)
{
    return failures[failure].name;
}

bool failure_is_told(enum failure failure)
{
    return failure == FAIL_NONE || failures[failure].status != failures[FAIL_NONE].status;
}

int failure_errno(enum failure failure)
{
    return failures[failure].code;
}

unsigned failure_status(enum failure failure)
{
    return failures[failure].status;
}

enum rpc_code failure_rpc(enum failure failure)
{
    return failures[failure].rpc;
}

enum failure failure_numbered(int number)
{
    return number > FAIL_NONE && number < FAILURES_END ? (enum failure)number : FAIL_NONE;
}

enum failure failure_find(const char *name, size_t n, enum failure_teller teller)
{
    for (enum failure f = FAIL_NONE + 1; f < FAILURES_END; f++)
        if (failures[f].tellers & teller && strlen(failures[f].name) == n &&
            memcmp(failures[f].name, name, n) == 0)
            return f;
    return FAIL_NONE;
}
