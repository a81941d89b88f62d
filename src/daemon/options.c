#include "daemon/options.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "core/core.h"
#include "front/http/cors.h"

#define CONFIG_DEFAULT "/etc/warren/warren.conf"
#define POOL_MAX 256
#define RATE_MAX 1000000
#define CONNECTIONS_MAX 500000
#define USAGE_INTERVAL_MAX 3600
#define USAGE_DAYS_MAX 36500
#define MEMORY_MB_MAX 1073741824u /* a pebibyte */
#define OVERCOMMIT_MIN 10
#define OVERCOMMIT_MAX 10000
#define DISK_RESERVE_MB_MAX 1073741824u /* a pebibyte */
#define MIB (1024ull * 1024)
#define RESERVE_MB 512 /* left to the host at least: the daemon, its page cache, the kernel */
#define IMAGE_LAYER_MB_MAX (256 * 1024) /* the unpacker's own limit */
#define IMAGE_RATIO_MAX 1000000
#define HELP_COLUMN 24
#define VARIABLE_MAX 64

struct option_row {
    const char *name, *value;
    size_t offset;
    const char *fallback, *help; /* help: a line end where it goes on below */
};

#define TEXT(member_) offsetof(struct options, member_)
static const struct option_row rows[] = {
    { "listen", "ADDR:PORT", TEXT(listen), "127.0.0.1:7070",
      "Where the API answers. Port 0 takes a free one and prints it." },
    { "preview-domain", "NAME", TEXT(preview_domain), "localhost",
      "Port N of a sandbox answers as N-ID.NAME. With a port behind it (NAME:443) clients are\n"
      "told that one instead of the port that we listen on." },
    { "api-names", "LIST", TEXT(api_names), NULL,
      "Names by which clients reach the API, commas between: no team may have one for a sandbox.\n"
      "Nor may it have the preview's NAME, what is below that, or this machine's host name." },
    { "tls-listen", "ADDR:PORT", TEXT(tls_listen), NULL,
      "Where the API and previews answer encrypted, beside --listen. Without --tls-cert a local\n"
      "authority makes the certificate: see `warren ca trust`." },
    { "tls-cert", "FILE", TEXT(tls_cert), NULL,
      "The certificate, with its chain, in PEM; for previews it must be for *.NAME too." },
    { "tls-key", "FILE", TEXT(tls_key), NULL, "Its key, in PEM." },
    { "tls-certs", "DIR", TEXT(tls_certs), NULL,
      "Certificates for names of clients' own: NAME.pem each, with chain and key, readable by\n"
      "--user. Changes count at once. Default: DATA/state/certs." },
    { "acme-directory", "URL", TEXT(acme_directory), NULL,
      "An ACME authority that gives names of clients' own their certificates; it must reach\n"
      "this daemon on port 80 of each name. Needs the package uacme." },
    { "acme-email", "ADDRESS", TEXT(acme_email), NULL, "Whom that authority may write to." },
    { "data", "DIR", TEXT(data), "/var/lib/warren",
      "Sandboxes, images and state. Made if missing." },
    { "run", "DIR", TEXT(run), "/run/warren",
      "Sockets and what lives until the next boot. Each daemon needs its own." },
    { "config", "FILE", TEXT(config), CONFIG_DEFAULT,
      "Settings as 'name = value' lines, under these names. May be missing if not asked for." },
    { "user", "NAME", TEXT(user), NULL,
      "Whom to become after start; 'warren' if there is such a user, else 'nobody'." },
    { "cgroup", "NAME", TEXT(cgroup), NULL,
      "The control group of all sandboxes; by default made from the run directory." },
    { "pool", "N", TEXT(pool), "4",
      "Blank sandboxes kept ready, so that making one takes less; 0 for none." },
    { "share-volumes", "WHEN", TEXT(share_volumes), "fenced",
      "When running sandboxes may share a volume: 'fenced' where the kernel keeps sockets in it\n"
      "from connecting them, 'always' also where they can pass each other descriptors." },
    { "sandbox-memory", "MB", TEXT(sandbox_memory), "auto",
      "Memory that all sandboxes may use together; 0 for no limit. auto: all of this machine's\n"
      "but a tenth, and at least 512 MB, which stay for the daemon and everything else." },
    { "memory-overcommit", "PERCENT", TEXT(memory_overcommit), "0",
      "How much the memory limits of running sandboxes may add up to, in percent of that memory\n"
      "(100: all can use their own at once); more is refused. 0: no bound." },
    { "disk-reserve", "MB", TEXT(disk_reserve), "auto",
      "Room on the disk that is kept for sandboxes that run: when no more than that is free, nothing\n"
      "new is made, and warnings begin at three times as much. auto: a twentieth of the disk, at\n"
      "most 16384." },
    { "usage-interval", "SECONDS", TEXT(usage_interval), "10",
      "How often what each sandbox uses is read, for GET /v1/usage." },
    { "usage-days", "N", TEXT(usage_days), "400",
      "How long usage is kept, by the hour; 0 for ever." },
    { "log-level", "LEVEL", TEXT(log_level), "info", "debug, info, warn or error." },
    { "log-format", "FORMAT", TEXT(log_format), "text",
      "How log lines look: text, or json for one object a line." },
    { "rate-limit", "N", TEXT(rate_limit), "2000",
      "Requests a second that one key may make; 0 for no limit." },
    { "rate-burst", "N", TEXT(rate_burst), "4000",
      "Requests that a key may make at once before that counts." },
    { "connections", "N", TEXT(connections), "8192",
      "Connections over the network that are open at once: requests and WebSockets to ports, not\n"
      "previews. When there is no room, the longest waiting ones without a key are closed for new\n"
      "ones." },
    { "connections-per-address", "N", TEXT(connections_per_address), "2048",
      "How many of them one IPv4 address, or one IPv6 /64, may have. A proxy is one address." },
    { "connections-per-key", "N", TEXT(connections_per_key), "2048",
      "How many of them one key may have." },
    { "connections-without-key", "N", TEXT(connections_without_key), "256",
      "Requests of callers without a key that are answered at the same time; more get 503." },
    { "cors-origins", "LIST", TEXT(cors_origins), "*",
      "Web pages that may use the API: *, none, or origins with commas between." },
    { "default-registry", "HOST", TEXT(default_registry), REGISTRY_USUAL,
      "The registry of image names that have no host, such as python:3.12; none: they are refused." },
    { "registry-allow", "LIST", TEXT(registry_allow), NULL,
      "Registries (HOST[:PORT], commas between) that teams may use, at whatever address.\n"
      "Default: any with a public address. Admin keys are not bound." },
    { "resolvers", "LIST", TEXT(resolvers), NULL,
      "Who is asked for the names that sandboxes may resolve: ADDRESS[:PORT], commas between.\n"
      "Default: those of /etc/resolv.conf." },
    { "egress-open", "LIST", TEXT(egress_open), NULL,
      "Ranges such as 10.1.0.0/16 that rules of sandboxes may allow although they are private,\n"
      "or (an address alone) this machine's own. Buckets may be there too." },
    { "egress-proxy", "URL", TEXT(egress_proxy), NULL,
      "What all connections of sandboxes go through where a site demands it:\n"
      "http://, https:// (TLS to the proxy) or socks5://, [USER:PASSWORD@]HOST:PORT.\n"
      "Better in the file or the variable than on a command line." },
    { "egress-proxy-except", "LIST", TEXT(egress_proxy_except), NULL,
      "Hosts, *.HOST and ranges of addresses that are reached without it." },
    { "egress-proxy-by", "WORD", TEXT(egress_proxy_by), "address",
      "What the proxy is asked for: the address that was judged, or the name it was resolved from." },
    { "egress-ca", "FILE", TEXT(egress_ca), NULL,
      "Certificates (PEM) of authorities to trust beside the system's, when dialling out under TLS." },
    { "network-limits", "LIST", TEXT(network_limits), NULL,
      "What the network of a sandbox that says nothing may carry: connections=N (at once),\n"
      "connections_per_s=N, rate_mbps=N (each way), total_mb=N, commas between." },
    { "network-limits-max", "LIST", TEXT(network_limits_max), NULL,
      "The most that a sandbox may ask for, and what it has at most; in the same form." },
    { "archive", "s3://BUCKET[/PREFIX]", TEXT(archive), NULL,
      "Object storage that checkpoints and sandboxes are archived to." },
    { "archive-endpoint", "URL", TEXT(archive_endpoint), NULL,
      "Where it answers: https://HOST[:PORT]; plain http for loopback only.\n"
      "Default: Amazon's of the region." },
    { "archive-region", "NAME", TEXT(archive_region), "us-east-1", "Its region, for signatures." },
    { "archive-credentials", "FILE", TEXT(archive_credentials), NULL,
      "Its keys: aws_access_key_id = ... and aws_secret_access_key = ... under [default].\n"
      "Default: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN." },
    { "archive-ca", "FILE", TEXT(archive_ca), NULL,
      "Certificates (PEM) of authorities to trust there instead of the system's." },
    { "registry-timeout", "N", TEXT(registry_timeout), "30",
      "Seconds that a registry may be silent before the connection counts as broken." },
    { "image-layer-mb", "N", TEXT(image_layer_mb), "32768",
      "The most that one layer of an image may unpack to, whatever its team's quota." },
    { "image-ratio", "N", TEXT(image_ratio), "200",
      "The most that a layer or image archive may hold, in times its own size." },
};

