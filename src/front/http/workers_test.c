#include "front/http/workers.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/check.h"

static _Atomic int begun, done;
static _Atomic bool go;

static void wait_for_go(void *arg)
{
    atomic_fetch_add(&begun, 1);
    WAIT_FOR(atomic_load(&go));
    atomic_fetch_add(&done, 1);
}

TEST(jobs_run_side_by_side_and_no_more_than_there_are_threads_for)
{
    struct workers *w = NULL;
    atomic_store(&begun, 0);
    atomic_store(&done, 0);
    atomic_store(&go, false);
    CHECK_OK(workers_new(3, 256 * 1024, &w, NULL));
    CHECK(workers_spare(w));
    for (int i = 0; i < 3; i++)
        CHECK_OK(workers_start(w, wait_for_go, NULL));
    WAIT_FOR(atomic_load(&begun) == 3);
    CHECK_EQ(workers_start(w, wait_for_go, NULL), -EAGAIN);
    CHECK(!workers_spare(w));
    atomic_store(&go, true);
    WAIT_FOR(atomic_load(&done) == 3);
    WAIT_FOR(workers_spare(w));
    for (int i = 0; i < 1000; i++)
        WAIT_FOR(workers_start(w, wait_for_go, NULL) == 0);
    workers_free(w); /* waits for them */
    CHECK_EQ(atomic_load(&done), 1003);
}
