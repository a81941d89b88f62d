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
static const char usage[] = "CREATE TABLE usage ("
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

/* Images in layers. The texts of an image are the last columns: they can be large. */
static const char layers[] = "CREATE TABLE image_layers ("
                             " chain TEXT PRIMARY KEY,"
                             " parent TEXT NOT NULL,"
                             " diff_id TEXT NOT NULL,"
                             " tree TEXT NOT NULL,"
                             " digest TEXT NOT NULL,"
                             " media_type TEXT NOT NULL,"
                             " compressed_bytes BIGINT NOT NULL,"
                             " size_bytes BIGINT NOT NULL,"
                             " kept BIGINT NOT NULL,"
                             " created_ms BIGINT NOT NULL);"
                             "CREATE TABLE image_contents ("
                             " digest TEXT PRIMARY KEY,"
                             " chain TEXT NOT NULL,"
                             " created_ms BIGINT NOT NULL,"
                             " manifest TEXT NOT NULL,"
                             " config TEXT NOT NULL);"
                             "CREATE TABLE image_names ("
                             " owner TEXT NOT NULL,"
                             " name TEXT NOT NULL,"
                             " digest TEXT NOT NULL,"
                             " public BIGINT NOT NULL,"
                             " created_ms BIGINT NOT NULL,"
                             " PRIMARY KEY (owner, name));";

static const char templates[] = "CREATE TABLE templates ("
                                " owner TEXT NOT NULL,"
                                " name TEXT NOT NULL,"
                                " id TEXT NOT NULL,"
                                " public BIGINT NOT NULL,"
                                " warm BIGINT NOT NULL,"
                                " created_ms BIGINT NOT NULL,"
                                " updated_ms BIGINT NOT NULL,"
                                " ports TEXT NOT NULL,"
                                " spec TEXT NOT NULL,"
                                " PRIMARY KEY (owner, name));";

/* What a build need not do again: a step's key, and the chain of the layer that it made. */
static const char builds[] = "CREATE TABLE build_steps ("
                             " key TEXT PRIMARY KEY,"
                             " chain TEXT NOT NULL,"
                             " used_ms BIGINT NOT NULL);";

/* A secret's value is sealed (core/secret.c); this is its text. */
static const char volumes[] = "CREATE TABLE volumes ("
                              " id TEXT PRIMARY KEY,"
                              " owner TEXT NOT NULL,"
                              " name TEXT NOT NULL,"
                              " size_bytes BIGINT NOT NULL,"
                              " created_ms BIGINT NOT NULL,"
                              " UNIQUE (owner, name));"
                              "CREATE TABLE secrets ("
                              " id TEXT PRIMARY KEY,"
                              " owner TEXT NOT NULL,"
                              " name TEXT NOT NULL,"
                              " version BIGINT NOT NULL,"
                              " created_ms BIGINT NOT NULL,"
                              " updated_ms BIGINT NOT NULL,"
                              " metadata TEXT NOT NULL,"
                              " value TEXT NOT NULL,"
                              " UNIQUE (owner, name));";

static const char template_builds[] = "CREATE TABLE template_builds ("
                                      " id TEXT PRIMARY KEY,"
                                      " owner TEXT NOT NULL,"
                                      " template TEXT NOT NULL,"
                                      " tags TEXT NOT NULL,"
                                      " state BIGINT NOT NULL,"
                                      " cpu_millis BIGINT NOT NULL,"
                                      " memory_bytes BIGINT NOT NULL,"
                                      " disk_bytes BIGINT NOT NULL,"
                                      " created_ms BIGINT NOT NULL,"
                                      " updated_ms BIGINT NOT NULL,"
                                      " finished_ms BIGINT NOT NULL,"
                                      " step TEXT NOT NULL,"
                                      " message TEXT NOT NULL);";

