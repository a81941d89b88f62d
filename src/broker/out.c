#include "broker/out.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "broker/resolver.h"
#include "net/binding.h"
#include "broker/tally.h"
#include "wire/broker.h"

#define LOG_MODULE "egress"
#define RANGES_MAX 64

struct out {
    struct link *link;
    struct egress *egress;
    struct tally tally;
    struct range open[RANGES_MAX];
    size_t n_open;
    struct proxy proxy;
    struct exempt direct;
};

static void on_record(void *arg, const struct egress_record *rec)
{
    struct out *o = arg;
    struct broker_record msg = { .type = BROKER_RECORD,
                                 .question = rec->question,
                                 .allowed = rec->allowed,
                                 .udp = rec->protocol == POLICY_UDP    ? 1
                                        : rec->protocol == POLICY_ICMP ? 2
                                                                       : 0,
                                 .why = (uint32_t)rec->why,
                                 .port = rec->port,
                                 .failure = (uint32_t)rec->failure,
                                 .wall_ms = rec->wall_ms,
                                 .open = rec->open,
                                 .flow = rec->flow,
                                 .sent_bytes = rec->sent_bytes,
                                 .received_bytes = rec->received_bytes };
    memcpy(msg.sandbox, rec->sandbox, sizeof(msg.sandbox));
    if (rec->to.bits)
        (void)address_text(&rec->to, msg.address);
    (void)snprintf(msg.name, sizeof(msg.name), "%s", rec->name);
    (void)snprintf(msg.rule, sizeof(msg.rule), "%s", rec->rule);
    (void)snprintf(msg.binding, sizeof(msg.binding), "%s", rec->binding);
    (void)snprintf(msg.program, sizeof(msg.program), "%s", rec->program);
    if (o->link && link_offer(o->link, msg.sandbox, &msg, sizeof(msg)) < 0)
        log_debug("an entry was lost sandbox=%s", msg.sandbox);
}

static int on_who(void *arg, const struct broker_who *msg)
{
    struct out *o = arg;
    return o->link ? link_send(o->link, msg, sizeof(*msg), -1) : -ENOTCONN;
}

static int on_tally(void *arg, const struct tally_row *row)
{
    struct out *o = arg;
    struct broker_tally msg = { .type = BROKER_TALLY,
                                .preview = row->kind == TALLY_PREVIEW,
                                .connections = row->connections,
                                .denied = row->denied,
                                .sent_bytes = row->sent_bytes,
                                .received_bytes = row->received_bytes,
                                .port = row->port };
    memcpy(msg.sandbox, row->sandbox, sizeof(msg.sandbox));
    (void)snprintf(msg.host, sizeof(msg.host), "%s", row->host);
    (void)snprintf(msg.binding, sizeof(msg.binding), "%s", row->binding);
    return o->link ? link_send(o->link, &msg, sizeof(msg), -1) : -ENOTCONN;
}

static int read_open(struct out *o, const char *list, struct err *err)
{
    for (const char *p = list ? list : ""; *p;) {
        p += strspn(p, ", \t");
        size_t n = strcspn(p, ", \t");
        if (n && (o->n_open == RANGES_MAX || range_parse(p, n, &o->open[o->n_open]) < 0))
            return err_set(err, EINVAL, "'%.*s' is no range of addresses to open", (int)n, p);
        o->n_open += n > 0;
        p += n;
    }
    return 0;
}

/* Cuts the list into its parts, in place. */
static size_t split(char *list, const char *parts[RESOLVER_SERVERS_MAX + 1])
{
    size_t n = 0;
    for (char *p = list, *save = NULL; n < RESOLVER_SERVERS_MAX; p = NULL) {
        char *part = strtok_r(p, ", \t", &save);
        if (!part)
            break;
        parts[n++] = part;
    }
    parts[n] = NULL;
    return n;
}

static int read_proxy(struct out *o, const struct out_config *c, struct err *err)
{
    int r = exempt_parse(c->proxy_except ? c->proxy_except : "", &o->direct, err);
    if (r < 0)
        return err_wrap(err, r, "egress-proxy-except");
    if (!c->proxy || !*c->proxy)
        return 0;
    r = proxy_parse(c->proxy, strlen(c->proxy), &o->proxy, err);
    if (r < 0)
        return err_wrap(err, r, "egress-proxy");
    o->proxy.by_name |= c->proxy_names;
    return 1;
}

int out_new(struct loop *loop, const struct out_config *c, struct out **ret_out, struct err *err)
{
    _cleanup_free_ char *list = strdup(c->resolvers ? c->resolvers : "");
    const char *parts[RESOLVER_SERVERS_MAX + 1];
    struct out *o = calloc(1, sizeof(*o));
    if (!o || !list) {
        free(o);
        return err_set(err, ENOMEM, "out of memory");
    }
    (void)split(list, parts);
    tally_init(&o->tally, loop, on_tally, o);
    int r = read_open(o, c->open, err);
    struct egress_config config = { .resolvers = parts,
                                    .opened = o->open,
                                    .n_opened = o->n_open,
                                    .direct = &o->direct,
                                    .trust = c->trust,
                                    .record = on_record,
                                    .who = on_who,
                                    .tally = &o->tally,
                                    .arg = o };
    if (r == 0)
        r = read_proxy(o, c, err);
    config.proxy = r > 0 ? &o->proxy : NULL;
    if (r >= 0)
        r = egress_new(loop, &config, &o->egress, err);
    if (r < 0) {
        exempt_done(&o->direct);
        free(o);
        return r;
    }
    *ret_out = o;
    return 0;
}

