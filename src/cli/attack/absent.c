/* absent - attempts that cannot be made here, each with the reason: Warren lacks the interface,
 * or a test of its own makes the attempt. They are listed so that the list is complete. */
#include "cli/attack/attack.h"

static void run_absent(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    trial_not_here(t, "%s", self->text);
}

#define ABSENT(name_, category_, title_, why_)                                                 \
    {                                                                                          \
        .name = name_, .category = category_, .title = title_, .run = run_absent, .text = why_ \
    }
#define NO_SSH "Warren has no SSH server"
#define NO_MCP "Warren has no MCP server"
#define NO_DOCKER "Warren does not speak Docker's API"
#define NO_H2 "Warren's ports speak HTTP/1.1 alone"
#define NO_WEB "Warren has no dashboard"

/* clang-format off */
static const struct attempt_row rows[] = {
    ABSENT("ssh-auth-flood", "ssh", "guess passwords by SSH", NO_SSH),
    ABSENT("ssh-terrapin", "ssh", "cut the beginning of a session", NO_SSH),
    ABSENT("ssh-forward", "ssh", "forward a port to the host", NO_SSH),
    ABSENT("ssh-user-path", "ssh", "a user name that is a path", NO_SSH),
    ABSENT("mcp-metacharacters", "mcp", "shell characters in a tool's arguments", NO_MCP),
    ABSENT("mcp-traversal", "mcp", "a resource with ..", NO_MCP),
    ABSENT("docker-privileged", "docker", "a privileged container", NO_DOCKER),
    ABSENT("docker-bind", "docker", "a bind of the host's root", NO_DOCKER),
    ABSENT("http2-rapid-reset", "http2", "streams opened and reset", NO_H2),
    ABSENT("http2-continuation", "http2", "headers without end", NO_H2),
    ABSENT("http2-hpack-bomb", "http2", "headers that unpack to much", NO_H2),
    ABSENT("dashboard-xss", "dashboard", "a script in a file's name", NO_WEB),
    ABSENT("dashboard-csv", "dashboard", "a formula in an export", NO_WEB),
    ABSENT("daemon-kill", "daemon", "kill each process at any moment", "tests/test_crash.py and ./dev soak kill a daemon of their own"),
    ABSENT("daemon-restart-limits", "daemon", "limits after the keeper's death", "needs the keeper killed: tests/test_limits.py does that with one of its own"),
    ABSENT("reboot-causes", "daemon", "why sandboxes ended over a reboot", "needs the machine restarted: tests/vm does that"),
    ABSENT("sweeper-batches", "daemon", "files left of 5,000 deleted sandboxes", "takes long: ./dev soak counts what is left"),
    ABSENT("host-out-of-memory", "daemon", "the host out of memory", "would harm what else runs: see daemon-oom-score"),
    ABSENT("kernel-mismatch", "snapshots", "resume on another kernel", "needs a second machine"),
    ABSENT("archive-import-tampered", "snapshots", "an archive changed in the bucket", "needs a bucket: tests/test_archive.py has one"),
    ABSENT("binding-echo", "bindings", "a server that shows the secret", "needs a server with a name and a certificate: tests/test_bindings_live.py has one"),
    ABSENT("dns-rebinding", "egress", "a name that moves to a private address", "needs a resolver of its own: tests/test_network_attacks.py has one"),
};
/* clang-format on */

const struct attempt_table attack_absent = { rows, ARRAY_LEN(rows) };
