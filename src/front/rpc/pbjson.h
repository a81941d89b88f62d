/* pbjson - protobuf messages as JSON, by what their descriptors say.
 *
 * The mapping is the usual one of proto3: lowerCamelCase names (snake_case is read too), bytes in
 * base64, 64-bit numbers as text, enums by name, maps as objects, Timestamp as RFC 3339. Members
 * that are not in the descriptor are ignored, as protobuf wants it. So a handler written for a
 * message serves both codings. Pure: memory in, memory out. */
#pragma once
#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

#include "base/err.h"
#include "base/json.h"

/* Members that have their default value are left out. Failures are kept in j. */
void pbjson_write(struct jout *j, const char *key, const ProtobufCMessage *m);

/* The caller frees *ret_m with protobuf_c_message_free_unpacked(m, NULL). -EINVAL: not JSON, or a
 * member has another kind than the descriptor says. An empty text is an empty message. */
int pbjson_read(const char *p, size_t n, const ProtobufCMessageDescriptor *d,
                ProtobufCMessage **ret_m, struct err *err);
