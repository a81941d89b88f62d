/* egress - a sandbox with an open network: some addresses must be refused even then. The
 * daemon's log of the sandbox's connections shows its decision; an answer from the host would
 * prove a hole. */
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/attack/attack.h"
#include "cli/object.h"
#include "cli/xmem.h"

static char *open_box; /* shared by the category; removed with its team */

static const char *box_of(struct attack *a, struct trial *t)
{
    struct err err = ERR_INIT;
    if (!open_box &&
        stage_make(a, &a->red, json_pack("{s:s}", "network", "open"), &open_box, &err) < 0)
        trial_error(t, "no sandbox with a network: %s", err.msg);
    return open_box;
}

static bool was_denied(struct attack *a, const char *box, const char *address)
{
    const char *plain = strncmp(address, "::ffff:", 7) == 0 ? address + 7 : address;
    for (int i = 0; i < 10; i++) {
        _cleanup_json_ json_t *log = NULL;
        size_t k;
        json_t *o;
        (void)talk_box(a->red.client, "GET", box, "/network/log", NULL, &log);
        json_array_foreach(json_object_get(log, "entries"), k, o) {
            if (strcmp(member_text(o, "address"), address) == 0 ||
                strcmp(member_text(o, "address"), plain) == 0)
                return strcmp(member_text(o, "verdict"), "denied") == 0;
        }
        (void)usleep(100 * 1000);
    }
    return false;
}

static void reach(struct attack *a, const char *address, const char *port, struct trial *t)
{
    const char *box = box_of(a, t);
    if (!box)
        return;
    _cleanup_free_ char *said = talk_exec(a->red.client, box, NULL, "reach", address, port, NULL);
    if (!said)
        trial_error(t, "the program inside said nothing");
    else if (strstr(said, "HTTP/1") && !strstr(said, " 403"))
        trial_broke(t, "%s answers: %.60s", address, said);
    else if (strncmp(said, "refused", 7) == 0 || was_denied(a, box, address))
        trial_held(t, "%s: %.40s", address, strncmp(said, "refused", 7) == 0 ? said : "denied");
    else
        trial_broke(t, "the connection to %s is not denied", address);
}

static void run_reach(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    reach(a, self->text, self->more ? self->more : "80", t);
}

/* Every address of this machine, at the API's port. */
static void run_host(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct ifaddrs *all = NULL;
    const char *colon = a->url ? strrchr(a->url, ':') : NULL;
    char address[128];
    if (!colon || getifaddrs(&all) < 0) {
        trial_not_here(t, "no TCP address of the API is known; --at names it");
        return;
    }
    for (struct ifaddrs *i = all; i; i = i->ifa_next) {
        int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
        socklen_t n = family == AF_INET ? 16 : 28;
        if ((family != AF_INET && family != AF_INET6) || (i->ifa_flags & IFF_LOOPBACK) ||
            getnameinfo(i->ifa_addr, n, address, sizeof(address), NULL, 0, NI_NUMERICHOST) != 0)
            continue;
        address[strcspn(address, "%")] = '\0';
        reach(a, address, colon + 1, t);
    }
    freeifaddrs(all);
    reach(a, "127.0.0.1", colon + 1, t);
}

#define REACH(name_, title_, address_)                                                   \
    {                                                                                    \
        .name = "reach-" name_, .category = "egress", .title = title_, .run = run_reach, \
        .text = address_                                                                 \
    }

/* clang-format off */
static const struct attempt_row rows[] = {
    REACH("metadata", "a cloud's metadata", "169.254.169.254"), REACH("metadata-v6", "a cloud's metadata, IPv6", "fd00:ec2::254"),
    REACH("metadata-alibaba", "another cloud's metadata", "100.100.100.200"), REACH("private-10", "10.0.0.1", "10.0.0.1"),
    REACH("private-172", "a container bridge", "172.17.0.1"), REACH("private-192", "192.168.1.1", "192.168.1.1"),
    REACH("shared-space", "a carrier's addresses", "100.64.0.1"), REACH("this-network", "0.0.0.0/8", "0.1.2.3"),
    REACH("loopback-other", "the host's other loopback addresses", "127.0.0.53"), REACH("multicast", "a group", "224.0.0.1"),
    REACH("reserved", "240.0.0.0/4", "240.0.0.1"), REACH("broadcast", "everybody", "255.255.255.255"),
    REACH("mapped-private", "10.0.0.1 in IPv6", "::ffff:10.0.0.1"), REACH("mapped-metadata", "metadata in IPv6", "::ffff:169.254.169.254"),
    REACH("nat64-private", "10.0.0.1 by NAT64", "64:ff9b::a00:1"), REACH("6to4-private", "10.0.0.1 by 6to4", "2002:a00:1::1"),
    REACH("unique-local", "fc00::1", "fc00::1"), REACH("site-local", "fec0::1", "fec0::1"),
    { .name = "reach-host", .category = "egress", .title = "this machine, at the API's port", .run = run_host },
};
/* clang-format on */

const struct attempt_table attack_egress = { rows, ARRAY_LEN(rows) };
