#include "core/pool.h"

#include "core/fake_keeper.h"

#define MORE_BYTES (1024 << 20) /* than a blank cell has */

static unsigned ready(struct world *w)
{
    struct core_counts c;
    core_counts(w->core, &c);
    return c.pool_ready;
}

static int create(struct world *w, uint64_t memory_bytes, const char *image, struct sandbox *ret_s)
{
    struct sandbox_spec spec;
    sandbox_spec_init(&spec);
    if (memory_bytes)
        spec.memory_bytes = memory_bytes;
    spec.image = image ? strdup(image) : NULL;
    int r = sandbox_create(w->core, "default", &spec, ret_s, NULL);
    sandbox_spec_done(&spec);
    return r;
}

TEST(a_ready_cell_is_handed_out_and_replaced)
{
    struct world *w = world_new(3);
    struct sandbox s;
    WAIT_FOR(ready(w) == 3);
    CHECK_EQ(fake_asked(&w->k, KEEPER_MAKE), 3);
    CHECK_OK(create(w, 0, NULL, &s));
    CHECK_EQ(fake_has(&w->k, s.id, NULL), 1);
    CHECK_EQ(fake_asked(&w->k, KEEPER_LIMITS), 0); /* they have the default limits */
    WAIT_FOR(ready(w) == 3);
    CHECK_EQ(fake_count(&w->k), 4);
    CHECK_EQ(fake_asked(&w->k, KEEPER_MAKE), 4);
    sandbox_done(&s);
    world_free(w);
}

TEST(a_handed_out_cell_gets_the_limits_that_were_asked_for)
{
    struct world *w = world_new(1);
    struct sandbox s;
    struct fake_cell cell;
    WAIT_FOR(ready(w) == 1);
    CHECK_OK(create(w, MORE_BYTES, NULL, &s));
    CHECK_EQ(fake_asked(&w->k, KEEPER_LIMITS), 1);
    CHECK_EQ(fake_has(&w->k, s.id, &cell), 1);
    CHECK_EQ(cell.limits.memory_bytes, MORE_BYTES);
    sandbox_done(&s);

    WAIT_FOR(ready(w) == 1);
    fake_fail_next(&w->k, KEEPER_LIMITS, ESRCH, "sandbox_not_running");
    CHECK_OK(create(w, MORE_BYTES, NULL, &s)); /* a broken cell costs time, not the request */
    CHECK_EQ(fake_has(&w->k, s.id, &cell), 1);
    CHECK_EQ(cell.limits.memory_bytes, MORE_BYTES);
    WAIT_FOR(fake_count(&w->k) == 3 && ready(w) == 1);
    sandbox_done(&s);
    world_free(w);
}

TEST(a_cell_with_too_much_shared_memory_is_not_handed_out)
{
    struct world *w = world_new(1);
    struct sandbox s;
    WAIT_FOR(ready(w) == 1);
    CHECK_OK(create(w, 64 << 20, NULL, &s));
    CHECK_EQ(fake_asked(&w->k, KEEPER_LIMITS), 0);
    CHECK_EQ(ready(w), 1);
    sandbox_done(&s);
    world_free(w);
}

TEST(a_taken_name_gives_the_cell_back)
{
    struct world *w = world_new(2);
    struct sandbox s, t;
    struct err err = ERR_INIT;
    struct sandbox_spec spec;
    sandbox_spec_init(&spec);
    spec.name = strdup("box");
    WAIT_FOR(ready(w) == 2);
    CHECK_OK(sandbox_create(w->core, "default", &spec, &s, &err));
    WAIT_FOR(ready(w) == 2);
    CHECK_EQ(sandbox_create(w->core, "default", &spec, &t, &err), -EEXIST);
    CHECK_EQ(ready(w), 2);
    CHECK_EQ(fake_asked(&w->k, KEEPER_MAKE), 3);
    sandbox_done(&s);
    sandbox_spec_done(&spec);
    world_free(w);
}

