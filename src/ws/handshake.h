/* handshake - the words by which an HTTP connection becomes a WebSocket (RFC 6455, section 4).
 *
 * A client sends a random key, and only who read it as that can send the right answer back. */
#pragma once
#include <stdbool.h>

#define HANDSHAKE_KEY_SIZE 25    /* 16 bytes in base64, and the NUL */
#define HANDSHAKE_ACCEPT_SIZE 29 /* 20 bytes in base64, and the NUL */

int handshake_key(char ret_key[HANDSHAKE_KEY_SIZE]); /* a new one */
bool handshake_key_valid(const char *key);
int handshake_accept(const char *key, char ret_accept[HANDSHAKE_ACCEPT_SIZE]);
