#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/attack/attack.h"
#include "cli/object.h"
#include "cli/xmem.h"

#define LIST_MAX (1 << 20)
#define FIELDS 4

/* Start the program from a memory file, with `list`. */
static int start_list(int out, pid_t *ret_child, struct err *err)
{
    _cleanup_fd_ int fd = memfd_create("warren-attack-inside", MFD_CLOEXEC);
    size_t at = 0;
    while (fd >= 0 && at < attack_inside_size) {
        ssize_t n = write(fd, attack_inside_text + at, attack_inside_size - at);
        if (n <= 0)
            return err_set(err, errno, "cannot write the list's program to memory");
        at += (size_t)n;
    }
    pid_t child = fd < 0 ? -1 : fork();
    if (child < 0)
        return err_set(err, errno, "cannot start the list's program");
    if (child == 0) {
        char *const argv[] = { (char[]){ "inside" }, (char[]){ "list" }, NULL };
        char *const env[] = { NULL };
        if (dup2(out, STDOUT_FILENO) >= 0)
            (void)fexecve(fd, argv, env);
        _exit(127);
    }
    *ret_child = child;
    return 0;
}

static void add_row(struct inside_list *list, char *line)
{
    char *fields[FIELDS] = { NULL }, *at = line;
    for (int i = 0; i < FIELDS && at; i++)
        fields[i] = strsep(&at, "\t");
    if (!fields[FIELDS - 1])
        return;
    list->rows = xrealloc(list->rows, list->n + 1, sizeof(*list->rows));
    list->rows[list->n++] = (struct inside_row){ xstrdup(fields[0]), xstrdup(fields[1]),
                                                 xstrdup(fields[2]), xstrdup(fields[3]) };
}

int inside_list(struct inside_list *ret_list, struct err *err)
{
    struct buf text = BUF_INIT(LIST_MAX);
    char block[4096];
    int fds[2], status = 0;
    pid_t child = -1;
    ssize_t n;
    if (pipe(fds) < 0)
        return err_set(err, errno, "cannot make a pipe");
    int r = start_list(fds[1], &child, err);
    (void)close(fds[1]);
    while (r == 0 && (n = read(fds[0], block, sizeof(block))) > 0)
        xputn(&text, block, (size_t)n);
    (void)close(fds[0]);
    if (r == 0 && (waitpid(child, &status, 0) < 0 || status != 0))
        r = err_set(err, EIO, "the program inside does not run here (status %d)", status);
    struct inside_list list = { NULL, 0 };
    for (char *at = text.data, *line; r == 0 && at && (line = strsep(&at, "\n"));)
        add_row(&list, line);
    buf_done(&text);
    if (r == 0)
        *ret_list = list;
    return r;
}

void inside_list_done(struct inside_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->rows[i].name);
        free(list->rows[i].category);
        free(list->rows[i].title);
        free(list->rows[i].flags);
    }
    free(list->rows);
}

/* Parse "held", a tab, and the reason. */
static void read_verdict(char *line, struct trial *t)
{
    line[strcspn(line, "\n")] = '\0';
    char *why = line + strcspn(line, "\t");
    if (*why)
        *why++ = '\0';
    if (strcmp(line, "held") == 0)
        trial_held(t, "%s", why);
    else if (strcmp(line, "not_here") == 0)
        trial_not_here(t, "%s", why);
    else if (strcmp(line, "broke") == 0)
        trial_broke(t, "%s", why);
    else
        trial_error(t, "the program inside said '%.40s'", line);
}

/* Replace a sandbox whose wall broke, or that the attempt was meant to spoil. */
static void clear_up(struct attack *a, const struct inside_row *row, char **box, struct trial *t)
{
    if (t->verdict == TRIAL_BROKE || t->verdict == TRIAL_ERROR || strchr(row->flags, 's'))
        (void)stage_delete(a, &a->red, box, t);
}

/* Did the attempt's whole sandbox end? The daemon may hear of it after the exec that was cut. */
static bool box_ends(struct attack *a, const char *box)
{
    const struct timespec moment = { 0, 100 * 1000 * 1000 };
    for (int i = 0; i < 20; i++) {
        _cleanup_json_ json_t *answer = NULL;
        if (talk_box(a->red.client, "GET", box, "", NULL, &answer) == 200 &&
            strcmp(member_text(answer, "state"), "running") != 0)
            return true;
        (void)nanosleep(&moment, NULL);
    }
    return false;
}

