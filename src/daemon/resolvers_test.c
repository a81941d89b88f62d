#include "daemon/resolvers.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"

static void check_text(const char *text, const char *want)
{
    char path[] = "/tmp/resolvers-XXXXXX", out[RESOLVERS_SIZE];
    int fd = mkstemp(path);
    CHECK_OK(fd);
    CHECK_OK(fd_write_full(fd, text, strlen(text)));
    (void)close(fd);
    resolvers_read(path, out);
    (void)unlink(path);
    CHECK_STR(out, want);
}

TEST(plain_addresses_are_taken)
{
    check_text("# here\nsearch a.test\nnameserver 192.0.2.1\nnameserver\t2001:db8::1 # two\n",
               "192.0.2.1,2001:db8::1");
    check_text("nameserver fe80::1%eth0\nnameserver x\nnameservers 1.2.3.4\nnameserver", "");
    check_text("nameserver 1.1.1.1\nnameserver 1.1.1.2\nnameserver 1.1.1.3\nnameserver 1.1.1.4",
               "1.1.1.1,1.1.1.2,1.1.1.3");
    char out[RESOLVERS_SIZE];
    resolvers_read("/nowhere/at/all", out);
    CHECK_STR(out, "");
}
