#include "kernel/sysctl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"

#define LOG_MODULE "sysctl"
#define PATH_SIZE 96
#define TEXT_SIZE 96
#define AIO_EVENT_BYTES 32 /* of a ring, charged to its owner */
#define TERMINALS 1048576  /* the kernel's maximum */
#define PROCESSES 4194304  /* the kernel's maximum on 64 bits */

static int sysctl_read(const char *name, char text[TEXT_SIZE])
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof(path), "/proc/sys/%s", name);
    ssize_t n = fd_read_file_at(AT_FDCWD, path, text, TEXT_SIZE);
    if (n < 0)
        return (int)n;
    text[strcspn(text, "\n")] = '\0';
    return 0;
}

static int sysctl_write(const char *name, const char *text)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof(path), "/proc/sys/%s", name);
    return fd_write_file_at(AT_FDCWD, path, text);
}

static void tell(const char *name, const char *before, const char *after, int r)
{
    if (r < 0)
        log_warn("sandboxes share a limit that cannot be raised sysctl=%s value=\"%s\" err=%s",
                 name, before, strerror(-r));
    else
        log_info("raised a limit that sandboxes share sysctl=%s from=\"%s\" to=\"%s\"", name,
                 before, after);
}

static void raise_to(const char *name, uint64_t wanted)
{
    char before[TEXT_SIZE], after[TEXT_SIZE];
    if (sysctl_read(name, before) < 0 || strtoull(before, NULL, 10) >= wanted)
        return;
    (void)snprintf(after, sizeof(after), "%" PRIu64, wanted);
    tell(name, before, after, sysctl_write(name, after));
}

/* Three numbers in pages: no pressure below, pressure from, and the limit. */
static void raise_pages(const char *name, uint64_t pages)
{
    char before[TEXT_SIZE], after[TEXT_SIZE];
    uint64_t most = 0;
    if (sysctl_read(name, before) < 0 || sscanf(before, "%*s %*s %" SCNu64, &most) != 1 ||
        most >= pages)
        return;
    (void)snprintf(after, sizeof(after), "%" PRIu64 " %" PRIu64 " %" PRIu64, pages / 2,
                   pages / 4 * 3, pages);
    tell(name, before, after, sysctl_write(name, after));
}

/* Raise the room for compiled filters. The kernel does not tell its maximum; the initial value
 * is a half or a quarter of it. */
static void raise_filters(void)
{
    static const char name[] = "net/core/bpf_jit_limit";
    char before[TEXT_SIZE], after[TEXT_SIZE];
    if (sysctl_read(name, before) < 0)
        return;
    uint64_t now = strtoull(before, NULL, 10), page = (uint64_t)sysconf(_SC_PAGESIZE);
    for (int parts = 16; parts > 4; parts--) { /* in quarters of the present value */
        (void)snprintf(after, sizeof(after), "%" PRIu64, now / 4 * (uint64_t)parts - 2 * page);
        if (sysctl_write(name, after) == 0) {
            tell(name, before, after, 0);
            return;
        }
    }
}

uint64_t sysctl_u64(const char *name)
{
    char text[TEXT_SIZE];
    return sysctl_read(name, text) < 0 ? UINT64_MAX : strtoull(text, NULL, 10);
}

void sysctl_raise_shared(void)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), pages = (uint64_t)sysconf(_SC_PHYS_PAGES);
    raise_to("kernel/pid_max", PROCESSES);
    raise_to("kernel/pty/max", TERMINALS);
    raise_to("fs/file-max", INT64_MAX);
    raise_to("fs/aio-max-nr", pages * page / AIO_EVENT_BYTES);
    raise_pages("net/ipv4/tcp_mem", pages);
    raise_pages("net/ipv4/udp_mem", pages);
    raise_filters();
}
