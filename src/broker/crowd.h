/* crowd - how many of a kind each sandbox has at once, of those that all of them share: clients at
 * their ports, connections that wait for their next request.
 *
 * One may have as many as are left for all others, so that nobody takes the last, and who listens on
 * every port no more than who listens on one. Counted by a hash of the sandbox's id: two may share a count.
 * Pure. */
#pragma once

#define CROWD_COUNTS 1024

struct crowd {
    unsigned most, n;
    unsigned counts[CROWD_COUNTS];
};

void crowd_init(struct crowd *c, unsigned most);
/* One more of this sandbox's: what crowd_leave is to be given, or 0: it has enough. */
unsigned crowd_enter(struct crowd *c, const char *sandbox);
void crowd_leave(struct crowd *c, unsigned ticket); /* 0 is fine */
