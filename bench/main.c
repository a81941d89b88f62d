/* The benchmark: everything in one run, in rounds.
 *
 * A round measures each contender a few times, one after the other, so that whatever the machine
 * is busy with hits them all alike. bench/run has set the stage (storage, daemons, bundles) in a
 * mount namespace of its own and says what there is on the command line. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>

#include "e2b/life.h"
#include "e2b/sdk.h"
#include "floor.h"
#include "host.h"
#include "pace.h"
#include "peer.h"
#include "report.h"
#include "warren.h"

#define QUIET_MS 20        /* before each create: the last one's namespaces are torn down later */
#define POOL_WAIT_MS 5000  /* for the warm pool to be full again */
#define POOL_BLIND_MS 100  /* the same, where the daemon does not say */
#define CODE_QUIET_MS 3000 /* for the next interpreter to be ready */
#define CODE_EVERY 4       /* rounds: that quiet is long */
#define FAILURES_MAX 3     /* in a row: then a contender is given up */
#define ARGS_MAX 32
#define BURST_LIVES 10 /* of each client, one after the other */
#define PACE_CLIENTS 8
#define PACE_TURNS 4
#define MANY_FEW 10
#define MANY_LIVES 60 /* timed beside the few, and as many beside the many */

enum option_id {
    OPT_POOL = 1000,
    OPT_ROUNDS,
    OPT_ONLY,
    OPT_JSON,
    OPT_LOG,
    OPT_KEY,
    OPT_COLD,
    OPT_WARM,
    OPT_POOL_SIZE,
    OPT_STORM,
    OPT_IDLE,
    OPT_PACE,
    OPT_MANY,
    OPT_BWRAP,
    OPT_RUNC,
    OPT_DOCKER,
    OPT_SKIP,
    OPT_SDK,
    OPT_CODE,
    OPT_BURST,
};

struct bench {
    const char *pool, *only, *json, *key;
    unsigned rounds, pool_size, storm_s, idle_n, pace_s, many_n;
    bool code, burst;
    int log_fd;
    struct crowd_daemon cold, warm; /* port 0: not there */
    char *peers[ROW_COUNT][ARGS_MAX];
    struct floor *floor;
    struct http cold_http, warm_http;
    char *sdk_argv[ARGS_MAX]; /* E2B's client under node */
    struct sdk *sdk;
    char live[ID_SIZE]; /* the sandbox that execs go to */
    struct report report;
};

/* ---- one measurement of each kind ---- */

static char *const echo_argv[] = { (char *)"/bin/echo", (char *)"ready", NULL };
static char *const true_argv[] = { (char *)"/bin/true", NULL };
/* As E2B's client runs a command; the line tells the clock of floor_once that it came so far. */
static char *const shell_argv[] = { (char *)"/bin/bash", (char *)"-l", (char *)"-c",
                                    (char *)"echo ready", NULL };

static int once_fork(struct bench *b, enum row_id id, double *ret_us, struct err *err)
{
    return peer_fork(true_argv, ret_us, err);
}

static int once_floor(struct bench *b, enum row_id id, double *ret_us, struct err *err)
{
    return floor_once(b->floor, echo_argv, ret_us, err);
}

static int once_peer(struct bench *b, enum row_id id, double *ret_us, struct err *err)
{
    return peer_once(b->peers[id], b->log_fd, ret_us, err);
}

static int once_cold(struct bench *b, enum row_id id, double *ret_us, struct err *err)
{
    return warren_once(&b->cold_http, id == ROW_COLD, ret_us, err);
}

static int once_warm(struct bench *b, enum row_id id, double *ret_us, struct err *err)
{
    for (double end = now_us() + POOL_WAIT_MS * 1e3; now_us() < end; pause_ms(QUIET_MS)) {
        int ready = warren_pool_ready(&b->warm_http, err);

        if (ready == -ENOENT)
            pause_ms(POOL_BLIND_MS);
        else if (ready < 0)
            return ready;
        if (ready < 0 || (unsigned)ready >= b->pool_size)
            break;
    }
    pause_ms(QUIET_MS);
    return warren_once(&b->warm_http, id == ROW_WARM, ret_us, err);
}

static int once_exec(struct bench *b, enum row_id id, double *ret_us, struct err *err)
{
    double start = now_us();
    int r = warren_true(&b->cold_http, b->live, err);

    *ret_us = now_us() - start;
    return r;
}

static int once_e2b_floor(struct bench *b, enum row_id id, double *ret_us, struct err *err)
{
    return floor_life(b->floor, shell_argv, ret_us, err);
}

static int once_e2b_raw(struct bench *b, enum row_id id, double *ret_us, struct err *err)
{
    return e2b_life(&b->warm_http, ret_us, err);
}

