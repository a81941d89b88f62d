#include "registry/access.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

static bool listed(const struct access *access, const char *host)
{
    static const char gaps[] = ", \t";
    size_t len = strlen(host);
    for (const char *p = access->allow ? access->allow : ""; *p;) {
        p += strspn(p, gaps);
        size_t n = strcspn(p, gaps);
        if (n == len && strncasecmp(p, host, n) == 0)
            return true;
        p += n;
    }
    return false;
}

int access_host(const struct access *access, const char *host, struct err *err)
{
    if (access->trusted || !access->allow || !*access->allow || listed(access, host))
        return 0;
    return err_fail_as(err, EACCES, FAIL_FORBIDDEN,
                       "the registry '%s' is not one that this daemon may be sent to; the operator "
                       "lists them in the option registry-allow",
                       host);
}

bool access_address(const struct access *access, const char *host, const struct sockaddr *addr)
{
    switch (address_kind(addr)) {
    case ADDRESS_PUBLIC: return true;
    case ADDRESS_PRIVATE: return access->trusted || listed(access, host);
    case ADDRESS_NEVER: return false;
    }
    return false;
}
