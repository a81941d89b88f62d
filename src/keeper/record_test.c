#include "keeper/record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

TEST(a_record_finds_its_process_and_not_another_of_the_same_pid)
{
    char dir[] = "/tmp/record-XXXXXX";
    CHECK(mkdtemp(dir));
    _cleanup_fd_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct record r = { .pid = getpid(),
                        .uid_base = 0x70000000,
                        .image = "00ff",
                        .cgroup = "warren-x.1" },
                  back;
    struct err err = ERR_INIT;
    CHECK_OK(record_start_time(getpid(), &r.start_time));
    CHECK_OK(record_write(fd, &r, &err));
    CHECK_OK(record_read(fd, &back));
    CHECK_EQ(back.pid, r.pid);
    CHECK_EQ(back.start_time, r.start_time);
    CHECK_STR(back.image, "00ff");
    CHECK_STR(back.cgroup, "warren-x.1");

    int pidfd = record_open_pid(&back);
    CHECK_OK(pidfd);
    (void)close(pidfd);
    back.start_time++;
    CHECK(record_open_pid(&back) < 0);
}

TEST(a_damaged_record_is_refused)
{
    char dir[] = "/tmp/record-XXXXXX";
    CHECK(mkdtemp(dir));
    _cleanup_fd_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    static const char *const bad[] = { "", "x", "1 2 3 ff", "-5 1 1 ff", "77 1 1 ../../etc" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        _cleanup_fd_ int f = openat(fd, "record", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CHECK(write(f, bad[i], strlen(bad[i])) >= 0);
        struct record r;
        CHECK(record_read(fd, &r) < 0);
    }
}

TEST(a_record_of_an_earlier_version_names_no_group)
{
    char dir[] = "/tmp/record-XXXXXX";
    CHECK(mkdtemp(dir));
    _cleanup_fd_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_fd_ int f = openat(fd, "record", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK_OK(write(f, "77 1 1 00ff\n", 12));
    struct record r;
    CHECK_OK(record_read(fd, &r));
    CHECK_STR(r.image, "00ff");
    CHECK_STR(r.cgroup, "");
}
