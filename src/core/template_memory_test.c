#include "core/template_memory.h"

#include "core/checkpoints.h"
#include "core/fake_keeper.h"
#include "core/keeper.h"
#include "core/pause.h"
#include "core/spec.h"
#include "core/team.h"
#include "core/template.h"

#define HOST "Linux 6.1; CRIU 4.2"
#define TREE_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static void make_template(struct world *w, struct template *ret_t)
{
    struct template t = { .name = "web", .owner = "default" };
    struct err err = ERR_INIT;
    sandbox_spec_init(&t.spec);
    t.spec.image = strdup("base");
    t.spec.template = strdup("web");
    if (template_put(w->core, &t, ret_t, &err) < 0)
        fail_msg("template_put: %s", err.msg);
    template_done(&t);
}

/* As the warmer would, but without a start command: the fake keeper's cells have no inside. */
static void keep(struct world *w, const char *version, char ret_point[ID_SIZE])
{
    struct sandbox s = { .owner = "default", .state = SANDBOX_RUNNING };
    struct keeper_limits limits;
    struct err err = ERR_INIT;
    sandbox_spec_init(&s.spec);
    CHECK_OK(id_random(s.id));
    limits = spec_limits(&s.spec);
    CHECK_OK(keeper_ask_make(w->core, s.id, WORLD_TREE, &limits, &err));
    if (template_memory_keep(w->core, version, &s, WORLD_TREE, HOST, ret_point, &err) < 0)
        fail_msg("template_memory_keep: %s", err.msg);
    CHECK_EQ(fake_has(&w->k, s.id, NULL), 0); /* it ended */
    CHECK_OK(keeper_ask_cell(w->core, KEEPER_DELETE, s.id, NULL));
    sandbox_spec_done(&s.spec);
}

static size_t points(struct world *w)
{
    (void)pthread_mutex_lock(&w->k.lock);
    size_t n = w->k.n_points;
    (void)pthread_mutex_unlock(&w->k.lock);
    return n;
}

static bool found(struct world *w, const char *version, const char *tree, const char *host)
{
    char point[ID_SIZE];
    return template_memory_find(w->core, version, tree, host, point);
}

TEST(templates_memory_is_in_no_list_under_no_name_and_counts_for_its_team)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    struct template t;
    struct checkpoint c, *list;
    char point[ID_SIZE];
    size_t n;
    make_template(w, &t);
    keep(w, t.id, point);
    CHECK_EQ(points(w), 1);
    CHECK_OK(checkpoint_list(w->core, "default", NULL, &list, &n, NULL));
    CHECK_EQ(n, 0);
    checkpoint_list_free(list, n);
    CHECK_EQ(checkpoint_get(w->core, "default", NULL, point, &c, NULL), -ENOENT);
    CHECK_EQ(checkpoint_remove(w->core, "default", NULL, point, NULL), -ENOENT);
    (void)pthread_mutex_lock(&w->core->table.lock);
    CHECK(checkpoints_bytes(w->core, "default") >= 4096);
    (void)pthread_mutex_unlock(&w->core->table.lock);
    template_done(&t);
}

TEST(templates_memory_is_found_after_a_restart_and_swept_with_its_template)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    struct template t;
    char point[ID_SIZE];
    make_template(w, &t);
    keep(w, t.id, point);
    world_restart(w, 0);
    CHECK_EQ(points(w), 1);
    CHECK(found(w, t.id, WORLD_TREE, HOST));
    CHECK(!found(w, "strangestrangestrang", WORLD_TREE, HOST));
    CHECK_EQ(points(w), 1);
    CHECK_OK(store_template_remove(w->core->store, "default", "web", NULL)); /* and a crash */
    world_restart(w, 0);
    CHECK_EQ(points(w), 0);
    template_done(&t);
}

TEST(templates_memory_that_a_power_cut_made_shorter_is_not_used)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    struct template t;
    char point[ID_SIZE];
    make_template(w, &t);
    keep(w, t.id, point);
    (void)pthread_mutex_lock(&w->k.lock);
    w->k.cut = true;
    (void)pthread_mutex_unlock(&w->k.lock);
    world_restart(w, 0);
    CHECK(!found(w, t.id, WORLD_TREE, HOST));
    pauses_drop_orphans(w->core); /* or the timers, at the same time */
    WAIT_FOR(points(w) == 0);
    template_done(&t);
}

TEST(templates_memory_of_another_image_kernel_or_criu_is_removed)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    struct template t;
    char point[ID_SIZE];
    make_template(w, &t);
    keep(w, t.id, point);
    keep(w, t.id, point);
    CHECK_EQ(points(w), 2);
    CHECK(found(w, t.id, WORLD_TREE, HOST)); /* one of them is enough */
    CHECK_EQ(points(w), 1);
    CHECK(!found(w, t.id, TREE_B, HOST));
    CHECK_EQ(points(w), 0);
    keep(w, t.id, point);
    CHECK(!found(w, t.id, WORLD_TREE, "Linux 6.2; CRIU 4.2"));
    CHECK_EQ(points(w), 0);
    template_done(&t);
}

TEST(a_team_leaves_its_templates_memory_to_its_templates)
{
    _cleanup_(world_freep) struct world *w = world_new(0);
    struct template t;
    struct err err = ERR_INIT;
    char point[ID_SIZE];
    make_template(w, &t);
    keep(w, t.id, point);
    (void)pthread_mutex_lock(&w->core->table.lock);
    for (size_t i = 0; i < w->core->checkpoints.n; i++)
        (void)snprintf(w->core->checkpoints.items[i].owner, OWNER_MAX, "red");
    (void)pthread_mutex_unlock(&w->core->table.lock);
    struct team team;
    int64_t quotas[QUOTA_COUNT];
    for (size_t i = 0; i < QUOTA_COUNT; i++)
        quotas[i] = QUOTA_NONE;
    CHECK_OK(team_create(w->core, "red", quotas, &team, &err));
    CHECK_OK(team_remove(w->core, "red", &err));
    template_done(&t);
}
