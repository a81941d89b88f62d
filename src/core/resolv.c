/* A sandbox with a network needs somebody to ask for names. Whoever it asks, the broker answers; but
 * its programs ask nobody, or themselves, unless /etc/resolv.conf says otherwise. */
#include <string.h>

#include "base/log.h"
#include "core/file.h"
#include "core/private.h"

#define LOG_MODULE "network"
#define RESOLV_PATH "/etc/resolv.conf"
#define RESOLV_TEXT "nameserver 192.0.2.53\n" /* nobody's address: any would do */
#define RESOLV_MAX 4096
#define WAIT_MS 5000

/* Does it name a resolver other than the sandbox itself? */
static bool names_one(const char *text)
{
    static const char word[] = "nameserver";
    for (const char *p = text; p; p = strchr(p, '\n')) {
        p += *p == '\n';
        if (strncmp(p, word, sizeof(word) - 1) != 0)
            continue;
        const char *at = p + sizeof(word) - 1 + strspn(p + sizeof(word) - 1, " \t");
        if (strncmp(at, "127.", 4) != 0 && strncmp(at, "::1", 3) != 0)
            return true;
    }
    return false;
}

static bool has_resolver(struct core *core, const struct sandbox *s)
{
    static const char *const path = RESOLV_PATH;
    struct file_ask ask = { .op = WIRE_FILE_READ, .paths = &path, .n_paths = 1, .user = "root" };
    _cleanup_(file_call_freep) struct file_call *call = NULL;
    char text[RESOLV_MAX + 1];
    struct file_event ev;
    if (file_begin(core, s, &ask, &call, NULL) < 0 || file_next(call, WAIT_MS, -1, &ev, NULL) < 0)
        return false;
    file_event_done(&ev);
    file_call_hurry(call, WAIT_MS);
    size_t have = 0;
    for (ssize_t n; have < RESOLV_MAX; have += (size_t)n) {
        n = file_read(call, text + have, RESOLV_MAX - have, -1, NULL);
        if (n <= 0)
            break;
    }
    text[have] = '\0';
    return names_one(text);
}

void networks_point(struct core *core, const char *id)
{
    static const char *const path = RESOLV_PATH;
    struct file_ask ask = {
        .op = WIRE_FILE_WRITE, .paths = &path, .n_paths = 1, .user = "root", .mode = 0644
    };
    _cleanup_(file_call_freep) struct file_call *call = NULL;
    struct sandbox s = { .root = NULL };
    struct file_event ev;
    struct err err = ERR_INIT;
    (void)snprintf(s.id, sizeof(s.id), "%s", id);
    if (has_resolver(core, &s))
        return;
    int r = file_begin(core, &s, &ask, &call, &err);
    if (r >= 0)
        r = file_put_data(call, RESOLV_TEXT, sizeof(RESOLV_TEXT) - 1);
    if (r >= 0)
        r = file_put_end(call);
    for (bool done = false; r >= 0 && !done;) {
        r = file_next(call, WAIT_MS, -1, &ev, &err);
        if (r < 0)
            break;
        done = ev.type == FILE_DONE;
        file_event_done(&ev);
    }
    if (r < 0)
        log_warn("its programs find no resolver sandbox=%s err=\"%s\"", id, err.msg);
}
