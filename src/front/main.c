/* warrend - Warren's daemon. Starts as root, starts warren-keeper and warren-broker, becomes an ordinary user,
 * then serves the API until it is told to stop. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/logring.h"
#include "core/core.h"
#include "core/key.h"
#include "core/process.h"
#include "core/watches.h"
#include "front/child.h"
#include "front/e2b/e2b.h"
#include "front/http/server.h"
#include "front/listen.h"
#include "front/native/native.h"
#include "front/options.h"
#include "front/previews.h"
#include "front/resolvers.h"
#include "front/setup.h"
#include "net/host.h"
#include "net/preview.h"

#define LOG_MODULE "warrend"
#define DRAIN_MS 5000
#define KEEPER_STOP_MS 5000
#define RUN_PATH_MAX 90 /* with "/warren.sock" behind it still a socket's path */
#define REF_MAX 32      /* "/proc/self/fd/N" */
#define ADMIN_PATH_MAX (RUN_PATH_MAX + 16)
#define CGROUP_NAME_MAX 32
#define NUMBER_MAX 16

struct world {
    struct options options;
    struct setup_user user;
    char *data, *run, *first_key;
    char cgroup[CGROUP_NAME_MAX], admin_path[ADMIN_PATH_MAX], where[LISTEN_TEXT_MAX];
    char tls_where[LISTEN_TEXT_MAX];
    /* The directories as the daemon goes on knowing them: held open, so that it need not be allowed
     * through the directories above them once it is an ordinary user. */
    char data_ref[REF_MAX], run_ref[REF_MAX];
    int lock_fd, tcp_fd, admin_fd, data_fd, run_fd, archive_fd;
    int link_fd; /* to the broker */
    int tls_fd;  /* for it to listen on; -1: none */
    struct child keeper, broker;
    struct core *core;
    struct previews *previews;
    struct server *server;
    char domain[PREVIEW_DOMAIN_MAX + 1];  /* of previews */
    char address[PREVIEW_DOMAIN_MAX + 8]; /* the same with the port, as clients write it */
};

static void world_done(struct world *w)
{
    if (w->server)
        server_stop(w->server, DRAIN_MS);
    previews_stop(w->previews);
    process_watch_stop();
    watches_stop(w->core);
    server_free(w->server);
    previews_free(w->previews);
    core_free(w->core);
    child_stop(&w->broker, KEEPER_STOP_MS);
    child_stop(&w->keeper, KEEPER_STOP_MS);
    cleanup_close(&w->link_fd);
    cleanup_close(&w->tls_fd);
    cleanup_close(&w->tcp_fd);
    cleanup_close(&w->admin_fd);
    cleanup_close(&w->lock_fd);
    cleanup_close(&w->data_fd);
    cleanup_close(&w->run_fd);
    cleanup_close(&w->archive_fd);
    options_done(&w->options);
    free(w->data);
    free(w->run);
    if (w->first_key)
        explicit_bzero(w->first_key, strlen(w->first_key));
    free(w->first_key);
}

/* Instances side by side must not meet in the cgroup tree: the run directory is theirs alone. */
static int name_cgroup(struct world *w, struct err *err)
{
    int n;
    if (w->options.cgroup) {
        if (!name_valid(w->options.cgroup))
            return err_set(err, EINVAL, "--cgroup '%s' is not a plain name", w->options.cgroup);
        n = snprintf(w->cgroup, sizeof(w->cgroup), "%s", w->options.cgroup);
    } else {
        uint32_t hash = 2166136261u; /* FNV-1a */
        for (const char *p = w->run; *p; p++)
            hash = (hash ^ (unsigned char)*p) * 16777619u;
        n = snprintf(w->cgroup, sizeof(w->cgroup), "warren-%08x", hash);
    }
    return n > 0 && (size_t)n < sizeof(w->cgroup) ? 0
                                                  : err_set(err, EINVAL, "--cgroup is too long");
}