static int once_e2b_sdk(struct bench *b, enum row_id id, double *ret_us, struct err *err)
{
    return sdk_once(b->sdk, id == ROW_E2B_CODE ? "code" : "life", ret_us, err);
}

struct contender {
    const char *name, *title;
    unsigned per_round;
    unsigned quiet_ms;
    int (*once)(struct bench *b, enum row_id id, double *ret_us, struct err *err);
};

static const struct contender contenders[ROW_COUNT] = {
    [ROW_FORK] = { "fork", "fork + exec + wait of /bin/true", 20, 0, once_fork },
    [ROW_FLOOR] = { "floor", "the kernel's floor", 5, QUIET_MS, once_floor },
    [ROW_COLD] = { "cold", "warren, create to first output", 5, QUIET_MS, once_cold },
    [ROW_COLD_ANSWER] = { "cold-answer", "warren, create to the exec's whole answer", 3, QUIET_MS,
                          once_cold },
    [ROW_WARM] = { "warm", "warren, warm pool, to first output", 5, QUIET_MS, once_warm },
    [ROW_WARM_ANSWER] = { "warm-answer", "warren, warm pool, to the whole answer", 3, QUIET_MS,
                          once_warm },
    [ROW_EXEC] = { "exec", "warren, exec of /bin/true", 20, 0, once_exec },
    [ROW_BWRAP] = { "bwrap", "bubblewrap", 5, QUIET_MS, once_peer },
    [ROW_RUNC] = { "runc", "runc run", 2, QUIET_MS, once_peer },
    [ROW_DOCKER] = { "docker", "docker run", 1, QUIET_MS, once_peer },
    [ROW_E2B_FLOOR] = { "e2b-floor", "the kernel's floor, bash -l -c, to its end", 3, QUIET_MS,
                        once_e2b_floor },
    [ROW_E2B_RAW] = { "e2b-raw", "E2B's create, run, kill over raw HTTP", 5, QUIET_MS,
                      once_e2b_raw },
    [ROW_E2B_SDK] = { "e2b-sdk", "the same through E2B's client", 3, QUIET_MS, once_e2b_sdk },
    [ROW_E2B_CODE] = { "e2b-code", "E2B's create to the first result of code", 1, CODE_QUIET_MS,
                       once_e2b_sdk },
};

static void measure(struct bench *b, enum row_id id)
{
    const struct contender *c = &contenders[id];
    struct row *row = &b->report.rows[id];
    unsigned failures = 0;

    for (unsigned i = 0; i < c->per_round && !row->skipped[0]; i++) {
        struct err err = ERR_INIT;
        double us = 0;

        if (c->quiet_ms)
            pause_ms(c->quiet_ms);
        if (c->once(b, id, &us, &err) >= 0) {
            sample_add(&row->times, us);
            failures = 0;
        } else if (++failures == FAILURES_MAX) {
            (void)snprintf(row->skipped, sizeof(row->skipped), "%s", err.msg);
            fprintf(stderr, "bench: %s given up: %s\n", c->name, err.msg);
        }
    }
}

/* ---- the run ---- */

static bool wanted(const struct bench *b, const char *name)
{
    return !b->only || strcmp(b->only, name) == 0 || strcmp(name, "floor") == 0 ||
           strcmp(name, "fork") == 0 || /* what the others are compared with */
           (strcmp(b->only, "e2b") == 0 && strncmp(name, "e2b-", 4) == 0);
}

static bool present(const struct bench *b, enum row_id id)
{
    switch (id) {
    case ROW_FORK: return true;
    case ROW_FLOOR: return b->pool;
    case ROW_COLD:
    case ROW_COLD_ANSWER:
    case ROW_EXEC: return b->cold.port;
    case ROW_WARM:
    case ROW_WARM_ANSWER: return b->warm.port;
    case ROW_BWRAP:
    case ROW_RUNC:
    case ROW_DOCKER: return b->peers[id][0];
    case ROW_E2B_FLOOR: return b->pool;
    case ROW_E2B_RAW: return b->warm.port;
    case ROW_E2B_SDK: return b->sdk;
    case ROW_E2B_CODE: return b->sdk && b->code;
    case ROW_COUNT: break;
    }
    return false;
}

static int prepare(struct bench *b, struct err *err)
{
    int r = b->pool ? floor_new(b->pool, 0, &b->floor, err) : 0;

    if (r >= 0 && b->cold.port)
        r = http_open(&b->cold_http, b->cold.port, b->key, err);
    if (r >= 0 && b->cold.port && wanted(b, "exec"))
        r = warren_create(&b->cold_http, b->live, err);
    if (r >= 0 && b->warm.port)
        r = http_open(&b->warm_http, b->warm.port, b->key, err);
    if (r >= 0 && b->sdk_argv[0])
        r = sdk_new(b->sdk_argv, b->log_fd, &b->sdk, err);
    return r;
}

