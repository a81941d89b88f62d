/* warren-broker - every byte into and out of a sandbox's network passes here.
 *
 * warrend starts it, and starts it again whenever it dies; it ends when warrend does. It decides
 * nothing: warrend says what may be, and hands it the sockets. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/number.h"
#include "broker/broker.h"
#include "broker/confine.h"
#include "wire/broker.h"

#define LOG_MODULE "broker"

struct config {
    const char *run, *domain, *tls_cert, *tls_key, *resolvers, *open;
    uint32_t uid, gid;
    int link_fd, tls_fd, parent_fd, ready_fd;
};

static const char usage[] =
    "usage: warren-broker --link-fd N --run DIR --domain NAME --uid UID\n"
    "                     --gid GID [--tls-fd N --tls-cert FILE --tls-key FILE]\n"
    "                     [--parent-fd N] [--ready-fd N]\n"
    "\n"
    "The part of warrend that the traffic of sandboxes goes through; warrend starts it.\n";

static int set_log(int option, const char *text)
{
    enum log_level level;
    enum log_format format;
    if (option == 'l' && log_parse_level(text, &level) >= 0)
        log_set_level(level);
    else if (option == 'f' && log_parse_format(text, &format) >= 0)
        log_set_format(format);
    else
        return -EINVAL;
    return 0;
}

static int parse_args(int argc, char **argv, struct config *c)
{
    static const struct option options[] = {
        { "run", required_argument, NULL, 'r' },
        { "domain", required_argument, NULL, 'd' },
        { "uid", required_argument, NULL, 'u' },
        { "gid", required_argument, NULL, 'g' },
        { "link-fd", required_argument, NULL, 'L' },
        { "tls-fd", required_argument, NULL, 'T' },
        { "tls-cert", required_argument, NULL, 'c' },
        { "tls-key", required_argument, NULL, 'k' },
        { "parent-fd", required_argument, NULL, 'p' },
        { "ready-fd", required_argument, NULL, 'R' },
        { "resolvers", required_argument, NULL, 'n' },
        { "open", required_argument, NULL, 'o' },
        { "log-level", required_argument, NULL, 'l' },
        { "log-format", required_argument, NULL, 'f' },
        { 0 },
    };
    *c = (struct config){ .link_fd = -1, .tls_fd = -1, .parent_fd = -1, .ready_fd = -1 };
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
        uint32_t n = 0;
        if (strchr("ugLTpR", o) && number_u32(optarg, INT32_MAX, &n) < 0)
            return -EINVAL;
        switch (o) {
        case 'r': c->run = optarg; break;
        case 'd': c->domain = optarg; break;
        case 'n': c->resolvers = optarg; break;
        case 'o': c->open = optarg; break;
        case 'u': c->uid = n; break;
        case 'g': c->gid = n; break;
        case 'L': c->link_fd = (int)n; break;
        case 'T': c->tls_fd = (int)n; break;
        case 'c': c->tls_cert = optarg; break;
        case 'k': c->tls_key = optarg; break;
        case 'p': c->parent_fd = (int)n; break;
        case 'R': c->ready_fd = (int)n; break;
        default:
            if (set_log(o, optarg) < 0)
                return -EINVAL;
        }
    }
    if (c->tls_fd >= 0 && (!c->tls_cert || !c->tls_key))
        return -EINVAL;
    return c->run && c->domain && c->link_fd >= 0 && c->uid > 0 && c->gid > 0 ? 0 : -EINVAL;
}

/* ---- what warrend says ---- */

static void on_client(void *arg, const void *msg, int fd)
{
    struct broker *b = arg;
    if (fd >= 0)
        preview_client(&b->preview, fd, NULL);
}

static void on_answer(void *arg, const void *msg, int fd)
{
    struct broker *b = arg;
    preview_answer(&b->preview, msg, fd);
}

static void on_net(void *arg, const void *msg, int fd)
{
    struct broker *b = arg;
    out_net(b->out, msg, fd);
}

static void on_net_end(void *arg, const void *msg, int fd)
{
    struct broker *b = arg;
    if (fd >= 0)
        (void)close(fd);
    out_net_end(b->out, msg);
}

static const struct link_handler handlers[] = {
    { BROKER_CLIENT, sizeof(struct broker_client), on_client },
    { BROKER_ANSWER, sizeof(struct broker_answer), on_answer },
    { BROKER_NET, sizeof(struct broker_net), on_net },
    { BROKER_NET_END, sizeof(struct broker_net_end), on_net_end },
    { 0 },
};

static void on_tls(void *arg, int fd, struct ssl_st *ssl)
{
    struct broker *b = arg;
    preview_client(&b->preview, fd, ssl);
}

/* ---- life ---- */

struct parent {
    struct watch watch;
    struct loop *loop;
};

static void on_parent(struct watch *w, uint32_t events)
{
    loop_stop(container_of(w, struct parent, watch)->loop);
}

static int run(const struct config *c, struct err *err)
{
    struct broker b = { 0 };
    (void)signal(SIGPIPE, SIG_IGN);
    int r = c->tls_fd < 0 ? 0 : tls_new(c->tls_cert, c->tls_key, &b.tls, err);
    if (r < 0)
        return r;
    r = confine_enter(c->run, c->uid, c->gid, err);
    if (r < 0)
        return r;
    r = loop_new(&b.loop);
    if (r < 0)
        return err_set(err, -r, "cannot make an event loop");
    r = out_new(b.loop, c->resolvers, c->open, &b.out, err);
    if (r < 0)
        return r;
    r = link_new(b.loop, c->link_fd, handlers, &b, &b.link, err);
    if (r < 0)
        return r;
    out_start(b.out, b.link);
    r = preview_init(&b.preview, b.loop, b.link, c->domain, err);
    if (r < 0)
        return r;
    if (b.tls)
        r = tls_listen(b.tls, b.loop, c->tls_fd, on_tls, &b, err);
    if (r < 0)
        return r;
    struct parent parent = { { -1, on_parent }, b.loop };
    if (c->parent_fd >= 0)
        (void)loop_add(b.loop, &parent.watch, c->parent_fd, EPOLLIN);
    if (c->ready_fd >= 0) {
        (void)fd_write_full(c->ready_fd, "R", 1);
        (void)close(c->ready_fd);
    }
    r = loop_run(b.loop, 0, NULL, NULL);
    if (r < 0)
        r = err_set(err, -r, "the event loop failed");
    preview_done(&b.preview);
    out_free(b.out);
    tls_free(b.tls);
    link_free(b.link);
    loop_free(b.loop);
    return r;
}

int main(int argc, char **argv)
{
    struct config c;
    struct err err = ERR_INIT;
    if (parse_args(argc, argv, &c) < 0) {
        (void)fputs(usage, stderr);
        return 2;
    }
    (void)umask(077);
    int r = run(&c, &err);
    if (r < 0)
        log_error("%s err=%s", err.msg, strerror(-r));
    _exit(r < 0 ? 1
                : 0); /* what a sanitizer does at the end needs a /proc, which is out of reach */
}