/* "NAME" or "NAME:PORT"; without a port clients are told the one that we listen on. */
static int name_domain(struct world *w, struct err *err)
{
    const char *text = w->options.preview_domain, *colon = strchr(text, ':');
    const char *port = colon ? colon : strrchr(w->tls_fd >= 0 ? w->tls_where : w->where, ':');
    char name[HOST_SIZE];
    size_t n = colon ? (size_t)(colon - text) : strlen(text);
    unsigned number;
    if (n > PREVIEW_DOMAIN_MAX || host_canon(text, n, name) < 0 || !port ||
        !preview_port(port + 1, strlen(port + 1), &number))
        return err_set(err, EINVAL, "--preview-domain '%.64s' is not NAME or NAME:PORT", text);
    bool usual = number == 80 || number == 443;
    (void)snprintf(w->domain, sizeof(w->domain), "%.*s", PREVIEW_DOMAIN_MAX, name);
    (void)snprintf(w->address, sizeof(w->address), "%s%s", w->domain, usual ? "" : port);
    return 0;
}

static int take_first_key(struct world *w, struct err *err)
{
    const char *key = getenv("WARREN_API_KEY");
    if (!key || !*key)
        return 0;
    size_t n = strlen(key);
    if (n < KEY_MIN_LEN || n >= KEY_TEXT_MAX)
        return err_set(err, EINVAL, "WARREN_API_KEY must have %d to %d characters", KEY_MIN_LEN,
                       KEY_TEXT_MAX - 1);
    w->first_key = strdup(key);
    if (!w->first_key)
        return err_set(err, ENOMEM, "cannot allocate the first key");
    (void)unsetenv("WARREN_API_KEY"); /* no child needs it */
    return 0;
}

static int hold(const char *dir, int *ret_fd, char ref[REF_MAX], struct err *err)
{
    int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "cannot open '%s'", dir);
    (void)snprintf(ref, REF_MAX, "/proc/self/fd/%d", fd);
    *ret_fd = fd;
    return 0;
}

/* Held open, since our user may not be allowed to walk to it. */
static void hold_archiver(struct world *w)
{
    char path[PATH_MAX];
    struct err err = ERR_INIT;
    if (child_program("warren-archive", path, &err) >= 0)
        w->archive_fd = open(path, O_PATH | O_CLOEXEC);
    if (w->archive_fd < 0)
        log_warn("archives of files will be refused: %s",
                 err.msg[0] ? err.msg : "warren-archive cannot be opened");
}

static int prepare(struct world *w, struct err *err)
{
    hold_archiver(w);
    int r = take_first_key(w, err);
    if (r >= 0)
        r = setup_user(w->options.user, &w->user, err);
    if (r >= 0 && !w->options.user && strcmp(w->user.name, "nobody") == 0)
        log_info("there is no user 'warren', running as 'nobody'");
    if (r >= 0)
        r = setup_dir(w->options.run, &w->run, err);
    if (r >= 0)
        r = setup_dir(w->options.data, &w->data, err);
    if (r >= 0 && strlen(w->run) > RUN_PATH_MAX)
        r = err_set(err, ENAMETOOLONG, "--run '%s' is over %d bytes, too long for sockets in it",
                    w->run, RUN_PATH_MAX);
    if (r >= 0)
        r = hold(w->data, &w->data_fd, w->data_ref, err);
    if (r >= 0)
        r = hold(w->run, &w->run_fd, w->run_ref, err);
    if (r >= 0)
        r = name_cgroup(w, err);
    if (r >= 0)
        r = w->lock_fd = setup_lock(w->run, err);
    if (r >= 0)
        r = setup_state(w->data, &w->user, err);
    if (r >= 0)
        r = w->tcp_fd = listen_tcp("--listen", w->options.listen, w->where, err);
    if (r >= 0 && w->options.tls_listen)
        r = w->tls_fd = listen_tcp("--tls-listen", w->options.tls_listen, w->tls_where, err);
    if (r >= 0)
        r = name_domain(w, err);
    if (r >= 0 && snprintf(w->admin_path, sizeof(w->admin_path), "%s/warren.sock", w->run) < 0)
        r = err_set(err, EINVAL, "cannot name the admin socket");
    if (r >= 0)
        r = w->admin_fd = listen_unix(w->admin_path, w->user.uid, w->user.gid, err);
    return r;
}