/* Its variable: WARREN_ and the name, in capitals. */
static const char *variable(const struct option_row *row, char out[VARIABLE_MAX])
{
    int n = snprintf(out, VARIABLE_MAX, "WARREN_%s", row->name);
    for (int i = 0; i < n && i < VARIABLE_MAX - 1; i++)
        out[i] = (char)(out[i] == '-' ? '_' : toupper((unsigned char)out[i]));
    return out;
}

static char **text_at(struct options *o, const struct option_row *row)
{
    return (char **)(void *)((char *)o + row->offset);
}

static int set_text(struct options *o, const struct option_row *row, const char *value,
                    struct err *err)
{
    char *copy = strdup(value);
    if (!copy)
        return err_set(err, ENOMEM, "cannot allocate '%s'", row->name);
    free(*text_at(o, row));
    *text_at(o, row) = copy;
    return 0;
}

/* A '_' is as good as a '-': in a file people write both. */
static bool same_name(const char *name, const char *given, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (name[i] != (given[i] == '_' ? '-' : given[i]))
            return false;
    return true;
}

static const struct option_row *find(const char *name, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strlen(rows[i].name) == n && same_name(rows[i].name, name, n))
            return &rows[i];
    return NULL;
}

static enum options_print print_of(const char *arg)
{
    static const struct {
        const char *word, *letter;
        enum options_print print;
    } prints[] = {
        { "--help", "-h", PRINT_HELP },
        { "--version", "-V", PRINT_VERSION },
        { "--routes", NULL, PRINT_ROUTES },
        { "--sample-config", NULL, PRINT_SAMPLE },
    };
    for (size_t i = 0; i < ARRAY_LEN(prints); i++)
        if (strcmp(arg, prints[i].word) == 0 ||
            (prints[i].letter && strcmp(arg, prints[i].letter) == 0))
            return prints[i].print;
    return PRINT_NOTHING;
}

