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

/* Hours since 1970; memory and disk in GiB-seconds. `meters` is how far each live sandbox has been
 * counted, and the counters as they were then: written with what they added, or not at all. */
static const char usage[] =
    "CREATE TABLE usage ("
    " owner TEXT NOT NULL,"
    " hour BIGINT NOT NULL,"
    " sandbox TEXT NOT NULL,"
    " cpu_us BIGINT NOT NULL,"
    " memory DOUBLE PRECISION NOT NULL,"
    " disk DOUBLE PRECISION NOT NULL,"
    " rx_bytes BIGINT NOT NULL,"
    " tx_bytes BIGINT NOT NULL,"
    " PRIMARY KEY (owner, hour, sandbox)) WITHOUT ROWID;"
    "CREATE TABLE meters ("
    " sandbox TEXT PRIMARY KEY,"
    " at_ms BIGINT NOT NULL,"
    " life_ms BIGINT NOT NULL,"
    " cpu_us BIGINT NOT NULL,"
    " memory_bytes BIGINT NOT NULL,"
    " disk_bytes BIGINT NOT NULL) WITHOUT ROWID;";

/* `key` is a hash of the client's word, so that it has one length. */
static const char replays[] = "CREATE TABLE replays ("
                              " owner TEXT NOT NULL,"
                              " key TEXT NOT NULL,"
                              " hash TEXT NOT NULL,"
                              " created_ms BIGINT NOT NULL,"
                              " made TEXT NOT NULL DEFAULT '',"
                              " status BIGINT NOT NULL DEFAULT 0,"
                              " etag TEXT,"
                              " body TEXT,"
                              " PRIMARY KEY (owner, key));"
                              "CREATE INDEX replays_created ON replays (created_ms);";

const char *const schema_sqlite[] = { first, teams, usage, replays };
const size_t schema_sqlite_steps = ARRAY_LEN(schema_sqlite);
