#include "broker/route_check.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANY_PORT 9

static bool leads_to(const struct address *to)
{
    struct sockaddr_storage sa;
    socklen_t len = address_to_sockaddr(to, ANY_PORT, &sa);
    int fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno != EAFNOSUPPORT; /* without a descriptor nothing is known */
    bool none = connect(fd, (const struct sockaddr *)&sa, len) < 0 &&
                (errno == ENETUNREACH || errno == EHOSTUNREACH);
    (void)close(fd);
    return !none;
}

bool route_check_worth(const struct address *to)
{
    /* Places that are there for all to reach: the roots of DNS. */
    static const uint8_t v4[4] = { 198, 41, 0, 4 };
    static const uint8_t v6[16] = { 0x20, 0x01, 0x05, 0x03, 0xba, 0x3e, [13] = 2, [15] = 0x30 };
    struct address other = to->bits == 32 ? address_v6(v6) : address_v4(v4);
    return leads_to(to) || !leads_to(&other);
}
