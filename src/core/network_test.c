/* What the broker is told of a sandbox's network and bindings: its end of the link is held here. */
#include "core/network.h"

#include "core/event.h"
#include "core/fake_keeper.h"
#include "core/secret.h"
#include "net/binding.h"

#define TEXT_MAX 8192

/* One message and what lies in its file. */
struct told {
    unsigned type, part;
    char text[TEXT_MAX];
};

static struct world *linked(int *ret_broker)
{
    int sv[2];
    struct world *w = world_new(0);
    CHECK_OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv));
    w->core->broker_fd = sv[0];
    *ret_broker = sv[1];
    return w;
}

/* False: there is no more. */
static bool next(int broker, struct told *t)
{
    union {
        uint32_t type;
        struct broker_net net;
        char bytes[BROKER_MSG_MAX];
    } msg;
    int fd = -1;
    size_t nfds = 0;
    ssize_t n = fd_recv_msg(broker, &msg, sizeof(msg), &fd, 1, &nfds);
    if (n <= 0)
        return false;
    *t = (struct told){ .type = msg.type, .part = msg.type == BROKER_NET ? msg.net.part : 0 };
    if (nfds && t->type == BROKER_NET &&
        (t->part == BROKER_NET_RULES || t->part == BROKER_NET_BINDINGS || t->part == BROKER_NET_CA))
        CHECK(pread(fd, t->text, sizeof(t->text) - 1, 0) >= 0);
    if (nfds)
        (void)close(fd);
    return true;
}

static void expect(int broker, unsigned part, const char *text)
{
    struct told t;
    CHECK(next(broker, &t));
    CHECK_EQ(t.type, BROKER_NET);
    CHECK_EQ(t.part, part);
    if (!strstr(t.text, text))
        fail_msg("part %u: '%s' lacks '%s'", part, t.text, text);
}

static void expect_sockets(int broker)
{
    struct told t;
    CHECK(next(broker, &t) && t.type == BROKER_LIMITS); /* before a connection could come */
    for (size_t i = 0; i < KEEPER_STEER_FDS; i++)
        CHECK(next(broker, &t) && t.type == BROKER_NET);
}

static void expect_end(int broker)
{
    struct told t;
    CHECK(next(broker, &t));
    CHECK_EQ(t.type, BROKER_NET_END);
}

static void expect_nothing(int broker)
{
    struct told t;
    CHECK(!next(broker, &t));
}

static void set_secret(struct core *core, const char *value, bool new)
{
    struct secret s = { 0 };
    struct err err = ERR_INIT;
    int r = new ? secret_create(core, "default", "key", value, NULL, &s, &err)
                : secret_update(core, "default", "key", value, NULL, &s, &err);
    if (r < 0)
        fail_msg("%s", err.msg);
    secret_done(&s);
}

static void make(struct core *core, const char *bindings, struct sandbox *ret_s)
{
    _cleanup_(sandbox_spec_done) struct sandbox_spec spec;
    struct err err = ERR_INIT;
    sandbox_spec_init(&spec);
    spec.bindings = bindings ? strdup(bindings) : NULL;
    if (sandbox_create(core, "default", &spec, ret_s, &err) < 0)
        fail_msg("create: %s", err.msg);
}

static int bind_to(struct core *core, const char *id, const char *bindings, struct err *err)
{
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    struct sandbox_spec spec = { .bindings = (char *)(uintptr_t)bindings };
    return sandbox_update(core, "default", id, &spec, CHANGE_BINDINGS, &s, err);
}

TEST(a_sandbox_without_a_network_is_bound_before_its_sockets_come)
{
    int broker;
    struct world *w = linked(&broker);
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    set_secret(w->core, "hunter2\n", true);
    make(w->core, "key@a.test name=n transparent=no", &s);
    expect(broker, BROKER_NET_RULES, "");
    expect(broker, BROKER_NET_BINDINGS, "name=n transparent=no\n=aHVudGVyMg==\n");
    expect_sockets(broker);
    CHECK_OK(sandbox_delete(w->core, "default", s.id, NULL));
    expect_end(broker);
    expect_nothing(broker);
    (void)close(broker);
    world_free(w);
}

TEST(a_change_of_bindings_and_of_secrets_is_told_at_once)
{
    int broker;
    struct world *w = linked(&broker);
    _cleanup_(sandbox_done) struct sandbox s = { 0 }, bare = { 0 };
    struct err err = ERR_INIT;
    set_secret(w->core, "one", true);
    make(w->core, NULL, &bare);
    make(w->core, NULL, &s);
    expect_nothing(broker);
    CHECK_OK(bind_to(w->core, s.id, "key@a.test", &err));
    expect(broker, BROKER_NET_RULES, "");
    expect(broker, BROKER_NET_CA, "PRIVATE KEY");
    expect(broker, BROKER_NET_BINDINGS, "\n=b25l\n");
    expect_sockets(broker);
    set_secret(w->core, "two", false);
    expect(broker, BROKER_NET_BINDINGS, "\n=dHdv\n");
    CHECK_OK(secret_remove(w->core, "default", "key", &err));
    expect(broker, BROKER_NET_BINDINGS, "as=bearer\n-\n");
    CHECK_EQ(bind_to(w->core, s.id, "key@b.test", &err), -ENOENT);
    CHECK_STR(failure_name(err.failure), "secret_not_found");
    expect_nothing(broker);
    set_secret(w->core, "bad\nvalue", true); /* of the same name: it cannot be carried */
    expect(broker, BROKER_NET_BINDINGS, "\n-\n");
    CHECK_OK(bind_to(w->core, s.id, NULL, &err));
    expect_end(broker);
    set_secret(w->core, "three", false);
    expect_nothing(broker);
    (void)close(broker);
    world_free(w);
}

