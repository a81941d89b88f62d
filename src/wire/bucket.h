/* bucket - what warren-bucket is told: which bucket to show, and with whose key.
 *
 * The daemon writes a struct bucket_config into a memory file; the keeper hands that on unread,
 * with BUCKET_FUSE_FD, the device of a filesystem that it has just made. The program runs s3fs on
 * that device for as long as the filesystem is mounted. It ends when s3fs does, and says why. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define BUCKET_VERSION 1
#define BUCKET_REPORT_FD 3 /* written to: a struct bucket_report when s3fs has ended */
#define BUCKET_FUSE_FD 4
#define BUCKET_CONFIG_FD 5
#define BUCKET_SPOOL_FD 6 /* a directory for what is being written, of a limited size */

#define BUCKET_HOST_SIZE 254
#define BUCKET_NAME_SIZE 64
#define BUCKET_PREFIX_SIZE 256
#define BUCKET_REGION_SIZE 64
#define BUCKET_KEY_SIZE 129
#define BUCKET_SECRET_SIZE 257
#define BUCKET_OPENED_SIZE 2048

struct bucket_config {
    uint32_t version;
    uint16_t port;
    uint8_t tls;
    uint8_t path_style; /* host/bucket/key instead of bucket.host/key */
    char host[BUCKET_HOST_SIZE];
    char bucket[BUCKET_NAME_SIZE];
    char prefix[BUCKET_PREFIX_SIZE]; /* "" or what the names of its objects begin with */
    char region[BUCKET_REGION_SIZE];
    char access_key[BUCKET_KEY_SIZE];
    char secret[BUCKET_SECRET_SIZE];
    char opened
        [BUCKET_OPENED_SIZE]; /* ranges, commas between, that the operator opened (egress-open) */
};

struct bucket_report {
    int32_t code; /* a positive errno */
    char msg[256];
};

/* What each member may be made of; texts end within their arrays. They become words of s3fs's
 * command line and its key file, so nothing in them may end one. */
bool bucket_host_valid(const char *host);
bool bucket_name_valid(const char *name);
bool bucket_prefix_valid(const char *prefix);
bool bucket_region_valid(const char *region);
bool bucket_key_valid(const char *key); /* an access key, or its secret */
bool bucket_config_valid(const struct bucket_config *c);
