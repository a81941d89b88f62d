/* The way out, between real namespaces: the test's own is the world, with servers and a resolver in
 * it; a sandbox's is steered, and a process in there tries things. */
#include "broker/egress.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "kernel/steer.h"
#include "net/dns.h"

#define HERE "198.51.100.7" /* the world's one address */
#define WAIT_S 30           /* far longer than anything here takes */
#define ID "a0000000000000000000"
#define BULK (4 << 20)

/* ---- the world ---- */

struct records {
    struct egress_record last;
    size_t n, n_refused;
};

static struct {
    pid_t resolver, server, greeter, box;
    int box_pidfd;
    struct loop *loop;
    struct egress *egress;
    struct records records;
    struct range opened[2]; /* it is this machine's own address: named itself */
} world;

static struct sockaddr_in place(const char *address, uint16_t port)
{
    struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(port) };
    (void)inet_pton(AF_INET, address, &sa.sin_addr);
    return sa;
}

static int listen_at(int type, uint16_t port)
{
    struct sockaddr_in sa = place(HERE, port);
    int on = 1, fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    CHECK_EQ(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    if (type == SOCK_STREAM)
        CHECK_EQ(listen(fd, 16), 0);
    return fd;
}

static void loopback(const char *second)
{
    struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    _cleanup_fd_ int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (ioctl(s, SIOCSIFFLAGS, &ifr) < 0)
        _exit(99);
    if (!second)
        return;
    struct sockaddr_in sa = place(second, 0);
    struct ifreq more = { .ifr_name = "lo:1" };
    memcpy(&more.ifr_addr, &sa, sizeof(sa));
    if (ioctl(s, SIOCSIFADDR, &more) < 0)
        _exit(98);
}

/* good.test and other.test are here, inner.test is nowhere to go; the last part of asked.test's
 * address is how often somebody asked for denied.test. */
static _Noreturn void be_resolver(int fd)
{
    uint8_t denied = 0;
    for (;;) {
        char msg[DNS_UDP_MAX];
        struct sockaddr_in from;
        socklen_t len = sizeof(from);
        struct dns_question q;
        ssize_t n = recvfrom(fd, msg, sizeof(msg), 0, (struct sockaddr *)&from, &len);
        if (n < 0 || dns_read_question(msg, (size_t)n, &q) < 0)
            continue;
        static const uint8_t metadata[4] = { 169, 254, 169, 254 };
        uint8_t bytes[4] = { 198, 51, 100, 7 };
        denied += strcmp(q.name, "denied.test") == 0;
        if (strcmp(q.name, "asked.test") == 0)
            bytes[3] = denied;
        if (strcmp(q.name, "inner.test") == 0)
            memcpy(bytes, metadata, sizeof(metadata));
        struct address a = address_v4(bytes);
        struct dns_reply reply = { .ttl = 5, .addresses = &a, .n_addresses = 1 };
        struct buf out = BUF_INIT(DNS_UDP_MAX);
        (void)dns_write_reply(&q, &reply, DNS_UDP_MAX, &out);
        (void)sendto(fd, out.data, out.len, 0, (struct sockaddr *)&from, len);
        buf_done(&out);
    }
}

/* Gives back what it gets; first its greeting, if it has one. */
static _Noreturn void be_server(int listener, const char *greeting)
{
    (void)signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd >= 0 && fork() == 0) {
            static char piece[65536];
            (void)!write(fd, greeting, strlen(greeting));
            for (ssize_t n; (n = read(fd, piece, sizeof(piece))) > 0;)
                (void)fd_write_full(fd, piece, (size_t)n);
            _exit(0);
        }
        (void)close(fd);
    }
}

static void on_record(void *arg, const struct egress_record *rec)
{
    world.records.last = *rec;
    world.records.n++;
    world.records.n_refused += !rec->allowed;
}

