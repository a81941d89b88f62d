#include "broker/out.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "broker/resolver.h"
#include "wire/broker.h"

#define LOG_MODULE "egress"
#define RANGES_MAX 64

struct out {
    struct link *link;
    struct egress *egress;
    struct range open[RANGES_MAX];
    size_t n_open;
};

static void on_record(void *arg, const struct egress_record *rec)
{
    struct out *o = arg;
    struct broker_record msg = { .type = BROKER_RECORD,
                                 .question = rec->question,
                                 .allowed = rec->allowed,
                                 .udp = rec->protocol == POLICY_UDP,
                                 .why = (uint32_t)rec->why,
                                 .port = rec->port,
                                 .failure = (uint32_t)rec->failure,
                                 .wall_ms = rec->wall_ms,
                                 .sent_bytes = rec->sent_bytes,
                                 .received_bytes = rec->received_bytes };
    memcpy(msg.sandbox, rec->sandbox, sizeof(msg.sandbox));
    if (!rec->question)
        (void)address_text(&rec->to, msg.address);
    (void)snprintf(msg.name, sizeof(msg.name), "%s", rec->name);
    (void)snprintf(msg.rule, sizeof(msg.rule), "%s", rec->rule);
    if (o->link && link_send(o->link, &msg, sizeof(msg), -1) < 0)
        log_debug("an entry was lost sandbox=%s", msg.sandbox);
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

int out_new(struct loop *loop, const char *resolvers, const char *open, struct out **ret_out,
            struct err *err)
{
    _cleanup_free_ char *list = strdup(resolvers ? resolvers : "");
    const char *parts[RESOLVER_SERVERS_MAX + 1];
    struct out *o = calloc(1, sizeof(*o));
    if (!o || !list) {
        free(o);
        return err_set(err, ENOMEM, "out of memory");
    }
    (void)split(list, parts);
    int r = read_open(o, open, err);
    struct egress_config config = {
        .resolvers = parts, .opened = o->open, .n_opened = o->n_open, .record = on_record, .arg = o
    };
    if (r == 0)
        r = egress_new(loop, &config, &o->egress, err);
    if (r < 0) {
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
    o->link = NULL;
    egress_free(o->egress);
    free(o);
}

void out_start(struct out *o, struct link *link)
{
    struct broker_hello msg = { .type = BROKER_HELLO };
    o->link = link;
    if (link_send(link, &msg, sizeof(msg), -1) < 0)
        log_error("warrend cannot be greeted: sandboxes stay without a network");
}

/* Rules come in a file in memory: they may be longer than a message. */
static void take_rules(struct out *o, const struct broker_net *msg, int fd)
{
    static char text[POLICY_TEXT_MAX + 1]; /* the loop has one thread */
    size_t n = 0;
    struct err err = ERR_INIT;
    for (ssize_t got; n < sizeof(text); n += (size_t)got) {
        got = pread(fd, text + n, sizeof(text) - n, (off_t)n);
        if (got <= 0)
            break;
    }
    (void)close(fd);
    if (egress_rules(o->egress, msg->sandbox, text, n, msg->cut, &err) < 0) {
        log_error("rules were not understood, nothing is let out: %s sandbox=%s", err.msg,
                  msg->sandbox);
        (void)egress_rules(o->egress, msg->sandbox, "", 0, true, NULL);
    }
}

void out_net(struct out *o, const void *message, int fd)
{
    static const enum egress_fd fds[] = { [BROKER_NET_TCP] = EGRESS_TCP,
                                          [BROKER_NET_UDP] = EGRESS_UDP,
                                          [BROKER_NET_LINK] = EGRESS_LINK };
    const struct broker_net *msg = message;
    struct err err = ERR_INIT;
    if (fd < 0)
        return;
    if (msg->sandbox[ID_LEN] || !id_valid(msg->sandbox) || msg->part > BROKER_NET_LINK)
        (void)close(fd);
    else if (msg->part == BROKER_NET_RULES)
        take_rules(o, msg, fd);
    else if (egress_take(o->egress, msg->sandbox, fds[msg->part], fd, &err) < 0)
        log_error("a sandbox is without its network: %s sandbox=%s", err.msg, msg->sandbox);
}

void out_net_end(struct out *o, const void *message)
{
    const struct broker_net_end *msg = message;
    if (!msg->sandbox[ID_LEN] && id_valid(msg->sandbox))
        egress_end(o->egress, msg->sandbox);
}
