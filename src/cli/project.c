#include "cli/project.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/object.h"
#include "cli/toml.h"
#include "cli/units.h"
#include "cli/xmem.h"

#define FILE_BYTES_MAX (256 * 1024)
#define NAME_MAX_LEN 63 /* of a sandbox's */

enum kind { TEXT, SIZE, DURATION, REAL, COUNT, TEXTS, PAIRS, PORTS, WORDS };

struct field {
    const char *name;
    enum kind kind;
    size_t offset;
};

#define P(member_) offsetof(struct project, member_)
static const struct field fields[] = {
    { "name", TEXT, P(shape.name) },
    { "image", TEXT, P(shape.image) },
    { "build", TEXT, P(build) },
    { "dockerfile", TEXT, P(dockerfile) },
    { "memory", SIZE, P(shape.memory) },
    { "disk", SIZE, P(shape.disk) },
    { "cpus", REAL, P(shape.cpus) },
    { "pids", COUNT, P(shape.pids) },
    { "user", TEXT, P(shape.user) },
    { "workdir", TEXT, P(shape.workdir) },
    { "volumes", TEXTS, P(shape.volumes) },
    { "net", TEXT, P(shape.net) },
    { "rules", TEXTS, P(shape.rules) },
    { "bind", TEXTS, P(shape.bindings) },
    { "preview", TEXT, P(shape.preview) },
    { "wake", TEXT, P(shape.wake) },
    { "timeout", DURATION, P(shape.timeout) },
    { "on_timeout", TEXT, P(shape.on_timeout) },
    { "idle_timeout", DURATION, P(shape.idle_timeout) },
    { "on_idle", TEXT, P(shape.on_idle) },
    { "freeze_after", DURATION, P(shape.freeze_after) },
    { "restart", TEXT, P(shape.restart) },
    { "copy", TEXTS, P(copy) },
    { "start", WORDS, P(start) },
    { "ports", PORTS, P(ports) },
    { "env", PAIRS, P(shape.env) },
};

/* What a key takes, for who wrote something else. */
static const char *const takes[] = {
    [TEXT] = "text in quotes",
    [SIZE] = "a size such as \"512m\" or \"2g\"",
    [DURATION] = "a time such as \"30s\" or \"1h30m\"",
    [REAL] = "a number",
    [COUNT] = "a whole number",
    [TEXTS] = "a list of texts: [\"...\", \"...\"]",
    [PAIRS] = "a table: [env], and below it NAME = \"value\"",
    [PORTS] = "a list of ports: [8000]",
    [WORDS] = "a command for a shell in quotes, or a list of words",
};

/* ---- values ---- */

/* Text that is made of what the file has; lives as long as the project. */
static const char *keep(struct project *p, char *text)
{
    p->made = xrealloc(p->made, p->nmade + 1, sizeof(*p->made));
    return p->made[p->nmade++] = text;
}

static int put_text(const json_t *v, const char **ret)
{
    if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
        return -EINVAL;
    *ret = json_string_value(v);
    return 0;
}

static int put_number(const json_t *v, int64_t unit, int (*parse)(const char *, int64_t *),
                      struct opt_number *ret)
{
    const char *text = json_string_value(v);
    int64_t n = json_integer_value(v);
    ret->set = true;
    if (text)
        return parse ? parse(text, &ret->v) : -EINVAL;
    if (!json_is_integer(v) || n < 0 || n > INT64_MAX / unit)
        return -EINVAL;
    ret->v = n * unit;
    return 0;
}

static int put_real(const json_t *v, struct opt_real *ret)
{
    if (!json_is_number(v) || json_number_value(v) < 0)
        return -EINVAL;
    *ret = (struct opt_real){ true, json_number_value(v) };
    return 0;
}

static int put_texts(const json_t *v, struct opt_list *ret)
{
    const json_t *one;
    size_t i;
    if (!json_is_array(v))
        return -EINVAL;
    ret->items = xcalloc(json_array_size(v), sizeof(*ret->items));
    json_array_foreach(v, i, one) {
        if (put_text(one, &ret->items[i]) < 0)
            return -EINVAL;
        ret->n++;
    }
    return 0;
}

static int put_pairs(struct project *p, const json_t *v, struct opt_list *ret)
{
    const char *name, *text;
    json_t *one;
    if (!json_is_object(v))
        return -EINVAL;
    ret->items = xcalloc(json_object_size(v), sizeof(*ret->items));
    json_object_foreach((json_t *)(uintptr_t)v, name, one) {
        if (put_text(one, &text) < 0 || strchr(name, '='))
            return -EINVAL;
        ret->items[ret->n++] = keep(p, xasprintf("%s=%s", name, text));
    }
    return 0;
}

static int put_ports(struct project *p, const json_t *v)
{
    const json_t *one;
    size_t i;
    if (!json_is_array(v) || json_array_size(v) > PROJECT_PORTS_MAX)
        return -EINVAL;
    json_array_foreach(v, i, one) {
        int64_t n = json_integer_value(one);
        if (n < 1 || n > 65535)
            return -EINVAL;
        p->ports[p->nports++] = n;
    }
    return 0;
}

static int put_start(struct project *p, const json_t *v)
{
    struct opt_list words = { 0 };
    int r = json_is_array(v) && json_array_size(v) > 0 ? put_texts(v, &words) : -EINVAL;
    free(words.items);
    if (r == 0)
        p->start = json_copy((json_t *)(uintptr_t)v);
    else if (json_is_string(v))
        p->start = json_pack("[s,s,O]", "/bin/sh", "-c", v);
    return p->start ? 0 : -EINVAL;
}

