/* leaf_kit - a CA, and certificates by it, for tests. */
#pragma once
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/check.h"

/* pem: certificate and key */
struct authority {
    X509 *cert;
    EVP_PKEY *key;
    char *pem;
    size_t n;
};

static inline struct authority make_authority(void)
{
    struct authority a = { X509_new(), EVP_EC_gen("P-256"), NULL, 0 };
    X509_NAME *name = X509_get_subject_name(a.cert);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:TRUE");
    BIO *bio = BIO_new(BIO_s_mem());
    char *p;
    (void)X509_set_version(a.cert, X509_VERSION_3);
    (void)X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"a CA", -1,
                                     -1, 0);
    (void)X509_set_issuer_name(a.cert, name);
    (void)X509_gmtime_adj(X509_getm_notBefore(a.cert), -10);
    (void)X509_gmtime_adj(X509_getm_notAfter(a.cert), 1000);
    (void)X509_set_pubkey(a.cert, a.key);
    (void)X509_add_ext(a.cert, e, -1);
    X509_EXTENSION_free(e);
    CHECK(X509_sign(a.cert, a.key, EVP_sha256()) > 0);
    CHECK(PEM_write_bio_X509(bio, a.cert) == 1);
    CHECK(PEM_write_bio_PrivateKey(bio, a.key, NULL, NULL, 0, NULL, NULL) == 1);
    a.n = (size_t)BIO_get_mem_data(bio, &p);
    a.pem = memcpy(malloc(a.n), p, a.n);
    BIO_free(bio);
    return a;
}

static inline void authority_done(struct authority *a)
{
    X509_free(a->cert);
    EVP_PKEY_free(a->key);
    free(a->pem);
}
