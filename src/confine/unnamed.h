/* unnamed - instructions before a filter of libseccomp, for calls that it has no name for.
 *
 * libseccomp has one answer for all that no rule names, and ours is EPERM. A call that is newer than
 * the library must answer ENOSYS instead, as an older kernel does: C libraries fall back on that answer alone.
 * So these few instructions run before the library's: they send numbers that it has no name for (the end of
 * its table, and its gaps) to ENOSYS and all others on to it. Numbers of another architecture
 * are the library's to refuse. */
#pragma once
#include <linux/filter.h>
#include <stddef.h>

#define UNNAMED_GAPS_MAX 8 /* x86-64 and aarch64 have three at most, the open end included */
#define UNNAMED_MAX (3 + 2 * UNNAMED_GAPS_MAX + 2)

/* Returns how many there are; what runs next stands behind them. */
size_t unnamed_rules(struct sock_filter out[UNNAMED_MAX]);
