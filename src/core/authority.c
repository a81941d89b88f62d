#include "core/authority.h"

#include <errno.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#define SCALAR_BYTES 40 /* 8 more than the curve's order: what is cut off leaves no bias */
#define SERIAL_BYTES 15
#define DERIVED (SCALAR_BYTES + SERIAL_BYTES)
#define CURVE "prime256v1"
#define POINT_BYTES 65
#define SCALAR_SIZE 32

/* The same for every sandbox and daemon: clocks inside may be off, and it goes with the sandbox. */
#define VALID_FROM "20240101000000Z"
#define VALID_TO "20491231235959Z"

#define FREER(type_, fn_)               \
    static void free_##type_(type_ **p) \
    {                                   \
        fn_(*p);                        \
    }
FREER(EVP_KDF, EVP_KDF_free)
FREER(EVP_KDF_CTX, EVP_KDF_CTX_free)
FREER(BIGNUM, BN_clear_free)
FREER(BN_CTX, BN_CTX_free)
FREER(EC_GROUP, EC_GROUP_free)
FREER(EC_POINT, EC_POINT_free)
FREER(EVP_PKEY_CTX, EVP_PKEY_CTX_free)
FREER(EVP_PKEY, EVP_PKEY_free)
FREER(OSSL_PARAM_BLD, OSSL_PARAM_BLD_free)
FREER(OSSL_PARAM, OSSL_PARAM_free)
FREER(X509, X509_free)
FREER(BIO, BIO_free_all)
FREER(ASN1_INTEGER, ASN1_INTEGER_free)
#define _free_(type_) _cleanup_(free_##type_) type_

static int derive(const unsigned char *key, const char *id, unsigned char out[DERIVED])
{
    char info[96];
    _free_(EVP_KDF) *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    _free_(EVP_KDF_CTX) *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
    int n = snprintf(info, sizeof(info), "warren sandbox authority 1 %s", id);
    if (!ctx || n < 0 || (size_t)n >= sizeof(info))
        return -ENOMEM;
    char digest[] = "SHA256";
    unsigned char secret[SEAL_KEY_BYTES];
    memcpy(secret, key, sizeof(secret));
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret, sizeof(secret)),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, (size_t)n),
        OSSL_PARAM_construct_end(),
    };
    int good = EVP_KDF_derive(ctx, out, DERIVED, params);
    explicit_bzero(secret, sizeof(secret));
    return good == 1 ? 0 : -EIO;
}

/* 1 to the curve's order less 1, and its point. */
static int find_point(const unsigned char *seed, BIGNUM *scalar, unsigned char point[POINT_BYTES])
{
    _free_(BN_CTX) *ctx = BN_CTX_new();
    _free_(EC_GROUP) *group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    _free_(EC_POINT) *at = group ? EC_POINT_new(group) : NULL;
    _free_(BIGNUM) *most = group ? BN_dup(EC_GROUP_get0_order(group)) : NULL;
    if (!ctx || !at || !most || !BN_sub_word(most, 1) || !BN_bin2bn(seed, SCALAR_BYTES, scalar) ||
        !BN_mod(scalar, scalar, most, ctx) || !BN_add_word(scalar, 1) ||
        !EC_POINT_mul(group, at, scalar, NULL, NULL, ctx) ||
        EC_POINT_point2oct(group, at, POINT_CONVERSION_UNCOMPRESSED, point, POINT_BYTES, ctx) !=
            POINT_BYTES)
        return -EIO;
    return 0;
}

static EVP_PKEY *make_key(const unsigned char *seed)
{
    unsigned char point[POINT_BYTES];
    EVP_PKEY *key = NULL;
    _free_(BIGNUM) *scalar = BN_new();
    _free_(OSSL_PARAM_BLD) *build = OSSL_PARAM_BLD_new();
    if (!scalar || !build || find_point(seed, scalar, point) < 0 ||
        !OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, CURVE, 0) ||
        !OSSL_PARAM_BLD_push_BN_pad(build, OSSL_PKEY_PARAM_PRIV_KEY, scalar, SCALAR_SIZE) ||
        !OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point, POINT_BYTES))
        return NULL;
    _free_(OSSL_PARAM) *params = OSSL_PARAM_BLD_to_param(build);
    _free_(EVP_PKEY_CTX) *ctx = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    if (!params || !ctx || EVP_PKEY_fromdata_init(ctx) != 1 ||
        EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_KEYPAIR, params) != 1)
        return NULL;
    return key;
}

