#include <errno.h>
#include <string.h>

#include "core/build_private.h"
#include "core/transfer.h"

#define LOOK_MS 200 /* between looks whether the build was cancelled */

/* One line of the step's log for each layer that has come. */
static int tell(struct build *b, const struct transfer_event *ev, struct err *err)
{
    struct build_event out = { .type = BUILD_LOG, .n = b->step, .stream = WIRE_STDERR };
    if (ev->type != TRANSFER_LAYER || ev->state != TRANSFER_DONE)
        return 0;
    int n = asprintf(&out.text, "fetched %.19s, %llu bytes\n", ev->digest,
                     (unsigned long long)ev->total);
    if (n < 0)
        return err_set(err, ENOMEM, "cannot tell of a pull");
    out.len = (size_t)n;
    int r = build_tell(b, &out);
    return r < 0 ? err_set(err, -r, "the build was cancelled") : 0;
}

static int follow(struct build *b, struct transfer *t, struct err *err)
{
    for (;;) {
        struct transfer_event ev;
        if (transfer_next(t, LOOK_MS, &ev) == 0) {
            if (build_cancelled(b))
                return err_set(err, ECANCELED, "the build was cancelled");
            continue;
        }
        int r = tell(b, &ev, err);
        if (r < 0)
            return r;
        if (ev.type == TRANSFER_FAILED) {
            *err = ev.err;
            return err_wrap(err, ev.err.code ? -ev.err.code : -EIO, "line %u", b->line);
        }
        if (ev.type == TRANSFER_IMAGE)
            return 0;
    }
}

int build_pull(struct build *b, const char *name, struct err *err)
{
    struct transfer_config config = { .owner = b->owner,
                                      .image = name,
                                      .username = b->username,
                                      .password = b->password,
                                      .trusted = b->trusted };
    _cleanup_(transfer_freep) struct transfer *t = NULL;
    struct reference ref;
    const char *host = b->core->registries.default_host, *cure = image_cure(name);
    if (*cure) /* not a stranger's of that name */
        return err_fail(err, FAIL_IMAGE_NOT_FOUND, "line %u: no image '%s' here yet%s", b->line,
                        name, cure);
    if (reference_parse(name, strlen(name), host, &ref, NULL) < 0)
        return err_fail(err, FAIL_IMAGE_NOT_FOUND,
                        "line %u: no image '%.128s' here, and its name does not say where it is; "
                        "`warren image pull` fetches images, and the daemon's option "
                        "default-registry says where names without a host are",
                        b->line, name);
    int r = pull_start(b->core, &config, &t, err);
    return r < 0 ? err_wrap(err, r, "line %u", b->line) : follow(b, t, err);
}
