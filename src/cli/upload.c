#include "cli/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/units.h"

#define PROGRESS_EVERY_MS 100
#define BAR_WIDTH 30

struct upload {
    int fd;
    int64_t total; /* -1: unknown */
    int64_t sent;
    int64_t started_ms, shown_ms;
    bool progress; /* stderr is a terminal */
};

static void show(struct upload *u, bool last)
{
    char sent[UNIT_TEXT_MAX], total[UNIT_TEXT_MAX], rate[UNIT_TEXT_MAX], bar[BAR_WIDTH + 1];
    int64_t now = clock_mono_ms(), took = now - u->started_ms;
    if (!u->progress || (!last && now - u->shown_ms < PROGRESS_EVERY_MS))
        return;
    u->shown_ms = now;
    (void)size_text(u->sent, sent);
    (void)size_text(u->sent * 1000 / (took > 0 ? took : 1), rate);
    if (u->total > 0) {
        int64_t full = u->sent * BAR_WIDTH / u->total;
        for (int i = 0; i < BAR_WIDTH; i++)
            bar[i] = i < full ? '#' : '.';
        bar[BAR_WIDTH] = '\0';
        (void)fprintf(stderr, "\r[%s] %3d%%  %s of %s  %s/s\x1b[K", bar,
                      (int)(u->sent * 100 / u->total), sent, size_text(u->total, total), rate);
    } else {
        (void)fprintf(stderr, "\r%s  %s/s\x1b[K", sent, rate);
    }
    if (u->total >= 0 && u->sent >= u->total)
        (void)fprintf(stderr, "  unpacking...");
}

static ssize_t read_source(void *arg, void *p, size_t n)
{
    struct upload *u = arg;
    ssize_t r;
    do {
        r = read(u->fd, p, n);
    } while (r < 0 && errno == EINTR);
    if (r < 0)
        return -errno;
    u->sent += r;
    show(u, r == 0);
    return r;
}

static int open_source(const char *file, struct upload *u, struct err *err)
{
    struct stat st;
    u->fd = strcmp(file, "-") == 0 ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
    if (u->fd < 0 || fstat(u->fd, &st) < 0)
        return err_set(err, errno, "cannot open '%s': %s", file, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return err_set(err, EISDIR,
                       "'%s' is a directory; pack it first: tar -C %s -c . | warren "
                       "image import --name NAME -",
                       file, file);
    u->total = S_ISREG(st.st_mode) && lseek(u->fd, 0, SEEK_CUR) == 0 ? st.st_size : -1;
    return 0;
}

int upload_file(struct cli *cli, const char *method, const char *path, const char *file,
                json_t **ret_json, struct err *err)
{
    struct upload u = { .fd = -1,
                        .progress = isatty(STDERR_FILENO) && !cli->json,
                        .started_ms = clock_mono_ms() };
    struct client *client = cli_client(cli, err);
    if (!client)
        return -EIO;
    int r = open_source(file, &u, err);
    if (r == 0) {
        _cleanup_(request_done) struct request call = { .method = method,
                                                        .path = path,
                                                        .source = read_source,
                                                        .source_len = u.total,
                                                        .arg = &u,
                                                        .body_type = "application/x-tar" };
        r = client_perform(client, &call, err);
        if (u.progress && u.shown_ms)
            (void)fprintf(stderr, "\r\x1b[K");
        if (r == 0)
            *ret_json = take_ptr(call.json);
    }
    if (u.fd > STDIN_FILENO)
        (void)close(u.fd);
    return r;
}