static pid_t start(void (*fn)(int), int fd)
{
    pid_t pid = fork();
    CHECK_OK(pid);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        fn(fd);
        _exit(0);
    }
    (void)close(fd);
    return pid;
}

static void run_resolver(int fd)
{
    be_resolver(fd);
}
static void run_echo(int fd)
{
    be_server(fd, "");
}
static void run_greeter(int fd)
{
    be_server(fd, "220 hello\r\n");
}
static void run_box(int fd)
{
    bool ok = unshare(CLONE_NEWNET) == 0;
    if (ok)
        loopback(NULL);
    (void)!write(fd, "y", ok);
    for (;;)
        (void)pause();
}

static void make_box(void)
{
    int ready[2];
    char c;
    CHECK_EQ(pipe(ready), 0);
    world.box = start(run_box, ready[1]);
    CHECK_EQ(read(ready[0], &c, 1), 1);
    (void)close(ready[0]);
    world.box_pidfd = (int)syscall(SYS_pidfd_open, world.box, 0);
}

/* Once, for all tests; skips where this user may not. */
static void need_world(void)
{
    static const char *const resolvers[] = { HERE ":5353", NULL };
    struct egress_config config = { .resolvers = resolvers, .record = on_record };
    struct err err = ERR_INIT;
    int fds[STEER_FDS];
    if (world.loop)
        return;
    if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
        check_skip("network namespaces are root's");
    loopback(HERE);
    world.resolver = start(run_resolver, listen_at(SOCK_DGRAM, 5353));
    world.server = start(run_echo, listen_at(SOCK_STREAM, 443));
    world.greeter = start(run_greeter, listen_at(SOCK_STREAM, 25));
    make_box();
    CHECK_OK(range_parse("198.51.100.0/24", 15, &world.opened[0]));
    CHECK_OK(range_parse(HERE, strlen(HERE), &world.opened[1]));
    config.opened = world.opened;
    config.n_opened = 2;
    CHECK_OK(loop_new(&world.loop));
    CHECK_OK(egress_new(world.loop, &config, &world.egress, &err));
    int r = steer_make(world.box_pidfd, fds, &err);
    if (r == -EPERM || r == -ENOSYS)
        check_skip("this machine lets nobody steer a network");
    CHECK_OK(r);
    for (int i = 0; i < STEER_FDS; i++)
        CHECK_OK(egress_take(world.egress, ID, (enum egress_fd)i, fds[i], &err));
}

/* ---- a process inside ---- */

struct inside {
    struct watch watch;
    struct deadline late;
};

static void on_inside_ended(struct watch *w, uint32_t events)
{
    loop_stop(world.loop);
}

static void on_late(struct deadline *d)
{
    loop_stop(world.loop);
}

static const char *cut_with; /* rules that are set while it runs, when it says so */

static void on_said(struct watch *w, uint32_t events)
{
    char c;
    if (read(w->fd, &c, 1) != 1)
        loop_remove(world.loop, w);
    else if (cut_with)
        CHECK_OK(egress_rules(world.egress, ID, cut_with, strlen(cut_with), true, NULL));
}