void out_free(struct out *o)
{
    if (!o)
        return;
    egress_free(o->egress);
    tally_done(&o->tally);
    exempt_done(&o->direct);
    explicit_bzero(&o->proxy, sizeof(o->proxy));
    free(o);
}

void out_start(struct out *o, struct link *link)
{
    struct broker_hello msg = { .type = BROKER_HELLO };
    o->link = link;
    if (link_send(link, &msg, sizeof(msg), -1) < 0)
        log_error("warrend cannot be greeted: sandboxes stay without a network");
}

/* What may be longer than a message comes in a file in memory: all of it that fits. Takes fd. */
static size_t read_text(int fd, char *text, size_t size)
{
    size_t n = 0;
    for (ssize_t got; n < size; n += (size_t)got) {
        got = pread(fd, text + n, size - n, (off_t)n);
        if (got <= 0)
            break;
    }
    (void)close(fd);
    return n;
}

static void take_rules(struct out *o, const struct broker_net *msg, int fd)
{
    static char text[POLICY_TEXT_MAX + PROXY_TEXT_MAX]; /* the loop has one thread */
    struct err err = ERR_INIT;
    size_t n = read_text(fd, text, sizeof(text)), n_rules, n_proxy = 0;
    const char *proxy = proxy_line(text, n, &n_rules, &n_proxy);
    int r = egress_proxy(o->egress, msg->sandbox, proxy ? proxy : "", n_proxy, &err);
    if (r == 0)
        r = egress_rules(o->egress, msg->sandbox, text, n_rules, msg->cut, &err);
    if (proxy)
        explicit_bzero(text, n);
    if (r < 0) {
        log_error("rules were not understood, nothing is let out: %s sandbox=%s", err.msg,
                  msg->sandbox);
        (void)egress_rules(o->egress, msg->sandbox, "", 0, true, NULL);
    }
}

static void take_fd_of(struct out *o, const struct broker_net *msg, enum egress_fd what, int fd)
{
    struct err err = ERR_INIT;
    if (egress_take(o->egress, msg->sandbox, what, fd, &err) < 0)
        log_error("a sandbox is without its network: %s sandbox=%s", err.msg, msg->sandbox);
}

/* Values and keys, of which nothing is left here. */
static void take_secret(struct out *o, const struct broker_net *msg, int fd)
{
    bool ca = msg->part == BROKER_NET_CA;
    struct buf text = BUF_INIT(BINDINGS_PACKED_MAX);
    struct err err = ERR_INIT;
    struct stat st;
    /* What could not be read is as good as nothing: then there are none. */
    if (fstat(fd, &st) == 0 && buf_reserve(&text, (size_t)st.st_size) == 0)
        text.len = read_text(fd, text.data, (size_t)st.st_size);
    else
        (void)close(fd);
    int r = (ca ? egress_ca : egress_bindings)(o->egress, msg->sandbox, text.data, text.len, &err);
    if (r < 0)
        log_error("%s: %s sandbox=%s",
                  ca ? "a sandbox is without its CA" : "a sandbox is without its bindings", err.msg,
                  msg->sandbox);
    buf_wipe(&text);
}

void out_net(struct out *o, const void *message, int fd)
{
    const struct broker_net *msg = message;
    if (fd < 0)
        return;
    bool valid = !msg->sandbox[ID_LEN] && id_valid(msg->sandbox);
    switch (valid ? msg->part : UINT32_MAX) {
    case BROKER_NET_RULES: take_rules(o, msg, fd); break;
    case BROKER_NET_TCP: take_fd_of(o, msg, EGRESS_TCP, fd); break;
    case BROKER_NET_UDP: take_fd_of(o, msg, EGRESS_UDP, fd); break;
    case BROKER_NET_REST: take_fd_of(o, msg, EGRESS_REST, fd); break;
    case BROKER_NET_LINK: take_fd_of(o, msg, EGRESS_LINK, fd); break;
    case BROKER_NET_BINDINGS:
    case BROKER_NET_CA: take_secret(o, msg, fd); break;
    case BROKER_NET_DIAG: take_fd_of(o, msg, EGRESS_DIAG, fd); break;
    case BROKER_NET_RAW_V4: take_fd_of(o, msg, EGRESS_RAW_V4, fd); break;
    case BROKER_NET_RAW_V6: take_fd_of(o, msg, EGRESS_RAW_V6, fd); break;
    default: (void)close(fd);
    }
}

void out_net_end(struct out *o, const void *message)
{
    const struct broker_net_end *msg = message;
    if (!msg->sandbox[ID_LEN] && id_valid(msg->sandbox))
        egress_end(o->egress, msg->sandbox);
}

void out_limits(struct out *o, const void *message)
{
    const struct broker_limits *msg = message;
    struct allot_limits limits = { .connections = msg->connections,
                                   .connections_per_s = msg->connections_per_s,
                                   .bytes_per_s = msg->bytes_per_s,
                                   .bytes = msg->bytes };
    if (msg->sandbox[ID_LEN] || !id_valid(msg->sandbox))
        return;
    if (egress_allot(o->egress, msg->sandbox, &limits, msg->spent_bytes) < 0)
        log_error("a sandbox is without its limits sandbox=%s", msg->sandbox);
}

void out_who(struct out *o, const void *message)
{
    struct broker_who_answer msg;
    memcpy(&msg, message, sizeof(msg));
    for (size_t i = 0; i < BROKER_WHO_MAX; i++)
        msg.programs[i][BROKER_PROGRAM_SIZE - 1] = '\0';
    if (!msg.sandbox[ID_LEN])
        egress_who(o->egress, msg.sandbox, &msg);
}

struct tally *out_tally(struct out *o)
{
    return &o->tally;
}