static void run_rounds(struct bench *b)
{
    for (unsigned round = 0; round < b->rounds; round++) {
        for (enum row_id id = 0; id < ROW_COUNT; id++)
            if (present(b, id) && wanted(b, contenders[id].name) &&
                (id != ROW_E2B_CODE || round % CODE_EVERY == 0))
                measure(b, id);
        if (isatty(STDERR_FILENO))
            fprintf(stderr, "\rround %u of %u", round + 1, b->rounds);
    }
    if (isatty(STDERR_FILENO))
        fputs("\r                    \r", stderr);
    for (enum row_id id = 0; id < ROW_COUNT; id++) {
        struct row *row = &b->report.rows[id];

        sample_sort(&row->times);
        if (row->times.n > 10 * FAILURES_MAX) /* a late failure does not unmake what was measured */
            row->skipped[0] = '\0';
    }
}

static void run_crowds(struct bench *b)
{
    if (b->storm_s && b->warm.port && (!b->only || strcmp(b->only, "storm") == 0)) {
        fprintf(stderr, "bench: 200 clients for %u s\n", b->storm_s);
        b->report.storm.clients = 200;
        b->report.storm.seconds = b->storm_s;
        crowd_storm(&b->warm, &b->report.storm);
        sample_sort(&b->report.storm.life);
    }
    if (b->idle_n && b->cold.port && (!b->only || strcmp(b->only, "idle") == 0)) {
        fprintf(stderr, "bench: %u idle sandboxes\n", b->idle_n);
        b->report.idle.wanted = b->idle_n;
        crowd_idle(&b->cold, &b->report.idle);
        sample_sort(&b->report.idle.exec);
    }
}

static void run_paces(struct bench *b)
{
    struct pace *pace = &b->report.pace;
    struct many *many = &b->report.many;

    if (b->pace_s && b->pool && b->warm.port && (!b->only || strcmp(b->only, "pace") == 0)) {
        *pace = (struct pace){ .clients = PACE_CLIENTS, .turns = PACE_TURNS, .seconds = b->pace_s };
        fprintf(stderr, "bench: %u clients, and as many floors, %u turns of %u s\n", pace->clients,
                pace->turns, pace->seconds);
        pace_run(&b->warm, b->pool, pace);
    }
    if (b->many_n && b->pool && b->cold.port && (!b->only || strcmp(b->only, "many") == 0)) {
        *many = (struct many){ .few = MANY_FEW, .many = b->many_n, .lives = MANY_LIVES };
        fprintf(stderr, "bench: creates beside %u and %u sandboxes\n", many->few, many->many);
        many_run(&b->cold, b->pool, many);
    }
}

static void run_bursts(struct bench *b)
{
    static const unsigned clients[BURST_COUNT] = { 10, 100, 10, 100 };

    for (int i = 0; i < BURST_COUNT; i++) {
        struct e2b_burst *burst = &b->report.bursts[i];
        bool sdk = i >= BURST_SDK_10;

        if (sdk ? !b->sdk : !b->warm.port)
            continue;
        burst->clients = clients[i];
        burst->lives = BURST_LIVES;
        if (sdk)
            sdk_burst(b->sdk, burst);
        else
            e2b_burst(b->warm.port, b->key, burst);
        sample_sort(&burst->times);
    }
}

/* ---- the command line ---- */

/* PORT,PID,DATA,RUN */
static int parse_daemon(char *text, const char *key, struct crowd_daemon *ret)
{
    char *save = NULL, *port = strtok_r(text, ",", &save), *pid = strtok_r(NULL, ",", &save);

    ret->data_dir = strtok_r(NULL, ",", &save);
    ret->run_dir = strtok_r(NULL, ",", &save);
    if (!ret->run_dir)
        return -EINVAL;
    ret->port = (unsigned)strtoul(port, NULL, 10);
    ret->pid = (pid_t)strtol(pid, NULL, 10);
    ret->key = key;
    return 0;
}

/* Words separated by spaces; none of ours holds one. */
static void parse_words(char *text, char *argv[ARGS_MAX])
{
    char *save = NULL;
    unsigned n = 0;

    for (char *w = strtok_r(text, " ", &save); w && n < ARGS_MAX - 1;
         w = strtok_r(NULL, " ", &save))
        argv[n++] = w;
    argv[n] = NULL;
}

/* NAME=why */
static void parse_skip(struct bench *b, const char *text)
{
    const char *why = strchr(text, '=');

    for (enum row_id id = 0; why && id < ROW_COUNT; id++)
        if (strncmp(contenders[id].name, text, (size_t)(why - text)) == 0)
            (void)snprintf(b->report.rows[id].skipped, sizeof(b->report.rows[id].skipped), "%s",
                           why + 1);
}