TEST(the_pool_follows_the_image_that_is_asked_for_again)
{
    struct world *w = world_new(2);
    struct sandbox s;
    char tree[KEEPER_IMAGE_SIZE];
    memset(tree, 'c', sizeof(tree) - 1);
    tree[sizeof(tree) - 1] = '\0';
    world_image(w, "tool", tree);
    WAIT_FOR(ready(w) == 2);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(create(w, 0, "tool", &s));
        CHECK_OK(sandbox_delete(w->core, "default", s.id, NULL));
        sandbox_done(&s);
    }
    WAIT_FOR(ready(w) == 2 && fake_count(&w->k) == 2);
    (void)pthread_mutex_lock(&w->k.lock);
    for (size_t i = 0; i < w->k.n; i++)
        CHECK_STR(w->k.cells[i].image, tree);
    (void)pthread_mutex_unlock(&w->k.lock);
    world_free(w);
}

TEST(a_cell_that_died_in_the_pool_is_not_handed_out)
{
    struct world *w = world_new(2);
    char(*ids)[ID_SIZE];
    size_t n;
    WAIT_FOR(ready(w) == 2 && fake_asked(&w->k, KEEPER_WATCH) == 1);
    CHECK_OK(warm_pool_ids(w->core, &ids, &n));
    CHECK_EQ(n, 2);
    fake_die(&w->k, ids[0]);
    WAIT_FOR(fake_has(&w->k, ids[0], NULL) == -1);
    WAIT_FOR(ready(w) == 2);
    CHECK_EQ(fake_count(&w->k), 2);
    free(ids);
    world_free(w);
}

static void *create_many(void *ctx)
{
    struct world *w = ctx;
    for (int i = 0; i < 40; i++) {
        struct sandbox s;
        CHECK_OK(create(w, i % 3 ? 0 : 64 << 20, NULL, &s));
        CHECK_EQ(fake_has(&w->k, s.id, NULL), 1);
        if (i % 2)
            CHECK_OK(sandbox_delete(w->core, "default", s.id, NULL));
        sandbox_done(&s);
    }
    return NULL;
}

TEST(many_creators_get_a_cell_of_their_own_each)
{
    struct world *w = world_new(4);
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, create_many, w), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        (void)pthread_join(threads[i], NULL);
    WAIT_FOR(ready(w) == 4);
    CHECK_EQ(fake_count(&w->k), 4 * 20 + 4);
    struct core_counts c;
    core_counts(w->core, &c);
    CHECK_EQ(c.creates, 160);
    CHECK_EQ(c.running, 80);
    world_free(w);
}

static void create_with(struct world *w, const char *network)
{
    struct sandbox_spec spec;
    struct sandbox s;
    sandbox_spec_init(&spec);
    spec.network = strdup(network);
    CHECK_OK(sandbox_create(w->core, "default", &spec, &s, NULL));
    sandbox_spec_done(&spec);
    sandbox_done(&s);
}

TEST(a_cell_is_made_for_a_network_once_one_was_asked_for_and_goes_to_no_other)
{
    int link[2];
    struct world *w = world_new(2);
    WAIT_FOR(ready(w) == 2);
    CHECK_OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, link));
    w->core->broker_fd = link[0];
    create_with(w, "open"); /* nobody knew: it waits for its sockets */
    WAIT_FOR(ready(w) == 2 && fake_asked(&w->k, KEEPER_STEER) == 2);
    create_with(w, "none");
    WAIT_FOR(ready(w) == 2);
    CHECK_EQ(fake_asked(&w->k, KEEPER_STEER), 2); /* the steered one is still there */
    create_with(w, "open");
    WAIT_FOR(ready(w) == 2 && fake_asked(&w->k, KEEPER_STEER) == 3); /* for the next */
    CHECK_EQ(fake_asked(&w->k, KEEPER_MAKE), 5);
    (void)close(link[1]);
    world_free(w);
}
