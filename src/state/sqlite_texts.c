/* What each statement says. */
#include "state/sqlite.h"

#define SANDBOX_COLS                                                                        \
    "id, owner, name, state, cause, tree, created_ms, started_ms, stopped_ms, expires_ms, " \
    "last_active_ms, ended_ms, spec"

#define USAGE_SUMS "sum(cpu_us), total(memory), total(disk), sum(rx_bytes), sum(tx_bytes)"
#define USAGE_WHERE "owner = ?1 AND hour >= ?2 AND hour < ?3 AND (?4 IS NULL OR sandbox = ?4)"
#define LAYER_COLS                                                                           \
    "chain, parent, diff_id, tree, digest, media_type, compressed_bytes, size_bytes, kept, " \
    "created_ms, owner"

const char *const stmt_texts[STMT_COUNT] = {
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
                             " WHERE id = ?1 AND (?2 IS NULL OR owner = ?2) AND ended_ms > 0",
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
                       " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (chain) DO UPDATE SET"
                       " tree = excluded.tree, digest = excluded.digest,"
                       " media_type = excluded.media_type,"
                       " compressed_bytes = excluded.compressed_bytes,"
                       " size_bytes = excluded.size_bytes, kept = excluded.kept,"
                       " owner = excluded.owner",
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
    [STMT_VOLUME_PUT] = "INSERT OR REPLACE INTO volumes (id, owner, name, size_bytes, created_ms,"
                        " bucket) VALUES (?, ?, ?, ?, ?, ?)",
    [STMT_VOLUME_REMOVE] = "DELETE FROM volumes WHERE id = ?",
    [STMT_VOLUME_EACH] = "SELECT id, owner, name, size_bytes, created_ms, bucket FROM volumes"
                         " ORDER BY created_ms, id",
    [STMT_VOLUME_CHECKPOINT_PUT] =
        "INSERT OR REPLACE INTO volume_checkpoints (id, owner, volume, name, comment, created_ms,"
        " bytes) VALUES (?, ?, ?, ?, ?, ?, ?)",
    [STMT_VOLUME_CHECKPOINT_REMOVE] = "DELETE FROM volume_checkpoints WHERE id = ?",
    [STMT_VOLUME_CHECKPOINT_EACH] = "SELECT id, owner, volume, name, comment, created_ms, bytes"
                                    " FROM volume_checkpoints ORDER BY created_ms, id",
    [STMT_SECRET_PUT] = "INSERT OR REPLACE INTO secrets (id, owner, name, version, created_ms,"
                        " updated_ms, metadata, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    [STMT_SECRET_REMOVE] = "DELETE FROM secrets WHERE id = ?",
    [STMT_SECRET_EACH] = "SELECT id, owner, name, version, created_ms, updated_ms, metadata, value"
                         " FROM secrets ORDER BY created_ms, id",
    [STMT_TEAM_SECRETS_REMOVE] = "DELETE FROM secrets WHERE owner = ?",
    [STMT_LEASE_PUT] = "INSERT OR REPLACE INTO leases (id, sandbox, reason, created_ms, until_ms)"
                       " VALUES (?, ?, ?, ?, ?)",
    [STMT_LEASE_REMOVE] = "DELETE FROM leases WHERE id = ?",
    [STMT_LEASE_PRUNE] = "DELETE FROM leases WHERE until_ms <= ?",
    [STMT_LEASE_EACH] = "SELECT id, sandbox, reason, created_ms, until_ms FROM leases"
                        " ORDER BY created_ms, id",
    [STMT_PASS_PUT] = "INSERT OR REPLACE INTO passes (id, sandbox, owner, hash, data, port,"
                      " created_ms, expires_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    [STMT_PASS_REMOVE] = "DELETE FROM passes WHERE id = ?",
    [STMT_PASS_PRUNE] = "DELETE FROM passes WHERE expires_ms <= ?",
    [STMT_PASS_EACH] = "SELECT id, sandbox, owner, hash, data, port, created_ms, expires_ms"
                       " FROM passes ORDER BY created_ms, id",
    [STMT_ALIAS_PUT] = "INSERT OR REPLACE INTO aliases (name, owner, sandbox, port, created_ms)"
                       " VALUES (?, ?, ?, ?, ?)",
    [STMT_ALIAS_REMOVE] = "DELETE FROM aliases WHERE name = ?",
    [STMT_ALIAS_EACH] = "SELECT name, owner, sandbox, port, created_ms FROM aliases",
    [STMT_ARCHIVE_PUT] =
        "INSERT OR REPLACE INTO archives (checkpoint, archived_ms, bytes, manifest, away)"
        " VALUES (?, ?, ?, ?, ?)",
    [STMT_ARCHIVE_REMOVE] = "DELETE FROM archives WHERE checkpoint = ?",
    [STMT_ARCHIVE_EACH] = "SELECT checkpoint, archived_ms, bytes, manifest, away FROM archives",
    [STMT_CHECKPOINT_PUT] =
        "INSERT OR REPLACE INTO checkpoints (id, owner, sandbox, parent, name, comment, metadata,"
        " reason, tree, spec, created_ms, bytes, memory_bytes)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [STMT_CHECKPOINT_REMOVE] = "DELETE FROM checkpoints WHERE id = ?",
    [STMT_CHECKPOINT_EACH] = "SELECT id, owner, sandbox, parent, name, comment, metadata, reason,"
                             " tree, spec, created_ms, bytes, memory_bytes FROM checkpoints"
                             " ORDER BY created_ms, id",
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
                       " memory_bytes, disk_bytes, rx_bytes, tx_bytes)"
                       " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    [STMT_METER_REMOVE] = "DELETE FROM meters WHERE sandbox = ?",
    [STMT_METER_EACH] = "SELECT sandbox, at_ms, life_ms, cpu_us, memory_bytes, disk_bytes,"
                        " rx_bytes, tx_bytes FROM meters",
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
    [STMT_BUILD_GET] = "SELECT chain, made_ms FROM build_steps WHERE key = ?",
    [STMT_BUILD_USED] = "UPDATE build_steps SET used_ms = ? WHERE key = ?",
    [STMT_BUILD_PUT] = "INSERT OR REPLACE INTO build_steps (key, owner, chain, used_ms, made_ms)"
                       " VALUES (?, ?, ?, ?, ?)",
    [STMT_BUILD_FORGET] = "DELETE FROM build_steps WHERE owner = ?",
    [STMT_BUILD_OTHER] = "SELECT owner FROM build_steps WHERE chain = ? AND owner <> ?"
                         " AND owner <> '' ORDER BY used_ms DESC LIMIT 1",
    [STMT_BUILD_PRUNE] = "DELETE FROM build_steps WHERE key IN (SELECT key FROM build_steps"
                         " ORDER BY used_ms DESC LIMIT -1 OFFSET ?)",
    [STMT_META_GET] = "SELECT value FROM meta WHERE key = ?",
    [STMT_META_SET] = "INSERT INTO meta (key, value) VALUES (?, ?)"
                      " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
};
