#include "s3/credentials.h"

#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

static void wipe(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    free(*text);
    *text = NULL;
}

void s3_credentials_done(struct s3_credentials *c)
{
    wipe(&c->key_id);
    wipe(&c->secret);
    wipe(&c->token);
}

static char **place(struct s3_credentials *c, const char *name)
{
    return strcmp(name, "aws_access_key_id") == 0       ? &c->key_id
           : strcmp(name, "aws_secret_access_key") == 0 ? &c->secret
           : strcmp(name, "aws_session_token") == 0     ? &c->token
                                                        : NULL;
}

static int on_setting(void *arg, const char *section, const char *name, const char *value)
{
    char **at = place(arg, name);
    if (!at || (*section && strcmp(section, "default") != 0))
        return 1; /* other profiles, other settings */
    wipe(at);
    *at = strdup(value);
    return *at != NULL;
}

static int read_file(const char *path, struct s3_credentials *c, struct err *err)
{
    _cleanup_file_ FILE *file = fopen(path, "re");
    if (!file)
        return err_set(err, errno, "cannot read '%s': %s", path, strerror(errno));
    int line = ini_parse_file(file, on_setting, c);
    return line != 0 ? err_set(err, EINVAL, "%s, line %d: not a 'name = value' line", path, line)
                     : 0;
}

static int read_environment(struct s3_credentials *c, struct err *err)
{
    static const char *const names[][2] = { { "AWS_ACCESS_KEY_ID", "aws_access_key_id" },
                                            { "AWS_SECRET_ACCESS_KEY", "aws_secret_access_key" },
                                            { "AWS_SESSION_TOKEN", "aws_session_token" } };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = getenv(names[i][0]);
        if (value && *value && !on_setting(c, "", names[i][1], value))
            return err_set(err, ENOMEM, "out of memory");
    }
    return 0;
}

int s3_credentials_read(const char *file, struct s3_credentials *ret_c, struct err *err)
{
    struct s3_credentials c = { 0 };
    int r = file ? read_file(file, &c, err) : read_environment(&c, err);
    if (r >= 0 && (!c.key_id || !c.secret || !*c.key_id || !*c.secret))
        r = err_set(err, EINVAL, "%s%s has no %s", file ? "" : "the environment", file ? file : "",
                    file ? "aws_access_key_id and aws_secret_access_key"
                         : "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
    if (r < 0)
        s3_credentials_done(&c);
    else
        *ret_c = c;
    return r;
}
