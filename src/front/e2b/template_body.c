/* POST /v2/templates/{id}/builds/{build}: what to build, read from its JSON. */
#include <errno.h>
#include <string.h>

#include "front/e2b/templates.h"

#define STEPS_MAX 1000
#define ARGS_MAX 20000 /* of all steps: thousands of variables, and nothing that was ever meant */
#define USER "user"
#define HOME "/home/user"
#define READY_MS (5 * 60 * 1000)
#define E2B_IMAGES "e2bdev/"

const char *e2b_image_name(const char *image)
{
    static const struct {
        const char *theirs, *ours;
    } same[] = { { "e2bdev/base", "base" },
                 { "e2bdev/code-interpreter", "code-interpreter" },
                 { "e2bdev/desktop", "desktop" } };
    if (strncmp(image, E2B_IMAGES, strlen(E2B_IMAGES)) != 0)
        return image;
    size_t n = strcspn(image, ":@");
    for (size_t i = 0; i < ARRAY_LEN(same); i++)
        if (strlen(same[i].theirs) == n && strncmp(image, same[i].theirs, n) == 0)
            return same[i].ours;
    return image;
}

static int wrong(struct err *err, const char *member, const char *what)
{
    return err_fail(err, FAIL_INVALID_FIELD, "'%s' must be %s", member, what);
}

/* NULL: not there, or null. */
static int read_text(const json_t *object, const char *member, const char **ret, struct err *err)
{
    const json_t *v = json_object_get(object, member);
    *ret = json_string_value(v);
    return *ret || !v || json_is_null(v) ? 0 : wrong(err, member, "text");
}

/* ---- steps ---- */

static int read_step(const json_t *v, struct build_step *step, const char ***next, size_t *left,
                     struct err *err)
{
    const json_t *args = json_object_get(v, "args");
    size_t n = json_array_size(args);
    step->fresh = json_is_true(json_object_get(v, "force"));
    int r = read_text(v, "type", &step->type, err);
    if (r >= 0)
        r = read_text(v, "filesHash", &step->files, err);
    if (r < 0)
        return r;
    if (!step->type || (args && !json_is_null(args) && !json_is_array(args)))
        return wrong(err, "steps", "a list of objects with 'type' and 'args'");
    if (n > *left)
        return wrong(err, "steps", "shorter: there are too many arguments");
    const char **words = *next;
    for (size_t i = 0; i < n; i++)
        if (!(words[i] = json_string_value(json_array_get(args, i))))
            return wrong(err, "args", "a list of texts");
    step->args = words;
    step->n_args = n;
    *next += n;
    *left -= n;
    return 0;
}

static int read_steps(const json_t *list, struct e2b_build_body *body, struct err *err)
{
    size_t n = json_array_size(list), left = ARGS_MAX;
    if (list && !json_is_null(list) && !json_is_array(list))
        return wrong(err, "steps", "a list");
    if (n > STEPS_MAX)
        return err_fail(err, FAIL_INVALID_FIELD, "a template may have %d steps", STEPS_MAX);
    body->steps = calloc(n + 1, sizeof(*body->steps));
    body->args = calloc(ARGS_MAX + 1, sizeof(*body->args));
    if (!body->steps || !body->args)
        return err_set(err, ENOMEM, "cannot allocate a build");
    const char **next = body->args;
    for (size_t i = 0; i < n; i++) {
        int r = read_step(json_array_get(list, i), &body->steps[i], &next, &left, err);
        if (r < 0)
            return r;
    }
    body->recipe.steps.steps = body->steps;
    body->recipe.steps.n = n;
    return 0;
}

/* ---- where it begins ---- */

static int read_registry(const json_t *v, struct build_recipe *recipe, struct err *err)
{
    const char *type = NULL;
    if (!v || json_is_null(v))
        return 0;
    int r = read_text(v, "type", &type, err);
    if (r < 0)
        return r;
    if (type && strcmp(type, "registry") == 0) {
        r = read_text(v, "username", &recipe->username, err);
        return r < 0 ? r : read_text(v, "password", &recipe->password, err);
    }
    if (type && strcmp(type, "gcp") == 0) { /* its registries take the key file as a password */
        recipe->username = "_json_key";
        return read_text(v, "serviceAccountJson", &recipe->password, err);
    }
    if (type && strcmp(type, "aws") == 0)
        return err_fail(err, FAIL_NOT_SUPPORTED,
                        "this server does not sign in at AWS itself; give the user name AWS and "
                        "the password that `aws ecr get-login-password` prints");
    return wrong(err, "fromImageRegistry", "of the type registry, gcp or aws");
}

