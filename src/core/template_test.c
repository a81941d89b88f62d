#include "core/template.h"

#include "core/fake_keeper.h"
#include "core/pool.h"
#include "core/spec.h"
#include "core/team.h"

#define TREE_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

/* Without a start command or a probe: the fake keeper's cells have no inside. */
static void put(struct core *core, const char *owner, const char *name, unsigned warm, bool public,
                struct template *ret_t)
{
    struct template t = { .warm = warm, .public = public };
    struct err err = ERR_INIT;
    sandbox_spec_init(&t.spec);
    t.spec.memory_bytes = 1ull << 30;
    t.spec.image = strdup("base");
    t.spec.template = strdup(name);
    (void)snprintf(t.name, sizeof(t.name), "%s", name);
    (void)snprintf(t.owner, sizeof(t.owner), "%s", owner);
    if (template_put(core, &t, ret_t, &err) < 0)
        fail_msg("template_put: %s", err.msg);
    template_done(&t);
}

static unsigned ready(struct core *core, const char *owner, const char *name)
{
    struct template t;
    CHECK_OK(template_get(core, owner, name, &t, NULL));
    template_done(&t);
    return t.ready;
}

static void create_from(struct core *core, const struct template *t, const char *name,
                        struct sandbox *ret_s)
{
    struct err err = ERR_INIT;
    struct sandbox_spec spec;
    sandbox_spec_init(&spec);
    spec.memory_bytes = t->spec.memory_bytes;
    spec.image = strdup("base");
    spec.name = strdup(name);
    spec.template = strdup(t->name);
    memcpy(spec.template_id, t->id, ID_SIZE);
    CHECK_OK(sandbox_create(core, "default", &spec, ret_s, &err));
    sandbox_spec_done(&spec);
}

TEST(ready_ones_are_made_handed_out_and_replaced)
{
    struct world *w = world_new(0);
    struct template t, second;
    struct sandbox s;
    char(*ids)[ID_SIZE];
    size_t n;
    put(w->core, "default", "web", 2, false, &t);
    WAIT_FOR(ready(w->core, "default", "web") == 2);
    CHECK_EQ(fake_count(&w->k), 2);
    unsigned made = fake_asked(&w->k, KEEPER_MAKE);
    CHECK_OK(warm_pool_ids(w->core, &ids, &n));
    CHECK_EQ(n, 2);
    create_from(w->core, &t, "a", &s);
    CHECK(strcmp(s.id, ids[0]) == 0 || strcmp(s.id, ids[1]) == 0); /* it was there before */
    sandbox_done(&s);
    WAIT_FOR(ready(w->core, "default", "web") == 2);
    CHECK_EQ(fake_asked(&w->k, KEEPER_MAKE), made + 1);

    fake_die(&w->k, ids[1]); /* one that dies while it waits is not handed out */
    WAIT_FOR(fake_has(&w->k, ids[1], NULL) != 0);
    WAIT_FOR(ready(w->core, "default", "web") == 2);
    free(ids);

    put(w->core, "default", "web", 1, false, &second); /* another version */
    CHECK(strcmp(t.id, second.id) != 0);
    WAIT_FOR(ready(w->core, "default", "web") == 1);
    WAIT_FOR(fake_count(&w->k) == 2); /* the sandbox, and the new one */
    CHECK_EQ(warm_pool_stocked(w->core, t.id, NULL), 0);

    world_image(w, "base", TREE_B); /* its image is another now */
    struct fake_cell cell = { .image = "" };
    WAIT_FOR(warm_pool_ids(w->core, &ids, &n) >= 0 &&
             (n == 1 && fake_has(&w->k, ids[0], &cell) == 1 && strcmp(cell.image, TREE_B) == 0
                  ? (free(ids), true)
                  : (free(ids), false)));
    CHECK_OK(template_remove(w->core, "default", "web", NULL));
    WAIT_FOR(fake_count(&w->k) == 1);
    template_done(&t);
    template_done(&second);
    world_free(w);
}

TEST(templates_are_kept_and_what_a_crash_left_of_them_is_not)
{
    struct world *w = world_new(0);
    struct template t;
    put(w->core, "default", "web", 3, false, &t);
    template_done(&t);
    WAIT_FOR(ready(w->core, "default", "web") == 3);
    /* A cell that nobody knows, as a crash would leave one. */
    struct keeper_request req = { .version = KEEPER_VERSION, .op = KEEPER_MAKE };
    memcpy(req.id, "strangestrangestrang", ID_SIZE);
    memcpy(req.image, WORLD_TREE, sizeof(WORLD_TREE));
    (void)pthread_mutex_lock(&w->k.lock);
    struct keeper_reply reply = { 0 };
    fake_make(&w->k, &req, &reply);
    (void)pthread_mutex_unlock(&w->k.lock);
    world_restart(w, 0);
    CHECK_EQ(fake_has(&w->k, req.id, NULL), -1);
    WAIT_FOR(ready(w->core, "default", "web") == 3);
    CHECK_EQ(fake_count(&w->k), 3);
    struct image base = { .name = "base", .owner = "default" };
    struct image acmes = { .name = "base", .owner = "acme", .public = true };
    CHECK(template_uses_image(w->core, &base));
    CHECK(!template_uses_image(w->core, &acmes)); /* of the same name, but not that one */
    world_free(w);
}

