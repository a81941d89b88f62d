/* One use of a statement, and several as one. */
#include <errno.h>

#include "state/sqlite.h"

int db_fail(int rc, sqlite3 *db, struct err *err, const char *doing)
{
    const char *why = db ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
    switch (rc & 0xff) {
    case SQLITE_CONSTRAINT: return err_set(err, EEXIST, "cannot %s: %s", doing, why);
    case SQLITE_FULL: return err_fail(err, FAIL_NO_SPACE, "cannot %s: the disk is full", doing);
    case SQLITE_NOMEM: return err_set(err, ENOMEM, "cannot %s: %s", doing, why);
    case SQLITE_BUSY: return err_set(err, EBUSY, "cannot %s: %s", doing, why);
    default: return err_set(err, EIO, "cannot %s: %s", doing, why);
    }
}

void query_begin_held(struct query *q, struct conn *conn, enum stmt which)
{
    *q = (struct query){ .conn = conn, .rc = SQLITE_OK, .held = true };
    if (!conn->stmts[which])
        q->rc = sqlite3_prepare_v3(conn->db, stmt_texts[which], -1, SQLITE_PREPARE_PERSISTENT,
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
    int r = q->rc == SQLITE_OK ? 0 : db_fail(q->rc, q->conn->db, err, doing);
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

int db_exec(sqlite3 *db, const char *sql, struct err *err, const char *doing)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : db_fail(rc, db, err, doing);
}

int transaction_begin(struct store *store, struct err *err)
{
    (void)pthread_mutex_lock(&store->writer.lock);
    int r = db_exec(store->writer.db, "BEGIN IMMEDIATE", err, "begin to write");
    if (r < 0)
        (void)pthread_mutex_unlock(&store->writer.lock);
    return r;
}

int transaction_end(struct store *store, bool ok, struct err *err)
{
    int r = ok ? db_exec(store->writer.db, "COMMIT", err, "commit what was written") : 0;
    if (!ok || r < 0)
        (void)sqlite3_exec(store->writer.db, "ROLLBACK", NULL, NULL, NULL);
    (void)pthread_mutex_unlock(&store->writer.lock);
    return r;
}
