/* In namespaces of its own, with routes as it needs them. */
#include "broker/route_check.h"

#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

static struct address at(const char *text)
{
    struct address a = { 0 };
    CHECK_OK(address_parse(text, strlen(text), &a));
    return a;
}

static int loopback_up(int s)
{
    struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    return ioctl(s, SIOCSIFFLAGS, &ifr);
}

/* Everything of IPv4 goes somewhere. */
static int route_v4(int s)
{
    struct rtentry route = { .rt_flags = RTF_UP, .rt_dev = (char[]){ "lo" } };
    route.rt_dst.sa_family = route.rt_genmask.sa_family = AF_INET;
    return ioctl(s, SIOCADDRT, &route);
}

static int inside(void)
{
    struct address v4 = at("93.184.216.34"), v6 = at("2a00::1"),
                   mapped = at("::ffff:93.184.216.34");
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (unshare(CLONE_NEWNET) < 0 || s < 0)
        return 77;
    (void)close(s);
    s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (loopback_up(s) < 0)
        return 77;
    if (!route_check_worth(&v4) || !route_check_worth(&v6))
        return 1; /* neither is better */
    if (route_v4(s) < 0)
        return 77;
    return route_check_worth(&v4) && route_check_worth(&mapped) && !route_check_worth(&v6) ? 0 : 2;
}

TEST(a_family_without_a_way_is_not_worth_telling_where_the_other_has_one)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(inside());
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (WEXITSTATUS(status) == 77)
        check_skip("network namespaces are root's");
    CHECK_EQ(WEXITSTATUS(status), 0);
}
