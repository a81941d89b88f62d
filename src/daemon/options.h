/* options - how warrend was asked to run: flags, WARREN_* variables, the configuration file.
 *
 * One table says it all: name, variable, default, help. A flag wins over the variable, the
 * variable over the file, the file over the default. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"

enum options_print { PRINT_NOTHING, PRINT_HELP, PRINT_VERSION, PRINT_ROUTES, PRINT_SAMPLE };

struct options {
    char *listen, *data, *run, *config, *user, *cgroup, *pool, *log_level, *log_format;
    char *rate_limit, *rate_burst, *cors_origins, *usage_interval, *usage_days;
    char *connections, *connections_per_address, *connections_per_key, *connections_without_key;
    char *default_registry, *registry_allow, *registry_timeout, *image_layer_mb, *image_ratio;
    char *network_limits, *network_limits_max;
    char *sandbox_memory, *memory_overcommit, *disk_reserve;
    char *resolvers, *egress_open, *egress_proxy, *egress_proxy_except, *egress_proxy_by,
        *egress_ca;
    char *preview_domain, *api_names, *tls_listen, *tls_cert, *tls_key, *tls_certs, *acme_directory,
        *acme_email;
    char *archive, *archive_endpoint, *archive_region, *archive_credentials, *archive_ca;
    char *share_volumes;
    enum options_print print; /* instead of running */
    /* read out of the texts above */
    unsigned pool_size, rate, burst, usage_interval_s, usage_keep_days, registry_timeout_s;
    unsigned conns, conns_per_address, conns_per_key, conns_without_key;
    bool share_volumes_always;
    unsigned sandbox_memory_mb, memory_overcommit_percent; /* 0: no limit */
    unsigned disk_reserve_mb;                              /* 0: the usual */
    unsigned layer_mb, layer_ratio;
    enum log_level level;
    enum log_format format;
};

/* NULL stays where there is no default (user, cgroup). The caller calls options_done. */
int options_read(int argc, char **argv, struct options *ret_o, struct err *err);
void options_done(struct options *o);
/* The operator's bound for the sum of running sandboxes' memory limits; 0: none. */
uint64_t options_memory_promise_mb(const struct options *o);
void options_help(void);   /* to stdout */
void options_sample(void); /* a configuration file with every setting commented out, to stdout */
