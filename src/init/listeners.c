#include "init/listeners.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "wire/wire.h"

#define FILE_MAX (256u * 1024) /* the kernel puts those that listen first */
#define LISTEN 0x0a

/* A 32-bit number of the kernel's own order, as eight digits. */
static bool take_word(const char *p, unsigned char out[4])
{
    uint32_t v = 0;
    for (int i = 0; i < 8; i++) {
        char c = p[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                                : 16;
        if (digit > 15)
            return false;
        v = v << 4 | digit;
    }
    memcpy(out, &v, sizeof(v));
    return true;
}

/* "   0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 ..." */
static bool take_line(const char *line, bool v6, struct listener *ret_l)
{
    struct listener l = { .v6 = v6 };
    const char *p = strchr(line, ':');
    size_t words = v6 ? 4 : 1;
    unsigned port, state;
    unsigned long long inode;
    if (!p || p[1] != ' ' || strlen(p + 2) < words * 8)
        return false;
    p += 2;
    for (size_t i = 0; i < words; i++, p += 8)
        if (!take_word(p, l.address + 4 * i))
            return false;
    if (sscanf(p, ":%4x %*[0-9A-F]:%*4x %2x %*x:%*x %*x:%*x %*x %*u %*u %llu", &port, &state,
               &inode) != 3 ||
        state != LISTEN || port == 0)
        return false;
    l.port = (uint16_t)port;
    l.inode = inode;
    *ret_l = l;
    return true;
}

size_t listeners_parse(const char *p, size_t n, bool v6, struct listener *out, size_t max)
{
    size_t found = 0;
    while (n > 0 && found < max) {
        char line[256];
        const char *end = memchr(p, '\n', n);
        size_t len = end ? (size_t)(end - p) : n;
        if (len < sizeof(line)) {
            memcpy(line, p, len);
            line[len] = '\0';
            if (take_line(line, v6, &out[found]))
                found++;
        }
        len += end ? 1 : 0;
        p += len;
        n -= len;
    }
    return found;
}

/* What lies at that path may be anything by now: only the kernel's own file is read. */
static int read_file(const char *path, struct buf *out)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct statfs fs;
    ssize_t n = 0;
    if (fd < 0 || fstatfs(fd, &fs) < 0)
        return -errno;
    if (fs.f_type != PROC_SUPER_MAGIC)
        return -EIO;
    buf_clear(out);
    while (buf_reserve(out, 4096) >= 0 && (n = read(fd, out->data + out->len, 4096)) > 0)
        out->len += (size_t)n;
    return n < 0 ? -errno : 0;
}

static int put(struct buf *b, const struct listener *l)
{
    char text[INET6_ADDRSTRLEN] = "";
    (void)inet_ntop(l->v6 ? AF_INET6 : AF_INET, l->address, text, sizeof(text));
    int r = wire_put_u64(b, WIRE_T_PORT, l->port);
    if (r >= 0)
        r = wire_put_str(b, WIRE_T_TEXT, text);
    return r < 0 ? r : wire_put_u64(b, WIRE_T_INODE, l->inode);
}

void listeners_run(int fd, char *payload, size_t n)
{
    static const char *const files[] = { "/proc/net/tcp", "/proc/net/tcp6" };
    static struct listener list[LISTENERS_MAX];
    _cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX), b = BUF_INIT(64u * 1024);
    size_t found = 0;
    int r = 0;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        int got = read_file(files[i], &text);
        if (got >= 0)
            found +=
                listeners_parse(text.data, text.len, i > 0, list + found, LISTENERS_MAX - found);
        else if (i == 0) /* without IPv6 there is no second one */
            r = got;
    }
    for (size_t i = 0; i < found && r >= 0; i++)
        r = put(&b, &list[i]);
    (void)wire_send(fd, r < 0 ? WIRE_ERROR : WIRE_OK, r < 0 ? NULL : &b);
}
