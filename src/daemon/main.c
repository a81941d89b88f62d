/* warrend - Warren's daemon. Starts as root, starts warren-keeper and warren-broker, becomes an ordinary user,
 * then serves the API until it is told to stop. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/logring.h"
#include "base/oom.h"
#include "core/process.h"
#include "front/native/native.h"
#include "daemon/world.h"

#define LOG_MODULE "warrend"
#define STOP_MAX_S 20 /* requests, keeper and broker get 5 each (world.c) */

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

    int r = world_prepare(w, err);
    if (r >= 0)
        r = world_start(w, err);
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

/* Stopping has an end, whatever a thread waits for. Nothing is lost: the next start finds what
 * it would after a crash. */
static void on_stop_too_long(int signo)
{
    static const char said[] = "warrend: stopping took too long; ending at once\n";
    ssize_t n = write(STDERR_FILENO, said, sizeof(said) - 1);
    (void)n;
    _exit(1);
}

static void stop(struct world *w)
{
    (void)signal(SIGALRM, on_stop_too_long);
    (void)alarm(STOP_MAX_S);
    world_done(w);
}

/* The served surface, for the test that compares it with the described one. */
static void print_routes(void)
{
    for (size_t i = 0; i < native_dialect.nroutes; i++)
        (void)printf("%s %s\n", native_dialect.routes[i].method, native_dialect.routes[i].pattern);
    for (enum failure f = FAIL_NONE; f < FAILURES_END; f++)
        if (failure_is_told(f))
            (void)printf("error %u %s\n", failure_status(f), failure_name(f));
}

static void print(enum options_print what)
{
    switch (what) {
    case PRINT_NOTHING: break;
    case PRINT_HELP: options_help(); break;
    case PRINT_VERSION: (void)puts("warrend " WARREN_VERSION); break;
    case PRINT_ROUTES: print_routes(); break;
    case PRINT_SAMPLE: options_sample(); break;
    }
}

int main(int argc, char **argv)
{
    struct world w = WORLD_INIT;
    struct err err = ERR_INIT;

    (void)umask(077);
    (void)close_range(STDERR_FILENO + 1, ~0u, 0); /* whatever our caller left open is not ours */
    int r = options_read(argc, argv, &w.options, &err);
    if (r < 0) {
        (void)fprintf(stderr, "warrend: %s\n", err.msg);
        return 2;
    }
    if (w.options.print != PRINT_NOTHING) {
        print(w.options.print);
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
    if (oom_set(0, OOM_DAEMON) < 0)
        log_warn("the kernel may end the daemon when memory runs out: no right to say otherwise");
    r = run(&w, &err);
    if (r < 0)
        log_error("%s", err.msg[0] ? err.msg : strerror(-r));
    stop(&w);
    return r < 0 ? 1 : 0;
}
