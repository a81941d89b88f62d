#include "cell/ns_cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

static unsigned host_cpus(void)
{
    static unsigned cpus; /* asked once: the answer comes from a file */
    if (!cpus) {
        long n = sysconf(_SC_NPROCESSORS_ONLN);
        cpus = n > 0 ? (unsigned)n : 1;
    }
    return cpus;
}

unsigned ns_cpus_shown(uint32_t cpu_millis)
{
    unsigned cpus = cpu_millis / 1000 + (cpu_millis % 1000 != 0), most = host_cpus();
    return cpus && cpus < most ? cpus : most;
}

/* The host's text, read once: the clock rates in it change with the host's load. NULL: it cannot be read. */
static const char *host_info(void)
{
    static struct buf text = BUF_INIT(NS_CPUS_TEXT_MAX);
    if (text.len > 0)
        return text.data;
    char chunk[16384];
    _cleanup_fd_ int fd = open(NS_CPUINFO_PATH, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, chunk, sizeof(chunk));
    for (; n > 0 && buf_append(&text, chunk, (size_t)n) >= 0; n = read(fd, chunk, sizeof(chunk)))
        ;
    if (n != 0 || buf_append(&text, "", 1) < 0) {
        buf_done(&text);
        return NULL;
    }
    return text.data;
}

/* A block for each processor, a blank line after each. */
int ns_cpus_print_info(unsigned cpus, struct buf *b)
{
    const char *text = host_info(), *end = text;
    if (!text)
        return -EIO;
    for (unsigned i = 0; i < cpus && *end; i++) {
        const char *blank = strstr(end, "\n\n");
        end = blank ? blank + 2 : end + strlen(end);
    }
    return buf_append(b, text, (size_t)(end - text));
}

int ns_cpus_print_online(unsigned cpus, struct buf *b)
{
    return cpus > 1 ? buf_printf(b, "0-%u\n", cpus - 1) : buf_puts(b, "0\n");
}

int ns_cpus_print_stat(unsigned cpus, long long booted_s, struct buf *b)
{
    static const char zeros[] = " 0 0 0 0 0 0 0 0 0 0\n";
    int r = buf_printf(b, "cpu %s", zeros);
    for (unsigned i = 0; r >= 0 && i < cpus; i++)
        r = buf_printf(b, "cpu%u%s", i, zeros);
    return r < 0 ? r
                 : buf_printf(b,
                              "intr 0\nctxt 0\nbtime %lld\nprocesses 1\nprocs_running 1\n"
                              "procs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n",
                              booted_s);
}
