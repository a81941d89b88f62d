/* sqlite - how the SQLite engine talks to its library; for the files of the engine only.
 *
 * Two connections, each behind a lock of its own: all writes go through one, and reads that may
 * be long (events, records) through the other, which in WAL mode never holds a writer up.
 * Statements are prepared once. A struct query is one use of one: begin, bind in order, then run
 * or step, then done. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <sqlite3.h>

#include "state/store.h"

enum stmt {
    STMT_SANDBOX_ADD,
    STMT_SANDBOX_SAVE,
    STMT_SANDBOX_MARK,
    STMT_SANDBOX_ACTIVE,
    STMT_SANDBOX_LIVE,
    STMT_SANDBOX_GONE_ID,
    STMT_SANDBOX_GONE_NAME,
    STMT_SANDBOX_GONE_ASC,
    STMT_SANDBOX_GONE_DESC,
    STMT_SANDBOX_GONE_NTH,
    STMT_SANDBOX_PRUNE,
    STMT_LAYER_PUT,
    STMT_LAYER_REMOVE,
    STMT_LAYER_EACH,
    STMT_CONTENT_PUT,
    STMT_CONTENT_REMOVE,
    STMT_CONTENT_EACH,
    STMT_NAME_PUT,
    STMT_NAME_REMOVE,
    STMT_NAME_EACH,
    STMT_IMAGE_REMOVE,
    STMT_IMAGE_EACH,
    STMT_KEY_ADD,
    STMT_KEY_USED,
    STMT_KEY_ROLE,
    STMT_KEY_REMOVE,
    STMT_KEY_EACH,
    STMT_TEAM_PUT,
    STMT_TEAM_REMOVE,
    STMT_TEAM_KEYS_REMOVE,
    STMT_TEAM_RECORDS_REMOVE,
    STMT_TEAM_EVENTS_REMOVE,
    STMT_TEAM_EACH,
    STMT_EVENT_ADD,
    STMT_EVENT_EACH,
    STMT_EVENT_OF,
    STMT_EVENT_LAST,
    STMT_EVENT_PRUNE,
    STMT_TEMPLATE_PUT,
    STMT_TEMPLATE_REMOVE,
    STMT_TEMPLATE_EACH,
    STMT_VOLUME_PUT,
    STMT_VOLUME_REMOVE,
    STMT_VOLUME_EACH,
    STMT_VOLUME_CHECKPOINT_PUT,
    STMT_VOLUME_CHECKPOINT_REMOVE,
    STMT_VOLUME_CHECKPOINT_EACH,
    STMT_SECRET_PUT,
    STMT_SECRET_REMOVE,
    STMT_SECRET_EACH,
    STMT_TEAM_SECRETS_REMOVE,
    STMT_LEASE_PUT,
    STMT_LEASE_REMOVE,
    STMT_LEASE_PRUNE,
    STMT_LEASE_EACH,
    STMT_PASS_PUT,
    STMT_PASS_REMOVE,
    STMT_PASS_PRUNE,
    STMT_PASS_EACH,
    STMT_ALIAS_PUT,
    STMT_ALIAS_REMOVE,
    STMT_ALIAS_EACH,
    STMT_CHECKPOINT_PUT,
    STMT_CHECKPOINT_REMOVE,
    STMT_CHECKPOINT_EACH,
    STMT_ARCHIVE_PUT,
    STMT_ARCHIVE_REMOVE,
    STMT_ARCHIVE_EACH,
    STMT_TEMPLATE_BUILD_PUT,
    STMT_TEMPLATE_BUILD_REMOVE,
    STMT_TEMPLATE_BUILD_EACH,
    STMT_USAGE_ADD,
    STMT_USAGE_PRUNE,
    STMT_USAGE_TOTAL,
    STMT_USAGE_SANDBOXES,
    STMT_USAGE_STEPS,
    STMT_TEAM_USAGE_REMOVE,
    STMT_METER_PUT,
    STMT_METER_REMOVE,
    STMT_METER_EACH,
    STMT_REPLAY_PUT,
    STMT_REPLAY_MADE,
    STMT_REPLAY_DONE,
    STMT_REPLAY_GET,
    STMT_REPLAY_REMOVE,
    STMT_REPLAY_PRUNE,
    STMT_REPLAY_TRIM,
    STMT_BUILD_GET,
    STMT_BUILD_USED,
    STMT_BUILD_PUT,
    STMT_BUILD_FORGET,
    STMT_BUILD_OTHER,
    STMT_BUILD_PRUNE,
    STMT_META_GET,
    STMT_META_SET,
    STMT_COUNT,
};

extern const char *const stmt_texts[STMT_COUNT]; /* sqlite_texts.c */

struct conn {
    pthread_mutex_t lock;
    sqlite3 *db;
    sqlite3_stmt *stmts[STMT_COUNT]; /* prepared on first use */
};

struct store {
    struct conn writer, reader;
    _Atomic int wal_pages; /* in the write-ahead log since it was last moved */
    int lock_fd;
};

struct query {
    struct conn *conn;
    sqlite3_stmt *st;
    int rc; /* the first failure, in SQLite's numbers */
    int bound;
    bool held; /* the lock is a transaction's, not the query's own */
};

/* ---- sqlite_query.c ---- */
/* What went wrong, put as "cannot <doing>"; db NULL: the library's words for rc. */
int db_fail(int rc, sqlite3 *db, struct err *err, const char *doing);
int db_exec(sqlite3 *db, const char *sql, struct err *err, const char *doing);

void query_begin(struct query *q, struct conn *conn, enum stmt which);      /* takes conn's lock */
void query_begin_held(struct query *q, struct conn *conn, enum stmt which); /* has it already */
void query_text(struct query *q, const char *text);                         /* borrows until done */
void query_int(struct query *q, int64_t v);
void query_real(struct query *q, double v);
int query_step(struct query *q);                 /* 1: a row; 0: no more, or failed */
const char *query_col(struct query *q, int col); /* NULL for NULL */
int64_t query_col_int(struct query *q, int col);
double query_col_real(struct query *q, int col);
/* Ends it and gives the lock back; 0, or what failed, put as "cannot <doing>". */
int query_done(struct query *q, struct err *err, const char *doing);
int query_run(struct query *q, struct err *err, const char *doing); /* step to the end, done */

/* Many writes as one; takes the writer's lock until the end of it, which undoes them if !ok. */
int transaction_begin(struct store *store, struct err *err);
int transaction_end(struct store *store, bool ok, struct err *err);
