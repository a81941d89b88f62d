#include "state/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "state/schema.h"

#define PATH_SIZE 4096
#define BUSY_TIMEOUT_MS 10000 /* only our own two connections and a curious operator compete */
#define WAL_PAGES_MAX 4000    /* 16 MiB: moving it costs two fsyncs, so not too often */
#define LOCK_WAIT_MS 3000     /* a killed daemon's memory may take a moment to go */
#define LOCK_POLL_US 20000
#define STORE_COPY_SUFFIX ".copy"

static int schema_version(sqlite3 *db, struct err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = 'schema'", -1, &st, NULL);
    if (rc != SQLITE_OK)
        return db_fail(rc, db, err, "read the schema's version");
    rc = sqlite3_step(st);
    int version = rc == SQLITE_ROW ? sqlite3_column_int(st, 0) : 0;
    (void)sqlite3_finalize(st);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return db_fail(rc, db, err, "read the schema's version");
    return version;
}

static int migrate(sqlite3 *db, struct err *err)
{
    int r =
        db_exec(db, "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
                err, "make the first table");
    if (r < 0)
        return r;
    int version = schema_version(db, err);
    if (version < 0)
        return version;
    if ((size_t)version > schema_sqlite_steps)
        return err_set(err, EPROTO,
                       "the state is of version %d and this program knows up to %zu: a newer "
                       "warrend made it",
                       version, schema_sqlite_steps);
    for (size_t step = (size_t)version; step < schema_sqlite_steps; step++) {
        char mark[128];
        int n = snprintf(mark, sizeof(mark),
                         "INSERT INTO meta (key, value) VALUES ('schema', '%zu')"
                         " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                         step + 1);
        if (n < 0 || (size_t)n >= sizeof(mark))
            return err_set(err, EOVERFLOW, "cannot write the schema's version");
        r = db_exec(db, "BEGIN IMMEDIATE", err, "begin a migration");
        if (r < 0)
            return r;
        r = db_exec(db, schema_sqlite[step], err, "change the tables");
        if (r >= 0)
            r = db_exec(db, mark, err, "record the schema's version");
        if (r >= 0)
            r = db_exec(db, "COMMIT", err, "commit a migration");
        if (r < 0) {
            (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
            return r;
        }
    }
    return 0;
}

static int same_path(sqlite3_vfs *vfs, const char *path, int size, char *out)
{
    return snprintf(out, (size_t)size, "%s", path) < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

/* The engine's own view of files, but for one thing: it would resolve every link of a path, and the
 * daemon reaches its directory through one (/proc/self/fd/N) because the way there by name may be
 * closed to it. */
static const char *plain_paths(void)
{
    static sqlite3_vfs vfs; /* registered once, before the first thread */
    if (!vfs.zName) {
        const sqlite3_vfs *usual = sqlite3_vfs_find(NULL);
        if (!usual)
            return NULL;
        vfs = *usual;
        vfs.zName = "warren";
        vfs.pNext = NULL;
        vfs.xFullPathname = same_path;
        if (sqlite3_vfs_register(&vfs, 0) != SQLITE_OK)
            vfs.zName = NULL;
    }
    return vfs.zName;
}

static int conn_open(struct conn *c, const char *path, struct err *err)
{
    int rc = sqlite3_open_v2(path, &c->db,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                             plain_paths());
    if (rc != SQLITE_OK)
        return err_wrap(err, db_fail(rc, c->db, err, "open the state"), "'%s'", path);
    (void)sqlite3_busy_timeout(c->db, BUSY_TIMEOUT_MS);
    return db_exec(c->db,
                   "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                   " PRAGMA temp_store = MEMORY",
                   err, "set the state up");
}

static void conn_close(struct conn *c)
{
    for (size_t i = 0; i < STMT_COUNT; i++)
        (void)sqlite3_finalize(c->stmts[i]);
    (void)sqlite3_close(c->db);
    (void)pthread_mutex_destroy(&c->lock);
}

/* Replaces SQLite's own hook, which would move the log, and fsync, inside whatever request
 * happens to fill it; store_tidy does that from a thread that may wait. */
static int on_commit(void *ctx, sqlite3 *db, const char *which, int pages)
{
    struct store *store = ctx;
    atomic_store(&store->wal_pages, pages);
    return SQLITE_OK;
}

static int take_lock(const char *dir, int *ret_fd, struct err *err)
{
    char path[PATH_SIZE];
    int n = snprintf(path, sizeof(path), "%s/lock", dir);
    if (n < 0 || (size_t)n >= sizeof(path))
        return err_set(err, ENAMETOOLONG, "the path '%s' is too long", dir);
    _cleanup_fd_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_set(err, errno, "cannot open '%s'", path);
    int64_t until = clock_mono_ms() + LOCK_WAIT_MS;
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_set(err, errno, "cannot lock '%s'", path);
        if (clock_mono_ms() >= until)
            return err_set(err, EBUSY, "another daemon uses '%s'", dir);
        (void)usleep(LOCK_POLL_US);
    }
    *ret_fd = take_fd(fd);
    return 0;
}

int store_open(const char *dir, struct store **ret_store, struct err *err)
{
    _cleanup_(store_closep) struct store *store = calloc(1, sizeof(*store));
    if (!store)
        return err_set(err, ENOMEM, "cannot allocate the state");
    store->lock_fd = -1;
    (void)pthread_mutex_init(&store->writer.lock, NULL);
    (void)pthread_mutex_init(&store->reader.lock, NULL);

    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot make '%s'", dir);
    int r = take_lock(dir, &store->lock_fd, err);
    if (r < 0)
        return r;
    char path[PATH_SIZE];
    int n = snprintf(path, sizeof(path), "%s/warren.db", dir);
    if (n < 0 || (size_t)n >= sizeof(path))
        return err_set(err, ENAMETOOLONG, "the path '%s' is too long", dir);
    r = conn_open(&store->writer, path, err);
    if (r < 0)
        return r;
    (void)sqlite3_wal_hook(store->writer.db, on_commit, store);
    r = migrate(store->writer.db, err);
    if (r < 0)
        return r;
    r = conn_open(&store->reader, path, err);
    if (r < 0)
        return r;
    *ret_store = take_ptr(store);
    return 0;
}

/* On a connection of its own: it lasts, and nobody waits for it. */
int store_copy(struct store *store, struct err *err)
{
    struct conn c = { .lock = PTHREAD_MUTEX_INITIALIZER };
    char to[PATH_SIZE];
    const char *path = sqlite3_db_filename(store->reader.db, "main");
    int n = snprintf(to, sizeof(to), "%s" STORE_COPY_SUFFIX, path);
    if (n < 0 || (size_t)n >= sizeof(to))
        return err_set(err, ENAMETOOLONG, "the path '%s' is too long", path);
    if (unlink(to) < 0 && errno != ENOENT)
        return err_set(err, errno, "cannot remove '%s'", to);
    int r = conn_open(&c, path, err);
    char *sql = r < 0 ? NULL : sqlite3_mprintf("VACUUM INTO %Q", to);
    if (r >= 0)
        r = sql ? db_exec(c.db, sql, err, "copy the state")
                : err_set(err, ENOMEM, "cannot allocate a statement");
    sqlite3_free(sql);
    conn_close(&c);
    if (r < 0)
        (void)unlink(to);
    return r;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    conn_close(&store->reader);
    conn_close(&store->writer);
    if (store->lock_fd >= 0)
        (void)close(store->lock_fd);
    free(store);
}

int store_tidy(struct store *store, struct err *err)
{
    if (atomic_load(&store->wal_pages) < WAL_PAGES_MAX)
        return 0;
    /* Passive, and on the reading connection: writers go on meanwhile. */
    (void)pthread_mutex_lock(&store->reader.lock);
    int rc =
        sqlite3_wal_checkpoint_v2(store->reader.db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    (void)pthread_mutex_unlock(&store->reader.lock);
    if (rc != SQLITE_OK && rc != SQLITE_BUSY)
        return db_fail(rc, NULL, err, "move the write-ahead log");
    return 0;
}
