/* world - all that a daemon consists of, from its options to its server.
 *
 * As root it is prepared (world_prepare.c) and starts the keeper and the broker (world_children.c); then
 * it becomes an ordinary user and goes on as that (world.c). */
#pragma once
#include <limits.h>
#include <stdbool.h>

#include "daemon/child.h"
#include "daemon/listen.h"
#include "daemon/options.h"
#include "daemon/setup.h"
#include "net/preview.h"
#include "s3/credentials.h"

struct core;
struct previews;
struct server;

#define WORLD_RUN_MAX 90 /* with "/warren.sock" behind it still a socket's path */
#define WORLD_REF_MAX 32 /* "/proc/self/fd/N" */
#define WORLD_CGROUP_MAX 32

struct world {
    struct options options;
    struct setup_user user;
    char *data, *run, *first_key;
    char cgroup[WORLD_CGROUP_MAX], admin_path[WORLD_RUN_MAX + 16], where[LISTEN_TEXT_MAX];
    char tls_where[LISTEN_TEXT_MAX];
    /* The directories as the daemon goes on knowing them: held open, so that it need not be allowed
     * through the directories above them once it is an ordinary user. */
    char data_ref[WORLD_REF_MAX], run_ref[WORLD_REF_MAX];
    int lock_fd, tcp_fd, admin_fd, data_fd, run_fd, archive_fd;
    int hook_fd; /* warren-acme-hook; -1: none */
    int link_fd; /* to the broker */
    int tls_fd;  /* for it to listen on; -1: none */
    struct child keeper, broker;
    struct core *core;
    struct previews *previews;
    struct server *server;
    struct s3_credentials archive_keys;
    char *archive_bucket, *archive_prefix, *archive_endpoint;
    char domain[PREVIEW_DOMAIN_MAX + 1];  /* of previews */
    bool preview_tls;                     /* clients reach them by TLS */
    char address[PREVIEW_DOMAIN_MAX + 8]; /* the same with the port, as clients write it */
};

/* clang-format off */
#define WORLD_INIT                                                                       \
    { .lock_fd = -1, .tcp_fd = -1, .admin_fd = -1, .data_fd = -1, .run_fd = -1,          \
      .archive_fd = -1, .hook_fd = -1, .link_fd = -1, .tls_fd = -1,                      \
      .keeper = { .alive_fd = -1 }, .broker = { .alive_fd = -1 } }
/* clang-format on */

/* After the options: the user, the directories, what is listened on. */
int world_prepare(struct world *w, struct err *err);
/* The keeper and the broker, each by a launcher that stays root. */
int world_start_children(struct world *w, struct err *err);
/* Both, then no longer root: the core, previews, and the server, which is then open. */
int world_start(struct world *w, struct err *err);
void world_done(struct world *w); /* sandboxes go on */
