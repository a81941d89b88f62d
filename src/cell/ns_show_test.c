#include "cell/ns_show.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/fd.h"

static char text[64 * 1024];

static const char *shown(int dir, const char *name)
{
    CHECK(fd_read_file_at(dir, name, text, sizeof(text)) >= 0);
    return text;
}

static void remove_all(char *at)
{
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", at);
    CHECK_EQ(system(command), 0);
}

TEST(every_stand_in_has_its_form_and_no_count)
{
    char at[] = "/tmp/ns-show-XXXXXX";
    struct err err = ERR_INIT;
    CHECK(mkdtemp(at) != NULL);
    _cleanup_fd_ int dir = open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_OK(ns_show_fill(dir, &err));
    CHECK_STR(shown(dir, "loadavg"), "0.00 0.00 0.00 1/1 1\n");
    CHECK_STR(shown(dir, NS_SHOW_NOTHING), "");
    CHECK(strstr(shown(dir, "vmstat"), "\npgfault 0\n") != NULL);
    for (const char *p = shown(dir, "vmstat"); *p; p = strchr(p, '\n') + 1)
        CHECK(strncmp(strchr(p, ' '), " 0\n", 3) == 0);
    CHECK(strncmp(shown(dir, "fs/file-nr"), "0\t0\t", 4) == 0 && text[4] != '0');
    CHECK_STR(shown(dir, "fs/aio-nr"), "0\n");
    CHECK(fd_read_file_at(AT_FDCWD, "/proc/sys/fs/nr_open", text, sizeof(text)) > 0);
    char *nr_open = strdup(text);
    CHECK_STR(shown(dir, "fs/nr_open"), nr_open); /* a setting stays what it is */
    free(nr_open);
    CHECK(strlen(shown(dir, "sys/devices/system/cpu/online")) > 1);
    CHECK(faccessat(dir, "sys/devices/system/cpu/cpu0/cpuidle", F_OK, 0) < 0);
    CHECK_STR(shown(dir, "sys/class/net/lo/mtu"), "65536\n");
    CHECK_STR(shown(dir, "sys/class/net/lo/statistics/rx_bytes"), "0\n");
    remove_all(at);
}

TEST(a_stand_in_is_known_by_the_path_it_stands_for)
{
    CHECK_STR(ns_show_name("/proc/loadavg"), "loadavg");
    CHECK_STR(ns_show_name("/sys"), "sys");
    CHECK(ns_show_name("/proc/meminfo") == NULL);
    CHECK(ns_show_name("/proc/loadavg/x") == NULL);
}
