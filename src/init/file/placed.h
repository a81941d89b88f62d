/* placed - which files the API put in place lately, for the workers that watch.
 *
 * inotify cannot tell a file that an API write gave its name from one that `ln` or `mv` put there.
 * So a writing worker notes the file before it gets its name, in a page that all workers share, and
 * a watching worker looks there. The oldest note makes room; a file without one is told as the
 * kernel tells it. Blocks nowhere. */
#pragma once
#include <sys/stat.h>

enum placed { PLACED_NOT, PLACED_NEW, PLACED_OVER };

/* In init, before its workers are forked; more calls do nothing. Without memory nothing is noted. */
void placed_share(void);
/* The file of fd is about to get a name, a new one or one that was another file's. */
void placed_note(int fd, enum placed how);
enum placed placed_how(const struct stat *st);
