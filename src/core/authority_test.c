#include "core/authority.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/check.h"

static X509 *cert_of(const struct authority *a)
{
    BIO *bio = BIO_new_mem_buf(a->cert, -1);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    CHECK(cert != NULL);
    return cert;
}

static EVP_PKEY *key_of(const struct authority *a)
{
    BIO *bio = BIO_new_mem_buf(a->key, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    BIO_free(bio);
    CHECK(key != NULL);
    return key;
}

TEST(an_authority_is_the_same_whenever_it_is_made_and_another_for_each_sandbox)
{
    static const unsigned char one[SEAL_KEY_BYTES] = { 1 }, two[SEAL_KEY_BYTES] = { 2 };
    _cleanup_(authority_done) struct authority a = { 0 };
    _cleanup_(authority_done) struct authority again = { 0 };
    _cleanup_(authority_done) struct authority other = { 0 };
    _cleanup_(authority_done) struct authority elsewhere = { 0 };
    CHECK_OK(authority_make(one, "a0000000000000000000", &a, NULL));
    CHECK_OK(authority_make(one, "a0000000000000000000", &again, NULL));
    CHECK_OK(authority_make(one, "b0000000000000000000", &other, NULL));
    CHECK_OK(authority_make(two, "a0000000000000000000", &elsewhere, NULL));
    CHECK_STR(a.key, again.key);
    CHECK_STR(a.hash, again.hash);
    CHECK(strcmp(a.key, other.key) != 0);
    CHECK(strcmp(a.hash, other.hash) != 0);
    CHECK(strcmp(a.key, elsewhere.key) != 0);
}

TEST(an_authority_may_sign_for_hosts_and_for_no_further_authority)
{
    static const unsigned char key[SEAL_KEY_BYTES] = { 7 };
    _cleanup_(authority_done) struct authority a = { 0 };
    CHECK_OK(authority_make(key, "a0000000000000000000", &a, NULL));
    X509 *cert = cert_of(&a);
    EVP_PKEY *own = key_of(&a);
    CHECK_EQ(X509_check_private_key(cert, own), 1);
    CHECK_EQ(X509_verify(cert, own), 1);
    CHECK_EQ(X509_check_ca(cert), 1);
    CHECK_EQ(X509_get_pathlen(cert), 0);
    CHECK_EQ(X509_get_key_usage(cert), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
    CHECK(X509_cmp_current_time(X509_get0_notBefore(cert)) < 0);
    CHECK(X509_cmp_current_time(X509_get0_notAfter(cert)) > 0);
    CHECK(!strstr(a.cert, "PRIVATE"));
    X509_free(cert);
    EVP_PKEY_free(own);
}
