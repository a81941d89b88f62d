#include "broker/leaf.h"

#include "broker/leaf_kit.h"

/* A client that trusts this CA and no other meets the server; what came of it. */
static long meet(struct leaves *l, X509 *ca, const char *served, const char *wanted)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    (void)X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), ca);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL *client = SSL_new(ctx), *server = leaves_accept(l, served);
    BIO *a, *b;
    CHECK(server);
    CHECK_EQ(BIO_new_bio_pair(&a, 0, &b, 0), 1);
    SSL_set_bio(client, a, a);
    SSL_set_bio(server, b, b);
    (void)SSL_set1_host(client, wanted);
    SSL_set_connect_state(client);
    int c = 0;
    for (int i = 0; i < 10 && c != 1; i++) {
        c = SSL_do_handshake(client);
        (void)SSL_do_handshake(server);
    }
    long r = SSL_get_verify_result(client);
    CHECK_EQ(c == 1, r == X509_V_OK);
    SSL_free(client);
    SSL_free(server);
    SSL_CTX_free(ctx);
    return r;
}

TEST(a_client_that_trusts_the_ca_trusts_its_leaves_for_their_name_alone)
{
    struct authority mine = make_authority(), other = make_authority();
    struct leaves *l = NULL;
    CHECK_OK(leaves_new(mine.pem, mine.n, &l, NULL));
    CHECK_EQ(meet(l, mine.cert, "api.test", "api.test"), X509_V_OK);
    CHECK_EQ(meet(l, mine.cert, "api.test", "www.test"), X509_V_ERR_HOSTNAME_MISMATCH);
    CHECK(meet(l, other.cert, "api.test", "api.test") != X509_V_OK);
    leaves_free(l);
    authority_done(&mine);
    authority_done(&other);
}

TEST(more_names_than_are_kept_are_made_again)
{
    struct authority a = make_authority();
    struct leaves *l = NULL;
    char host[32];
    CHECK_OK(leaves_new(a.pem, a.n, &l, NULL));
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < LEAVES_MAX + 3; i++) {
            (void)snprintf(host, sizeof(host), "h%d.test", i);
            SSL *ssl = leaves_accept(l, host);
            CHECK(ssl);
            SSL_free(ssl);
        }
    CHECK_EQ(meet(l, a.cert, "h1.test", "h1.test"), X509_V_OK);
    leaves_free(l);
    authority_done(&a);
}

TEST(what_is_no_ca_is_refused)
{
    struct leaves *l = NULL;
    CHECK(leaves_new("nothing", 7, &l, NULL) < 0);
    CHECK(!l);
}
