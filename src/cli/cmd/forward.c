#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/number.h"
#include "cli/commands.h"
#include "cli/object.h"
#include "cli/term.h"
#include "cli/tunnel.h"
#include "cli/units.h"
#include "cli/xmem.h"

#define PORTS_MAX 64
#define TUNNELS_MAX 1000 /* open at once; more wait to be accepted */
#define TICK_MS 5000
#define PORT_TEXT_MAX 8

struct forward_opts {
    const char *address;
    bool quiet;
};

static const struct opt table[] = {
    { 'a', "address", OPT_TEXT, offsetof(struct forward_opts, address), "ADDRESS",
      "Where to listen; 127.0.0.1 unless said. Others can use it on any other address.", NULL },
    { 'q', "quiet", OPT_FLAG, offsetof(struct forward_opts, quiet), NULL,
      "Say nothing of single connections, but what fails.", NULL },
};

/* One "PORT[:LOCAL]". */
struct door {
    unsigned port, local;
    char *path; /* of the API */
    int fd;
};

struct open_tunnel {
    struct tunnel *t;
    const struct door *door;
    unsigned number;
    bool told;
};

struct forwarder {
    struct cli *cli;
    const struct forward_opts *opts;
    struct client *client;
    CURLM *multi;
    const char *sandbox;
    struct door doors[PORTS_MAX];
    size_t ndoors;
    struct open_tunnel *open;
    size_t n;
    unsigned last; /* number of a connection */
};

/* ---- the ports to listen on ---- */

static int read_port(const char *text, size_t n, unsigned min, unsigned *ret_port)
{
    char copy[PORT_TEXT_MAX];
    uint32_t v;
    if (n == 0 || n >= sizeof(copy))
        return -EINVAL;
    memcpy(copy, text, n);
    copy[n] = '\0';
    if (number_u32(copy, 65535, &v) < 0 || v < min)
        return -EINVAL;
    *ret_port = v;
    return 0;
}

static int read_door(const char *text, const char *sandbox, struct door *d, struct err *err)
{
    size_t n = strcspn(text, ":");
    char number[PORT_TEXT_MAX];
    if (read_port(text, n, 1, &d->port) < 0 ||
        (text[n] && read_port(text + n + 1, strlen(text + n + 1), 0, &d->local) < 0))
        return err_set(err, EINVAL, "'%s' is not PORT or PORT:LOCAL, such as 5432 or 80:8080",
                       text);
    if (!text[n])
        d->local = d->port;
    (void)snprintf(number, sizeof(number), "%u", d->port);
    d->path = api_path("sandboxes", sandbox, "ports", number, "connect", NULL);
    return 0;
}

static int listen_at(const char *address, struct door *d, struct err *err)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)d->local) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)d->local) };
    bool is_v6 = inet_pton(AF_INET6, address, &v6.sin6_addr) == 1;
    const int on = 1;
    if (!is_v6 && inet_pton(AF_INET, address, &v4.sin_addr) != 1)
        return err_set(err, EINVAL, "--address '%s' is not an address", address);
    _cleanup_fd_ int fd =
        socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr *at = is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
    socklen_t n = is_v6 ? sizeof(v6) : sizeof(v4);
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd < 0 || bind(fd, at, n) < 0 || listen(fd, SOMAXCONN) < 0 || getsockname(fd, at, &n) < 0)
        return err_set(err, errno, "cannot listen on %s port %u: %s; say another one, as in %u:%u",
                       address, d->local, strerror(errno), d->port, d->local < 1024 ? 8080u : 0u);
    d->local = ntohs(is_v6 ? v6.sin6_port : v4.sin_port);
    d->fd = take_fd(fd);
    return 0;
}

static void print_door(const struct forwarder *f, const struct door *d, const char *address)
{
    if (f->cli->json) {
        _cleanup_json_ json_t *o =
            json_pack("{s:s, s:i, s:s, s:i}", "address", address, "local", (int)d->local, "sandbox",
                      f->sandbox, "port", (int)d->port);
        cli_print_json(o);
    } else {
        (void)printf(strchr(address, ':') ? "[%s]:%u -> %s port %u\n" : "%s:%u -> %s port %u\n",
                     address, d->local, f->sandbox, d->port);
    }
    (void)fflush(stdout);
}

/* ---- connections ---- */

static void drop(struct forwarder *f, size_t i, const struct err *err)
{
    struct open_tunnel *o = &f->open[i];
    char sent[UNIT_TEXT_MAX], received[UNIT_TEXT_MAX];
    if (err->code)
        cli_note("connection %u to port %u: %s", o->number, o->door->port, err->msg);
    if (o->told && !f->opts->quiet)
        cli_note("connection %u to port %u is over: %s there, %s back", o->number, o->door->port,
                 size_text((int64_t)tunnel_sent(o->t), sent),
                 size_text((int64_t)tunnel_received(o->t), received));
    tunnel_free(o->t);
    *o = f->open[--f->n];
}

static void accept_from(struct forwarder *f, const struct door *d)
{
    const int on = 1;
    struct err err = ERR_INIT;
    int fd = accept4(d->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    struct open_tunnel o = { .door = d, .number = ++f->last };
    if (tunnel_new(f->client, f->multi, d->path, fd, &o.t, &err) < 0)
        cli_note("connection %u: %s", o.number, err.msg);
    else
        f->open[f->n++] = o;
}

static void learn_connected(struct forwarder *f)
{
    CURLMsg *m;
    int left;
    while ((m = curl_multi_info_read(f->multi, &left))) {
        struct tunnel *t = NULL;
        if (m->msg == CURLMSG_DONE &&
            curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t) == CURLE_OK && t)
            tunnel_connected(t, m->data.result);
    }
}

