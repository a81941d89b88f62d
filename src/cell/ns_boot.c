#include "cell/ns_boot.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/hex.h"
#include "base/id.h"
#include "cell/ns_cpus.h"
#include "cell/ns_private.h"
#include "cell/ns_size.h"

#define VERSION_AT 14 /* of a random UUID: always '4' */
#define VARIANT_AT 19 /* one of 8, 9, a, b */

/* Where a UUID has its dashes. */
static bool is_dash(size_t at)
{
    return at == 8 || at == 13 || at == 18 || at == 23;
}

bool ns_boot_valid(const char *text)
{
    size_t n = 0;
    for (; n < NS_BOOT_SIZE - 1 && text[n]; n++)
        if (is_dash(n) ? text[n] != '-' : !strchr("0123456789abcdef", text[n]))
            return false;
    return n == NS_BOOT_SIZE - 1 && text[n] == '\0';
}

static int make_text(char out[NS_BOOT_SIZE])
{
    unsigned char raw[16];
    char hex[2 * sizeof(raw) + 1];
    int r = random_bytes(raw, sizeof(raw));
    if (r < 0)
        return r;
    hex_encode(raw, sizeof(raw), hex);
    for (size_t at = 0, from = 0; at < NS_BOOT_SIZE - 1; at++)
        out[at] = is_dash(at) ? '-' : hex[from++];
    out[VERSION_AT] = '4';
    out[VARIANT_AT] = "89ab"[raw[8] & 3];
    out[NS_BOOT_SIZE - 1] = '\0';
    return 0;
}

/* A new file each time: a process that has the old one open goes on reading that. */
static int put_file(const struct ns_host *h, const char *name, const char *text, size_t n)
{
    (void)unlinkat(h->boots, name, 0);
    _cleanup_fd_ int fd = openat(h->boots, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    return fd < 0 ? -errno : fd_write_full(fd, text, n);
}

int ns_boot_put(const struct ns_host *h, const char *id, const char *known, int64_t uptime_s,
                unsigned cpus, struct err *err)
{
    char text[NS_BOOT_SIZE + 1], stat[NS_PATH_SIZE];
    _cleanup_(buf_done) struct buf b = BUF_INIT(NS_CPUS_TEXT_MAX);
    int r = 0;
    if (known[0])
        (void)snprintf(text, sizeof(text), "%s", known);
    else
        r = make_text(text);
    if (r < 0)
        return err_set(err, -r, "cannot get random bytes");
    memcpy(text + NS_BOOT_SIZE - 1, "\n", 2);
    (void)snprintf(stat, sizeof(stat), "%s" NS_STAT_SUFFIX, id);
    r = put_file(h, id, text, NS_BOOT_SIZE);
    if (r >= 0)
        r = ns_cpus_print_stat(cpus, (long long)(time(NULL) - uptime_s), &b);
    if (r >= 0)
        r = put_file(h, stat, b.data, b.len);
    return r < 0 ? err_set(err, -r, "cannot make a boot id") : 0;
}

void ns_boot_drop(const struct ns_host *h, const char *id)
{
    char stat[NS_PATH_SIZE];
    (void)snprintf(stat, sizeof(stat), "%s" NS_STAT_SUFFIX, id);
    if (!h)
        return;
    (void)unlinkat(h->boots, id, 0);
    (void)unlinkat(h->boots, stat, 0);
    ns_size_drop(h, id);
}