static int read_flags(int argc, char **argv, struct options *o, struct err *err)
{
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        enum options_print print = print_of(arg);
        if (print != PRINT_NOTHING) {
            o->print = print;
            continue;
        }
        const char *equals = strchr(arg, '=');
        size_t n = equals ? (size_t)(equals - arg) : strlen(arg);
        const struct option_row *row = strncmp(arg, "--", 2) == 0 ? find(arg + 2, n - 2) : NULL;
        if (!row)
            return err_set(err, EINVAL, "there is no option '%s'; see warrend --help", arg);
        const char *value = equals ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
        if (!value)
            return err_set(err, EINVAL, "--%s needs a %s", row->name, row->value);
        int r = set_text(o, row, value, err);
        if (r < 0)
            return r;
    }
    return 0;
}

struct file_read {
    struct options *o;
    struct err *err;
    int r;
};

static int on_setting(void *arg, const char *section, const char *name, const char *value)
{
    struct file_read *f = arg;
    const struct option_row *row = find(name, strlen(name));
    if (!row || strcmp(name, "config") == 0) {
        f->r = err_set(f->err, EINVAL, "there is no setting '%s'", name);
        return 0;
    }
    if (!*text_at(f->o, row))
        f->r = set_text(f->o, row, value, f->err);
    return f->r >= 0;
}

