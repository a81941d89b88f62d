/* What went wrong between the command and the daemon, and what to do about it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "cli/client_private.h"
#include "cli/object.h"

/* The connect's own errno says which; curl only says that it failed. */
static int socket_errno(const char *path)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof(sa.sun_path))
        return ENAMETOOLONG;
    memcpy(sa.sun_path, path, strlen(path) + 1);
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
        return errno;
    return 0;
}

#define HOW_TO_START "start it with `sudo ./dev up` or `systemctl start warren`"

static int unreachable(const struct client *c, struct err *err)
{
    if (!c->socket && !c->direct)
        return err_set(err, ECONNREFUSED,
                       "cannot reach warrend at %s; does it run, and listen there?", c->base);
    if (!c->socket)
        return err_set(err, ECONNREFUSED, "cannot reach warrend at %s; " HOW_TO_START, c->base);
    int e = socket_errno(c->socket);
    if (e == EACCES || e == EPERM)
        return err_set(err, EACCES,
                       "no permission on %s; use sudo, or a key: `warren login "
                       "http://127.0.0.1:7070`, or WARREN_API_KEY=...",
                       c->socket);
    if (e == ENAMETOOLONG)
        return err_set(err, e, "the socket's path is too long: %s", c->socket);
    return err_set(err, e ? e : ECONNREFUSED, "cannot reach warrend at %s; " HOW_TO_START,
                   c->socket);
}

int client_transport_error(const struct request *call, CURLcode rc, struct err *err)
{
    const struct client *c = call->client;
    switch (rc) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST: return unreachable(c, err);
    case CURLE_OPERATION_TIMEDOUT:
        if (call->status == 0 && !c->socket) {
            double connected = 0;
            (void)curl_easy_getinfo(call->easy, CURLINFO_CONNECT_TIME, &connected);
            if (connected <= 0)
                return unreachable(c, err);
        }
        return err_set(err, ETIMEDOUT, "no answer from warrend at %s in time", client_where(c));
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
        return err_set(err, ECONNRESET, "warrend at %s ended the connection", client_where(c));
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return err_set(err, EPROTO,
                       "the certificate of warrend at %s is not trusted here; if it is of a local "
                       "authority, `warren ca trust` trusts it, or WARREN_CA=FILE (what `warren ca "
                       "show` prints) does for this command",
                       client_where(c));
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return err_set(err, EINVAL, "'%s' is not an address; it looks like http://127.0.0.1:7070",
                       c->base);
    default:
        return err_set(err, EIO, "talking to warrend at %s: %s", client_where(c),
                       curl_easy_strerror(rc));
    }
}

static int status_errno(long status)
{
    switch (status) {
    case 401:
    case 403: return EACCES;
    case 404: return ENOENT;
    case 409: return EBUSY;
    case 507: return ENOSPC;
    default: return status >= 500 ? EIO : EINVAL;
    }
}

int client_api_error(struct request *call)
{
    const json_t *e = json_object_get(call->json, "error");
    const char *message = member_text(e, "message");
    (void)snprintf(call->code, sizeof(call->code), "%s", member_text(e, "code"));
    int code = status_errno(call->status);
    if (call->status == 401)
        return err_set(
            &call->err, code,
            "%s; `warren login URL`, set WARREN_API_KEY (or --key), or use sudo and the admin "
            "socket",
            *message ? message : "warrend does not take this key");
    if (*message)
        return err_set(&call->err, code, "%s", message);
    return err_set(&call->err, code, "warrend answered status %ld without saying why (is %s it?)",
                   call->status, client_where(call->client));
}
