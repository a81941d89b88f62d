#include "cli/doctor.h"

#include <string.h>

#include "base/check.h"

TEST(kernel_releases_compare)
{
    CHECK_EQ(kernel_release("5.15.0-91-generic"), KERNEL(5, 15));
    CHECK_EQ(kernel_release("6.1"), KERNEL(6, 1));
    CHECK(kernel_release("6.1.0-18-amd64") > kernel_release("5.19.17"));
    CHECK_EQ(kernel_release(""), 0);
    CHECK_EQ(kernel_release("nonsense"), 0);
}

static void check_all(const struct check *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct finding f = { .mark = FINDING_FAIL };
        list[i].look(&f);
        CHECK(f.detail[0]);
        CHECK(f.mark == FINDING_OK || f.fix[0]); /* whatever is missing, how to get it */
    }
}

TEST(every_check_says_something)
{
    check_all(doctor_checks, doctor_checks_n);
    check_all(doctor_future_checks, doctor_future_checks_n);
    check_all(doctor_walls, doctor_walls_n);
}

static struct finding ask(const char *name, const char *host_text)
{
    struct finding f = { .mark = FINDING_OK };
    json_t *host = json_loads(host_text, 0, NULL);
    CHECK(host);
    for (size_t i = 0; i < doctor_daemon_checks_n; i++)
        if (strcmp(doctor_daemon_checks[i].name, name) == 0)
            doctor_daemon_checks[i].look(&f, host);
    json_decref(host);
    CHECK(f.mark == FINDING_OK || f.fix[0]);
    return f;
}

TEST(the_disk_is_the_one_that_the_daemon_tells_of)
{
    struct finding f = ask("disk", "{\"data_dir\": \"/srv/warren\", \"disk\": {"
                                   "\"pool\": {\"size_bytes\": 107374182400, \"free_bytes\": "
                                   "53687091200, \"level\": \"ok\"},"
                                   "\"data\": {\"size_bytes\": 107374182400, \"free_bytes\": "
                                   "1073741824, \"level\": \"full\"}}}");
    CHECK_EQ(f.mark, FINDING_FAIL);
    CHECK(strstr(f.detail, "pool 50 GiB free of 100 GiB"));
    CHECK(strstr(f.detail, "/srv/warren 1 GiB free of 100 GiB: nothing new is made"));
    f = ask("disk", "{\"disk\": {\"pool\": {\"size_bytes\": 100, \"free_bytes\": 90, "
                    "\"level\": \"ok\"}}}");
    CHECK_EQ(f.mark, FINDING_OK);
}

TEST(memory_is_kept_if_the_keeper_says_so)
{
    CHECK_EQ(ask("memory", "{\"criu\": \"none\", \"features\": {}}").mark, FINDING_WARN);
    CHECK_EQ(
        ask("memory", "{\"criu\": \"CRIU 4.2\", \"features\": {\"memory_images\": true}}").mark,
        FINDING_OK);
}

TEST(a_processor_leak_is_told_from_a_closed_one)
{
    CHECK(vulnerability_open("Vulnerable\n"));
    CHECK(vulnerability_open("Vulnerable: Clear CPU buffers attempted, no microcode\n"));
    CHECK(vulnerability_open("Mitigation: Clear CPU buffers; SMT vulnerable\n"));
    CHECK(!vulnerability_open("Mitigation: PTI\n"));
    CHECK(!vulnerability_open("Mitigation: Clear CPU buffers; SMT mitigated\n"));
    CHECK(!vulnerability_open("Not affected\n"));
    CHECK(!vulnerability_open(""));
}

TEST(the_day_a_kernel_was_built_is_read)
{
    CHECK_EQ(kernel_built("#1 SMP PREEMPT_DYNAMIC Debian 6.1.55-1 (2023-09-29)"), 19629);
    CHECK_EQ(kernel_built("#102~22.04.1-Ubuntu SMP Thu Jan 11 10:43:32 UTC 2024"), 19733);
    CHECK_EQ(kernel_built("#1 SMP Mon Sep  4 12:00:00 UTC 2023"), 19604);
    CHECK_EQ(kernel_built("#1 SMP PREEMPT_DYNAMIC @0"), -1);
    CHECK_EQ(kernel_built("#1 (none)"), -1);
    CHECK_EQ(kernel_built(""), -1);
}
