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

#define SANDBOX_COLS                                                                        \
    "id, owner, name, state, cause, tree, created_ms, started_ms, stopped_ms, expires_ms, " \
    "last_active_ms, ended_ms, spec"

#define USAGE_SUMS "sum(cpu_us), total(memory), total(disk), sum(rx_bytes), sum(tx_bytes)"
#define USAGE_WHERE "owner = ?1 AND hour >= ?2 AND hour < ?3 AND (?4 IS NULL OR sandbox = ?4)"
#define LAYER_COLS                                                                           \
    "chain, parent, diff_id, tree, digest, media_type, compressed_bytes, size_bytes, kept, " \
    "created_ms"

static const char *const texts[STMT_COUNT] = {
    [STMT_SANDBOX_ADD] = "INSERT INTO sandboxes (" SANDBOX_COLS ")"
                         " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [STMT_SANDBOX_SAVE] = "UPDATE sandboxes SET name = ?, state = ?, cause = ?, tree = ?,"
                          " started_ms = ?, stopped_ms = ?, expires_ms = ?, last_active_ms = ?,"
                          " ended_ms = ?, spec = ? WHERE id = ?",
    [STMT_SANDBOX_MARK] = "UPDATE sandboxes SET state = ?, cause = ?, started_ms = ?,"
                          " stopped_ms = ?, expires_ms = ?, last_active_ms = ?, ended_ms = ?"
                          " WHERE id = ?",
    [STMT_SANDBOX_ACTIVE] = "UPDATE sandboxes SET last_active_ms = ? WHERE id = ?",
    [STMT_SANDBOX_LIVE] = "SELECT " SANDBOX_COLS " FROM sandboxes WHERE ended_ms = 0",
    [STMT_SANDBOX_GONE_ID] = "SELECT " SANDBOX_COLS " FROM sandboxes"
                             " WHERE id = ? AND owner = ? AND ended_ms > 0",
    [STMT_SANDBOX_GONE_NAME] = "SELECT " SANDBOX_COLS " FROM sandboxes"
                               " WHERE name = ? AND owner = ? AND name IS NOT NULL"
                               " AND ended_ms > 0 ORDER BY ended_ms DESC LIMIT 1",
    [STMT_SANDBOX_GONE_ASC] = "SELECT " SANDBOX_COLS " FROM sandboxes"
                              " WHERE owner = ? AND ended_ms > 0"
                              " AND (created_ms > ? OR (created_ms = ? AND id > ?))"
                              " ORDER BY created_ms, id",
    [STMT_SANDBOX_GONE_DESC] = "SELECT " SANDBOX_COLS " FROM sandboxes"
                               " WHERE owner = ? AND ended_ms > 0"
                               " AND (created_ms < ? OR (created_ms = ? AND id < ?))"
                               " ORDER BY created_ms DESC, id DESC",
    [STMT_SANDBOX_GONE_NTH] = "SELECT ended_ms FROM sandboxes WHERE ended_ms > 0"
                              " ORDER BY ended_ms DESC LIMIT 1 OFFSET ?",
    [STMT_SANDBOX_PRUNE] = "DELETE FROM sandboxes WHERE id IN (SELECT id FROM sandboxes"
                           " WHERE ended_ms > 0 AND ended_ms < ? LIMIT 500)",
    [STMT_LAYER_PUT] = "INSERT INTO image_layers (" LAYER_COLS ")"
                       " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (chain) DO UPDATE SET"
                       " tree = excluded.tree, digest = excluded.digest,"
                       " media_type = excluded.media_type,"
                       " compressed_bytes = excluded.compressed_bytes,"
                       " size_bytes = excluded.size_bytes, kept = excluded.kept",
    [STMT_LAYER_REMOVE] = "DELETE FROM image_layers WHERE chain = ? AND tree = ?",
    [STMT_LAYER_EACH] = "SELECT " LAYER_COLS " FROM image_layers",
    [STMT_CONTENT_PUT] = "INSERT INTO image_contents (digest, chain, created_ms, manifest, config)"
                         " VALUES (?, ?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING",
    [STMT_CONTENT_REMOVE] = "DELETE FROM image_contents WHERE digest = ?",
    [STMT_CONTENT_EACH] = "SELECT digest, chain, created_ms, manifest, config FROM image_contents",
    [STMT_NAME_PUT] = "INSERT INTO image_names (owner, name, digest, public, created_ms)"
                      " VALUES (?, ?, ?, ?, ?) ON CONFLICT (owner, name) DO UPDATE SET"
                      " digest = excluded.digest, public = excluded.public,"
                      " created_ms = excluded.created_ms",
    [STMT_NAME_REMOVE] = "DELETE FROM image_names WHERE owner = ? AND name = ?",
    [STMT_NAME_EACH] = "SELECT owner, name, digest, public, created_ms FROM image_names"
                       " ORDER BY name, owner",
    [STMT_IMAGE_REMOVE] = "DELETE FROM images WHERE name = ?",
    [STMT_IMAGE_EACH] = "SELECT name, tree, digest, size_bytes, created_ms FROM images"
                        " ORDER BY name",
    [STMT_KEY_ADD] = "INSERT INTO keys (id, owner, name, hash, created_ms, last_used_ms, role)"
                     " VALUES (?, ?, ?, ?, ?, ?, ?)",
    [STMT_KEY_USED] = "UPDATE keys SET last_used_ms = ? WHERE id = ?",
    [STMT_KEY_ROLE] = "UPDATE keys SET role = ? WHERE id = ?",
    [STMT_KEY_REMOVE] = "DELETE FROM keys WHERE id = ?",
    [STMT_KEY_EACH] = "SELECT id, owner, name, hash, created_ms, last_used_ms, role FROM keys"
                      " ORDER BY created_ms, id",
    [STMT_TEAM_PUT] = "INSERT INTO teams (name, created_ms, sandboxes, cpu_millis, memory_mb,"
                      " disk_mb) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET"
                      " sandboxes = excluded.sandboxes, cpu_millis = excluded.cpu_millis,"
                      " memory_mb = excluded.memory_mb, disk_mb = excluded.disk_mb",
    [STMT_TEAM_REMOVE] = "DELETE FROM teams WHERE name = ?",
    [STMT_TEAM_KEYS_REMOVE] = "DELETE FROM keys WHERE owner = ?",
    [STMT_TEAM_RECORDS_REMOVE] = "DELETE FROM sandboxes WHERE owner = ? AND ended_ms > 0",
    [STMT_TEAM_EVENTS_REMOVE] = "DELETE FROM events WHERE owner = ?",
    [STMT_TEAM_EACH] = "SELECT name, created_ms, sandboxes, cpu_millis, memory_mb, disk_mb"
                       " FROM teams ORDER BY name",
    [STMT_EVENT_ADD] = "INSERT INTO events (time_ms, owner, sandbox, type, data)"
                       " VALUES (?, ?, ?, ?, ?)",
    [STMT_EVENT_EACH] = "SELECT seq, time_ms, owner, sandbox, type, data FROM events"
                        " WHERE seq > ? AND owner = ? ORDER BY seq LIMIT ?",
    [STMT_EVENT_OF] = "SELECT seq, time_ms, owner, sandbox, type, data FROM events"
                      " WHERE seq > ? AND owner = ? AND sandbox = ? ORDER BY seq LIMIT ?",
    [STMT_EVENT_LAST] = "SELECT max(seq) FROM events",
    [STMT_EVENT_PRUNE] = "DELETE FROM events WHERE seq <= (SELECT max(seq) FROM events) - ?"
                         " AND seq < (SELECT min(seq) FROM events) + 1000",
    [STMT_TEMPLATE_PUT] =
        "INSERT OR REPLACE INTO templates (owner, name, id, public, warm,"
        " created_ms, updated_ms, ports, spec) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [STMT_TEMPLATE_REMOVE] = "DELETE FROM templates WHERE owner = ? AND name = ?",
    [STMT_TEMPLATE_EACH] = "SELECT owner, name, id, public, warm, created_ms, updated_ms, ports,"
                           " spec FROM templates ORDER BY owner, name",
    [STMT_VOLUME_PUT] = "INSERT OR REPLACE INTO volumes (id, owner, name, size_bytes, created_ms)"
                        " VALUES (?, ?, ?, ?, ?)",
    [STMT_VOLUME_REMOVE] = "DELETE FROM volumes WHERE id = ?",
    [STMT_VOLUME_EACH] = "SELECT id, owner, name, size_bytes, created_ms FROM volumes"
                         " ORDER BY created_ms, id",
    [STMT_SECRET_PUT] = "INSERT OR REPLACE INTO secrets (id, owner, name, version, created_ms,"
                        " updated_ms, metadata, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    [STMT_SECRET_REMOVE] = "DELETE FROM secrets WHERE id = ?",
    [STMT_SECRET_EACH] = "SELECT id, owner, name, version, created_ms, updated_ms, metadata, value"
                         " FROM secrets ORDER BY created_ms, id",
    [STMT_TEAM_SECRETS_REMOVE] = "DELETE FROM secrets WHERE owner = ?",
    [STMT_TEMPLATE_BUILD_PUT] =
        "INSERT OR REPLACE INTO template_builds (id, owner, template, tags, step, message, state,"
        " cpu_millis, memory_bytes, disk_bytes, created_ms, updated_ms, finished_ms)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [STMT_TEMPLATE_BUILD_REMOVE] = "DELETE FROM template_builds WHERE id = ?",
    [STMT_TEMPLATE_BUILD_EACH] =
        "SELECT id, owner, template, tags, step, message, state, cpu_millis, memory_bytes,"
        " disk_bytes, created_ms, updated_ms, finished_ms FROM template_builds"
        " ORDER BY created_ms, id",
    [STMT_USAGE_ADD] =
        "INSERT INTO usage (owner, hour, sandbox, cpu_us, memory, disk, rx_bytes, tx_bytes)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (owner, hour, sandbox) DO UPDATE SET"
        " cpu_us = cpu_us + excluded.cpu_us, memory = memory + excluded.memory,"
        " disk = disk + excluded.disk, rx_bytes = rx_bytes + excluded.rx_bytes,"
        " tx_bytes = tx_bytes + excluded.tx_bytes",
    [STMT_USAGE_PRUNE] = "DELETE FROM usage WHERE (owner, hour, sandbox) IN"
                         " (SELECT owner, hour, sandbox FROM usage WHERE hour < ? LIMIT 500)",
    [STMT_USAGE_TOTAL] = "SELECT NULL, NULL, 0, " USAGE_SUMS " FROM usage WHERE " USAGE_WHERE,
    [STMT_USAGE_SANDBOXES] =
        "SELECT sandbox, (SELECT name FROM sandboxes WHERE id = usage.sandbox), 0, " USAGE_SUMS
        " FROM usage WHERE " USAGE_WHERE " AND sandbox > ?5 GROUP BY sandbox ORDER BY sandbox"
        " LIMIT ?6",
    [STMT_USAGE_STEPS] = "SELECT NULL, NULL, hour / ?5 * ?5 AS step, " USAGE_SUMS
                         " FROM usage WHERE " USAGE_WHERE " GROUP BY step ORDER BY step",
    [STMT_TEAM_USAGE_REMOVE] = "DELETE FROM usage WHERE owner = ?",
    [STMT_METER_PUT] = "INSERT OR REPLACE INTO meters (sandbox, at_ms, life_ms, cpu_us,"
                       " memory_bytes, disk_bytes) VALUES (?, ?, ?, ?, ?, ?)",
    [STMT_METER_REMOVE] = "DELETE FROM meters WHERE sandbox = ?",
    [STMT_METER_EACH] = "SELECT sandbox, at_ms, life_ms, cpu_us, memory_bytes, disk_bytes"
                        " FROM meters",
    [STMT_REPLAY_PUT] = "INSERT INTO replays (owner, key, hash, created_ms) VALUES (?, ?, ?, ?)"
                        " ON CONFLICT (owner, key) DO UPDATE SET hash = excluded.hash, made = '',"
                        " status = 0, etag = NULL, body = NULL, created_ms = excluded.created_ms",
    [STMT_REPLAY_MADE] = "UPDATE replays SET made = ? WHERE owner = ? AND key = ?",
    [STMT_REPLAY_DONE] = "UPDATE replays SET status = ?, etag = ?, body = ?"
                         " WHERE owner = ? AND key = ?",
    [STMT_REPLAY_GET] = "SELECT hash, made, status, etag, body, created_ms FROM replays"
                        " WHERE owner = ? AND key = ?",
    [STMT_REPLAY_REMOVE] = "DELETE FROM replays WHERE owner = ? AND key = ?",
    [STMT_REPLAY_PRUNE] = "DELETE FROM replays WHERE created_ms < ?",
    [STMT_REPLAY_TRIM] = "DELETE FROM replays WHERE owner = ? AND key IN (SELECT key FROM replays"
                         " WHERE owner = ? ORDER BY created_ms DESC LIMIT -1 OFFSET ?)",
    [STMT_BUILD_GET] = "SELECT chain FROM build_steps WHERE key = ?",
    [STMT_BUILD_USED] = "UPDATE build_steps SET used_ms = ? WHERE key = ?",
    [STMT_BUILD_PUT] = "INSERT OR REPLACE INTO build_steps (key, chain, used_ms) VALUES (?, ?, ?)",
    [STMT_BUILD_PRUNE] = "DELETE FROM build_steps WHERE key IN (SELECT key FROM build_steps"
                         " ORDER BY used_ms DESC LIMIT -1 OFFSET ?)",
    [STMT_META_GET] = "SELECT value FROM meta WHERE key = ?",
    [STMT_META_SET] = "INSERT INTO meta (key, value) VALUES (?, ?)"
                      " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
};

