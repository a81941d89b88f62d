#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/inside.h"
#include "core/port.h"
#include "core/private.h"
#include "wire/broker.h"

static int by_port(const void *pa, const void *pb)
{
    const struct inside_listener *a = pa, *b = pb;
    if (a->port != b->port)
        return a->port < b->port ? -1 : 1;
    return strcmp(a->address, b->address);
}

/* An address as we would write it; anything else is not shown. */
static bool is_address(const char *text)
{
    unsigned char raw[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, text, raw) == 1 || inet_pton(AF_INET6, text, raw) == 1;
}

static size_t only_theirs(struct inside_listener *list, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        list[i].address[sizeof(list[i].address) - 1] = '\0';
        bool twice = kept > 0 && by_port(&list[kept - 1], &list[i]) == 0; /* SO_REUSEPORT */
        if (list[i].port != PORT_STEER && is_address(list[i].address) && !twice)
            list[kept++] = list[i];
    }
    return kept;
}

static_assert(PORT_PROGRAM_SIZE == BROKER_PROGRAM_SIZE, "a program's name has one size");

/* A few at a time; what is not found stays "". */
static void name_programs(struct core *core, const char *id, const struct inside_listener *list,
                          size_t n, struct port *ports)
{
    for (size_t at = 0; at < n; at += BROKER_WHO_MAX) {
        char programs[BROKER_WHO_MAX][BROKER_PROGRAM_SIZE] = { "" };
        uint32_t inodes[BROKER_WHO_MAX];
        size_t some = n - at < BROKER_WHO_MAX ? n - at : BROKER_WHO_MAX;
        for (size_t i = 0; i < some; i++)
            inodes[i] = list[at + i].inode;
        if (inside_who(core, id, inodes, some, programs) < 0)
            return;
        for (size_t i = 0; i < some; i++)
            memcpy(ports[at + i].program, programs[i], sizeof(programs[i]));
    }
}

int port_list(struct core *core, const struct sandbox *s, struct port **ret_ports, size_t *ret_n,
              struct err *err)
{
    _cleanup_free_ struct inside_listener *list = calloc(PORT_LIST_MAX, sizeof(*list));
    size_t n = 0;
    int r = list ? inside_listeners(core, s->id, list, PORT_LIST_MAX, &n) : -ENOMEM;
    if (r == -ETIMEDOUT || r == -EAGAIN)
        return err_fail_as(err, -r, FAIL_SANDBOX_BUSY, "sandbox '%s' did not answer in time",
                           s->id);
    if (r < 0)
        return err_set(err, -r, "cannot ask sandbox '%s' what listens", s->id);
    qsort(list, n, sizeof(*list), by_port);
    n = only_theirs(list, n);
    struct port *ports = calloc(n + 1, sizeof(*ports));
    if (!ports)
        return err_set(err, ENOMEM, "cannot allocate the ports");
    for (size_t i = 0; i < n; i++) {
        ports[i].port = list[i].port;
        memcpy(ports[i].address, list[i].address, sizeof(ports[i].address));
    }
    name_programs(core, s->id, list, n, ports);
    *ret_ports = ports;
    *ret_n = n;
    return 0;
}
