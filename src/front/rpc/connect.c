#include "front/rpc/connect.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "front/rpc/envelope.h"
#include "front/rpc/pbjson.h"

#define MESSAGE_MAX (32u * 1024 * 1024) /* a directory of 100,000 entries */

static const struct {
    const char *name;
    unsigned status;
} codes[] = {
    [RPC_OK] = { "ok", 200 },
    [RPC_CANCELLED] = { "canceled", 499 },
    [RPC_UNKNOWN] = { "unknown", 500 },
    [RPC_INVALID_ARGUMENT] = { "invalid_argument", 400 },
    [RPC_DEADLINE_EXCEEDED] = { "deadline_exceeded", 504 },
    [RPC_NOT_FOUND] = { "not_found", 404 },
    [RPC_ALREADY_EXISTS] = { "already_exists", 409 },
    [RPC_PERMISSION_DENIED] = { "permission_denied", 403 },
    [RPC_RESOURCE_EXHAUSTED] = { "resource_exhausted", 429 },
    [RPC_FAILED_PRECONDITION] = { "failed_precondition", 400 },
    [RPC_ABORTED] = { "aborted", 409 },
    [RPC_OUT_OF_RANGE] = { "out_of_range", 400 },
    [RPC_UNIMPLEMENTED] = { "unimplemented", 501 },
    [RPC_INTERNAL] = { "internal", 500 },
    [RPC_UNAVAILABLE] = { "unavailable", 503 },
    [RPC_DATA_LOSS] = { "data_loss", 500 },
    [RPC_UNAUTHENTICATED] = { "unauthenticated", 401 },
};

/* Is the content type `type`, with or without parameters? */
static bool is_type(const char *header, const char *type)
{
    size_t n = strlen(type);
    return header && strncasecmp(header, type, n) == 0 &&
           (header[n] == '\0' || header[n] == ';' || header[n] == ' ');
}

static int find_coding(struct connect_call *call)
{
    const char *type = request_header(call->req, "Content-Type");
    call->json = !is_type(type, call->stream ? "application/connect+proto" : "application/proto");
    if (!call->json)
        return 0;
    return is_type(type, call->stream ? "application/connect+json" : "application/json") ? 0
                                                                                         : -EINVAL;
}

struct whole {
    const char *p;
    size_t n, seen;
    unsigned flags;
};

static int take_whole(void *arg, unsigned flags, const char *p, size_t n)
{
    struct whole *w = arg;
    *w = (struct whole){ p, n, w->seen + 1, flags };
    return 0;
}

int connect_decode(bool json, const char *p, size_t n, const ProtobufCMessageDescriptor *d,
                   ProtobufCMessage **ret_msg, struct err *err)
{
    if (json)
        return pbjson_read(p, n, d, ret_msg, err);
    ProtobufCMessage *m = protobuf_c_message_unpack(d, NULL, n, (const uint8_t *)p);
    if (!m)
        return err_fail(err, FAIL_INVALID_REQUEST, "the body is not a %s", d->short_name);
    *ret_msg = m;
    return 0;
}

int connect_begin_stream(struct request *req, struct connect_call *ret_call, struct err *err)
{
    *ret_call = (struct connect_call){ .req = req, .stream = true };
    return find_coding(ret_call) < 0
               ? err_fail(err, FAIL_INVALID_REQUEST, "this content type is not understood")
               : 0;
}

/* The one envelope that a server stream's request is. */
static int decode_one(struct connect_call *call, const ProtobufCMessageDescriptor *d,
                      struct err *err)
{
    struct envelopes e = ENVELOPES_INIT;
    struct whole w = { 0 };
    int r = envelopes_feed(&e, call->req->body.data, call->req->body.len, take_whole, &w);
    if (r >= 0)
        r = envelopes_end(&e);
    if (r < 0 || w.seen != 1 || w.flags != 0)
        r = err_fail(err, FAIL_INVALID_REQUEST,
                     w.flags & ENVELOPE_COMPRESSED ? "the message is compressed"
                                                   : "the body is not one whole envelope");
    else
        r = connect_decode(call->json, w.p, w.n, d, &call->msg, err);
    envelopes_done(&e);
    return r;
}

