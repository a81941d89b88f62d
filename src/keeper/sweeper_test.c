/* A real sweeper, on a storage that holds nothing. */
#include "keeper/sweeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "keeper/storage_private.h"

#define SWEPT 150 /* two batches of 64 and some */
#define END_MS 30000

/* Each descriptor is the writing end of one pipe: the reading end tells when the last of them is closed. The
 * sweeper stands still meanwhile, so that it finds more than one batch waiting. */
static void hand_over_many(void (*hand_over)(struct sweeper *s, int fd))
{
    struct storage storage = { .pool = -1, .trash = -1 };
    struct sweeper s = SWEEPER_INIT;
    int ends[2];
    CHECK_OK(sweeper_start(&s, &storage, NULL));
    CHECK_OK(kill(s.pid, SIGSTOP));
    CHECK_EQ(waitpid(s.pid, NULL, WUNTRACED), s.pid);
    CHECK_OK(pipe2(ends, O_CLOEXEC));
    for (int i = 0; i < SWEPT; i++)
        hand_over(&s, dup(ends[1]));
    (void)close(ends[1]);
    CHECK_OK(kill(s.pid, SIGCONT));
    CHECK(fd_wait(ends[0], POLLIN, END_MS) & POLLHUP);
    (void)close(ends[0]);
    (void)close(s.fd);
    CHECK_EQ(waitpid(s.pid, NULL, 0), s.pid); /* it ends by itself when nobody can send any more */
}

TEST(closes_every_descriptor_when_more_than_a_batch_waits)
{
    hand_over_many(sweeper_sweep);
}

TEST(lets_go_of_all_that_is_buried_and_needs_no_other_message_for_it)
{
    hand_over_many(sweeper_bury);
}

TEST(keeps_no_descriptor_of_the_keeper)
{
    struct storage storage = { .pool = -1, .trash = -1 };
    struct sweeper s = SWEEPER_INIT;
    int ends[2];
    CHECK_OK(pipe2(ends, O_CLOEXEC));
    CHECK_OK(sweeper_start(&s, &storage, NULL));
    (void)close(ends[1]);
    CHECK(fd_wait(ends[0], POLLIN, END_MS) & POLLHUP); /* while the sweeper lives */
    CHECK_EQ(waitpid(s.pid, NULL, WNOHANG), 0);
    (void)close(ends[0]);
    (void)close(s.fd);
    CHECK_EQ(waitpid(s.pid, NULL, 0), s.pid);
}
