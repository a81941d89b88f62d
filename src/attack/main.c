/* warren-attack-inside - the enemy's program: what `warren attack` starts in its sandboxes.
 *
 *     list                 name, category, title and flags of each, with tabs between
 *     run NAME             try it; prints the verdict, a tab, and why
 *     hold NAME SECONDS    take what all share, print "holding" and how many, and keep it
 *     get NAME             ask for a little of the same; prints a verdict like run
 *     serve PORT           answer each HTTP request with its own head
 *     peer ...             the two ends of what passes through a volume (peer.c) */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attack/attempt.h"
#include "attack/peer.h"

static const char *verdict_name(enum verdict v)
{
    return v == VERDICT_HELD ? "held" : v == VERDICT_NOT_HERE ? "not_here" : "broke";
}

static int print_outcome(const struct outcome *o)
{
    (void)printf("%s\t%s\n", verdict_name(o->verdict), o->why);
    return fflush(stdout) == 0 ? 0 : 1;
}

static int run_one(const char *name)
{
    struct outcome o;
    const struct attempt *a = attempt_find(name, NULL);
    if (!a)
        return 2;
    attempt_run(a, &o);
    return print_outcome(&o);
}

static int hold_one(const char *name, const char *seconds)
{
    const struct hold *h = hold_find(name);
    if (!h)
        return 2;
    long n = h->take();
    (void)printf("holding\t%ld\t%s\n", n, n < 0 ? strerror((int)-n) : "");
    (void)fflush(stdout);
    (void)sleep((unsigned)strtoul(seconds, NULL, 10));
    (void)signal(SIGTERM, SIG_IGN);
    (void)kill(0, SIGTERM); /* kill the processes that this one started */
    return 0;
}

static int get_one(const char *name)
{
    struct outcome o = { 0 };
    const struct hold *h = hold_find(name);
    char why[WHY_MAX] = "";
    if (!h)
        return 2;
    if (!h->get || h->get(why, sizeof(why)))
        held(&o, "a neighbour still gets its own");
    else
        broke(&o, "a neighbour gets none: %s", why);
    return print_outcome(&o);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "list") == 0)
        return attempt_list();
    if (argc == 3 && strcmp(argv[1], "run") == 0)
        return run_one(argv[2]);
    if (argc == 4 && strcmp(argv[1], "hold") == 0)
        return hold_one(argv[2], argv[3]);
    if (argc == 3 && strcmp(argv[1], "get") == 0)
        return get_one(argv[2]);
    if (argc >= 3)
        return peer_main(argc - 1, argv + 1);
    (void)fprintf(stderr, "usage: %s list | run NAME | hold NAME SECONDS | get NAME\n", argv[0]);
    return 2;
}