/* True: there is more to do at once. */
static bool step_all(struct forwarder *f)
{
    bool more = false;
    for (size_t i = 0; i < f->n;) {
        struct err err = ERR_INIT;
        struct open_tunnel *o = &f->open[i];
        int r = tunnel_step(o->t, &err);
        if (!o->told && tunnel_is_open(o->t)) {
            o->told = true;
            if (!f->opts->quiet)
                cli_note("connection %u to port %u is open", o->number, o->door->port);
        }
        more |= r > 0;
        if (r < 0)
            drop(f, i, &err);
        else
            i++;
    }
    return more;
}

static unsigned gather_fds(const struct forwarder *f, struct curl_waitfd *fds)
{
    unsigned n = 0;
    fds[n++] = (struct curl_waitfd){ signals_fd(), CURL_WAIT_POLLIN, 0 };
    for (size_t i = 0; i < f->ndoors && f->n < TUNNELS_MAX; i++)
        fds[n++] = (struct curl_waitfd){ f->doors[i].fd, CURL_WAIT_POLLIN, 0 };
    for (size_t i = 0; i < f->n; i++)
        n += tunnel_fds(f->open[i].t, fds + n);
    return n;
}

/* Until a signal. */
static int serve(struct forwarder *f, struct err *err)
{
    const size_t max = 1 + PORTS_MAX + TUNNEL_FDS * TUNNELS_MAX;
    _cleanup_free_ struct curl_waitfd *fds = xcalloc(max, sizeof(*fds));
    while (signals_next() == 0) {
        int running;
        if (curl_multi_perform(f->multi, &running) != CURLM_OK)
            return err_set(err, EIO, "cannot go on");
        learn_connected(f);
        bool more = step_all(f);
        unsigned n = gather_fds(f, fds);
        if (curl_multi_poll(f->multi, fds, n, more ? 0 : TICK_MS, NULL) != CURLM_OK)
            return err_set(err, EIO, "cannot wait for connections");
        for (size_t i = 0; i < f->ndoors && f->n < TUNNELS_MAX; i++)
            accept_from(f, &f->doors[i]);
    }
    return 0;
}

/* ---- the command ---- */

static int begin(struct forwarder *f, int argc, char **argv, struct err *err)
{
    const char *address = f->opts->address ? f->opts->address : "127.0.0.1";
    _cleanup_free_ char *path = api_path("sandboxes", f->sandbox, NULL);
    f->client = cli_client(f->cli, err);
    int r = f->client ? cli_call(f->cli, "GET", path, NULL, NULL, err) : -err->code;
    for (int i = 0; i < argc && r >= 0; i++) {
        struct door *d = &f->doors[f->ndoors++];
        d->fd = -1;
        r = read_door(argv[i], f->sandbox, d, err);
        if (r >= 0)
            r = listen_at(address, d, err);
    }
    if (r >= 0)
        r = signals_catch(false, err);
    for (size_t i = 0; i < f->ndoors && r >= 0; i++)
        print_door(f, &f->doors[i], address);
    f->multi = curl_multi_init();
    return r < 0 || f->multi ? r : err_set(err, ENOMEM, "cannot set libcurl up");
}

static void end(struct forwarder *f)
{
    while (f->n > 0)
        tunnel_free(f->open[--f->n].t);
    free(f->open);
    for (size_t i = 0; i < f->ndoors; i++) {
        if (f->doors[i].fd >= 0)
            (void)close(f->doors[i].fd);
        free(f->doors[i].path);
    }
    if (f->multi)
        (void)curl_multi_cleanup(f->multi);
}

static int run(struct cli *cli, const void *opts, int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct forwarder f = { .cli = cli, .opts = opts, .sandbox = argv[0] };
    if (argc - 1 > PORTS_MAX)
        return cli_usage(cli, "at most %d ports at once", PORTS_MAX);
    f.open = xcalloc(TUNNELS_MAX, sizeof(*f.open));
    int r = begin(&f, argc - 1, argv + 1, &err);
    if (r >= 0)
        r = serve(&f, &err);
    end(&f);
    return r < 0 ? cli_fail(cli, &err) : 0;
}

const struct command cmd_forward = {
    .name = "forward",
    .summary = "Reach ports of a sandbox through local ones",
    .synopsis = "[OPTIONS] SANDBOX PORT[:LOCAL]...",
    .description =
        "Listens on each LOCAL port of this machine (the same number unless said, 0 for any that is "
        "free) and carries what connects there to PORT in the sandbox, whatever the protocol: "
        "databases, ssh, debuggers. Servers that listen on 127.0.0.1 inside are reached.\n\n"
        "Connections go to the daemon as WebSockets, so that they pass through HTTP proxies "
        "(http_proxy, https_proxy) and TLS like every other request. Prints what it listens on and, "
        "on stderr, each connection; ends with Ctrl-C. When the daemon is started again, new "
        "connections work again.",
    .examples = (const struct example[]){ { "A database", "warren forward box 5432 &\n"
                                                          "psql -h 127.0.0.1 -U postgres" },
                                          { "A web server on another port, and a debugger",
                                            "warren forward box 80:8080 9229" },
                                          { NULL, NULL } },
    COMMAND_OPTS(table, struct forward_opts),
    .stop_after = OPTS_ALL,
    .min_args = 2,
    .max_args = -1,
    .operands = "@sandbox",
    .run = run,
};