static int read_file(struct options *o, bool asked_for, struct err *err)
{
    struct file_read f = { o, err, 0 };
    _cleanup_file_ FILE *file = fopen(o->config, "re");
    if (!file && errno == ENOENT && !asked_for)
        return 0;
    if (!file)
        return err_set(err, errno, "cannot read '%s': %s", o->config, strerror(errno));
    int line = ini_parse_file(file, on_setting, &f);
    if (f.r < 0)
        return err_wrap(err, f.r, "%s, line %d", o->config, line);
    if (line != 0)
        return err_set(err, EINVAL, "%s, line %d: not a 'name = value' line", o->config, line);
    return 0;
}

static int check_number(const char *name, const char *text, unsigned min, unsigned max,
                        unsigned *ret_v, struct err *err)
{
    char *end;
    errno = 0;
    unsigned long v = text[0] >= '0' && text[0] <= '9' ? strtoul(text, &end, 10) : (end = NULL, 0);
    if (errno || !end || *end || v < min || v > max)
        return err_set(err, EINVAL, "--%s must be a number from %u to %u", name, min, max);
    *ret_v = (unsigned)v;
    return 0;
}

static int check_connections(struct options *o, struct err *err)
{
    int r = check_number("connections", o->connections, 16, CONNECTIONS_MAX, &o->conns, err);
    if (r >= 0)
        r = check_number("connections-per-address", o->connections_per_address, 1, CONNECTIONS_MAX,
                         &o->conns_per_address, err);
    if (r >= 0)
        r = check_number("connections-per-key", o->connections_per_key, 1, CONNECTIONS_MAX,
                         &o->conns_per_key, err);
    if (r >= 0)
        r = check_number("connections-without-key", o->connections_without_key, 1, CONNECTIONS_MAX,
                         &o->conns_without_key, err);
    return r;
}

static int check_disk(struct options *o, struct err *err)
{
    if (strcmp(o->disk_reserve, "auto") == 0)
        return 0;
    return check_number("disk-reserve", o->disk_reserve, 1, DISK_RESERVE_MB_MAX,
                        &o->disk_reserve_mb, err);
}