/* Who may come in, and under which names of their own. */
static const char doors[] = "CREATE TABLE passes ("
                            " id TEXT PRIMARY KEY,"
                            " sandbox TEXT NOT NULL,"
                            " owner TEXT NOT NULL,"
                            " hash TEXT NOT NULL,"
                            " data TEXT,"
                            " port BIGINT NOT NULL,"
                            " created_ms BIGINT NOT NULL,"
                            " expires_ms BIGINT NOT NULL);"
                            "CREATE TABLE aliases ("
                            " name TEXT PRIMARY KEY,"
                            " owner TEXT NOT NULL,"
                            " sandbox TEXT NOT NULL,"
                            " port BIGINT NOT NULL,"
                            " created_ms BIGINT NOT NULL);";

static const char checkpoints[] = "CREATE TABLE checkpoints ("
                                  " id TEXT PRIMARY KEY,"
                                  " owner TEXT NOT NULL,"
                                  " sandbox TEXT NOT NULL,"
                                  " parent TEXT NOT NULL,"
                                  " name TEXT NOT NULL,"
                                  " comment TEXT NOT NULL,"
                                  " metadata TEXT NOT NULL,"
                                  " reason TEXT NOT NULL,"
                                  " tree TEXT NOT NULL,"
                                  " spec TEXT NOT NULL,"
                                  " created_ms BIGINT NOT NULL,"
                                  " bytes BIGINT NOT NULL);";

/* How much of what a sandbox's network carried is in its usage. */
static const char carried[] = "ALTER TABLE meters ADD COLUMN rx_bytes BIGINT NOT NULL DEFAULT 0;"
                              "ALTER TABLE meters ADD COLUMN tx_bytes BIGINT NOT NULL DEFAULT 0;";

static const char volume_checkpoints[] = "CREATE TABLE volume_checkpoints ("
                                         " id TEXT PRIMARY KEY,"
                                         " owner TEXT NOT NULL,"
                                         " volume TEXT NOT NULL,"
                                         " name TEXT NOT NULL,"
                                         " comment TEXT NOT NULL,"
                                         " created_ms BIGINT NOT NULL,"
                                         " bytes BIGINT NOT NULL);";

/* What a checkpoint's memory takes; 0: it has files only. */
static const char memories[] =
    "ALTER TABLE checkpoints ADD COLUMN memory_bytes BIGINT NOT NULL DEFAULT 0;";

static const char buckets[] = "ALTER TABLE volumes ADD COLUMN bucket TEXT NOT NULL DEFAULT '';";
static const char leases[] = "CREATE TABLE leases ("
                             " id TEXT PRIMARY KEY,"
                             " sandbox TEXT NOT NULL,"
                             " reason TEXT NOT NULL,"
                             " created_ms BIGINT NOT NULL,"
                             " until_ms BIGINT NOT NULL);";
/* Which checkpoints are in object storage, and whether their files are only there. */
static const char archives[] = "CREATE TABLE archives ("
                               " checkpoint TEXT PRIMARY KEY,"
                               " archived_ms BIGINT NOT NULL,"
                               " bytes BIGINT NOT NULL,"
                               " manifest TEXT NOT NULL,"
                               " away BIGINT NOT NULL);";

/* The team that brought a layer in, for its quota; "": stored before teams were recorded. */
static const char brought[] = "ALTER TABLE image_layers ADD COLUMN owner TEXT NOT NULL DEFAULT '';";

/* Whose cache a build step is in; "": before that was written down. */
static const char cached[] = "ALTER TABLE build_steps ADD COLUMN owner TEXT NOT NULL DEFAULT '';"
                             "CREATE INDEX build_steps_chain ON build_steps (chain);";

/* When the step was done; 0: before that was written down. */
static const char dated[] = "ALTER TABLE build_steps ADD COLUMN made_ms BIGINT NOT NULL DEFAULT 0;";

const char *const schema_sqlite[] = { first,
                                      teams,
                                      usage,
                                      replays,
                                      layers,
                                      templates,
                                      builds,
                                      volumes,
                                      template_builds,
                                      doors,
                                      checkpoints,
                                      carried,
                                      volume_checkpoints,
                                      memories,
                                      buckets,
                                      leases,
                                      archives,
                                      brought,
                                      cached,
                                      dated };
const size_t schema_sqlite_steps = ARRAY_LEN(schema_sqlite);
