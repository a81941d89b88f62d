#include "core/ca.h"

#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/clock.h"

static X509 *first_of(const char *pem, size_t n)
{
    BIO *bio = BIO_new_mem_buf(pem, (int)n);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    CHECK(cert != NULL);
    return cert;
}

/* Whether who trusts the authority takes this certificate for that name. */
static bool is_taken(const struct ca *ca, const struct buf *pem, const char *host)
{
    X509 *root = first_of(ca_pem(ca), strlen(ca_pem(ca))), *cert = first_of(pem->data, pem->len);
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    CHECK(X509_STORE_add_cert(store, root) == 1);
    CHECK(X509_STORE_CTX_init(ctx, store, cert, NULL) == 1);
    bool ok = X509_verify_cert(ctx) == 1 && X509_check_host(cert, host, 0, 0, NULL) == 1;
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    X509_free(root);
    X509_free(cert);
    return ok;
}

TEST(it_vouches_for_its_domain_and_is_the_same_again)
{
    char dir[] = "/tmp/ca-test-XXXXXX", path[64], first[16 * 1024];
    _cleanup_(ca_freep) struct ca *ca = NULL, *again = NULL, *other = NULL;
    _cleanup_(buf_done) struct buf pem = BUF_INIT(1 << 16);
    int64_t until = 0;
    struct stat st;
    CHECK(mkdtemp(dir) != NULL);
    (void)snprintf(path, sizeof(path), "%s/ca", dir);
    CHECK_OK(ca_open(path, "box.example.com", &ca, NULL));
    CHECK_OK(ca_issue(ca, CA_SERVER, &pem, &until, NULL));
    CHECK(until > clock_now_ms());
    CHECK(is_taken(ca, &pem, "box.example.com"));
    CHECK(is_taken(ca, &pem, "3000-abc.box.example.com"));
    CHECK(!is_taken(ca, &pem, "other.example.com"));
    (void)snprintf(first, sizeof(first), "%s", ca_pem(ca));
    CHECK_OK(ca_open(path, "box.example.com", &again, NULL));
    CHECK_STR(ca_pem(again), first);
    /* Another domain has another authority, which does not vouch for the first one. */
    CHECK_OK(ca_open(path, "else.example.com", &other, NULL));
    CHECK(strcmp(ca_pem(other), first) != 0);
    CHECK(!is_taken(other, &pem, "box.example.com"));
    (void)snprintf(path, sizeof(path), "%s/ca/ca.key", dir);
    CHECK_OK(stat(path, &st));
    CHECK_EQ(st.st_mode & 0777, 0600);
    (void)unlink(path);
    (void)snprintf(path, sizeof(path), "%s/ca/ca.pem", dir);
    (void)unlink(path);
    (void)snprintf(path, sizeof(path), "%s/ca", dir);
    (void)rmdir(path);
    (void)rmdir(dir);
}