static unsigned host_memory_mb(void)
{
    return (unsigned)((uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / MIB);
}

static int check_memory(struct options *o, struct err *err)
{
    unsigned host = host_memory_mb(), rest = host / 10 > RESERVE_MB ? host / 10 : RESERVE_MB;
    int r = 0;
    if (strcmp(o->sandbox_memory, "auto") == 0)
        o->sandbox_memory_mb = host > 2 * rest ? host - rest : host / 2;
    else
        r = check_number("sandbox-memory", o->sandbox_memory, 0, MEMORY_MB_MAX,
                         &o->sandbox_memory_mb, err);
    if (r < 0 || strcmp(o->memory_overcommit, "0") == 0)
        return r;
    return check_number("memory-overcommit", o->memory_overcommit, OVERCOMMIT_MIN, OVERCOMMIT_MAX,
                        &o->memory_overcommit_percent, err);
}

uint64_t options_memory_promise_mb(const struct options *o)
{
    uint64_t all = o->sandbox_memory_mb ? o->sandbox_memory_mb : host_memory_mb();
    return all * o->memory_overcommit_percent / 100;
}

static int check_values(struct options *o, struct err *err)
{
    int r = check_number("pool", o->pool, 0, POOL_MAX, &o->pool_size, err);
    if (r >= 0)
        r = check_number("rate-limit", o->rate_limit, 0, RATE_MAX, &o->rate, err);
    if (r >= 0)
        r = check_number("rate-burst", o->rate_burst, 1, RATE_MAX, &o->burst, err);
    if (r >= 0)
        r = check_connections(o, err);
    if (r >= 0)
        r = check_memory(o, err);
    if (r >= 0)
        r = check_disk(o, err);
    if (r >= 0)
        r = cors_check(o->cors_origins, err);
    if (r >= 0)
        r = check_number("usage-interval", o->usage_interval, 1, USAGE_INTERVAL_MAX,
                         &o->usage_interval_s, err);
    if (r >= 0)
        r = check_number("usage-days", o->usage_days, 0, USAGE_DAYS_MAX, &o->usage_keep_days, err);
    if (r >= 0)
        r = check_number("registry-timeout", o->registry_timeout, 1, 3600, &o->registry_timeout_s,
                         err);
    if (r >= 0)
        r = check_number("image-layer-mb", o->image_layer_mb, 1, IMAGE_LAYER_MB_MAX, &o->layer_mb,
                         err);
    if (r >= 0)
        r = check_number("image-ratio", o->image_ratio, 2, IMAGE_RATIO_MAX, &o->layer_ratio, err);
    if (r < 0)
        return r;
    if (!o->tls_cert != !o->tls_key)
        return err_set(err, EINVAL, "--tls-cert and --tls-key go together");
    if (!o->tls_listen && (o->tls_cert || o->tls_certs || o->acme_directory))
        return err_set(err, EINVAL,
                       "--tls-cert, --tls-certs and --acme-directory need --tls-listen");
    if (o->acme_directory && strncmp(o->acme_directory, "https://", 8) != 0)
        return err_set(err, EINVAL, "--acme-directory must be an https:// URL");
    if (o->acme_email && (o->acme_email[0] == '-' || !strchr(o->acme_email, '@')))
        return err_set(err, EINVAL, "--acme-email must be an address");
    o->share_volumes_always = strcmp(o->share_volumes, "always") == 0;
    if (!o->share_volumes_always && strcmp(o->share_volumes, "fenced") != 0)
        return err_set(err, EINVAL, "--share-volumes must be fenced or always");
    if (log_parse_level(o->log_level, &o->level) < 0)
        return err_set(err, EINVAL, "--log-level must be debug, info, warn or error");
    if (log_parse_format(o->log_format, &o->format) < 0)
        return err_set(err, EINVAL, "--log-format must be text or json");
    return 0;
}

int options_read(int argc, char **argv, struct options *ret_o, struct err *err)
{
    struct options o = { 0 };
    int r = read_flags(argc, argv, &o, err);

    for (size_t i = 0; i < ARRAY_LEN(rows) && r >= 0; i++) {
        char name[VARIABLE_MAX];
        const char *value = getenv(variable(&rows[i], name));
        if (value && *value && !*text_at(&o, &rows[i]))
            r = set_text(&o, &rows[i], value, err);
    }
    bool asked_for = o.config != NULL;
    if (r >= 0 && !o.config)
        r = set_text(&o, find("config", 6), CONFIG_DEFAULT, err);
    if (r >= 0 && o.print == PRINT_NOTHING)
        r = read_file(&o, asked_for, err);
    for (size_t i = 0; i < ARRAY_LEN(rows) && r >= 0; i++)
        if (rows[i].fallback && !*text_at(&o, &rows[i]))
            r = set_text(&o, &rows[i], rows[i].fallback, err);
    if (r >= 0)
        r = check_values(&o, err);
    if (r < 0) {
        options_done(&o);
        return r;
    }
    *ret_o = o;
    return 0;
}

void options_done(struct options *o)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        free(*text_at(o, &rows[i]));
        *text_at(o, &rows[i]) = NULL;
    }
}

