/* shape - what a new sandbox should be like: the options that `run`, `create` and `update` share.
 *
 * A struct of parsed values, the rows that fill it, and the request body it becomes. Only what
 * was given is sent: defaults are the daemon's. */
#pragma once
#include <jansson.h>

#include "cli/opts.h"

struct shape {
    const char *template, *image, *name, *user, *workdir, *on_timeout, *on_idle, *net;
    const char *preview, *wake, *restart, *checkpoints, *net_limits, *proxy;
    struct opt_real cpus;
    struct opt_number memory, disk, pids, nofile, timeout, idle_timeout, freeze_after;
    struct opt_list env, metadata, rules, volumes, bindings;
};

/* The rows, for a command whose options have a `struct shape shape`. */
/* clang-format off */
#define SHAPE_LIMIT_ROWS(type_, cpus_, memory_, disk_, pids_)                                      \
    { 'c', "cpus", OPT_REAL, offsetof(type_, shape.cpus), "N",                                     \
      "Processor time, in cpus; fractions are fine." cpus_, NULL },                                \
    { 'm', "memory", OPT_SIZE, offsetof(type_, shape.memory), "SIZE",                              \
      "Memory, such as 512m or 2g; a bare number is MiB." memory_, NULL },                         \
    { 0, "disk", OPT_SIZE, offsetof(type_, shape.disk), "SIZE",                                    \
      "Space for its files, a hard limit." disk_, NULL },                                          \
    { 0, "pids", OPT_COUNT, offsetof(type_, shape.pids), "N",                                      \
      "Processes and threads at once." pids_, NULL }

#define SHAPE_LIMIT_OPTS(type_)                                                                    \
    SHAPE_LIMIT_ROWS(type_, " Default 1.", " Default 512m.", " Default 10g.", " Default 512.")

#define SHAPE_IMAGE_OPTS(type_)                                                                    \
    { 0, "image", OPT_TEXT, offsetof(type_, shape.image), "IMAGE",                                 \
      "The root filesystem it starts from; `warren image ls` lists them. Default base.", "@image" }

#define SHAPE_TEMPLATE_OPTS(type_)                                                                 \
    { 0, "template", OPT_TEXT, offsetof(type_, shape.template), "NAME",                            \
      "Start from this template, and wait until it is ready.", "@template" }

#define SHAPE_MAKE_OPTS(type_)                                                                     \
    { 0, "nofile", OPT_COUNT, offsetof(type_, shape.nofile), "N",                                  \
      "Open files of one process. Default 65536.", NULL },                                         \
    { 'e', "env", OPT_PAIRS, offsetof(type_, shape.env), "NAME=VALUE",                             \
      "An environment variable for every command; may be given again.", NULL },                    \
    { 'u', "user", OPT_TEXT, offsetof(type_, shape.user), "USER",                                  \
      "Who commands run as: a name, a uid, or uid:gid. Default root.", NULL },                     \
    { 'w', "workdir", OPT_TEXT, offsetof(type_, shape.workdir), "DIR",                             \
      "Where commands start. Default: the user's home.", NULL },                                   \
    { 'n', "name", OPT_TEXT, offsetof(type_, shape.name), "NAME",                                  \
      "A name of your own, usable wherever an id is.", NULL },                                     \
    { 'v', "volume", OPT_LIST, offsetof(type_, shape.volumes), "NAME:PATH[:ro]",                   \
      "Show this volume at PATH, :ro to read only; may be given again.", NULL },                   \
    { 0, "metadata", OPT_PAIRS, offsetof(type_, shape.metadata), "NAME=VALUE",                     \
      "A label to find it by; may be given again.", NULL }

