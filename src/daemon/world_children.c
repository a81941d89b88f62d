/* The keeper and the broker, and what each is told. */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "daemon/resolvers.h"
#include "daemon/world.h"
#include "net/proxy.h"

#define NUMBER_MAX 16

/* For cells (namespaces, mounts, control groups, networks, storage), for the programs that the
 * keeper starts for one job each, and for CRIU. Left out: modules, raw devices, the machine's
 * log, power, audit, accounting, terminals, security modules and alarms. */
static const int keeper_rights[] = {
    CAP_SYS_ADMIN,
    CAP_SYS_CHROOT,
    CAP_SYS_PTRACE,
    CAP_CHECKPOINT_RESTORE, /* CRIU; and init's descriptors */
    CAP_SYS_RESOURCE,
    CAP_SYS_NICE, /* limits and weights of cells */
    CAP_SYS_TIME, /* the offsets of time namespaces */
    CAP_NET_ADMIN,
    CAP_NET_RAW,          /* loopback, routes, steering; pings */
    CAP_NET_BIND_SERVICE, /* sockets of a cell that comes back */
    CAP_BPF,
    CAP_PERFMON, /* steering, and which programs are run */
    CAP_SETUID,
    CAP_SETGID, /* identities of cells */
    CAP_SETPCAP,
    CAP_SETFCAP,
    CAP_CHOWN,
    CAP_DAC_OVERRIDE, /* trees of images and sandboxes */
    CAP_FOWNER,
    CAP_FSETID,
    CAP_MKNOD,
    CAP_DAC_READ_SEARCH,
    CAP_KILL,
    CAP_IPC_LOCK,
    CAP_IPC_OWNER,
};
/* For reading the operator's certificates, making and entering an empty root, and becoming
 * warrend's user. */
static const int broker_rights[] = {
    CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_SYS_CHROOT,   CAP_SETUID,
    CAP_SETGID,       CAP_SETPCAP,         CAP_SYS_RESOURCE,
};

static int start_keeper(struct world *w, struct err *err)
{
    char uid[NUMBER_MAX], memory_mb[NUMBER_MAX];
    (void)snprintf(uid, sizeof(uid), "%u", (unsigned)w->user.uid);
    (void)snprintf(memory_mb, sizeof(memory_mb), "%u", w->options.sandbox_memory_mb);
    const char *args[] = { "--data",
                           w->data,
                           "--run",
                           w->run,
                           "--cgroup",
                           w->cgroup,
                           "--client-uid",
                           uid,
                           "--memory-mb",
                           memory_mb,
                           "--log-level",
                           w->options.log_level,
                           "--log-format",
                           w->options.log_format,
                           NULL };
    struct child_config keeper = { .program = "warren-keeper",
                                   .args = args,
                                   .rights = keeper_rights,
                                   .nrights = ARRAY_LEN(keeper_rights) };
    return child_start(&keeper, &w->keeper, err);
}

/* In a file in memory, not an argument: those can be read by everybody on this machine. */
static int proxy_file(const struct options *o, int *ret_fd, struct err *err)
{
    const char *text = o->egress_proxy ? o->egress_proxy : "";
    struct proxy proxy;
    int r = *text ? proxy_parse(text, strlen(text), &proxy, err) : 0;
    if (r < 0)
        return err_wrap(err, r, "egress-proxy");
    if (strcmp(o->egress_proxy_by, "name") != 0 && strcmp(o->egress_proxy_by, "address") != 0)
        return err_set(err, EINVAL, "egress-proxy-by is 'name' or 'address', not '%s'",
                       o->egress_proxy_by);
    explicit_bzero(&proxy, sizeof(proxy));
    _cleanup_fd_ int fd = memfd_create("proxy", MFD_CLOEXEC);
    r = fd < 0 ? -errno : fd_write_full(fd, text, strlen(text));
    if (r < 0)
        return err_set(err, -r, "cannot keep what the proxy is");
    *ret_fd = take_fd(fd);
    return 0;
}

/* Its end of the link stays with its launcher, so that the next one goes on where it died. */
static int start_broker(struct world *w, struct err *err)
{
    char uid[NUMBER_MAX], gid[NUMBER_MAX], resolvers[RESOLVERS_SIZE];
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_set(err, errno, "cannot make the link to the broker");
    w->link_fd = pair[0];
    _cleanup_fd_ int proxy_fd = -1;
    int r = proxy_file(&w->options, &proxy_fd, err);
    if (r < 0) {
        (void)close(pair[1]);
        return r;
    }
    bool by_name = strcmp(w->options.egress_proxy_by, "name") == 0;
    (void)snprintf(uid, sizeof(uid), "%u", (unsigned)w->user.uid);
    (void)snprintf(gid, sizeof(gid), "%u", (unsigned)w->user.gid);
    resolvers_read("/etc/resolv.conf", resolvers);
    const char *args[] = { "--run",
                           w->run,
                           "--domain",
                           w->domain,
                           "--uid",
                           uid,
                           "--gid",
                           gid,
                           "--resolvers",
                           w->options.resolvers ? w->options.resolvers : resolvers,
                           "--open",
                           w->options.egress_open ? w->options.egress_open : "",
                           "--ca",
                           w->options.egress_ca ? w->options.egress_ca : "",
                           "--proxy-except",
                           w->options.egress_proxy_except ? w->options.egress_proxy_except : "",
                           by_name ? "--proxy-names" : "--proxy-addresses",
                           "--log-level",
                           w->options.log_level,
                           "--log-format",
                           w->options.log_format,
                           w->options.tls_cert ? "--tls-cert" : NULL,
                           w->options.tls_cert,
                           "--tls-key",
                           w->options.tls_key,
                           NULL };
    struct child_fd fds[] = { { "--link-fd", pair[1] },
                              { "--proxy-fd", proxy_fd },
                              { "--tls-fd", w->tls_fd } };
    struct child_config broker = { .program = "warren-broker",
                                   .args = args,
                                   .fds = fds,
                                   .nfds = w->tls_fd >= 0 ? 3 : 2,
                                   .rights = broker_rights,
                                   .nrights = ARRAY_LEN(broker_rights) };
    r = child_start(&broker, &w->broker, err);
    (void)close(pair[1]);
    return r;
}

int world_start_children(struct world *w, struct err *err)
{
    int r = start_keeper(w, err);
    return r < 0 ? r : start_broker(w, err);
}
