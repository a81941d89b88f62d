/* certs_private - what certs.c (files, the broker) and certs_acme.c (names that want one) share. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "core/acme.h"
#include "core/certs.h"
#include "core/private.h"
#include "net/host.h"

struct ca;

/* One certificate that the broker has. */
struct cert {
    struct cert *next;
    char label[HOST_SIZE];
    bool by_acme, seen;
    struct timespec changed;
    off_t size;
    int64_t from_ms, until_ms;
    struct buf pem; /* empty: it cannot be used */
};

/* A name that ACME gave nothing for. */
struct attempt {
    struct attempt *next;
    char name[HOST_SIZE];
    char failure[200];
    int64_t pause_ms, next_ms;
};

struct certs {
    struct core *core;
    pthread_mutex_t lock; /* of what follows, down to the blank line */
    pthread_cond_t wake;
    struct cert *list;
    size_t n;
    struct attempt *attempts;
    struct buf server, below; /* the local authority's, PEM */
    bool kicked;

    struct ca *ca; /* NULL: none */
    int64_t renew_ms;
    char domain[HOST_SIZE];
    struct acme acme;
    char *acme_directory, *acme_email;
    int dir_fd, acme_certs_fd;
    _Atomic bool stop;
    pthread_t scanner, asker;
    bool scanning, asking;
};

/* What is there of that name; NULL: nothing. With the lock held. */
struct cert *certs_find(const struct certs *c, const char *label, bool by_acme);
void *certs_ask(void *certs); /* the second thread: ACME */
