/* private - one request to the service, for the files of s3/ only. */
#pragma once
#include <curl/curl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define S3_HANDLES 8

struct s3 {
    char *base;   /* the endpoint and the bucket */
    char *prefix; /* "" or with a '/' at its end */
    char *sign, *user, *token, *ca_file;
    unsigned timeout_s, tries;
    bool (*cancelled)(void *arg);
    void *arg;
    pthread_mutex_t lock;
    CURL *idle[S3_HANDLES]; /* with their connections */
    size_t nidle;
};

struct s3_ask {
    const char *method, *key, *url;
    const void *body; /* of a PUT */
    size_t body_size;
    size_t most; /* of the answer, when it is what was asked for */
    /* the answer */
    struct buf answer;
    long status;
    int64_t now_ms; /* Date; 0: none */
    size_t sent;
    size_t head_bytes;
    bool too_long, whole_head;
};

bool s3_key_valid(const char *key);
/* Once. 0: there was an answer, whatever it says. -EAGAIN: worth another try; else below zero: for good. */
int s3_exchange(struct s3 *s3, struct s3_ask *ask, struct err *err);