static int parse(struct bench *b, int argc, char *argv[])
{
    static const struct option options[] = {
        { "pool", required_argument, NULL, OPT_POOL },
        { "rounds", required_argument, NULL, OPT_ROUNDS },
        { "only", required_argument, NULL, OPT_ONLY },
        { "json", required_argument, NULL, OPT_JSON },
        { "log", required_argument, NULL, OPT_LOG },
        { "key", required_argument, NULL, OPT_KEY },
        { "cold", required_argument, NULL, OPT_COLD },
        { "warm", required_argument, NULL, OPT_WARM },
        { "pool-size", required_argument, NULL, OPT_POOL_SIZE },
        { "storm", required_argument, NULL, OPT_STORM },
        { "idle", required_argument, NULL, OPT_IDLE },
        { "pace", required_argument, NULL, OPT_PACE },
        { "many", required_argument, NULL, OPT_MANY },
        { "bwrap", required_argument, NULL, OPT_BWRAP },
        { "runc", required_argument, NULL, OPT_RUNC },
        { "docker", required_argument, NULL, OPT_DOCKER },
        { "skip", required_argument, NULL, OPT_SKIP },
        { "sdk", required_argument, NULL, OPT_SDK },
        { "code", no_argument, NULL, OPT_CODE },
        { "burst", no_argument, NULL, OPT_BURST },
        { 0 },
    };

    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case OPT_POOL: b->pool = optarg; break;
        case OPT_ROUNDS: b->rounds = (unsigned)strtoul(optarg, NULL, 10); break;
        case OPT_ONLY: b->only = optarg; break;
        case OPT_JSON: b->json = optarg; break;
        case OPT_LOG:
            b->log_fd = open(optarg, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
            break;
        case OPT_KEY: b->key = optarg; break;
        case OPT_COLD:
            if (parse_daemon(optarg, b->key, &b->cold) < 0)
                return -EINVAL;
            break;
        case OPT_WARM:
            if (parse_daemon(optarg, b->key, &b->warm) < 0)
                return -EINVAL;
            break;
        case OPT_POOL_SIZE: b->pool_size = (unsigned)strtoul(optarg, NULL, 10); break;
        case OPT_STORM: b->storm_s = (unsigned)strtoul(optarg, NULL, 10); break;
        case OPT_IDLE: b->idle_n = (unsigned)strtoul(optarg, NULL, 10); break;
        case OPT_PACE: b->pace_s = (unsigned)strtoul(optarg, NULL, 10); break;
        case OPT_MANY: b->many_n = (unsigned)strtoul(optarg, NULL, 10); break;
        case OPT_BWRAP: parse_words(optarg, b->peers[ROW_BWRAP]); break;
        case OPT_RUNC: parse_words(optarg, b->peers[ROW_RUNC]); break;
        case OPT_DOCKER: parse_words(optarg, b->peers[ROW_DOCKER]); break;
        case OPT_SKIP: parse_skip(b, optarg); break;
        case OPT_SDK: parse_words(optarg, b->sdk_argv); break;
        case OPT_CODE: b->code = true; break;
        case OPT_BURST: b->burst = true; break;
        default: return -EINVAL;
        }
    }
    return optind == argc ? 0 : -EINVAL;
}

int main(int argc, char *argv[])
{
    static struct bench b = { .rounds = 10, .log_fd = STDERR_FILENO, .key = "" };
    struct err err = ERR_INIT;
    int r;

    b.cold_http.fd = b.warm_http.fd = -1;
    for (enum row_id id = 0; id < ROW_COUNT; id++) {
        b.report.rows[id].name = contenders[id].name;
        b.report.rows[id].title = contenders[id].title;
    }
    if (parse(&b, argc, argv) < 0) {
        fputs("bench: bad arguments; run it through ./dev bench\n", stderr);
        return 2;
    }
    if (prepare(&b, &err) < 0) {
        fprintf(stderr, "bench: %s: %s\n", err.msg, strerror(err.code));
        return 1;
    }
    host_line(b.report.host, sizeof(b.report.host));
    b.report.load_before = host_load();
    run_rounds(&b);
    if (b.live[0])
        (void)warren_delete(&b.cold_http, b.live, NULL);
    if (b.burst)
        run_bursts(&b);
    run_paces(&b);
    run_crowds(&b);
    b.report.load_after = host_load();

    report_table(&b.report, stdout);
    r = b.json ? report_json(&b.report, b.json) : 0;
    if (r < 0)
        fprintf(stderr, "bench: cannot write '%s': %s\n", b.json, strerror(-r));
    sdk_free(b.sdk);
    floor_free(b.floor);
    http_close(&b.cold_http);
    http_close(&b.warm_http);
    return r < 0;
}
