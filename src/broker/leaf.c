#include "broker/leaf.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "broker/serve.h"
#include "net/host.h"

#define DAY_S 86400L
#define GOOD_DAYS 8 /* how long a leaf is valid; it is made again each day */
#define SERIAL_BITS 127
#define COMMON_MAX 64 /* a common name has no room for more; it is decoration */

struct leaf {
    struct leaf *next;
    SSL_CTX *ctx;
    int64_t mono_ms; /* when it was made */
    char host[HOST_SIZE];
};

struct leaves {
    X509 *ca;
    EVP_PKEY *ca_key, *key;
    struct leaf *first; /* the one that was used last */
    size_t n;
};

static void leaf_free(struct leaf *leaf)
{
    SSL_CTX_free(leaf->ctx);
    free(leaf);
}

int leaves_new(const char *pem, size_t n, struct leaves **ret_leaves, struct err *err)
{
    _cleanup_(leaves_freep) struct leaves *l = calloc(1, sizeof(*l));
    BIO *bio = l && n < INT32_MAX ? BIO_new_mem_buf(pem, (int)n) : NULL;
    if (bio)
        l->ca = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    if (bio && BIO_reset(bio) == 1)
        l->ca_key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    BIO_free(bio);
    if (!l || !l->ca || !l->ca_key || X509_check_private_key(l->ca, l->ca_key) != 1) {
        ERR_clear_error();
        return err_set(err, EINVAL, "cannot read a CA's certificate and key");
    }
    l->key = EVP_EC_gen("P-256");
    if (!l->key)
        return err_set(err, ENOMEM, "cannot make a key");
    *ret_leaves = take_ptr(l);
    return 0;
}

void leaves_free(struct leaves *l)
{
    if (!l)
        return;
    for (struct leaf *leaf = l->first, *next; leaf; leaf = next) {
        next = leaf->next;
        leaf_free(leaf);
    }
    X509_free(l->ca);
    EVP_PKEY_free(l->ca_key);
    EVP_PKEY_free(l->key);
    free(l);
}

/* ---- a certificate ---- */

static int set_serial(X509 *cert)
{
    BIGNUM *n = BN_new();
    int ok = n && BN_rand(n, SERIAL_BITS, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
             BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert)) != NULL;
    BN_free(n);
    return ok;
}

static int set_name(X509 *cert, const char *host)
{
    X509_NAME *name = X509_get_subject_name(cert);
    return strlen(host) > COMMON_MAX ||
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)host, -1, -1,
                                      0) == 1;
}

static int add_extension(X509 *cert, X509 *ca, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, ca, cert, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    int ok = e && X509_add_ext(cert, e, -1) == 1;
    X509_EXTENSION_free(e);
    return ok;
}

static X509 *make_certificate(struct leaves *l, const char *host)
{
    char names[HOST_SIZE + 8];
    X509 *cert = X509_new();
    (void)snprintf(names, sizeof(names), "DNS:%s", host);
    int ok = cert && X509_set_version(cert, X509_VERSION_3) == 1 && set_serial(cert) &&
             set_name(cert, host) &&
             X509_set_issuer_name(cert, X509_get_subject_name(l->ca)) == 1 &&
             X509_gmtime_adj(X509_getm_notBefore(cert), -DAY_S) &&
             X509_gmtime_adj(X509_getm_notAfter(cert), GOOD_DAYS * DAY_S) &&
             X509_set_pubkey(cert, l->key) == 1 &&
             add_extension(cert, l->ca, NID_basic_constraints, "critical,CA:FALSE") &&
             add_extension(cert, l->ca, NID_key_usage, "critical,digitalSignature") &&
             add_extension(cert, l->ca, NID_ext_key_usage, "serverAuth") &&
             add_extension(cert, l->ca, NID_subject_key_identifier, "hash") &&
             (!X509_get0_subject_key_id(l->ca) ||
              add_extension(cert, l->ca, NID_authority_key_identifier, "keyid")) &&
             add_extension(cert, l->ca, NID_subject_alt_name, names) &&
             X509_sign(cert, l->ca_key, EVP_sha256()) > 0;
    if (ok)
        return cert;
    X509_free(cert);
    return NULL;
}

/* ---- what serves it ---- */

static SSL_CTX *make_context(struct leaves *l, X509 *cert)
{
    SSL_CTX *ctx = serve_context(true); /* what else a client wants we could not read */
    if (!ctx || SSL_CTX_use_certificate(ctx, cert) != 1 ||
        /* a client that trusts another authority's must be shown what lies between */
        (!(X509_get_extension_flags(l->ca) & EXFLAG_SS) &&
         SSL_CTX_add1_chain_cert(ctx, l->ca) != 1) ||
        SSL_CTX_use_PrivateKey(ctx, l->key) != 1 || SSL_CTX_set_num_tickets(ctx, 0) != 1) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
    return ctx;
}

static struct leaf *make_leaf(struct leaves *l, const char *host)
{
    X509 *cert = make_certificate(l, host);
    SSL_CTX *ctx = cert ? make_context(l, cert) : NULL;
    struct leaf *leaf = ctx ? calloc(1, sizeof(*leaf)) : NULL;
    X509_free(cert);
    if (!leaf) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    leaf->ctx = ctx;
    leaf->mono_ms = clock_mono_ms();
    (void)snprintf(leaf->host, sizeof(leaf->host), "%s", host);
    return leaf;
}

/* Out of the list; NULL: there is none, or it is too old. */
static struct leaf *find_leaf(struct leaves *l, const char *host)
{
    struct leaf **at = &l->first;
    while (*at && strcmp((*at)->host, host) != 0)
        at = &(*at)->next;
    struct leaf *leaf = *at;
    if (!leaf)
        return NULL;
    *at = leaf->next;
    l->n--;
    if (clock_mono_ms() - leaf->mono_ms < DAY_S * 1000)
        return leaf;
    leaf_free(leaf);
    return NULL;
}

static void drop_last(struct leaves *l)
{
    struct leaf **at = &l->first;
    while ((*at)->next)
        at = &(*at)->next;
    leaf_free(*at);
    *at = NULL;
    l->n--;
}

struct ssl_ctx_st *leaves_context(struct leaves *l, const char *host)
{
    ERR_clear_error();
    struct leaf *leaf = find_leaf(l, host);
    if (!leaf)
        leaf = make_leaf(l, host);
    if (!leaf)
        return NULL;
    leaf->next = l->first;
    l->first = leaf;
    if (++l->n > LEAVES_MAX)
        drop_last(l);
    return leaf->ctx;
}

struct ssl_st *leaves_accept(struct leaves *l, const char *host)
{
    SSL_CTX *ctx = leaves_context(l, host);
    SSL *ssl = ctx ? SSL_new(ctx) : NULL;
    if (ssl)
        SSL_set_accept_state(ssl);
    return ssl;
}