static int start_keeper(struct world *w, struct err *err)
{
    char uid[NUMBER_MAX];
    (void)snprintf(uid, sizeof(uid), "%u", (unsigned)w->user.uid);
    const char *args[] = { "--data",
                           w->data,
                           "--run",
                           w->run,
                           "--cgroup",
                           w->cgroup,
                           "--client-uid",
                           uid,
                           "--log-level",
                           w->options.log_level,
                           "--log-format",
                           w->options.log_format,
                           NULL };
    struct child_config keeper = { .program = "warren-keeper", .args = args };
    return child_start(&keeper, &w->keeper, err);
}

/* Its end of the link stays with its launcher, so that the next one goes on where it died. */
static int start_broker(struct world *w, struct err *err)
{
    char uid[NUMBER_MAX], gid[NUMBER_MAX], resolvers[RESOLVERS_SIZE];
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_set(err, errno, "cannot make the link to the broker");
    w->link_fd = pair[0];
    (void)snprintf(uid, sizeof(uid), "%u", (unsigned)w->user.uid);
    (void)snprintf(gid, sizeof(gid), "%u", (unsigned)w->user.gid);
    resolvers_read("/etc/resolv.conf", resolvers);
    const char *args[] = { "--run",
                           w->run,
                           "--domain",
                           w->domain,
                           "--uid",
                           uid,
                           "--gid",
                           gid,
                           "--resolvers",
                           w->options.resolvers ? w->options.resolvers : resolvers,
                           "--open",
                           w->options.egress_open ? w->options.egress_open : "",
                           "--log-level",
                           w->options.log_level,
                           "--log-format",
                           w->options.log_format,
                           w->options.tls_cert ? "--tls-cert" : NULL,
                           w->options.tls_cert,
                           "--tls-key",
                           w->options.tls_key,
                           NULL };
    struct child_fd fds[] = { { "--link-fd", pair[1] }, { "--tls-fd", w->tls_fd } };
    struct child_config broker = {
        .program = "warren-broker", .args = args, .fds = fds, .nfds = w->tls_fd >= 0 ? 2 : 1
    };
    int r = child_start(&broker, &w->broker, err);
    (void)close(pair[1]);
    return r;
}

static int start(struct world *w, struct err *err)
{
    int r = start_keeper(w, err);
    if (r >= 0)
        r = start_broker(w, err);
    if (r >= 0)
        r = setup_drop(&w->user, err);
    if (r < 0)
        return r;
    struct core_config config = { .data_dir = w->data_ref,
                                  .run_dir = w->run_ref,
                                  .first_key = w->first_key,
                                  .pool_size = w->options.pool_size,
                                  .usage_interval_ms = w->options.usage_interval_s * 1000ll,
                                  .usage_keep_days = w->options.usage_keep_days,
                                  .archive_fd = w->archive_fd,
                                  .broker_fd = w->link_fd,
                                  .default_registry = w->options.default_registry,
                                  .registry_allow = w->options.registry_allow,
                                  .registry_timeout_s = w->options.registry_timeout_s };
    r = core_new(&config, &w->core, err);
    if (r < 0)
        return r;
    r = previews_new(w->core, take_fd(w->link_fd), w->domain, &w->previews, err);
    if (r < 0)
        return r;
    static const struct dialect *const dialects[] = { &e2b_dialect, NULL };
    struct server_config http = { .core = w->core,
                                  .routes = native_routes,
                                  .nroutes = native_routes_count,
                                  .dialects = dialects,
                                  .tcp_fd = take_fd(w->tcp_fd),
                                  .admin_fd = take_fd(w->admin_fd),
                                  .rate_limit = w->options.rate,
                                  .rate_burst = w->options.burst,
                                  .once = native_once,
                                  .nonce = native_once_count,
                                  .cors_origins = w->options.cors_origins,
                                  .keeper_restarts = w->keeper.restarts,
                                  .preview_domain = w->address,
                                  .divert = previews_divert,
                                  .divert_arg = w->previews };
    r = server_new(&http, &w->server, err);
    return r < 0 ? r : previews_start(w->previews, w->server, err);
}