/* ---- queries ---- */

static int fail(int rc, sqlite3 *db, struct err *err, const char *doing)
{
    const char *why = db ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
    switch (rc & 0xff) {
    case SQLITE_CONSTRAINT: return err_set(err, EEXIST, "cannot %s: %s", doing, why);
    case SQLITE_FULL:
        return err_name(err, ENOSPC, "no_space", "cannot %s: the disk is full", doing);
    case SQLITE_NOMEM: return err_set(err, ENOMEM, "cannot %s: %s", doing, why);
    case SQLITE_BUSY: return err_set(err, EBUSY, "cannot %s: %s", doing, why);
    default: return err_set(err, EIO, "cannot %s: %s", doing, why);
    }
}

void query_begin_held(struct query *q, struct conn *conn, enum stmt which)
{
    *q = (struct query){ .conn = conn, .rc = SQLITE_OK, .held = true };
    if (!conn->stmts[which])
        q->rc = sqlite3_prepare_v3(conn->db, texts[which], -1, SQLITE_PREPARE_PERSISTENT,
                                   &conn->stmts[which], NULL);
    q->st = conn->stmts[which];
}

void query_begin(struct query *q, struct conn *conn, enum stmt which)
{
    (void)pthread_mutex_lock(&conn->lock);
    query_begin_held(q, conn, which);
    q->held = false;
}