/* A template of ours by that name; else an image that is known by it. */
static int read_template(struct request *req, const char *name, struct template_recipe *recipe,
                         struct err *err)
{
    struct template t = { 0 };
    struct image image;
    name = e2b_known_name(req, name);
    if (template_get(req->core, req->owner, name, &t, NULL) >= 0)
        recipe->template = name;
    else if (image_resolve(req->core, req->owner, name, &image, NULL, NULL) >= 0)
        recipe->image = name;
    template_done(&t);
    return recipe->template || recipe->image
               ? 0
               : err_fail(err, FAIL_TEMPLATE_NOT_FOUND, "template '%.128s' not found%s", name,
                          image_cure(name));
}

static int read_base(struct request *req, const json_t *object, struct template_recipe *recipe,
                     struct err *err)
{
    const char *image, *template = NULL;
    int r = read_text(object, "fromImage", &image, err);
    if (r >= 0)
        r = read_text(object, "fromTemplate", &template, err);
    if (r < 0)
        return r;
    if ((image && *image) == (template && *template))
        return err_fail(err, FAIL_INVALID_FIELD,
                        "exactly one of 'fromImage' and 'fromTemplate' must be given");
    if (template && *template)
        return read_template(req, template, recipe, err);
    recipe->image = e2b_image_name(image);
    if (!image_name_valid(recipe->image) && !strchr(recipe->image, '@'))
        return wrong(err, "fromImage", "the name of an image");
    return read_registry(json_object_get(object, "fromImageRegistry"), &recipe->steps, err);
}

/* ---- what runs ---- */

static const char shell[] = "if [ -x /bin/bash ]; then exec /bin/bash -l -c \"$1\"; fi\n"
                            "exec /bin/sh -l -c \"$1\"";

static int set_command(const char *text, char ***ret_argv, struct err *err)
{
    static const char *const words[] = { "/bin/sh", "-c", shell, "sh" };
    size_t n = ARRAY_LEN(words);
    char **argv = calloc(n + 2, sizeof(*argv));
    bool whole = argv != NULL;
    for (size_t i = 0; whole && i <= n; i++)
        whole = (argv[i] = strdup(i < n ? words[i] : text)) != NULL;
    *ret_argv = argv;
    return whole ? 0 : err_set(err, ENOMEM, "cannot allocate a command");
}

/* What the clients' own waitForPort writes: a probe of ours, for which no image needs `ss`. 0: it is
 * something else. */
static uint32_t port_waited_for(const char *text)
{
    static const char *const forms[] = { "[ -n \"$(ss -Htuln sport = :%u)\" ]",
                                         "ss -tuln | grep :%u" };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        size_t before = strcspn(forms[i], "%");
        const char *after = forms[i] + before + 2;
        char *end;
        if (strncmp(text, forms[i], before) != 0)
            continue;
        unsigned long port = strtoul(text + before, &end, 10);
        if (end > text + before && strcmp(end, after) == 0 && port >= 1 && port <= 65535)
            return (uint32_t)port;
    }
    return 0;
}

static int read_boot(const json_t *object, struct boot *boot, struct err *err)
{
    const char *start, *ready = NULL;
    int r = read_text(object, "startCmd", &start, err);
    if (r >= 0)
        r = read_text(object, "readyCmd", &ready, err);
    if (r >= 0 && start && *start)
        r = set_command(start, &boot->argv, err);
    boot->port = ready ? port_waited_for(ready) : 0;
    if (boot->port) {
        boot->ready = READY_PORT;
    } else if (r >= 0 && ready && *ready) {
        boot->ready = READY_COMMAND;
        r = set_command(ready, &boot->ready_argv, err);
    }
    boot->timeout_ms = READY_MS;
    return r;
}

int e2b_build_body_read(struct request *req, const json_t *object, struct e2b_build_body *ret_body,
                        struct err *err)
{
    struct e2b_build_body body = { 0 };
    body.recipe.steps.user = body.recipe.steps.provision = USER;
    body.recipe.steps.workdir = HOME;
    body.recipe.no_cache = json_is_true(json_object_get(object, "force"));
    body.recipe.trusted = req->admin;
    body.recipe.network = "open"; /* as these clients expect: steps install packages */
    int r = read_base(req, object, &body.recipe, err);
    if (r >= 0)
        r = read_steps(json_object_get(object, "steps"), &body, err);
    if (r >= 0)
        r = read_boot(object, &body.recipe.boot, err);
    if (r < 0) {
        e2b_build_body_done(&body);
        return r;
    }
    *ret_body = body;
    return 0;
}

void e2b_build_body_done(struct e2b_build_body *body)
{
    boot_done(&body->recipe.boot);
    free(body->steps);
    free(body->args);
    *body = (struct e2b_build_body){ 0 };
}