/* Run fn inside under these rules; it ends the process with 0, or with the line that failed. */
static void try_inside(const char *rules, void (*fn)(int say))
{
    int said[2], status = 0;
    need_world();
    CHECK_OK(
        egress_rules(world.egress, ID, "", 0, true, NULL)); /* what an earlier one left open ends */
    world.records = (struct records){ .n = 0 };
    CHECK_OK(egress_rules(world.egress, ID, rules, strlen(rules), false, NULL));
    CHECK_EQ(pipe(said), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (setns(world.box_pidfd, CLONE_NEWNET) < 0)
            _exit(1);
        fn(said[1]);
        _exit(0);
    }
    (void)close(said[1]);
    struct inside i = { .watch = { -1, on_inside_ended } };
    struct watch say = { -1, on_said };
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    CHECK_OK(loop_add(world.loop, &i.watch, pidfd, EPOLLIN));
    CHECK_OK(loop_add(world.loop, &say, said[0], EPOLLIN));
    loop_deadline(world.loop, &i.late, clock_mono_ms() + WAIT_S * 2000, on_late);
    CHECK_OK(loop_run(world.loop, 0, NULL, NULL));
    loop_no_deadline(world.loop, &i.late);
    loop_remove(world.loop, &i.watch);
    loop_remove(world.loop, &say);
    (void)close(pidfd);
    (void)close(said[0]);
    (void)kill(pid, SIGKILL);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("inside: line %d of 256s", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

#define WANT(cond_)                                                               \
    do {                                                                          \
        if (!(cond_)) {                                                           \
            (void)fprintf(stderr, "inside: line %d: %s (%s)\n", __LINE__, #cond_, \
                          strerror(errno));                                       \
            _exit(__LINE__ % 255 + 1);                                            \
        }                                                                         \
    } while (0)

static int dial(const char *address, uint16_t port, int type)
{
    static const struct timeval wait = { .tv_sec = WAIT_S };
    struct sockaddr_in sa = place(address, port);
    int fd = socket(AF_INET, type, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    WANT(connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0);
    return fd;
}

static struct dns_answer ask(const char *name, bool tcp)
{
    struct dns_answer a;
    struct buf q = BUF_INIT(DNS_UDP_MAX);
    unsigned char msg[DNS_UDP_MAX], len[2];
    int fd = dial("9.9.9.9", 53, tcp ? SOCK_STREAM : SOCK_DGRAM);
    WANT(dns_write_question(7, name, DNS_A, &q) == 0);
    if (tcp) {
        len[0] = (unsigned char)(q.len >> 8);
        len[1] = (unsigned char)q.len;
        WANT(write(fd, len, 2) == 2);
    }
    WANT(write(fd, q.data, q.len) == (ssize_t)q.len);
    if (tcp)
        WANT(fd_read_full(fd, len, 2) == 0);
    ssize_t n = read(fd, msg, sizeof(msg));
    WANT(n > 0 && dns_read_answer(msg, (size_t)n, 7, name, DNS_A, &a) == 0);
    WANT(!tcp || n == (len[0] << 8 | len[1]));
    buf_done(&q);
    (void)close(fd);
    return a;
}

/* The least that is a ClientHello for this name. */
static size_t hello(const char *name, unsigned char *out)
{
    size_t n = strlen(name), at = 0;
    const unsigned char head[] = {
        22, 3, 1, 0, (unsigned char)(61 + n - 9), 1, 0, 0, (unsigned char)(57 + n - 9), 3, 3
    };
    memcpy(out, head, sizeof(head));
    at = sizeof(head);
    memset(out + at, 7, 32);
    at += 32;
    const unsigned char rest[] = { 0,
                                   0,
                                   2,
                                   0x13,
                                   1,
                                   1,
                                   0,
                                   0,
                                   (unsigned char)(9 + n),
                                   0,
                                   0,
                                   0,
                                   (unsigned char)(5 + n),
                                   0,
                                   (unsigned char)(3 + n),
                                   0,
                                   0,
                                   (unsigned char)n };
    memcpy(out + at, rest, sizeof(rest));
    at += sizeof(rest);
    for (size_t i = 0; i < n; i++)
        out[at++] = (unsigned char)name[i];
    out[4] = (unsigned char)(at - 5);
    out[8] = (unsigned char)(at - 9);
    return at;
}

static bool comes_back(int fd, const void *p, size_t n)
{
    char got[4096];
    return write(fd, p, n) == (ssize_t)n && fd_read_full(fd, got, n) == 0 && memcmp(got, p, n) == 0;
}

/* Reset, and not a time-out. */
static bool is_cut(int fd)
{
    char c;
    return read(fd, &c, 1) < 0 && errno == ECONNRESET;
}

static bool greets(int fd)
{
    char got[11];
    return fd_read_full(fd, got, sizeof(got)) == 0 && memcmp(got, "220 hello\r\n", 11) == 0;
}

/* ---- what is tried ---- */

#define BY_NAME "allow good.test\nallow inner.test\nallow asked.test"

static void resolve_and_talk(int say)
{
    unsigned char h[256];
    struct dns_answer a = ask("good.test", false);
    WANT(a.n_addresses == 1 && a.addresses[0].bytes[3] == 7);
    int fd = dial(HERE, 443, SOCK_STREAM);
    WANT(comes_back(fd, h, hello("good.test", h)));
    WANT(comes_back(fd, "and more", 8));
    (void)shutdown(fd, SHUT_WR);
    WANT(read(fd, h, 1) == 0);
}

TEST(a_resolved_name_is_reached)
{
    try_inside(BY_NAME, resolve_and_talk);
    CHECK_EQ(world.records.n, 1);
    const struct egress_record *r = &world.records.last;
    CHECK(r->allowed && !r->question);
    CHECK_STR(r->sandbox, ID);
    CHECK_STR(r->name, "good.test");
    CHECK_STR(r->rule, "allow good.test");
    CHECK_EQ(r->port, 443);
    CHECK_EQ(r->sent_bytes, r->received_bytes);
    CHECK(r->sent_bytes > 8);
}

static void say_another_name(int say)
{
    unsigned char h[256];
    WANT(ask("good.test", false).n_addresses == 1);
    static const char *const names[] = { "other.test", "evilgood.test", "good.test.evil.test" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        int fd = dial(HERE, 443, SOCK_STREAM);
        size_t n = hello(names[i], h);
        WANT(write(fd, h, n) == (ssize_t)n);
        WANT(is_cut(fd));
    }
    int plain = dial(HERE, 443, SOCK_STREAM);
    WANT(write(plain, "SSH-2.0-x\r\n", 11) == 11);
    WANT(is_cut(plain));
}

TEST(another_name_on_the_same_address_is_cut)
{
    try_inside(BY_NAME, say_another_name);
    CHECK_EQ(world.records.n_refused, 4);
}

static void ask_over_http(int say)
{
    static const char good[] = "POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 2\r\n\r\nhi";
    static const char evil[] = "GET /x HTTP/1.1\r\nHost: other.test\r\n\r\n";
    char got[600];
    WANT(ask("good.test", false).n_addresses == 1);
    int fd = dial(HERE, 443, SOCK_STREAM);
    WANT(comes_back(fd, good, sizeof(good) - 1));
    for (size_t i = 0; i + 1 < sizeof(good); i++)
        WANT(write(fd, good + i, 1) == 1);
    WANT(fd_read_full(fd, got, sizeof(good) - 1) == 0 && memcmp(got, good, sizeof(good) - 1) == 0);
    WANT(write(fd, evil, sizeof(evil) - 1) == (ssize_t)sizeof(evil) - 1);
    WANT(is_cut(fd)); /* and nothing of it came back */
    int other = dial(HERE, 443, SOCK_STREAM);
    WANT(write(other, evil, sizeof(evil) - 1) == (ssize_t)sizeof(evil) - 1);
    ssize_t n = recv(other, got, sizeof(got) - 1, MSG_WAITALL);
    WANT(n > 0);
    got[n] = '\0';
    WANT(strncmp(got, "HTTP/1.1 403 ", 13) == 0 && strstr(got, "other.test"));
}

TEST(each_request_is_checked_by_its_host)
{
    try_inside(BY_NAME, ask_over_http);
    CHECK_EQ(world.records.n, 3); /* two that were refused, and what passed before */
    CHECK_EQ(world.records.n_refused, 2);
}

static void go_without_asking(int say)
{
    int fd = dial("198.51.100.9", 443, SOCK_STREAM);
    WANT(is_cut(fd));
}

TEST(an_address_that_no_name_led_to_is_cut_at_once)
{
    try_inside(BY_NAME, go_without_asking);
    CHECK_EQ(world.records.last.why, POLICY_BY_DEFAULT);
}

static void ask_for_what_is_denied(int say)
{
    struct dns_answer a = ask("denied.test", false);
    WANT(a.rcode == DNS_NXDOMAIN);
    WANT(ask("x.good.test", true).rcode == DNS_NXDOMAIN);
    WANT(ask("inner.test", false).rcode == DNS_NXDOMAIN); /* leads to a place out of reach */
    a = ask("asked.test", true);
    WANT(a.n_addresses == 1 && a.addresses[0].bytes[3] == 0);
}

TEST(a_denied_name_is_asked_for_nowhere)
{
    try_inside(BY_NAME, ask_for_what_is_denied);
    CHECK_EQ(world.records.n_refused, 3);
    CHECK(world.records.last.question);
    CHECK_EQ(world.records.last.why, POLICY_BY_PLACE);
}

static void let_the_server_speak_first(int say)
{
    unsigned char h[256];
    WANT(ask("good.test", false).n_addresses == 1);
    int fd = dial(HERE, 25, SOCK_STREAM);
    WANT(greets(fd));
    WANT(comes_back(fd, "EHLO me\r\n", 9));
    int typed = dial(HERE, 25, SOCK_STREAM);
    WANT(greets(typed));
    WANT(comes_back(typed, "\r", 1) && comes_back(typed, "E", 1));
    int asking = dial(HERE, 25, SOCK_STREAM);
    WANT(greets(asking));
    WANT(comes_back(asking, "GET /key\r\n", 10));
    int other = dial(HERE, 25, SOCK_STREAM);
    WANT(greets(other));
    size_t n = hello("other.test", h);
    WANT(write(other, h, n) == (ssize_t)n);
    WANT(is_cut(other));
}

TEST(a_server_may_speak_first_and_the_client_is_still_checked)
{
    try_inside(BY_NAME, let_the_server_speak_first);
    CHECK_EQ(world.records.n_refused, 1);
}

static void go_where_nobody_may(int say)
{
    static const char *const places[] = { "169.254.169.254", "10.0.0.1", "192.168.0.1",
                                          "100.100.100.200", "224.0.0.1" };
    for (size_t i = 0; i + 1 < ARRAY_LEN(places); i++)
        WANT(is_cut(dial(places[i], 443, SOCK_STREAM)));
    char got[600];
    int fd = dial("169.254.169.254", 80, SOCK_STREAM);
    WANT(write(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27) == 27);
    ssize_t n = recv(fd, got, sizeof(got) - 1, MSG_WAITALL);
    WANT(n > 0);
    got[n] = '\0';
    WANT(strncmp(got, "HTTP/1.1 403 ", 13) == 0 && strstr(got, "\"network_denied\""));
}

TEST(some_places_are_out_of_reach_under_any_rules)
{
    try_inside("allow *\nallow 0.0.0.0/0", go_where_nobody_may);
    CHECK_EQ(world.records.n_refused, 5);
    CHECK_EQ(world.records.last.why, POLICY_BY_PLACE);
}

static void keep_talking(int say)
{
    int fd = dial(HERE, 443, SOCK_STREAM);
    WANT(comes_back(fd, "before", 6));
    WANT(write(say, "x", 1) == 1);
    WANT(is_cut(fd));
}

TEST(new_rules_cut_what_is_open_when_asked_to)
{
    cut_with = "deny *";
    try_inside("allow *", keep_talking);
    cut_with = NULL;
}

static void move_much(int say)
{
    static char out[65536], in[65536];
    int fd = dial(HERE, 443, SOCK_STREAM);
    if (fork() == 0) {
        for (unsigned i = 0; i < BULK / sizeof(out); i++) {
            memset(out, (int)i, sizeof(out));
            (void)fd_write_full(fd, out, sizeof(out));
        }
        (void)shutdown(fd, SHUT_WR);
        _exit(0);
    }
    for (unsigned i = 0; i < BULK / sizeof(in); i++) {
        WANT(fd_read_full(fd, in, sizeof(in)) == 0);
        memset(out, (int)i, sizeof(out));
        WANT(memcmp(in, out, sizeof(in)) == 0);
    }
    WANT(read(fd, in, 1) == 0);
}

TEST(what_passes_comes_whole)
{
    try_inside("allow 198.51.100.7 443", move_much);
    CHECK_EQ(world.records.last.sent_bytes, BULK);
    CHECK_EQ(world.records.last.received_bytes, BULK);
}

static void find_nobody(int say)
{
    WANT(is_cut(dial(HERE, 444, SOCK_STREAM)));
}

TEST(a_server_that_is_not_there_is_no_silence)
{
    try_inside("allow *", find_nobody);
    CHECK_EQ(world.records.last.failure, ECONNREFUSED);
}

/* Who may ping at all is a setting of each namespace. */
static void let_ping(void)
{
    _cleanup_fd_ int fd = open("/proc/sys/net/ipv4/ping_group_range", O_WRONLY | O_CLOEXEC);
    WANT(fd >= 0 && write(fd, "0 2147483647", 12) == 12);
}

/* The answer's first byte, or -errno. */
static int ping(const char *address)
{
    static const struct timeval wait = { .tv_sec = WAIT_S };
    bool v4 = !strchr(address, ':');
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    struct sockaddr_in sa = place(address, 0);
    const uint8_t request[] = { v4 ? 8 : 128, 0, 0, 0, 0, 0, 1, 2, 'd', 'a', 't', 'a' };
    uint8_t got[64];
    (void)inet_pton(AF_INET6, address, &v6.sin6_addr);
    int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC,
                    v4 ? (int)IPPROTO_ICMP : (int)IPPROTO_ICMPV6);
    WANT(fd >= 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    WANT(v4 ? connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0
            : connect(fd, (struct sockaddr *)&v6, sizeof(v6)) == 0);
    WANT(write(fd, request, sizeof(request)) == sizeof(request));
    ssize_t n = read(fd, got, sizeof(got));
    int r = n < 0 ? -errno : got[0];
    WANT(n < 0 || (n == sizeof(request) && memcmp(got + 6, request + 6, 6) == 0));
    (void)close(fd);
    return r;
}

static void ping_all(int say)
{
    WANT(ping(HERE) == 0);
    WANT(ping(HERE) == 0);
    WANT(ping("127.0.0.1") == 0);
    WANT(ping("8.8.8.8") == -EHOSTUNREACH);
    WANT(ping("169.254.169.254") == -EHOSTUNREACH);
}

static void ping_none(int say)
{
    WANT(ping(HERE) == -EHOSTUNREACH);
    WANT(ping("127.0.0.2") == 0);
    if (access("/proc/net/if_inet6", F_OK) < 0)
        return;
    WANT(ping("::1") == 129);
    WANT(ping("2001:db8::1") == -EACCES);
}

TEST(pings_pass_by_rule_and_nobody_answers_for_the_rest)
{
    need_world();
    let_ping();
    try_inside("allow 198.51.100.0/24 icmp", ping_all);
    CHECK(world.records.n_refused == 2);
    try_inside("allow *", ping_none);
    CHECK(world.records.n_refused >= 1);
    CHECK_EQ(world.records.last.protocol, POLICY_ICMP);
}

static void be_refused(int say)
{
    struct sockaddr_in sa = place(HERE, 443);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    WANT(connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 && errno == ECONNREFUSED);
}

TEST(the_end_of_a_network_closes_every_way)
{
    need_world();
    egress_end(world.egress, ID);
    try_inside("allow *", be_refused);
    egress_free(world.egress);
    loop_free(world.loop);
}
