#include "base/logring.h"

#include <fcntl.h>
#include <pthread.h>

#include "base/check.h"

static void *say(void *arg)
{
    log_line(LOG_INFO, "test", "late");
    return arg;
}

TEST(the_newest_lines_are_kept_and_the_oldest_go)
{
    static struct logring_line line;
    int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC), was = dup(STDERR_FILENO);
    CHECK_OK(dup2(quiet, STDERR_FILENO));

    CHECK_EQ(logring_next(0, 0, &line), 0);
    logring_start();
    for (int i = 1; i <= LOGRING_LINES + 10; i++)
        log_line(LOG_INFO, "a-module-of-a-long-name", "line n=%d", i);
    CHECK_EQ(logring_next(0, 0, &line), 1);
    CHECK_EQ(line.seq, 11);
    CHECK_STR(line.text, "line n=11");
    CHECK_EQ(strlen(line.module), LOGRING_MODULE_MAX - 1);
    CHECK_EQ(logring_next(LOGRING_LINES + 9, 0, &line), 1);
    CHECK_STR(line.text, "line n=8202");
    CHECK_EQ(logring_next(LOGRING_LINES + 10, 1, &line), 0);

    char big[LOG_LINE_MAX];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    for (int i = 0; i < 3000; i++)
        log_line(LOG_INFO, "test", "%s", big);
    uint64_t newest = LOGRING_LINES + 10 + 3000;
    CHECK_EQ(logring_next(0, 0, &line), 1);
    CHECK(line.seq > newest - LOGRING_BYTES / (LOG_LINE_MAX - 2) - 2); /* the bytes' limit */

    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, say, NULL), 0);
    CHECK_EQ(logring_next(newest, 10000, &line), 1);
    CHECK_STR(line.text, "late");
    (void)pthread_join(t, NULL);
    log_set_tap(NULL);
    (void)dup2(was, STDERR_FILENO);
    (void)close(quiet);
    (void)close(was);
}
