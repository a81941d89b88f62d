#include "state/schema.h"

#include "base/cleanup.h"

/* `spec` is the last column: it can be large, and a walk over the others then never reads it. */
static const char first[] =
    "CREATE TABLE sandboxes ("
    " id TEXT PRIMARY KEY,"
    " owner TEXT NOT NULL,"
    " name TEXT,"
    " state TEXT NOT NULL,"
    " cause TEXT NOT NULL,"
    " tree TEXT NOT NULL,"
    " created_ms BIGINT NOT NULL,"
    " started_ms BIGINT NOT NULL,"
    " stopped_ms BIGINT NOT NULL,"
    " expires_ms BIGINT NOT NULL,"
    " last_active_ms BIGINT NOT NULL,"
    " ended_ms BIGINT NOT NULL,"
    " spec TEXT NOT NULL);"
    /* Few and partial: each index that a row is in costs its every write. */
    "CREATE UNIQUE INDEX sandboxes_name ON sandboxes (owner, name)"
    " WHERE name IS NOT NULL AND ended_ms = 0;"
    "CREATE INDEX sandboxes_gone_name ON sandboxes (owner, name)"
    " WHERE name IS NOT NULL AND ended_ms > 0;"
    "CREATE INDEX sandboxes_gone ON sandboxes (ended_ms) WHERE ended_ms > 0;"
    "CREATE TABLE images ("
    " name TEXT PRIMARY KEY,"
    " tree TEXT NOT NULL,"
    " digest TEXT NOT NULL,"
    " size_bytes BIGINT NOT NULL,"
    " created_ms BIGINT NOT NULL);"
    "CREATE TABLE keys ("
    " id TEXT PRIMARY KEY,"
    " owner TEXT NOT NULL,"
    " name TEXT NOT NULL,"
    " hash TEXT NOT NULL UNIQUE,"
    " created_ms BIGINT NOT NULL,"
    " last_used_ms BIGINT NOT NULL);"
    "CREATE TABLE events ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " time_ms BIGINT NOT NULL,"
    " owner TEXT NOT NULL,"
    " sandbox TEXT NOT NULL,"
    " type TEXT NOT NULL,"
    " data TEXT NOT NULL);";

static const char teams[] = "CREATE TABLE teams ("
                            " name TEXT PRIMARY KEY,"
                            " created_ms BIGINT NOT NULL,"
                            " sandboxes BIGINT NOT NULL,"
                            " cpu_millis BIGINT NOT NULL,"
                            " memory_mb BIGINT NOT NULL,"
                            " disk_mb BIGINT NOT NULL);"
                            "ALTER TABLE keys ADD COLUMN role TEXT NOT NULL DEFAULT 'member';";

const char *const schema_sqlite[] = { first, teams };
const size_t schema_sqlite_steps = ARRAY_LEN(schema_sqlite);