static void help_row(const struct option_row *row)
{
    char head[64], name[VARIABLE_MAX];
    int n = snprintf(head, sizeof(head), "--%s %s", row->name, row->value);
    (void)printf("  %-*s", HELP_COLUMN, n > 0 ? head : "");
    if (n >= HELP_COLUMN) /* as long as that: the text begins below */
        (void)printf("\n  %-*s", HELP_COLUMN, "");
    for (const char *p = row->help; *p; p++) {
        (void)putchar(*p);
        if (*p == '\n')
            (void)printf("  %-*s", HELP_COLUMN, "");
    }
    (void)printf("\n  %-*s%s%s%s\n", HELP_COLUMN, "", variable(row, name),
                 row->fallback ? ", default " : "", row->fallback ? row->fallback : "");
}

static void sample_row(const struct option_row *row)
{
    (void)fputs("\n# ", stdout);
    for (const char *p = row->help; *p; p++)
        (void)(*p == '\n' ? fputs("\n# ", stdout) : putchar(*p));
    (void)printf("\n#%s = %s\n", row->name, row->fallback ? row->fallback : row->value);
}

void options_sample(void)
{
    (void)fputs(
        "# Settings of warrend: 'name = value' lines, read when it starts. An option on its\n"
        "# command line wins over the variable WARREN_NAME, and that one over this file.\n"
        "# Each setting is shown with its default, or with the form of its value (in\n"
        "# capitals) where it has none. Take the '#' before its name away to change it.\n",
        stdout);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].name, "config") != 0) /* a file cannot name another */
            sample_row(&rows[i]);
}

void options_help(void)
{
    (void)fputs(
        "warrend - the daemon of Warren: isolated Linux computers over HTTP\n\n"
        "USAGE\n"
        "  sudo warrend [OPTION]...\n\n"
        "  Runs in the foreground and logs to stderr; says on stdout when it is ready. Needs\n"
        "  root to start; then only warren-keeper keeps it, and warrend becomes an ordinary\n"
        "  user. Stop it with SIGTERM or Ctrl-C: sandboxes go on, and the next start finds\n"
        "  them. Any number of daemons may run side by side, each with its own --data,\n"
        "  --run and --listen.\n\n"
        "OPTIONS\n",
        stdout);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        help_row(&rows[i]);
    (void)printf("  %-*sPrint the version.\n  %-*sPrint each method and path of the API.\n"
                 "  %-*sPrint a configuration file with every setting, commented out.\n"
                 "  %-*sThis text.\n",
                 HELP_COLUMN, "--version, -V", HELP_COLUMN, "--routes", HELP_COLUMN,
                 "--sample-config", HELP_COLUMN, "--help, -h");
    (void)fputs(
        "\nENVIRONMENT\n"
        "  WARREN_API_KEY        A key that works from the start: any text of 20 or more\n"
        "                        characters. Without it, make one over the admin socket.\n"
        "  WARREN_LIBEXEC        Where warren-keeper and warren-init are, if not beside warrend.\n\n"
        "FILES\n"
        "  /etc/warren/warren.conf       settings\n"
        "  DATA/state/warren.db          what exists\n"
        "  RUN/warren.sock               the admin socket: root needs no key there\n\n"
        "EXAMPLES\n"
        "  sudo warrend\n"
        "  sudo WARREN_API_KEY=a-key-of-twenty-characters warrend --listen 0.0.0.0:7070\n"
        "  sudo warrend --tls-listen 0.0.0.0:443 --tls-cert all.pem --tls-key key.pem \\\n"
        "               --preview-domain sandboxes.example.com\n"
        "  sudo warrend --listen 127.0.0.1:0 --data /tmp/a/data --run /tmp/a/run\n\n"
        "  curl -s http://127.0.0.1:7070/v1/health\n"
        "  sudo curl -s --unix-socket /run/warren/warren.sock http://x/v1/sandboxes\n",
        stdout);
}
