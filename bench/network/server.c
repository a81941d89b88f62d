/* The server that previews are measured with: answers GET /small and GET /big, keep-alive, one
 * thread with epoll, so that what is in front of it shows. usage: server PORT */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BIG (1024 * 1024)
#define HEAD_ROOM 256
#define CONNECTIONS_MAX 65536

static char small[256], *big;
static size_t small_len, big_len;

struct conn {
    const char *out;
    size_t left;
    char in[4096];
    size_t n;
};
static struct conn *conns[CONNECTIONS_MAX];

static int pump(int ep, int fd, struct conn *c)
{
    for (;;) {
        while (c->left > 0) {
            ssize_t w = send(fd, c->out, c->left, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (w < 0) {
                if (errno != EAGAIN)
                    return -1;
                struct epoll_event ev = { EPOLLIN | EPOLLOUT, { .fd = fd } };
                return epoll_ctl(ep, EPOLL_CTL_MOD, fd, &ev);
            }
            c->out += w;
            c->left -= (size_t)w;
        }
        char *end = memmem(c->in, c->n, "\r\n\r\n", 4);
        if (end) {
            int is_big = memcmp(c->in, "GET /big", 8) == 0;
            c->out = is_big ? big : small;
            c->left = is_big ? big_len : small_len;
            c->n -= (size_t)(end + 4 - c->in);
            memmove(c->in, end + 4, c->n);
            continue;
        }
        ssize_t r = recv(fd, c->in + c->n, sizeof(c->in) - c->n, MSG_DONTWAIT);
        if (r < 0 && errno == EAGAIN) {
            struct epoll_event ev = { EPOLLIN, { .fd = fd } };
            return epoll_ctl(ep, EPOLL_CTL_MOD, fd, &ev);
        }
        if (r <= 0)
            return -1;
        c->n += (size_t)r;
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in sa = { .sin_family = AF_INET,
                              .sin_port =
                                  htons((uint16_t)(argc > 1 ? strtol(argv[1], NULL, 10) : 0)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const int on = 1;
    small_len = (size_t)snprintf(
        small, sizeof(small),
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, world\n");
    big = malloc(BIG + HEAD_ROOM);
    big_len = (size_t)snprintf(
        big, HEAD_ROOM, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n",
        BIG);
    memset(big + big_len, 'x', BIG);
    big_len += BIG;
    int l = socket(AF_INET, SOCK_STREAM, 0), ep = epoll_create1(0);
    setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(l, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(l, 4096) < 0)
        return 1;
    struct epoll_event ev = { EPOLLIN, { .fd = l } }, got[64];
    epoll_ctl(ep, EPOLL_CTL_ADD, l, &ev);
    for (;;) {
        int n = epoll_wait(ep, got, 64, -1);
        for (int i = 0; i < n; i++) {
            int fd = got[i].data.fd;
            if (fd == l) {
                fd = accept4(l, NULL, NULL, SOCK_NONBLOCK);
                if (fd < 0 || fd >= CONNECTIONS_MAX)
                    continue;
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
                conns[fd] = calloc(1, sizeof(struct conn));
                ev = (struct epoll_event){ EPOLLIN, { .fd = fd } };
                epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
            } else if (pump(ep, fd, conns[fd]) < 0) {
                free(conns[fd]);
                close(fd);
            }
        }
    }
}
