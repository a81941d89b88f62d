/* hex - bytes as hexadecimal digits, and back. */
#pragma once
#include <stddef.h>

int hex_digit(int c);                                /* of either case; -1: it is none */
void hex_encode(const void *p, size_t n, char *out); /* 2n characters in lower case and a NUL */
/* Exactly what hex_encode makes of n bytes; else -EINVAL. */
int hex_decode(const char *text, void *out, size_t n);
/* The byte that a percent sign and two digits at p stand for; -1: no such three are there. */
int hex_percent(const char *p, size_t n);
