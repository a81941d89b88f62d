#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/follow.h"
#include "cli/object.h"
#include "cli/sanitise.h"
#include "cli/units.h"

#define PASSWORD_MAX 4096

struct transfer_opts {
    const char *name, *to, *platform, *username;
    bool password_stdin, insecure;
};

#define AT(member_) offsetof(struct transfer_opts, member_)
#define CREDENTIALS                                                                              \
    { 'u',      "username",                                                                      \
      OPT_TEXT, AT(username),                                                                    \
      "USER",   "Who to be at the registry. Default: WARREN_REGISTRY_USERNAME, or nobody.",      \
      NULL },                                                                                    \
        { 0,        "password-stdin",                                                            \
          OPT_FLAG, AT(password_stdin),                                                          \
          NULL,     "Read the password from standard input. Default: WARREN_REGISTRY_PASSWORD.", \
          NULL },                                                                                \
    {                                                                                            \
        0, "insecure", OPT_FLAG, AT(insecure), NULL,                                             \
            "Accept plain HTTP, or a certificate that nobody vouches for, from this registry.",  \
            NULL                                                                                 \
    }

static const struct opt pull_table[] = {
    { 'n', "name", OPT_TEXT, AT(name), "NAME",
      "What to call it here. Default: the same name, without a digest.", NULL },
    { 0, "platform", OPT_TEXT, AT(platform), "OS/ARCH",
      "Of an image for several, the one to take, such as linux/arm64. Default: this machine's.",
      NULL },
    CREDENTIALS,
};

static const struct opt push_table[] = {
    { 0, "to", OPT_TEXT, AT(to), "HOST/NAME[:TAG]", "Where to. Default: the image's own name.",
      NULL },
    CREDENTIALS,
};

static bool show(struct progress *progress, const json_t *event)
{
    if (strcmp(member_text(event, "type"), "layer") != 0)
        return false;
    progress_layer(progress, event);
    return true;
}