static int put_field(struct project *p, const struct field *f, const json_t *v)
{
    void *at = (char *)p + f->offset;
    switch (f->kind) {
    case TEXT: return put_text(v, at);
    case SIZE: return put_number(v, 1 << 20, size_parse, at);
    case DURATION: return put_number(v, 1000, duration_parse, at);
    case COUNT: return put_number(v, 1, NULL, at);
    case REAL: return put_real(v, at);
    case TEXTS: return put_texts(v, at);
    case PAIRS: return put_pairs(p, v, at);
    case PORTS: return put_ports(p, v);
    case WORDS: return put_start(p, v);
    }
    return -EINVAL;
}

/* ---- the whole ---- */

static const struct field *find_field(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

static int64_t line_of(const json_t *lines, const char *name)
{
    const json_t *at = json_object_get(lines, name);
    return json_is_object(at) ? member_int(at, "") : json_integer_value(at);
}

static int refuse_unknown(const struct project *p, int64_t line, const char *name, struct err *err)
{
    const char *names[ARRAY_LEN(fields)];
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        names[i] = fields[i].name;
    const char *near = nearest(name, names, ARRAY_LEN(names));
    return err_set(err, EINVAL, "%s:%lld: there is no key '%s'%s%s%s", p->file, (long long)line,
                   name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int take_all(struct project *p, const json_t *lines, struct err *err)
{
    const char *name;
    json_t *v;
    json_object_foreach(p->root, name, v) {
        const struct field *f = find_field(name);
        if (!f)
            return refuse_unknown(p, line_of(lines, name), name, err);
        if (put_field(p, f, v) < 0)
            return err_set(err, EINVAL, "%s:%lld: '%s' takes %s", p->file,
                           (long long)line_of(lines, name), name, takes[f->kind]);
    }
    return 0;
}

static int check_copies(const struct project *p, const json_t *lines, struct err *err)
{
    for (size_t i = 0; i < p->copy.n; i++) {
        const char *text = p->copy.items[i], *colon = strrchr(text, ':');
        if (!colon || colon == text || !colon[1])
            return err_set(err, EINVAL, "%s:%lld: 'copy' takes \"FROM:TO\", not '%s'", p->file,
                           (long long)line_of(lines, "copy"), text);
    }
    return 0;
}

static int name_it(struct project *p, struct err *err)
{
    p->name = p->shape.name ? xstrdup(p->shape.name) : project_name_of(p->dir);
    if (!p->name)
        return err_set(err, EINVAL,
                       "%s: name = \"...\" is missing, and the directory's is none for "
                       "a sandbox",
                       p->file);
    p->shape.name = p->name;
    if (p->dockerfile && !p->build)
        p->build = ".";
    if (p->build && !p->shape.image) {
        p->image = xasprintf("project-%s", p->name);
        for (char *c = p->image; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        p->shape.image = p->image;
    } else if (p->shape.image) {
        p->image = xstrdup(p->shape.image);
    }
    return 0;
}

static int read_text(const char *file, struct buf *out, struct err *err)
{
    struct stat st;
    char piece[4096];
    ssize_t n;
    _cleanup_fd_ int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return err_set(err, ENOENT, "there is no '%s'; `warren init` writes one", file);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(err, errno, "cannot open '%s': %s", file, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(err, EINVAL, "'%s' is not a file", file);
    while ((n = read(fd, piece, sizeof(piece))) > 0)
        if (buf_append(out, piece, (size_t)n) < 0)
            return err_set(err, EFBIG, "'%s' is over %d bytes", file, FILE_BYTES_MAX);
    return n < 0 ? err_set(err, errno, "cannot read '%s': %s", file, strerror(errno)) : 0;
}

int project_read(const char *file, struct project **ret_project, struct err *err)
{
    _cleanup_(project_freep) struct project *p = xcalloc(1, sizeof(*p));
    _cleanup_(buf_done) struct buf text = BUF_INIT(FILE_BYTES_MAX);
    _cleanup_(json_decrefp) json_t *lines = NULL;
    p->file = xstrdup(file ? file : PROJECT_FILE);
    const char *slash = strrchr(p->file, '/');
    _cleanup_free_ char *dir =
        slash ? xstrndup(p->file, (size_t)(slash - p->file) + 1) : xstrdup(".");
    int r = read_text(p->file, &text, err);
    if (r < 0)
        return r;
    p->dir = realpath(dir, NULL);
    if (!p->dir)
        return err_set(err, errno, "cannot find the directory of '%s'", p->file);
    r = toml_parse(text.data ? text.data : "", text.len, &p->root, &lines, err);
    if (r < 0)
        return err_wrap(err, r, "%s", p->file);
    r = take_all(p, lines, err);
    if (r == 0)
        r = check_copies(p, lines, err);
    if (r == 0)
        r = name_it(p, err);
    if (r < 0)
        return r;
    *ret_project = take_ptr(p);
    return 0;
}

void project_free(struct project *p)
{
    if (!p)
        return;
    struct opt_list *const lists[] = { &p->shape.env, &p->shape.rules, &p->shape.volumes,
                                       &p->shape.bindings, &p->copy };
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        free(lists[i]->items);
    for (size_t i = 0; i < p->nmade; i++)
        free(p->made[i]);
    free(p->made);
    json_decref(p->start);
    json_decref(p->root);
    free(p->image);
    free(p->name);
    free(p->file);
    free(p->dir);
    free(p);
}

char *project_name_of(const char *dir)
{
    const char *slash = strrchr(dir, '/');
    char *name = xstrndup(slash ? slash + 1 : dir, NAME_MAX_LEN);
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
            *c = '-';
    size_t skip = strspn(name, "._-");
    memmove(name, name + skip, strlen(name + skip) + 1);
    if (*name)
        return name;
    free(name);
    return NULL;
}
