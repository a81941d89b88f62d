/* What a client inside is told when its request was not sent on. */
#include <string.h>

#include "broker/tap_private.h"

struct said {
    const char *status, *code, *text; /* '@' in the text is the host */
};

static const struct said pages[] = {
    [TAP_BAD_REQUEST] = { "400 Bad Request", "bad_request",
                          "a request to @ that can be read in more than one way is not sent on" },
    [TAP_HEAD_TOO_LARGE] = { "431 Request Header Fields Too Large", "head_too_large",
                             "the head of a request to @ has more than 32 KiB or 128 fields" },
    [TAP_METHOD] = { "405 Method Not Allowed", "binding_method",
                     "TRACE and CONNECT are not sent on to @" },
    [TAP_MISDIRECTED] = { "421 Misdirected Request", "binding_host",
                          "the Host of a request must be that of its connection, @" },
    [TAP_DENIED] = { "403 Forbidden", "network_denied",
                     "no binding of this sandbox fits this method and path of @, and its network "
                     "does not reach that host otherwise" },
    [TAP_NO_NAME] = { "404 Not Found", "binding_unknown",
                      "no binding of this sandbox has that internal name" },
    [TAP_NO_VALUE] = { "503 Service Unavailable", "binding_no_value",
                       "a secret that is bound to @ has no value that can be sent; store it again" },
    [TAP_BODY_TOO_LARGE] = { "413 Content Too Large", "binding_body_too_large",
                             "a request to @ that is signed as a whole may have 4 MiB" },
    [TAP_SIGNED_PIECES] = { "400 Bad Request", "binding_signed_body",
                            "a body to @ that its client signed in pieces cannot be signed "
                            "again; turn payload signing off" },
    [TAP_UNREACHABLE] = { "502 Bad Gateway", "binding_unreachable", "@ could not be reached" },
    [TAP_CERTIFICATE] = { "502 Bad Gateway", "binding_certificate",
                          "the certificate of @ could not be verified; nothing was sent" },
    [TAP_BROKEN] = { "502 Bad Gateway", "binding_broken_answer",
                     "@ gave no answer that can be trusted" },
    [TAP_ENCODED] = { "502 Bad Gateway", "binding_encoded_answer",
                      "@ answered in an encoding that it was not asked for, in which secrets "
                      "cannot be looked for" },
    [TAP_WITHHELD] = { "502 Bad Gateway", "binding_answer_withheld",
                       "@ answered in a way that a binding of this sandbox does not let pass" },
};

int tap_page(const struct tap *t, enum tap_page page, struct buf *out)
{
    const struct said *s = &pages[page];
    char body[700];
    int at = (int)strcspn(s->text, "@");
    bool named = s->text[at] != '\0'; /* a host's name needs no escape */
    int n = snprintf(body, sizeof(body), "{\"error\":{\"code\":\"%s\",\"message\":\"%.*s%s%s\"}}\n",
                     s->code, at, s->text, named ? t->host : "", named ? s->text + at + 1 : "");
    return buf_printf(out,
                      "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                      "%s\r\n%s",
                      s->status, n, t->keep ? "" : "Connection: close\r\n", t->is_head ? "" : body);
}
