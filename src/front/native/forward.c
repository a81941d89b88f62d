/* A port of a sandbox as a byte stream in a WebSocket: the handshake; the bytes are the broker's. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/port.h"
#include "front/native/native.h"
#include "net/preview.h"
#include "ws/handshake.h"

#define LOG_MODULE "forward"
#define DIAL_MS 5000
#define BOOT_MS 30000 /* a start command may take this long until it listens */
#define WOKEN_MS 5000
#define PAUSE_MS 50

/* The two sockets on their way to the broker. */
struct handed {
    struct core *core;
    int inside_fd;
    char sandbox[ID_SIZE];
};

static void hand_over(void *arg, int client_fd, int lease_fd)
{
    struct handed *h = arg;
    struct err err = ERR_INIT;
    if (client_fd < 0)
        (void)close(h->inside_fd);
    else if (port_forward(h->core, h->sandbox, client_fd, h->inside_fd, lease_fd, &err) < 0)
        log_warn("a forwarded connection is lost sandbox=%s err=%s", h->sandbox, err.msg);
    free(h);
}

static bool lists_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    while (list && *list) {
        list += strspn(list, ", \t");
        if (strncasecmp(list, word, n) == 0 && strchr(", \t", list[n]))
            return true; /* the NUL at the end is one of these, too */
        list += strcspn(list, ",");
    }
    return false;
}

static int read_handshake(struct request *req, char accept[HANDSHAKE_ACCEPT_SIZE], struct err *err)
{
    const char *version = request_header(req, "Sec-WebSocket-Version");
    const char *key = request_header(req, "Sec-WebSocket-Key");
    if (strcmp(req->method, "GET") != 0 ||
        !lists_word(request_header(req, "Connection"), "upgrade") ||
        !lists_word(request_header(req, "Upgrade"), "websocket") || !version ||
        strcmp(version, "13") != 0) {
        reply_header(req, "Upgrade", "websocket");
        reply_header(req, "Sec-WebSocket-Version", "13");
        return err_fail(err, FAIL_UPGRADE_REQUIRED,
                        "this is for a WebSocket of version 13, such as `warren forward` makes");
    }
    if (!key || !handshake_key_valid(key))
        return err_fail(err, FAIL_INVALID_REQUEST, "Sec-WebSocket-Key must be 16 bytes in base64");
    int r = handshake_accept(key, accept);
    return r < 0 ? err_set(err, -r, "cannot answer the handshake") : 0;
}

/* One that was just woken needs a moment until it listens, as previews know, too. */
static int dial(struct request *req, const struct sandbox *s, unsigned port, bool woken,
                int *ret_fd, struct err *err)
{
    int64_t until = clock_mono_ms() + (s->spec.boot.argv ? BOOT_MS : WOKEN_MS);
    for (;;) {
        *err = (struct err)ERR_INIT;
        int r = port_dial(req->core, s, port, DIAL_MS, ret_fd, err);
        if (r != -ECONNREFUSED || !woken || clock_mono_ms() >= until)
            return r;
        (void)poll(NULL, 0, PAUSE_MS);
    }
}

int native_port_connect(struct request *req, struct err *err)
{
    static const char *const none[] = { NULL };
    _cleanup_(native_leave) struct native_visit visit = { 0 };
    char accept[HANDSHAKE_ACCEPT_SIZE];
    unsigned port = 0;
    bool woken = false;
    _cleanup_(sandbox_done) struct sandbox known = { 0 };
    int r = request_params_known(req, none, err);
    if (r < 0)
        return r;
    r = sandbox_get(req->core, req->owner, req->args[0], &known, err); /* whose is it? */
    if (r < 0)
        return native_sandbox_error(req, r, err);
    r = read_handshake(req, accept, err);
    if (r < 0)
        return r;
    if (!preview_port(req->args[1], strlen(req->args[1]), &port))
        return err_fail(err, FAIL_INVALID_PATH, "a port is a number from 1 to %d", PORT_MAX);
    r = sandbox_wake(req->core, req->owner, req->args[0], &visit.s, &woken, err);
    if (r < 0)
        return native_sandbox_error(req, r, err);
    visit.core = req->core;
    _cleanup_free_ struct handed *h = calloc(1, sizeof(*h));
    if (!h)
        return err_set(err, ENOMEM, "out of memory");
    h->core = req->core;
    memcpy(h->sandbox, visit.s.id, ID_SIZE);
    r = dial(req, &visit.s, port, woken, &h->inside_fd, err);
    if (r < 0)
        return r;
    reply_header(req, "Sec-WebSocket-Accept", "%s", accept);
    return reply_upgrade(req, "websocket", hand_over, take_ptr(h), err);
}
