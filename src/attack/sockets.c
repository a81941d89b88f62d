/* Socket families that a sandbox does not need, and the host's sockets. */
#include "attack/attempt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* args: family, type, protocol */
static void run_socket(const struct attempt *self, struct outcome *o)
{
    int fd = socket((int)self->args[0], (int)self->args[1] | SOCK_CLOEXEC, (int)self->args[2]);
    refused(o, fd, "socket");
    if (fd >= 0)
        (void)close(fd);
}

static int connect_to(const char *path, size_t n)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    memcpy(at.sun_path, path, n);
    int r = connect(fd, (struct sockaddr *)&at,
                    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
    int e = errno;
    (void)close(fd);
    errno = e;
    return r;
}

/* No socket that a host's daemons listen at may answer. */
static void run_daemons(const struct attempt *self, struct outcome *o)
{
    static const char *const paths[] = {
        "/run/docker.sock",
        "/var/run/docker.sock",
        "/run/containerd/containerd.sock",
        "/run/podman/podman.sock",
        "/run/crio/crio.sock",
        "/run/libvirt/libvirt-sock",
        "/run/dbus/system_bus_socket",
        "/run/systemd/notify",
        "/run/systemd/private",
        "/run/systemd/journal/socket",
        "/dev/log",
        "/run/udev/control",
        "/run/warren/warren.sock",
        "/run/warren/keeper.sock",
        "/run/snapd.socket",
        "/run/acpid.socket",
        "/run/nscd/socket",
    };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        failed(o, connect_to(paths[i], strlen(paths[i])), paths[i]);
    held(o, "none of %zu sockets of a host answers", sizeof(paths) / sizeof(paths[0]));
}

/* Abstract names belong to a network namespace: none of the host's must show. */
static void run_abstract(const struct attempt *self, struct outcome *o)
{
    static const char *const names[] = { "\0/tmp/.X11-unix/X0",
                                         "\0/org/kernel/linux/storage/multipathd",
                                         "\0/com/ubuntu/upstart", "\0warren",
                                         "\0ISCSIADM_ABSTRACT_NAMESPACE" };
    char line[512], name[256];
    FILE *f = fopen("/proc/net/unix", "re");
    unsigned n = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        failed(o, connect_to(names[i], strlen(names[i] + 1) + 1), names[i] + 1);
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "%*s %*s %*s %*s %*s %*s %*s @%255s", name) == 1) {
            char at[257] = "";
            size_t len = strlen(name);
            memcpy(at + 1, name, len);
            if (len < 100 && connect_to(at, len + 1) == 0)
                broke(o, "@%s of another can be connected", name);
            n++;
        }
    if (f)
        (void)fclose(f);
    held(o, "%u names in the abstract space, none of which answers", n);
}

#define FAMILY(name_, title_, ...)                                                           \
    {                                                                                        \
        .name = "socket-" name_, .title = title_, .run = run_socket, .args = { __VA_ARGS__ } \
    }

/* clang-format off */
static const struct attempt sockets[] = {
    FAMILY("netlink-audit", "the audit system", 16, SOCK_RAW, 9), FAMILY("netlink-netfilter", "the packet filter", 16, SOCK_RAW, 12),
    FAMILY("netlink-generic", "the kernel's odd corners", 16, SOCK_RAW, 16), FAMILY("netlink-uevent", "the host's devices as they come", 16, SOCK_RAW, 15),
    FAMILY("netlink-xfrm", "IPsec", 16, SOCK_RAW, 6), FAMILY("netlink-diag", "sockets of all", 16, SOCK_RAW, 4),
    FAMILY("netlink-connector", "processes of all", 16, SOCK_RAW, 11),
    FAMILY("packet", "raw packets", 17, SOCK_RAW, 768), FAMILY("alg", "the kernel's ciphers", 38, SOCK_SEQPACKET, 0),
    FAMILY("vsock", "the hypervisor", 40, SOCK_STREAM, 0), FAMILY("xdp", "packets past the stack", 44, SOCK_RAW, 0),
    FAMILY("tipc", "TIPC", 30, SOCK_SEQPACKET, 0), FAMILY("rds", "RDS", 21, SOCK_SEQPACKET, 0),
    FAMILY("key", "PF_KEY", 15, SOCK_RAW, 2), FAMILY("bluetooth", "Bluetooth", 31, SOCK_STREAM, 0),
    FAMILY("can", "CAN", 29, SOCK_RAW, 1), FAMILY("smc", "SMC", 43, SOCK_STREAM, 0),
    FAMILY("kcm", "KCM", 41, SOCK_DGRAM, 0), FAMILY("nfc", "NFC", 39, SOCK_RAW, 0),
    FAMILY("sctp", "SCTP", AF_INET, SOCK_STREAM, 132), FAMILY("dccp", "DCCP", AF_INET, 6, 33),
    FAMILY("udplite", "UDP-Lite", AF_INET, SOCK_DGRAM, 136), FAMILY("mptcp", "MPTCP", AF_INET, SOCK_STREAM, 262),
    { .name = "host-daemons", .title = "the sockets of the host's daemons", .run = run_daemons },
    { .name = "abstract-sockets", .title = "abstract sockets of the host", .run = run_abstract },
};
/* clang-format on */

const struct group group_sockets = { "sockets", sockets, sizeof(sockets) / sizeof(sockets[0]) };
