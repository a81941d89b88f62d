#include "core/ca.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/log.h"
#include "net/host.h"

#define LOG_MODULE "ca"
#define DAY_S 86400L
#define CA_DAYS 3650
#define SERVER_DAYS 90
#define BELOW_DAYS 30
#define SERIAL_BITS 127
#define PEM_SIZE (16 * 1024)
#define TEXT_MAX (2 * HOST_SIZE + 256)
#define COMMON_SIZE 65 /* what a common name has room for, and the NUL */
#define CERT_NAME "ca.pem"
#define KEY_NAME "ca.key"
#define LOCAL_RANGES                    \
    "permitted;IP:127.0.0.0/255.0.0.0," \
    "permitted;IP:::1/FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF"

struct ca {
    X509 *cert;
    EVP_PKEY *key;
    char pem[PEM_SIZE];
    char domain[HOST_SIZE];
};

static int failed(struct err *err, const char *what)
{
    ERR_clear_error();
    return err_set(err, EIO, "cannot make %s", what);
}

void ca_free(struct ca *ca)
{
    if (!ca)
        return;
    X509_free(ca->cert);
    EVP_PKEY_free(ca->key);
    free(ca);
}

const char *ca_pem(const struct ca *ca)
{
    return ca->pem;
}

/* ---- certificates ---- */

static bool set_serial(X509 *cert)
{
    BIGNUM *n = BN_new();
    bool ok = n && BN_rand(n, SERIAL_BITS, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
              BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
    BN_free(n);
    return ok;
}

static bool put_word(X509_NAME *name, int nid, const char *word)
{
    return X509_NAME_add_entry_by_NID(name, nid, MBSTRING_UTF8, (const unsigned char *)word, -1, -1,
                                      0) == 1;
}

static bool extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = e && X509_add_ext(cert, e, -1) == 1;
    X509_EXTENSION_free(e);
    return ok;
}

/* All but what it is for, and its signature. */
static X509 *begin(EVP_PKEY *key, const char *common, long days)
{
    X509 *cert = X509_new();
    X509_NAME *name = cert ? X509_get_subject_name(cert) : NULL;
    if (name && X509_set_version(cert, X509_VERSION_3) == 1 && set_serial(cert) &&
        put_word(name, NID_organizationName, "Warren") && put_word(name, NID_commonName, common) &&
        X509_set_pubkey(cert, key) == 1 && X509_gmtime_adj(X509_getm_notBefore(cert), -DAY_S) &&
        X509_gmtime_adj(X509_getm_notAfter(cert), days * DAY_S))
        return cert;
    X509_free(cert);
    return NULL;
}

static bool finish(X509 *cert, X509 *issuer, EVP_PKEY *key)
{
    return X509_set_issuer_name(cert, X509_get_subject_name(issuer)) == 1 &&
           extend(cert, issuer, NID_subject_key_identifier, "hash") &&
           (cert == issuer || extend(cert, issuer, NID_authority_key_identifier, "keyid")) &&
           X509_sign(cert, key, EVP_sha256()) > 0;
}

static void name_root(const char *domain, char out[COMMON_SIZE])
{
    if (strlen(domain) <= 40)
        (void)snprintf(out, COMMON_SIZE, "Warren CA for %.40s", domain);
    else
        (void)snprintf(out, COMMON_SIZE, "Warren CA for %.30s... (%08x)", domain,
                       hash_short(domain));
}

