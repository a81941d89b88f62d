/* warren-archive - reads or writes one archive for warrend, with no rights of its own.
 *
 * Archives are the most complicated thing a stranger can send, so they are parsed here: a process
 * that holds three descriptors and can open nothing. 0 or 1 is the archive, 3 the connection to
 * the sandbox's init with its operation already asked for, 4 takes the report: one frame, OK or
 * ERROR (before an unpack's OK, an ENTRY for each file that was made). With `chunk` and `join` it cuts a stream into
 * pieces and puts it together again (wire/chunks.h). */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "archive/chunk.h"
#include "archive/confine.h"
#include "archive/pack.h"
#include "archive/tree.h"
#include "archive/unpack.h"
#include "base/oom.h"

static int run_chunks(bool join)
{
    struct err err = ERR_INIT;
    struct chunk *c = NULL;
    int r = chunk_new(&c, &err);
    if (r >= 0)
        r = confine(&err);
    if (r >= 0)
        r = join ? chunk_join(c, &err) : chunk_write(c, &err);
    chunk_free(c);
    return r < 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    (void)oom_set(0, OOM_JOB);
    if (argc == 2 && (strcmp(argv[1], "chunk") == 0 || strcmp(argv[1], "join") == 0)) {
        (void)prctl(PR_SET_NAME, "warren-archive");
        (void)signal(SIGPIPE, SIG_IGN);
        return run_chunks(strcmp(argv[1], "join") == 0);
    }
    bool packing = argc == 3 && strcmp(argv[1], "pack") == 0;

    if (!packing && (argc != 3 || strcmp(argv[1], "unpack") != 0)) {
        (void)fprintf(stderr, "usage: warren-archive pack|unpack FORMAT, chunk, join\n"
                              "warrend starts this program; it is of no use by hand\n");
        return 2;
    }
    (void)prctl(PR_SET_NAME, "warren-archive"); /* it was started by a descriptor's number */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)setlocale(LC_CTYPE, "C.UTF-8"); /* names in archives are that, or bytes */
    (void)setenv("TZ", "UTC0", 1);        /* zip has local times; no file is read for this one */
    tzset();
    int r = confine(&err);
    if (r >= 0)
        r = packing ? pack(argv[2], STDOUT_FILENO, &err) : unpack(argv[2], STDIN_FILENO, &err);
    if (r < 0)
        tree_report_error(&err);
    return r < 0 ? 1 : 0;
}