TEST(a_new_broker_learns_all_there_is_and_a_stopped_one_is_nobody)
{
    int broker;
    struct world *w = linked(&broker);
    _cleanup_(sandbox_done) struct sandbox s = { 0 }, t = { 0 };
    struct broker_hello hello = { .type = BROKER_HELLO };
    set_secret(w->core, "one", true);
    make(w->core, "key@a.test name=n transparent=no", &s);
    expect(broker, BROKER_NET_RULES, "");
    expect(broker, BROKER_NET_BINDINGS, "\n=b25l\n");
    expect_sockets(broker);
    CHECK(network_told(w->core, &hello, sizeof(hello)));
    expect(broker, BROKER_NET_RULES, "");
    expect(broker, BROKER_NET_BINDINGS, "\n=b25l\n");
    expect_sockets(broker);
    CHECK_OK(sandbox_stop(w->core, "default", s.id, &t, NULL));
    expect_end(broker);
    set_secret(w->core, "two", false);
    CHECK(network_told(w->core, &hello, sizeof(hello)));
    expect_nothing(broker);
    sandbox_done(&t);
    t = (struct sandbox){ 0 };
    CHECK_OK(sandbox_start(w->core, "default", s.id, &t, NULL));
    expect(broker, BROKER_NET_RULES, "");
    expect(broker, BROKER_NET_BINDINGS, "\n=dHdv\n");
    expect_sockets(broker);
    (void)close(broker);
    world_free(w);
}

TEST(a_new_broker_is_told_what_is_so_and_not_what_was)
{
    int broker;
    struct world *w = linked(&broker);
    _cleanup_(sandbox_done) struct sandbox s = { 0 }, now = { 0 };
    struct sandbox_spec spec = { .network = (char *)(uintptr_t) "allow old.test" };
    make(w->core, NULL, &s);
    CHECK_OK(sandbox_update(w->core, "default", s.id, &spec, CHANGE_NETWORK, &now, NULL));
    expect(broker, BROKER_NET_RULES, "allow old.test");
    expect(broker, BROKER_NET_BINDINGS, "");
    expect_sockets(broker);
    spec.network = (char *)(uintptr_t) "allow new.test";
    _cleanup_(sandbox_done) struct sandbox later = { 0 };
    CHECK_OK(sandbox_update(w->core, "default", s.id, &spec, CHANGE_NETWORK, &later, NULL));
    expect(broker, BROKER_NET_RULES, "allow new.test");
    /* Who saw it before the change speaks last. */
    CHECK_OK(networks_attach(w->core, &now, NULL));
    expect(broker, BROKER_NET_RULES, "allow new.test");
    expect(broker, BROKER_NET_BINDINGS, "");
    expect_sockets(broker);
    expect_nothing(broker);
    (void)close(broker);
    world_free(w);
}

static unsigned uses_in_events(struct core *core, const char *id)
{
    struct event_list list = { 0 };
    unsigned n = 0;
    CHECK_OK(event_read(core, "default", id, 0, 100, 0, &list, NULL));
    for (size_t i = 0; i < list.n; i++)
        n += strcmp(list.items[i].type, "secret.used") == 0;
    event_list_done(&list);
    return n;
}

TEST(the_first_use_of_a_secret_is_an_event)
{
    int broker;
    struct world *w = linked(&broker);
    _cleanup_(sandbox_done) struct sandbox s = { 0 };
    struct broker_tally t = { .type = BROKER_TALLY, .connections = 1, .port = 443 };
    set_secret(w->core, "one", true);
    make(w->core, "key@a.test name=n transparent=no", &s);
    memcpy(t.sandbox, s.id, ID_SIZE);
    (void)snprintf(t.host, sizeof(t.host), "a.test");
    CHECK(network_told(w->core, &t, sizeof(t)));
    CHECK_EQ(uses_in_events(w->core, s.id), 0);
    memset(t.binding, '"', sizeof(t.binding)); /* whatever it says, it is text */
    CHECK(network_told(w->core, &t, sizeof(t)));
    CHECK(network_told(w->core, &t, sizeof(t)));
    CHECK_EQ(uses_in_events(w->core, s.id), 1);
    (void)snprintf(t.binding, sizeof(t.binding), "key");
    CHECK(network_told(w->core, &t, sizeof(t)));
    CHECK_EQ(uses_in_events(w->core, s.id), 2);
    (void)close(broker);
    world_free(w);
}