static int read_password(char out[PASSWORD_MAX], struct err *err)
{
    size_t n = 0;
    if (isatty(STDIN_FILENO))
        return err_set(err, EINVAL, "standard input is a terminal; pipe the password into it");
    for (;;) {
        ssize_t r = read(STDIN_FILENO, out + n, PASSWORD_MAX - n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return err_set(err, errno, "cannot read the password: %s", strerror(errno));
        n += (size_t)r;
        if (n == PASSWORD_MAX)
            return err_set(err, EMSGSIZE, "the password is too long");
        if (r == 0)
            break;
    }
    while (n > 0 && (out[n - 1] == '\n' || out[n - 1] == '\r'))
        n--;
    out[n] = '\0';
    return 0;
}

/* Not an option: other users can read command lines. */
static int put_credentials(const struct transfer_opts *o, json_t *body, struct err *err)
{
    char text[PASSWORD_MAX];
    const char *user = o->username ? o->username : getenv("WARREN_REGISTRY_USERNAME");
    const char *password = getenv("WARREN_REGISTRY_PASSWORD");
    int r = 0;
    if (o->password_stdin) {
        r = read_password(text, err);
        password = text;
    }
    if (r == 0 && user && *user)
        r = object_text(body, "username", user, err);
    if (r == 0 && user && *user && password && *password)
        r = object_text(body, "password", password, err);
    explicit_bzero(text, sizeof(text));
    if (r == 0 && o->insecure)
        (void)json_object_set_new(body, "insecure", json_true());
    return r;
}

/* Takes body. *ret_last is the stream's last event. */
static int transfer(struct cli *cli, const char *path, const struct transfer_opts *o, json_t *body,
                    json_t **ret_last, struct err *err)
{
    _cleanup_json_ json_t *own = body;
    int r = put_credentials(o, own, err);
    return r < 0 ? r : follow(cli, path, own, show, ret_last, err);
}

static int run_pull(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct transfer_opts *o = opts;
    _cleanup_free_ char *path = api_path("images", "pull", NULL);
    _cleanup_json_ json_t *last = NULL;
    struct err err = ERR_INIT;
    char size[UNIT_TEXT_MAX];
    json_t *body = json_object();
    int r = object_text(body, "image", argv[0], &err);
    if (r == 0 && o->name)
        r = object_text(body, "name", o->name, &err);
    if (r == 0 && o->platform)
        r = object_text(body, "platform", o->platform, &err);
    if (r < 0) {
        json_decref(body);
        return cli_fail(cli, &err);
    }
    if (transfer(cli, path, o, body, &last, &err) < 0)
        return cli_fail(cli, &err);
    const json_t *image = json_object_get(last, "image");
    if (cli->json) {
        cli_print_json(image);
        return 0;
    }
    _cleanup_free_ char *name = text_line(member_text(image, "name"));
    _cleanup_free_ char *digest = text_line(member_text(last, "digest"));
    (void)printf("%s  %s  %s\n", name, size_text(member_int(image, "size_bytes"), size), digest);
    return 0;
}

static int run_push(struct cli *cli, const void *opts, int argc, char **argv)
{
    const struct transfer_opts *o = opts;
    _cleanup_free_ char *path = api_path("images", argv[0], "push", NULL);
    _cleanup_json_ json_t *last = NULL;
    struct err err = ERR_INIT;
    json_t *body = json_object();
    if (o->to && object_text(body, "image", o->to, &err) < 0) {
        json_decref(body);
        return cli_fail(cli, &err);
    }
    if (transfer(cli, path, o, body, &last, &err) < 0)
        return cli_fail(cli, &err);
    if (cli->json) {
        cli_print_json(last);
        return 0;
    }
    _cleanup_free_ char *reference = text_line(member_text(last, "reference"));
    _cleanup_free_ char *digest = text_line(member_text(last, "digest"));
    (void)printf("%s  %s\n", reference, digest);
    return 0;
}

const struct command cmd_image_pull = {
    .name = "image pull",
    .alias = "pull",
    .summary = "Fetch an image from a registry",
    .synopsis = "[OPTIONS] HOST/NAME[:TAG][@DIGEST]",
    .description =
        "Fetches an image from any registry that speaks the OCI distribution API, layers in "
        "parallel; a layer that is here already is not fetched again, and one whose download broke "
        "goes on where it stopped, also in a later pull. Every part is checked against its digest. "
        "A name without a host, such as python:3.12, is one at Docker Hub, or where the daemon's "
        "option default-registry says.",
    .examples =
        (const struct example[]){
            { "By tag", "warren image pull registry.example.com/team/app:1.2" },
            { "Under a name of one's own",
              "warren image pull --name app registry.example.com/team/app" },
            { "With a password",
              "warren image pull -u me --password-stdin registry.example.com/a <secret" },
            { "Of another machine's kind",
              "warren image pull --platform linux/arm64 registry.example.com/a" },
            { NULL, NULL } },
    COMMAND_OPTS(pull_table, struct transfer_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .run = run_pull,
};

const struct command cmd_image_push = {
    .name = "image push",
    .alias = "push",
    .summary = "Send an image to a registry",
    .synopsis = "[OPTIONS] IMAGE",
    .description =
        "Sends an image's layers and its manifest to a registry; what is there already is not "
        "sent. Prints where it is and its digest. An image that was pulled keeps its digest.",
    .examples =
        (const struct example[]){
            { "Where its name says", "warren image push registry.example.com/team/app:1.2" },
            { "Elsewhere", "warren image push --to 127.0.0.1:5000/app app" },
            { NULL, NULL } },
    COMMAND_OPTS(push_table, struct transfer_opts),
    .stop_after = OPTS_ALL,
    .min_args = 1,
    .max_args = 1,
    .operands = "@image",
    .run = run_push,
};