static unsigned stocked(struct world *w, unsigned n)
{
    char key[ID_SIZE];
    (void)snprintf(key, sizeof(key), "key%u", n);
    return warm_pool_stocked(w->core, key, NULL);
}

TEST(by_use_few_are_kept_and_not_for_long)
{
    struct world *w = world_new(0);
    struct sandbox_spec spec;
    struct err err = ERR_INIT;
    char key[ID_SIZE];
    struct pool_cell cell;
    sandbox_spec_init(&spec);
    spec.image = strdup("base");
    for (unsigned i = 0; i < 6; i++) {
        (void)snprintf(key, sizeof(key), "key%u", i);
        CHECK_OK(warm_pool_stock_by_use(w->core, key, "default", &spec, &err));
    }
    warm_pool_use(w->core, "key0");
    WAIT_FOR(stocked(w, 0) == 1);
    CHECK_EQ(fake_count(&w->k), 1); /* and none of those that nobody uses */
    for (unsigned i = 1; i < 6; i++) {
        (void)snprintf(key, sizeof(key), "key%u", i);
        warm_pool_use(w->core, key);
        WAIT_FOR(stocked(w, i) == 1);
    }
    WAIT_FOR(fake_count(&w->k) == 4); /* a team's most; those used longest ago made room */
    CHECK_EQ(stocked(w, 0) + stocked(w, 1), 0);
    (void)pthread_mutex_lock(&w->core->pool.lock);
    w->core->pool.by_use_ms = 1; /* the last use of each: they are idle in a moment */
    (void)pthread_mutex_unlock(&w->core->pool.lock);
    for (unsigned i = 2; i < 6; i++) {
        (void)snprintf(key, sizeof(key), "key%u", i);
        warm_pool_use(w->core, key);
    }
    WAIT_FOR(fake_count(&w->k) == 0);
    (void)pthread_mutex_lock(&w->core->pool.lock);
    w->core->pool.by_use_ms = 1000000;
    (void)pthread_mutex_unlock(&w->core->pool.lock);
    struct keeper_limits limits = spec_limits(&spec);
    CHECK(!warm_pool_take_ready(w->core, "key5", WORLD_TREE, &limits,
                                &cell)); /* there is none, but that is a use */
    WAIT_FOR(stocked(w, 5) == 1);
    sandbox_spec_done(&spec);
    world_free(w);
}

TEST(a_failure_to_make_one_is_tried_again)
{
    struct world *w = world_new(0);
    struct template t;
    fake_fail_next(&w->k, KEEPER_MAKE, ENOSPC, "no_space");
    put(w->core, "default", "web", 1, false, &t);
    template_done(&t);
    WAIT_FOR(ready(w->core, "default", "web") == 1);
    CHECK_EQ(fake_count(&w->k), 1);
    world_free(w);
}

TEST(a_team_takes_its_templates_along)
{
    static const int64_t unlimited[QUOTA_COUNT] = { -1, -1, -1, -1 };
    struct world *w = world_new(0);
    struct team team;
    struct template t;
    struct err err = ERR_INIT;
    CHECK_OK(team_create(w->core, "red", unlimited, &team, NULL));
    put(w->core, "red", "web", 1, true, &t);
    template_done(&t);
    WAIT_FOR(ready(w->core, "default", "red/web") == 1); /* public: seen by others */
    CHECK_EQ(template_get(w->core, "default", "web", &t, &err), -ENOENT);
    CHECK_EQ(template_remove(w->core, "default", "red/web", &err), -ENOENT);
    CHECK_OK(team_remove(w->core, "red", &err));
    CHECK_EQ(template_get(w->core, "default", "red/web", &t, &err), -ENOENT);
    WAIT_FOR(fake_count(&w->k) == 0);
    world_free(w);
}

TEST(a_name_may_have_a_tag_and_the_default_one_is_none)
{
    static const struct {
        const char *given, *kept; /* NULL: refused */
    } cases[] = { { "x", "x" },     { "x:default", "x" }, { "x:v1.0", "x:v1.0" }, { "x:", NULL },
                  { ":v", NULL },   { "x:y:z", NULL },    { "", NULL },           { "-x", NULL },
                  { "x:-y", NULL }, { "a/b", NULL },      { "x:a b", NULL } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char name[TEMPLATE_NAME_SIZE] = "";
        CHECK_EQ(template_name_normal(cases[i].given, name), cases[i].kept != NULL);
        if (cases[i].kept)
            CHECK_STR(name, cases[i].kept);
    }
}