static void note(struct query *q, int rc)
{
    if (q->rc == SQLITE_OK)
        q->rc = rc;
}

void query_text(struct query *q, const char *text)
{
    q->bound++;
    if (q->st)
        note(q, text ? sqlite3_bind_text(q->st, q->bound, text, -1, SQLITE_STATIC)
                     : sqlite3_bind_null(q->st, q->bound));
}

void query_int(struct query *q, int64_t v)
{
    q->bound++;
    if (q->st)
        note(q, sqlite3_bind_int64(q->st, q->bound, v));
}

void query_real(struct query *q, double v)
{
    q->bound++;
    if (q->st)
        note(q, sqlite3_bind_double(q->st, q->bound, v));
}

int query_step(struct query *q)
{
    if (q->rc != SQLITE_OK)
        return 0;
    int rc = sqlite3_step(q->st);
    if (rc == SQLITE_ROW)
        return 1;
    if (rc != SQLITE_DONE)
        q->rc = rc;
    return 0;
}

const char *query_col(struct query *q, int col)
{
    return (const char *)sqlite3_column_text(q->st, col);
}

int64_t query_col_int(struct query *q, int col)
{
    return sqlite3_column_int64(q->st, col);
}

double query_col_real(struct query *q, int col)
{
    return sqlite3_column_double(q->st, col);
}

