#include "broker/who.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"

#define CLIENTS 20

/* Connections on loopback, both ends here: the kernel knows which sockets they are. */
static struct {
    struct loop *loop;
    struct whos whos;
    struct broker_who asked;
    unsigned n_asked, told;
    bool refuse;
    char program[BROKER_PROGRAM_SIZE];
    int diag, clients[CLIENTS];
    struct diag_end ends[CLIENTS], server;
} w;

static int take(void *arg, const struct broker_who *msg)
{
    if (w.refuse)
        return -ENOBUFS;
    w.asked = *msg;
    w.n_asked++;
    return 0;
}

static void on_told(struct who *who, const char *program)
{
    w.told++;
    (void)snprintf(w.program, sizeof(w.program), "%s", program);
}

static struct diag_end end_of(const struct sockaddr_in *sa)
{
    struct diag_end end = { .port = ntohs(sa->sin_port) };
    CHECK_OK(address_from_sockaddr((const struct sockaddr *)sa, &end.address));
    return end;
}

static void need_connections(void)
{
    struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(sa);
    if (w.loop)
        return;
    CHECK_OK(loop_new(&w.loop));
    w.diag = socket(AF_NETLINK, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (w.diag < 0)
        check_skip("the kernel tells nothing of sockets");
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_OK(bind(listener, (struct sockaddr *)&sa, sizeof(sa)));
    CHECK_OK(listen(listener, CLIENTS));
    CHECK_OK(getsockname(listener, (struct sockaddr *)&sa, &len));
    w.server = end_of(&sa);
    for (int i = 0; i < CLIENTS; i++) {
        struct sockaddr_in own;
        len = sizeof(own);
        w.clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK_OK(connect(w.clients[i], (struct sockaddr *)&sa, sizeof(sa)));
        CHECK_OK(getsockname(w.clients[i], (struct sockaddr *)&own, &len));
        w.ends[i] = end_of(&own);
    }
}

static void fresh(void)
{
    need_connections();
    w.n_asked = w.told = 0;
    w.refuse = false;
    whos_init(&w.whos, w.loop, "sandbox", take, NULL);
    w.whos.diag_fd = w.diag;
}

static bool begin(struct who *who, int client)
{
    return who_begin(&w.whos, who, false, &w.ends[client], &w.server, on_told);
}

static void answer(const char *program)
{
    struct broker_who_answer a = { .number = w.asked.number, .n = w.asked.n };
    for (size_t i = 0; i < a.n; i++)
        (void)snprintf(a.programs[i], sizeof(a.programs[i]), "%s", program);
    whos_answer(&w.whos, &a);
}

TEST(the_socket_is_the_clients_own)
{
    struct who who;
    struct stat st;
    fresh();
    CHECK(begin(&who, 3));
    CHECK_OK(fstat(w.clients[3], &st));
    CHECK_EQ(w.asked.inodes[0], st.st_ino);
    answer("/bin/a\x1b[31m\nb\xff");
    CHECK_EQ(w.told, 1);
    CHECK_STR(w.program, "/bin/a?[31m?b?");
    CHECK(!who_waits(&who));
    struct diag_end nobodys = w.ends[0];
    nobodys.port = 1;
    CHECK(!who_begin(&w.whos, &who, false, &nobodys, &w.server, on_told));
}

TEST(questions_gather_while_one_is_under_way)
{
    struct who whos[CLIENTS];
    fresh();
    for (int i = 0; i < CLIENTS; i++)
        CHECK(begin(&whos[i], i));
    CHECK_EQ(w.n_asked, 1);
    CHECK_EQ(w.asked.n, 1);
    who_end(&whos[2]);
    answer("/bin/one");
    CHECK_EQ(w.n_asked, 2);
    CHECK_EQ(w.asked.n, BROKER_WHO_MAX);
    struct who moved = { .fn = on_told };
    who_move(&whos[1], &moved);
    who_end(&whos[3]);
    answer("/bin/two");
    CHECK_EQ(w.told, 1 + BROKER_WHO_MAX - 1);
    CHECK(!who_waits(&moved));
    CHECK_EQ(w.asked.n, CLIENTS - 2 - BROKER_WHO_MAX);
    whos_done(&w.whos);
    CHECK_EQ(w.told, CLIENTS - 2);
    CHECK_STR(w.program, "");
}

TEST(a_flood_is_not_asked_about)
{
    struct who who;
    unsigned known = 0;
    fresh();
    for (int i = 0; i < 1000; i++)
        if (begin(&who, i % CLIENTS)) {
            known++;
            answer("/bin/flood");
        }
    CHECK(known >= 10);
    CHECK(known < 500);
    fresh();
    w.refuse = true;
    CHECK(!begin(&who, 0));
    CHECK(!who_waits(&who));
    CHECK_EQ(w.told, 0);
}