static bool launcher_ended(struct child *child)
{
    int status;
    if (child->pid == 0 || waitpid(child->pid, &status, WNOHANG) != child->pid)
        return false;
    child->pid = 0;
    return true;
}

/* Until somebody ends us, or a launcher ended: 0 or -ECHILD. */
static int serve(struct world *w, const sigset_t *signals)
{
    for (;;) {
        int signo = sigwaitinfo(signals, NULL);
        if (signo == SIGTERM || signo == SIGINT) {
            log_info("stopping; sandboxes go on signal=%s", process_signal_name(signo));
            return 0;
        }
        if (signo == SIGCHLD && (launcher_ended(&w->keeper) || launcher_ended(&w->broker))) {
            log_error("a launcher ended, so nobody could start its program again; stopping");
            return -ECHILD;
        }
    }
}

static int run(struct world *w, struct err *err)
{
    sigset_t signals;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL); /* before the first thread */

    int r = prepare(w, err);
    if (r >= 0)
        r = start(w, err);
    if (r < 0)
        return r;
    log_info("ready listen=%s user=%s data=%s run=%s cgroup=%s", w->where, w->user.name, w->data,
             w->run, w->cgroup);
    if (w->tls_fd >= 0)
        log_info("ready for TLS listen=%s domain=%s", w->tls_where, w->address);
    (void)printf("warrend ready on http://%s (admin socket %s)\n", w->where, w->admin_path);
    (void)fflush(stdout);
    r = serve(w, &signals);
    return r < 0 ? err_set(err, -r, "a launcher ended") : 0;
}

/* The served surface, for the test that compares it with the described one. */
static void print_routes(void)
{
    for (size_t i = 0; i < native_routes_count; i++)
        (void)printf("%s %s\n", native_routes[i].method, native_routes[i].pattern);
    unsigned status;
    const char *code;
    for (size_t i = 0; (code = reply_code(i, &status)); i++)
        (void)printf("error %u %s\n", status, code);
}

int main(int argc, char **argv)
{
    struct world w = { .lock_fd = -1,
                       .tcp_fd = -1,
                       .admin_fd = -1,
                       .data_fd = -1,
                       .run_fd = -1,
                       .archive_fd = -1,
                       .link_fd = -1,
                       .tls_fd = -1,
                       .keeper = { .alive_fd = -1 },
                       .broker = { .alive_fd = -1 } };
    struct err err = ERR_INIT;

    (void)umask(077);
    (void)close_range(STDERR_FILENO + 1, ~0u, 0); /* whatever our caller left open is not ours */
    int r = options_read(argc, argv, &w.options, &err);
    if (r < 0) {
        (void)fprintf(stderr, "warrend: %s\n", err.msg);
        return 2;
    }
    if (w.options.help || w.options.version || w.options.routes) {
        if (w.options.help)
            options_help();
        else if (w.options.routes)
            print_routes();
        else
            (void)puts("warrend " WARREN_VERSION);
        options_done(&w.options);
        return 0;
    }
    if (geteuid() != 0) {
        (void)fprintf(stderr, "warrend: it must start as root, and gives that up at once: "
                              "try `sudo warrend`\n");
        options_done(&w.options);
        return 1;
    }
    log_set_level(w.options.level);
    log_set_format(w.options.format);
    logring_start();
    r = run(&w, &err);
    if (r < 0)
        log_error("%s", err.msg[0] ? err.msg : strerror(-r));
    world_done(&w);
    return r < 0 ? 1 : 0;
}
