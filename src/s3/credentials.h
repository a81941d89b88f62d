/* credentials - the keys of a bucket, out of a file or the environment.
 *
 * The file is as other clients of S3 have it: [default], aws_access_key_id = …, aws_secret_access_key = …, and
 * aws_session_token where there is one. */
#pragma once
#include "base/cleanup.h"
#include "base/err.h"

struct s3_credentials {
    char *key_id, *secret, *token; /* token: NULL where there is none */
};
void s3_credentials_done(struct s3_credentials *c); /* wipes them */

/* file NULL: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN. -EINVAL: not all that is needed. */
int s3_credentials_read(const char *file, struct s3_credentials *ret_c, struct err *err);
