#include "broker/own.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/cleanup.h"

#define MANY 200 /* more than a host with a bridge a customer has */

static void give_address(int s, int n)
{
    struct ifreq ifr = { .ifr_name = "" };
    struct sockaddr_in sa = { .sin_family = AF_INET };
    char text[32];
    (void)snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "lo:%d", n);
    (void)snprintf(text, sizeof(text), "198.51.100.%d", n);
    (void)inet_pton(AF_INET, text, &sa.sin_addr);
    memcpy(&ifr.ifr_addr, &sa, sizeof(sa));
    CHECK_EQ(ioctl(s, SIOCSIFADDR, &ifr), 0);
}

static bool has(const struct own *o, const char *text)
{
    struct address a;
    CHECK_OK(address_parse(text, strlen(text), &a));
    for (size_t i = 0; i < o->n; i++)
        if (range_has(&o->ranges[i], &a))
            return true;
    return false;
}

TEST(every_address_counts_however_many_there_are)
{
    struct own o = { 0 };
    if (unshare(CLONE_NEWNET) < 0)
        skip();
    _cleanup_fd_ int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (int i = 1; i <= MANY; i++)
        give_address(s, i);
    own_look(&o, 1000);
    CHECK(has(&o, "198.51.100.1"));
    CHECK(has(&o, "198.51.100.200"));
    CHECK(!has(&o, "198.51.100.201"));
    give_address(s, 201);
    own_look(&o, 1001); /* it is fresh */
    CHECK(!has(&o, "198.51.100.201"));
    own_look(&o, 10000);
    CHECK(has(&o, "198.51.100.201"));
    own_done(&o);
}

TEST(while_nothing_is_known_every_address_is_one)
{
    struct own o = { 0 };
    struct rlimit before, none = { 0, 0 };
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none.rlim_max = before.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    own_look(&o, 1000);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    CHECK(has(&o, "8.8.8.8"));
    CHECK(has(&o, "2001:db8::1"));
    own_look(&o, 1001);
    CHECK(!has(&o, "8.8.8.8"));
    own_done(&o);
}
