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
    const char *ca, *proxy_except;
    bool proxy_names;
    uint32_t uid, gid;
    int link_fd, tls_fd, parent_fd, ready_fd, proxy_fd, serve_fd;
};

static const char usage[] =
    "usage: warren-broker --link-fd N --run DIR --domain NAME --uid UID\n"
    "                     --gid GID [--tls-fd N [--tls-cert FILE --tls-key FILE]]\n"
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
        { "serve-fd", required_argument, NULL, 'S' },
        { "parent-fd", required_argument, NULL, 'p' },
        { "ready-fd", required_argument, NULL, 'R' },
        { "resolvers", required_argument, NULL, 'n' },
        { "open", required_argument, NULL, 'o' },
        { "ca", required_argument, NULL, 'a' },
        { "proxy-fd", required_argument, NULL, 'P' },
        { "proxy-except", required_argument, NULL, 'x' },
        { "proxy-names", no_argument, NULL, 'N' },
        { "proxy-addresses", no_argument, NULL, 'A' },
        { "log-level", required_argument, NULL, 'l' },
        { "log-format", required_argument, NULL, 'f' },
        { 0 },
    };
    *c = (struct config){
        .link_fd = -1, .tls_fd = -1, .parent_fd = -1, .ready_fd = -1, .proxy_fd = -1, .serve_fd = -1
    };
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
        uint32_t n = 0;
        if (strchr("ugLTpRPS", o) && number_u32(optarg, INT32_MAX, &n) < 0)
            return -EINVAL;
        switch (o) {
        case 'r': c->run = optarg; break;
        case 'd': c->domain = optarg; break;
        case 'n': c->resolvers = optarg; break;
        case 'o': c->open = optarg; break;
        case 'a': c->ca = optarg; break;
        case 'x': c->proxy_except = optarg; break;
        case 'N': c->proxy_names = true; break;
        case 'A': c->proxy_names = false; break;
        case 'P': c->proxy_fd = (int)n; break;
        case 'u': c->uid = n; break;
        case 'g': c->gid = n; break;
        case 'L': c->link_fd = (int)n; break;
        case 'T': c->tls_fd = (int)n; break;
        case 'c': c->tls_cert = optarg; break;
        case 'k': c->tls_key = optarg; break;
        case 'S': c->serve_fd = (int)n; break;
        case 'p': c->parent_fd = (int)n; break;
        case 'R': c->ready_fd = (int)n; break;
        default:
            if (set_log(o, optarg) < 0)
                return -EINVAL;
        }
    }
    if (!c->tls_cert != !c->tls_key)
        return -EINVAL;
    if (c->serve_fd >= 0) /* another process of ours */
        return c->tls_cert ? 0 : -EINVAL;
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

static void on_name(void *arg, const void *msg, int fd)
{
    struct broker *b = arg;
    if (fd >= 0)
        (void)close(fd);
    own_names_learn(&b->preview.own_names, msg);
}

static void on_limits(void *arg, const void *msg, int fd)
{
    struct broker *b = arg;
    if (fd >= 0)
        (void)close(fd);
    out_limits(b->out, msg);
}

static void on_who_answer(void *arg, const void *msg, int fd)
{
    struct broker *b = arg;
    if (fd >= 0)
        (void)close(fd);
    out_who(b->out, msg);
}

static void on_cert(void *arg, const void *msg, int fd)
{
    struct broker *b = arg;
    if (b->tls)
        tls_certificate(b->tls, msg, fd);
    else if (fd >= 0)
        (void)close(fd);
}

static void on_forward(void *arg, const void *msg, const int *fds)
{
    struct broker *b = arg;
    const struct broker_forward *forward = msg;
    forward_begin(&b->forwards, forward->sandbox, fds);
}

