/* certfiles - the operator's certificate and its key, looked at again and again.
 *
 * Only root need be able to read those files, and the broker is nobody by then. So another process of this
 * program stays root, with the right to read and no other, and does one thing: whenever one of the two
 * files has changed it sends both. Whether they fit each other is for who gets them to say; what does not fit
 * changes nothing. It ends with the broker. */
#pragma once
#include "base/err.h"
#include "base/loop.h"

struct certfiles {
    struct loop *loop;
    struct watch watch;
    int fd; /* -1: there are none */
    void (*fn)(void *arg, int fd);
    void *arg;
};

/* Starts the process; while we are root. */
int certfiles_start(const char *cert_path, const char *key_path, int *ret_fd, struct err *err);
/* Each time they have changed, and once at first, fn gets a file in memory with both, which it takes. Takes fd. */
int certfiles_watch(struct certfiles *c, struct loop *loop, int fd, void (*fn)(void *arg, int fd),
                    void *arg, struct err *err);
void certfiles_done(struct certfiles *c);

/* That process: until the other end of `fd` is gone. */
int certfiles_serve(const char *cert_path, const char *key_path, int fd);