void inside_run(struct attack *a, const struct inside_row *row, struct trial *t)
{
    bool volume = strchr(row->flags, 'v') != NULL;
    const char *box = volume ? stage_volume_box(a, t) : stage_box(a, t);
    int code = 0;
    if (!box)
        return;
    _cleanup_free_ char *text = talk_exec(a->red.client, box, &code, "run", row->name, NULL);
    if (text && *text)
        read_verdict(text, t);
    else if (text && strchr(row->flags, 'd'))
        trial_held(t, "all of it was ended (exit code %d)", code);
    else if (!text && strchr(row->flags, 'd') && box_ends(a, box))
        trial_held(t, "its sandbox was ended");
    else
        trial_error(t, text ? "the attempt said nothing (exit code %d)" : "exec had no answer (%d)",
                    code);
    clear_up(a, row, volume ? &a->volume_box : &a->box, t);
}

/* ---- a neighbour, while a sandbox holds what all share ---- */

static void neighbour(struct attack *a, const struct inside_row *row, const struct latency *alone,
                      struct trial *t)
{
    struct latency now;
    int code = 0;
    _cleanup_free_ char *text =
        talk_exec(a->blue.client, a->blue_box, &code, "get", row->name, NULL);
    struct trial seen = { 0 };
    if (text && *text)
        read_verdict(text, &seen);
    else
        trial_broke(&seen, "a neighbour's command does not start");
    if (seen.verdict != TRIAL_HELD)
        trial_broke(t, "%s", seen.why);
    if (latency_measure(a, a->blue_box, &now) < 0) {
        trial_broke(t, "a neighbour's commands do not start");
        return;
    }
    t->p50 = now.p50_ms / alone->p50_ms;
    t->p99 = now.p99_ms / alone->p99_ms;
    t->p50_ms = now.p50_ms;
    t->p99_ms = now.p99_ms;
    if (t->p50 > 10 && now.p50_ms > 200)
        trial_broke(t, "a neighbour's exec takes %.0f ms instead of %.0f", now.p50_ms,
                    alone->p50_ms);
}

/* Can another sandbox still be made? */
static void newcomer(struct attack *a, struct trial *t)
{
    struct err err = ERR_INIT;
    char *id = NULL;
    if (stage_make(a, &a->blue, NULL, &id, &err) < 0)
        trial_broke(t, "no new sandbox can be made: %.200s", err.msg);
    (void)stage_delete(a, &a->blue, &id, t);
}

void shared_run(struct attack *a, const struct inside_row *row, struct trial *t)
{
    struct err err = ERR_INIT;
    _cleanup_free_ char *line = NULL;
    struct latency alone;
    char *box = NULL;
    int64_t n = 0;
    if (!stage_blue_box(a, t))
        return;
    /* The limits of a client that asks for none. */
    json_t *usual = json_pack("{s:i,s:i}", "memory_mb", 512, "pids", 512);
    if (stage_make(a, &a->red, usual, &box, &err) < 0) {
        trial_error(t, "no sandbox: %s", err.msg);
        return;
    }
    if (latency_measure(a, a->blue_box, &alone) < 0)
        trial_error(t, "a neighbour's commands do not start, even alone");
    else if ((n = talk_start(a->red.client, box, &line, "hold", row->name, "40", NULL)) ==
             -ETIMEDOUT)
        trial_error(t, "it did not say what it took");
    else if (n < 0)
        trial_held(t, "it was ended before it had anything"); /* such as out of memory */
    if (!t->said || t->verdict == TRIAL_HELD) {
        const char *taken = line ? strchr(line, '\t') : NULL;
        neighbour(a, row, &alone, t);
        newcomer(a, t);
        trial_held(t, "%.*s taken; a neighbour still gets its own",
                   taken ? (int)strcspn(taken + 1, "\t") : 4, taken ? taken + 1 : "none");
    }
    (void)stage_delete(a, &a->red, &box, t);
}
