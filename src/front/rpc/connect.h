/* connect - the Connect protocol over HTTP/1.1: unary calls and server streams.
 *
 * A message is JSON or binary protobuf, as the request's content type says; the answer is of the
 * same coding. In a stream each message is an envelope (flags, length, message), and the last one
 * tells how it ended. No compression, no GET. */
#pragma once
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

#include "front/http/request.h"

struct connect_call {
    struct request *req;
    bool json, stream;
    ProtobufCMessage *msg; /* what was asked; of the descriptor that was asked for */
};

/* Reads the request. Fills call->req, json and stream even on failure, so that connect_fail can
 * answer. -EINVAL: not such a message. */
int connect_begin(struct request *req, const ProtobufCMessageDescriptor *d, bool stream,
                  struct connect_call *ret_call, struct err *err);
/* The same for a stream of the client's, whose messages come later. */
int connect_begin_stream(struct request *req, struct connect_call *ret_call, struct err *err);
/* One message, of either coding; the caller frees it. */
int connect_decode(bool json, const char *p, size_t n, const ProtobufCMessageDescriptor *d,
                   ProtobufCMessage **ret_msg, struct err *err);
void connect_done(struct connect_call *call);

int connect_reply(const struct connect_call *call, const ProtobufCMessage *m); /* unary */
/* Unary: an error body with the code's status; stream: 200 and an end that tells of it. */
int connect_fail(const struct connect_call *call, enum rpc_code code, const char *message);

/* The pieces of a stream, for a reply_source's next. */
int connect_put(struct buf *out, bool json, const ProtobufCMessage *m);
int connect_put_end(struct buf *out, enum rpc_code code, const char *message);
const char *connect_stream_type(bool json);