int query_done(struct query *q, struct err *err, const char *doing)
{
    int r = q->rc == SQLITE_OK ? 0 : fail(q->rc, q->conn->db, err, doing);
    if (q->st) {
        (void)sqlite3_reset(q->st);
        (void)sqlite3_clear_bindings(q->st);
    }
    if (!q->held)
        (void)pthread_mutex_unlock(&q->conn->lock);
    return r;
}

int query_run(struct query *q, struct err *err, const char *doing)
{
    while (query_step(q) > 0)
        ;
    return query_done(q, err, doing);
}

/* ---- opening ---- */

static int exec(sqlite3 *db, const char *sql, struct err *err, const char *doing)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : fail(rc, db, err, doing);
}

int transaction_begin(struct store *store, struct err *err)
{
    (void)pthread_mutex_lock(&store->writer.lock);
    int r = exec(store->writer.db, "BEGIN IMMEDIATE", err, "begin to write");
    if (r < 0)
        (void)pthread_mutex_unlock(&store->writer.lock);
    return r;
}

int transaction_end(struct store *store, bool ok, struct err *err)
{
    int r = ok ? exec(store->writer.db, "COMMIT", err, "commit what was written") : 0;
    if (!ok || r < 0)
        (void)sqlite3_exec(store->writer.db, "ROLLBACK", NULL, NULL, NULL);
    (void)pthread_mutex_unlock(&store->writer.lock);
    return r;
}

static int schema_version(sqlite3 *db, struct err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = 'schema'", -1, &st, NULL);
    if (rc != SQLITE_OK)
        return fail(rc, db, err, "read the schema's version");
    rc = sqlite3_step(st);
    int version = rc == SQLITE_ROW ? sqlite3_column_int(st, 0) : 0;
    (void)sqlite3_finalize(st);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return fail(rc, db, err, "read the schema's version");
    return version;
}

static int migrate(sqlite3 *db, struct err *err)
{
    int r = exec(db, "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
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
        r = exec(db, "BEGIN IMMEDIATE", err, "begin a migration");
        if (r < 0)
            return r;
        r = exec(db, schema_sqlite[step], err, "change the tables");
        if (r >= 0)
            r = exec(db, mark, err, "record the schema's version");
        if (r >= 0)
            r = exec(db, "COMMIT", err, "commit a migration");
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
        return err_wrap(err, fail(rc, c->db, err, "open the state"), "'%s'", path);
    (void)sqlite3_busy_timeout(c->db, BUSY_TIMEOUT_MS);
    return exec(c->db,
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
        return fail(rc, NULL, err, "move the write-ahead log");
    return 0;
}
