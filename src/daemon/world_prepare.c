/* What is done while it is still root: names are settled, secrets taken, files and sockets opened. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "core/key.h"
#include "daemon/world.h"
#include "net/host.h"
#include "wire/keeper.h"

#define LOG_MODULE "warrend"

static int name_cgroup(struct world *w, struct err *err)
{
    int n;
    if (w->options.cgroup) {
        if (!name_valid(w->options.cgroup))
            return err_set(err, EINVAL, "--cgroup '%s' is not a plain name", w->options.cgroup);
        n = snprintf(w->cgroup, sizeof(w->cgroup), "%s", w->options.cgroup);
    } else {
        n = keeper_cgroup_name(w->run, w->cgroup, sizeof(w->cgroup));
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
    w->preview_tls = number == 443 || (!colon && w->tls_fd >= 0);
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

static int hold(const char *dir, int *ret_fd, char ref[WORLD_REF_MAX], struct err *err)
{
    int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "cannot open '%s'", dir);
    (void)snprintf(ref, WORLD_REF_MAX, "/proc/self/fd/%d", fd);
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

static int hold_hook(struct world *w, struct err *err)
{
    char path[PATH_MAX];
    if (!w->options.acme_directory)
        return 0;
    int r = child_program("warren-acme-hook", path, err);
    if (r < 0)
        return r;
    w->hook_fd = open(path, O_PATH | O_CLOEXEC);
    return w->hook_fd < 0 ? err_set(err, errno, "cannot open '%s'", path) : 0;
}

/* "s3://bucket/prefix", and the keys, which may be readable by root only. */
static int take_archive(struct world *w, struct err *err)
{
    const struct options *o = &w->options;
    if (!o->archive)
        return 0;
    if (strncmp(o->archive, "s3://", 5) != 0)
        return err_set(err, EINVAL, "--archive must be s3://BUCKET[/PREFIX]");
    const char *bucket = o->archive + 5;
    size_t n = strcspn(bucket, "/");
    w->archive_bucket = strndup(bucket, n);
    w->archive_prefix = strdup(bucket[n] ? bucket + n + 1 : "");
    int r = o->archive_endpoint
                ? asprintf(&w->archive_endpoint, "%s", o->archive_endpoint)
                : asprintf(&w->archive_endpoint, "https://s3.%s.amazonaws.com", o->archive_region);
    if (!w->archive_bucket || !w->archive_prefix || r < 0)
        return err_set(err, ENOMEM, "out of memory");
    return s3_credentials_read(o->archive_credentials, &w->archive_keys, err);
}

int world_prepare(struct world *w, struct err *err)
{
    hold_archiver(w);
    int r = hold_hook(w, err);
    if (r >= 0)
        r = take_first_key(w, err);
    if (r >= 0)
        r = take_archive(w, err);
    if (r >= 0)
        r = setup_user(w->options.user, &w->user, err);
    if (r >= 0 && !w->options.user && strcmp(w->user.name, "nobody") == 0)
        log_info("there is no user 'warren', running as 'nobody'");
    if (r >= 0)
        r = setup_dir(w->options.run, &w->run, err);
    if (r >= 0)
        r = setup_dir(w->options.data, &w->data, err);
    if (r >= 0 && strlen(w->run) > WORLD_RUN_MAX)
        r = err_set(err, ENAMETOOLONG, "--run '%s' is over %d bytes, too long for sockets in it",
                    w->run, WORLD_RUN_MAX);
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