int connect_begin(struct request *req, const ProtobufCMessageDescriptor *d, bool stream,
                  struct connect_call *ret_call, struct err *err)
{
    *ret_call = (struct connect_call){ .req = req, .stream = stream };
    if (find_coding(ret_call) < 0)
        return err_fail(err, FAIL_INVALID_REQUEST, "this content type is not understood");
    if (stream)
        return decode_one(ret_call, d, err);
    return connect_decode(ret_call->json, req->body.data, req->body.len, d, &ret_call->msg, err);
}

void connect_done(struct connect_call *call)
{
    if (call->msg)
        protobuf_c_message_free_unpacked(call->msg, NULL);
    call->msg = NULL;
}

static int put_message(struct buf *out, bool json, const ProtobufCMessage *m)
{
    if (json) {
        struct jout j = JOUT_INIT(out);
        pbjson_write(&j, NULL, m);
        return jout_done(&j);
    }
    size_t n = protobuf_c_message_get_packed_size(m);
    int r = buf_reserve(out, n + 1);
    if (r < 0)
        return r;
    out->len += protobuf_c_message_pack(m, (uint8_t *)out->data + out->len);
    return 0;
}

int connect_reply(const struct connect_call *call, const ProtobufCMessage *m)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(MESSAGE_MAX);
    int r = put_message(&b, call->json, m);
    return r < 0 ? r
                 : reply_text(call->req, 200, call->json ? "application/json" : "application/proto",
                              &b);
}

static void put_error(struct jout *j, const char *key, enum rpc_code code, const char *message)
{
    jout_open(j, key, '{');
    jout_str(j, "code", codes[code].name);
    jout_str(j, "message", message);
    jout_close(j, '}');
}

struct last_word {
    enum rpc_code code;
    char message[ERR_MSG_MAX];
    bool told;
};

static int failure_next(void *arg, struct buf *out)
{
    struct last_word *f = arg;
    if (f->told)
        return 0;
    f->told = true;
    int r = connect_put_end(out, f->code, f->message);
    return r < 0 ? r : 1;
}

int connect_fail(const struct connect_call *call, enum rpc_code code, const char *message)
{
    if (call->stream) {
        static const struct reply_source source = { failure_next, free };
        struct last_word *f = calloc(1, sizeof(*f));
        if (!f)
            return -ENOMEM;
        f->code = code;
        (void)snprintf(f->message, sizeof(f->message), "%s", message);
        return reply_stream(call->req, connect_stream_type(call->json), &source, f);
    }
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    struct jout j = JOUT_INIT(&b);
    put_error(&j, NULL, code, message);
    return reply_json(call->req, codes[code].status, &j);
}

/* ---- streams ---- */

const char *connect_stream_type(bool json)
{
    return json ? "application/connect+json" : "application/connect+proto";
}

/* The length is known only behind the message: leave room for it, then fill it in. */
static int begin_envelope(struct buf *out, unsigned char flags)
{
    const char head[ENVELOPE_SIZE] = { (char)flags };
    return buf_append(out, head, sizeof(head));
}

static void end_envelope(struct buf *out, size_t at)
{
    size_t n = out->len - at - ENVELOPE_SIZE;
    for (int i = 0; i < 4; i++)
        out->data[at + 1 + (size_t)i] = (char)(n >> (24 - 8 * i));
}

int connect_put(struct buf *out, bool json, const ProtobufCMessage *m)
{
    size_t at = out->len;
    int r = begin_envelope(out, 0);
    if (r >= 0)
        r = put_message(out, json, m);
    if (r >= 0)
        end_envelope(out, at);
    return r;
}

int connect_put_end(struct buf *out, enum rpc_code code, const char *message)
{
    size_t at = out->len;
    int r = begin_envelope(out, ENVELOPE_END);
    if (r < 0)
        return r;
    struct jout j = JOUT_INIT(out);
    jout_open(&j, NULL, '{');
    if (code != RPC_OK)
        put_error(&j, "error", code, message);
    jout_close(&j, '}');
    r = jout_done(&j);
    if (r >= 0)
        end_envelope(out, at);
    return r;
}