static const struct link_handler handlers[] = {
    { BROKER_CLIENT, sizeof(struct broker_client), .fn = on_client },
    { BROKER_ANSWER, sizeof(struct broker_answer), .fn = on_answer },
    { BROKER_NET, sizeof(struct broker_net), .fn = on_net },
    { BROKER_NET_END, sizeof(struct broker_net_end), .fn = on_net_end },
    { BROKER_NAME, sizeof(struct broker_name), .fn = on_name },
    { BROKER_LIMITS, sizeof(struct broker_limits), .fn = on_limits },
    { BROKER_WHO_ANSWER, sizeof(struct broker_who_answer), .fn = on_who_answer },
    { BROKER_CERT, sizeof(struct broker_cert), .fn = on_cert },
    { BROKER_FORWARD, sizeof(struct broker_forward), .nfds = BROKER_FORWARD_FDS,
      .many = on_forward },
    { 0 },
};

static void on_tls(void *arg, int fd, struct ssl_st *ssl)
{
    struct broker *b = arg;
    preview_client(&b->preview, fd, ssl);
}

static void on_files(void *arg, int fd)
{
    struct broker *b = arg;
    tls_files(b->tls, fd);
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

/* The operator's proxy comes as a file: an argument could be read by everybody on this machine. */
static int make_out(const struct config *c, struct broker *b, struct err *err)
{
    char proxy[PROXY_TEXT_MAX + 1] = "";
    ssize_t n = c->proxy_fd < 0 ? 0 : pread(c->proxy_fd, proxy, PROXY_TEXT_MAX, 0);
    if (n < 0)
        return err_set(err, errno, "cannot read what the proxy is");
    proxy[n] = '\0';
    struct out_config config = { .resolvers = c->resolvers,
                                 .open = c->open,
                                 .proxy = proxy,
                                 .proxy_except = c->proxy_except,
                                 .proxy_names = c->proxy_names,
                                 .trust = b->trust };
    int r = out_new(b->loop, &config, &b->out, err);
    explicit_bzero(proxy, sizeof(proxy));
    return r;
}

static int run(const struct config *c, struct err *err)
{
    struct broker b = { .files = { .fd = -1 } };
    int files_fd = -1;
    (void)signal(SIGPIPE, SIG_IGN);
    int r = c->tls_fd < 0 ? 0 : tls_new(c->tls_cert, c->tls_key, c->domain, &b.tls, err);
    if (r == 0 && c->tls_cert)
        r = certfiles_start(c->tls_cert, c->tls_key, &files_fd, err);
    if (r == 0)
        r = trust_new(c->ca, &b.trust, err);
    if (r < 0)
        return r;
    r = confine_enter(c->run, c->uid, c->gid, err);
    if (r < 0)
        return r;
    r = loop_new(&b.loop);
    if (r < 0)
        return err_set(err, -r, "cannot make an event loop");
    r = make_out(c, &b, err);
    if (r < 0)
        return r;
    r = link_new(b.loop, c->link_fd, handlers, &b, &b.link, err);
    if (r < 0)
        return r;
    out_start(b.out, b.link);
    forwards_init(&b.forwards, b.loop, b.link);
    r = preview_init(&b.preview, b.loop, b.link, c->domain, err);
    b.preview.tally = out_tally(b.out);
    if (r < 0)
        return r;
    if (b.tls)
        r = tls_listen(b.tls, b.loop, c->tls_fd, on_tls, &b, err);
    if (r >= 0 && files_fd >= 0)
        r = certfiles_watch(&b.files, b.loop, files_fd, on_files, &b, err);
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
    forwards_done(&b.forwards);
    out_free(b.out);
    trust_free(b.trust);
    certfiles_done(&b.files);
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
    int r = c.serve_fd >= 0 ? certfiles_serve(c.tls_cert, c.tls_key, c.serve_fd) : run(&c, &err);
    if (r < 0)
        log_error("%s err=%s", err.msg, strerror(-r));
    _exit(r < 0 ? 1
                : 0); /* what a sanitizer does at the end needs a /proc, which is out of reach */
}