static int extend(X509 *cert, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    int good = ext ? X509_add_ext(cert, ext, -1) : 0;
    X509_EXTENSION_free(ext);
    return good ? 0 : -EIO;
}

static int name_it(X509 *cert, const char *id)
{
    char text[64];
    X509_NAME *name = X509_get_subject_name(cert);
    (void)snprintf(text, sizeof(text), "Warren sandbox %s", id);
    if (!X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const unsigned char *)"Warren", -1,
                                    -1, 0) ||
        !X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)text, -1, -1,
                                    0) ||
        !X509_set_issuer_name(cert, name))
        return -EIO;
    return 0;
}

static int number_it(X509 *cert, unsigned char *serial)
{
    serial[0] = (serial[0] & 0x7f) | 0x40; /* positive, and of one length */
    _free_(BIGNUM) *number = BN_bin2bn(serial, SERIAL_BYTES, NULL);
    _free_(ASN1_INTEGER) *text = number ? BN_to_ASN1_INTEGER(number, NULL) : NULL;
    return text && X509_set_serialNumber(cert, text) ? 0 : -EIO;
}

static X509 *make_cert(EVP_PKEY *key, const char *id, unsigned char *serial)
{
    X509 *cert = X509_new();
    if (cert && X509_set_version(cert, 2) && number_it(cert, serial) == 0 &&
        name_it(cert, id) == 0 && X509_set_pubkey(cert, key) &&
        ASN1_TIME_set_string_X509(X509_getm_notBefore(cert), VALID_FROM) &&
        ASN1_TIME_set_string_X509(X509_getm_notAfter(cert), VALID_TO) &&
        extend(cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") == 0 &&
        extend(cert, NID_key_usage, "critical,keyCertSign,cRLSign") == 0 &&
        extend(cert, NID_subject_key_identifier, "hash") == 0 &&
        X509_sign(cert, key, EVP_sha256()) > 0)
        return cert;
    X509_free(cert);
    return NULL;
}

static char *take_text(BIO *bio)
{
    char *p = NULL;
    long n = BIO_get_mem_data(bio, &p);
    return n > 0 ? strndup(p, (size_t)n) : NULL;
}

static int write_pem(X509 *cert, EVP_PKEY *key, struct authority *a)
{
    _free_(BIO) *c = BIO_new(BIO_s_mem());
    _free_(BIO) *k = BIO_new(BIO_s_secmem()); /* it wipes what it held */
    if (!c || !k || PEM_write_bio_X509(c, cert) != 1 ||
        PEM_write_bio_PrivateKey(k, key, NULL, NULL, 0, NULL, NULL) != 1)
        return -EIO;
    a->cert = take_text(c);
    a->key = take_text(k);
    (void)snprintf(a->hash, sizeof(a->hash), "%08lx", X509_subject_name_hash(cert) & 0xfffffffful);
    return a->cert && a->key ? 0 : -ENOMEM;
}

int authority_make(const unsigned char key[SEAL_KEY_BYTES], const char *id, struct authority *ret_a,
                   struct err *err)
{
    _cleanup_(authority_done) struct authority a = { 0 };
    unsigned char derived[DERIVED];
    int r = derive(key, id, derived);
    _free_(EVP_PKEY) *pkey = r < 0 ? NULL : make_key(derived);
    _free_(X509) *cert = pkey ? make_cert(pkey, id, derived + SCALAR_BYTES) : NULL;
    explicit_bzero(derived, sizeof(derived));
    r = cert ? write_pem(cert, pkey, &a) : -EIO;
    if (r < 0)
        return err_set(err, -r, "cannot make the authority of '%s'", id);
    *ret_a = a;
    a = (struct authority){ 0 };
    return 0;
}

void authority_done(struct authority *a)
{
    if (a->key)
        explicit_bzero(a->key, strlen(a->key));
    free(a->key);
    free(a->cert);
    *a = (struct authority){ 0 };
}