static X509 *make_root(EVP_PKEY *key, const char *domain)
{
    char common[COMMON_SIZE], limits[TEXT_MAX];
    name_root(domain, common);
    (void)snprintf(limits, sizeof(limits),
                   "critical,permitted;DNS:%s,permitted;DNS:localhost," LOCAL_RANGES, domain);
    X509 *cert = begin(key, common, CA_DAYS);
    if (cert && extend(cert, cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:1") &&
        extend(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign") &&
        extend(cert, cert, NID_name_constraints, limits) && finish(cert, cert, key))
        return cert;
    X509_free(cert);
    return NULL;
}

static X509 *make_server(const struct ca *ca, EVP_PKEY *key)
{
    char names[TEXT_MAX];
    (void)snprintf(names, sizeof(names), "DNS:%s,DNS:*.%s,DNS:localhost,IP:127.0.0.1,IP:::1",
                   ca->domain, ca->domain);
    X509 *cert = begin(key, "Warren", SERVER_DAYS);
    if (cert && extend(cert, ca->cert, NID_basic_constraints, "critical,CA:FALSE") &&
        extend(cert, ca->cert, NID_key_usage, "critical,digitalSignature") &&
        extend(cert, ca->cert, NID_ext_key_usage, "serverAuth") &&
        extend(cert, ca->cert, NID_subject_alt_name, names) && finish(cert, ca->cert, ca->key))
        return cert;
    X509_free(cert);
    return NULL;
}

static X509 *make_below(const struct ca *ca, EVP_PKEY *key)
{
    char limits[TEXT_MAX];
    (void)snprintf(limits, sizeof(limits), "critical,permitted;DNS:%s", ca->domain);
    X509 *cert = begin(key, "Warren broker CA", BELOW_DAYS);
    if (cert && extend(cert, ca->cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
        extend(cert, ca->cert, NID_key_usage, "critical,keyCertSign") &&
        extend(cert, ca->cert, NID_ext_key_usage, "serverAuth") &&
        extend(cert, ca->cert, NID_name_constraints, limits) && finish(cert, ca->cert, ca->key))
        return cert;
    X509_free(cert);
    return NULL;
}

static int put_pem(X509 *cert, EVP_PKEY *key, struct buf *out)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *p = NULL;
    int r = -EIO;
    if (bio && (!cert || PEM_write_bio_X509(bio, cert) == 1) &&
        (!key || PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1)) {
        long n = BIO_get_mem_data(bio, &p);
        r = buf_append(out, p, (size_t)n);
        OPENSSL_cleanse(p, (size_t)n);
    }
    BIO_free(bio);
    return r;
}

int ca_issue(const struct ca *ca, enum ca_kind kind, struct buf *out, int64_t *ret_until_ms,
             struct err *err)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = !key ? NULL : kind == CA_SERVER ? make_server(ca, key) : make_below(ca, key);
    int r = cert ? put_pem(cert, key, out) : -EIO;
    X509_free(cert);
    EVP_PKEY_free(key);
    if (r < 0)
        return failed(err, "a certificate");
    *ret_until_ms = clock_now_ms() + (kind == CA_SERVER ? SERVER_DAYS : BELOW_DAYS) * DAY_S * 1000;
    return 0;
}

/* ---- at rest ---- */

static int write_file(int dir, const char *name, const struct buf *text, mode_t mode)
{
    char partial[32];
    (void)snprintf(partial, sizeof(partial), "%s.new", name);
    (void)unlinkat(dir, partial, 0);
    _cleanup_fd_ int fd = openat(dir, partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    int r = fd < 0 ? -errno : fd_write_full(fd, text->data, text->len);
    if (r >= 0 && (fsync(fd) < 0 || renameat(dir, partial, dir, name) < 0))
        r = -errno;
    return r;
}

static int make(struct ca *ca, int dir, struct err *err)
{
    _cleanup_(buf_done) struct buf cert = BUF_INIT(PEM_SIZE - 1), key = BUF_INIT(PEM_SIZE);
    X509_free(ca->cert);
    EVP_PKEY_free(ca->key);
    ca->cert = NULL;
    ca->key = EVP_EC_gen("P-256");
    ca->cert = ca->key ? make_root(ca->key, ca->domain) : NULL;
    if (!ca->cert || put_pem(ca->cert, NULL, &cert) < 0 || put_pem(NULL, ca->key, &key) < 0)
        return failed(err, "an authority");
    int r = write_file(dir, KEY_NAME, &key, 0600);
    if (r >= 0)
        r = write_file(dir, CERT_NAME, &cert, 0644);
    explicit_bzero(key.data, key.len);
    if (r < 0)
        return err_set(err, -r, "cannot write the authority's files");
    memcpy(ca->pem, cert.data, cert.len + 1);
    log_info("an authority for local certificates was made; `warren ca trust` trusts it domain=%s",
             ca->domain);
    return 0;
}

/* Whether it can vouch for the domain of now. */
static bool fits(const struct ca *ca)
{
    char common[COMMON_SIZE], now[COMMON_SIZE];
    name_root(ca->domain, now);
    return X509_NAME_get_text_by_NID(X509_get_subject_name(ca->cert), NID_commonName, common,
                                     sizeof(common)) > 0 &&
           strcmp(common, now) == 0 && X509_check_private_key(ca->cert, ca->key) == 1 &&
           X509_cmp_time(X509_get0_notAfter(ca->cert), NULL) > 0;
}

static bool load(struct ca *ca, int dir)
{
    char key[PEM_SIZE];
    ssize_t n = fd_read_file_at(dir, KEY_NAME, key, sizeof(key));
    ssize_t m = fd_read_file_at(dir, CERT_NAME, ca->pem, sizeof(ca->pem));
    BIO *key_bio = n > 0 ? BIO_new_mem_buf(key, (int)n) : NULL;
    BIO *cert_bio = m > 0 ? BIO_new_mem_buf(ca->pem, (int)m) : NULL;
    if (key_bio)
        ca->key = PEM_read_bio_PrivateKey(key_bio, NULL, NULL, NULL);
    if (cert_bio)
        ca->cert = PEM_read_bio_X509(cert_bio, NULL, NULL, NULL);
    BIO_free(key_bio);
    BIO_free(cert_bio);
    explicit_bzero(key, sizeof(key));
    ERR_clear_error();
    return ca->key && ca->cert && fits(ca);
}

int ca_open(const char *dir, const char *domain, struct ca **ret_ca, struct err *err)
{
    _cleanup_(ca_freep) struct ca *ca = calloc(1, sizeof(*ca));
    if (!ca)
        return err_set(err, ENOMEM, "cannot allocate the authority");
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot make '%s'", dir);
    _cleanup_fd_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "cannot open '%s'", dir);
    (void)snprintf(ca->domain, sizeof(ca->domain), "%s", domain);
    int r = load(ca, fd) ? 0 : make(ca, fd, err);
    if (r >= 0)
        *ret_ca = take_ptr(ca);
    return r;
}