#define SHAPE_NET_OPTS(type_)                                                                      \
    { 0, "net", OPT_TEXT, offsetof(type_, shape.net), "WHAT",                                      \
      "What it may reach: none (the default), agents (package registries, git hosts, models) "     \
      "or open.",                                                                                  \
      "none agents open" },                                                                        \
    { 0, "network", OPT_TEXT, offsetof(type_, shape.net), "WHAT", "The same as --net.",            \
      "none agents open" },                                                                        \
    { 0, "rule", OPT_LIST, offsetof(type_, shape.rules), "RULE",                                   \
      "Or by rules, in order: 'allow *.example.com 443', 'deny 203.0.113.0/24'; may be given "     \
      "again. For all but some: 'deny ...', then 'allow *'.", NULL },                              \
    { 0, "proxy", OPT_TEXT, offsetof(type_, shape.proxy), "URL",                                   \
      "With --net or --rule: what all its connections go through, http://, https:// or "           \
      "socks5:// [USER:PASSWORD@]HOST:PORT. Other users can read your command lines.", NULL },     \
    { 0, "net-limits", OPT_TEXT, offsetof(type_, shape.net_limits), "LIST",                        \
      "What its network may carry: connections=N (at once), connections_per_s=N, rate_mbps=N, "    \
      "total_mb=N, with commas between; what is left out is as the daemon has it. Or none.",       \
      NULL },                                                                                      \
    { 0, "bind", OPT_LIST, offsetof(type_, shape.bindings), "BINDING",                             \
      "A secret that requests carry without its knowing it: SECRET@HOST[:PORT][/PATH], then "      \
      "words such as as=bearer, as=header header=x-api-key, methods=POST, name=NAME; may be "      \
      "given again.", NULL }

#define SHAPE_DOOR_OPTS(type_)                                                                     \
    { 0, "preview", OPT_TEXT, offsetof(type_, shape.preview), "WHO",                               \
      "Who may reach its ports: public (who knows its id, the default) or private.",               \
      "public private" },                                                                          \
    { 0, "wake", OPT_TEXT, offsetof(type_, shape.wake), "WHEN",                                    \
      "A request to its ports starts it again: auto (if it fell asleep), always or never.",        \
      "auto always never" }

#define SHAPE_LIFE_OPTS(type_)                                                                     \
    { 0, "timeout", OPT_DURATION, offsetof(type_, shape.timeout), "TIME",                          \
      "End of life, from now: 30s, 1h30m; none for no end.", NULL },                               \
    { 0, "on-timeout", OPT_TEXT, offsetof(type_, shape.on_timeout), "WHAT",                        \
      "What happens then: delete (the default), stop, pause or checkpoint (and stop).",            \
      "delete stop pause checkpoint" },                                                            \
    { 0, "idle-timeout", OPT_DURATION, offsetof(type_, shape.idle_timeout), "TIME",                \
      "The longest it may be idle: no request, no work, no traffic, no lease.", NULL },            \
    { 0, "on-idle", OPT_TEXT, offsetof(type_, shape.on_idle), "WHAT",                              \
      "What happens then: stop (the default), delete, pause or checkpoint (and stop).",            \
      "stop delete pause checkpoint" },                                                            \
    { 0, "restart", OPT_TEXT, offsetof(type_, shape.restart), "WHEN",                              \
      "Start it again when nobody stopped it: no (the default), on-boot (after a restart of the "  \
      "host) or always (after a crash, too).",                                                     \
      "no on-boot always" },                                                                       \
    { 0, "freeze-after", OPT_DURATION, offsetof(type_, shape.freeze_after), "TIME",                \
      "Freeze it when it was idle for so long, until something needs it; none for never.", NULL }, \
    { 0, "checkpoints", OPT_TEXT, offsetof(type_, shape.checkpoints), "POLICY",                    \
      "Checkpoints by themselves: every=10m, command, stop, and which of them stay: last=10, "     \
      "for=2d, hourly=24, daily=7; with commas between. Or none.", NULL },                         \
    SHAPE_DOOR_OPTS(type_)
/* clang-format on */

/* The body of a request that makes (or changes) a sandbox; a new object. */
int shape_body(const struct shape *shape, json_t **ret_body, struct err *err);
