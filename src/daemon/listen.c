#include "daemon/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define BACKLOG 4096 /* a crowd that comes at once waits here; the kernel may allow less */
#define HOST_MAX 256
#define PORT_TEXT_MAX 8
#define UNIX_MODE 0660

static int split(const char *option, const char *address, char host[HOST_MAX],
                 char port[PORT_TEXT_MAX], struct err *err)
{
    const char *colon = strrchr(address, ':');
    const char *from = address, *to = colon;
    if (colon && from[0] == '[' && to > from + 1 && to[-1] == ']') {
        from++;
        to--;
    }
    size_t n = colon ? (size_t)(to - from) : 0, m = colon ? strlen(colon + 1) : 0;
    if (n == 0 || n >= HOST_MAX || m == 0 || m >= PORT_TEXT_MAX ||
        strspn(colon + 1, "0123456789") != m)
        return err_set(err, EINVAL, "%s '%s' is not ADDR:PORT, such as 127.0.0.1:7070", option,
                       address);
    memcpy(host, from, n);
    host[n] = '\0';
    memcpy(port, colon + 1, m + 1);
    return 0;
}

static int describe(int fd, char where[LISTEN_TEXT_MAX], struct err *err)
{
    struct sockaddr_storage sa = { 0 };
    socklen_t n = sizeof(sa);
    char host[INET6_ADDRSTRLEN + 20], port[PORT_TEXT_MAX];

    if (getsockname(fd, (struct sockaddr *)&sa, &n) < 0 ||
        getnameinfo((struct sockaddr *)&sa, n, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return err_set(err, EINVAL, "cannot tell where we listen");
    bool v6 = sa.ss_family == AF_INET6;
    int len =
        snprintf(where, LISTEN_TEXT_MAX, "%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
    return len > 0 && len < LISTEN_TEXT_MAX ? 0
                                            : err_set(err, EINVAL, "cannot tell where we listen");
}

int listen_tcp(const char *option, const char *address, char where[LISTEN_TEXT_MAX],
               struct err *err)
{
    char host[HOST_MAX], port[PORT_TEXT_MAX];
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    struct addrinfo *found = NULL;
    const int on = 1;

    int r = split(option, address, host, port, err);
    if (r < 0)
        return r;
    int e = getaddrinfo(host, port, &hints, &found);
    if (e != 0)
        return err_set(err, EINVAL, "%s '%s': %s", option, address, gai_strerror(e));
    _cleanup_fd_ int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        r = err_set(err, errno, "cannot make a socket for '%s': %s", address, strerror(errno));
    } else {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        /* Accepted connections inherit these: answers go out at once, dead peers are noticed. */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
        if (bind(fd, found->ai_addr, found->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
            r = err_set(err, errno, "cannot listen on '%s': %s", address, strerror(errno));
    }
    freeaddrinfo(found);
    if (r >= 0)
        r = describe(fd, where, err);
    return r < 0 ? r : take_fd(fd);
}

int listen_unix(const char *path, uid_t uid, gid_t gid, struct err *err)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    size_t n = strlen(path);
    if (n >= sizeof(sa.sun_path))
        return err_set(err, ENAMETOOLONG, "'%s' is too long for a socket's path", path);
    memcpy(sa.sun_path, path, n + 1);

    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set(err, errno, "cannot make the admin socket");
    (void)unlink(path);
    if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
        return err_set(err, errno, "cannot bind '%s': %s", path, strerror(errno));
    if (lchown(path, uid, gid) < 0 || chmod(path, UNIX_MODE) < 0 || listen(fd, BACKLOG) < 0)
        return err_set(err, errno, "cannot open '%s' to its users: %s", path, strerror(errno));
    return take_fd(fd);
}
