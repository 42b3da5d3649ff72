// OpenSSL 3. SHA256_CTX and MD5_CTX are deprecated there, yet copying a keyed context is what makes an HMAC cost
// a fifth of `HMAC()`; hence the macro.
#pragma once
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/md5.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// Function-like macros do not import into Swift.
static inline long cs_ssl_ctx_set_min_proto(SSL_CTX *c, int v) { return SSL_CTX_set_min_proto_version(c, v); }
static inline long cs_ssl_ctx_set_max_proto(SSL_CTX *c, int v) { return SSL_CTX_set_max_proto_version(c, v); }
static inline long cs_ssl_ctx_set_mode(SSL_CTX *c, long m) { return SSL_CTX_set_mode(c, m); }

// A client may change its keys (TLS 1.3) or ask for another handshake (TLS 1.2) so many times on one connection, which is then at its end.
// OpenSSL answers each inside one SSL_read, for as long as they come. Counted in the SSL object; not called for records of data.
enum { CS_MOST_REKEYINGS = 16 };
static inline void cs_ssl_count_rekeying(const SSL *const_ssl, int where, int value) {
    SSL *ssl = (SSL *)const_ssl;
    int is_rekeying = where == SSL_CB_ACCEPT_LOOP && SSL_get_state(ssl) == TLS_ST_SR_KEY_UPDATE;
    int is_refused = (where & SSL_CB_WRITE_ALERT) == SSL_CB_WRITE_ALERT && (value & 0xFF) == SSL_AD_NO_RENEGOTIATION;
    if (!is_rekeying && !is_refused) return;
    long count = (long)SSL_get_app_data(ssl) + 1;
    SSL_set_app_data(ssl, (void *)count);
    // As if the other side had said goodbye: what it sends from here on is thrown away.
    if (count > CS_MOST_REKEYINGS) SSL_set_shutdown(ssl, SSL_get_shutdown(ssl) | SSL_RECEIVED_SHUTDOWN);
}
static inline void cs_ssl_ctx_limit_rekeying(SSL_CTX *c) { SSL_CTX_set_info_callback(c, cs_ssl_count_rekeying); }
static inline long cs_ssl_ctx_set_read_ahead(SSL_CTX *c, int on) { return SSL_CTX_set_read_ahead(c, on); }
static inline long cs_ssl_ctx_set_groups(SSL_CTX *c, const char *list) { return SSL_CTX_set1_groups_list(c, list); }
static inline void cs_ssl_ctx_set_plain_master_secret(SSL_CTX *c) { SSL_CTX_set_options(c, SSL_OP_NO_EXTENDED_MASTER_SECRET); }
static inline long cs_ssl_set_host_name(SSL *s, const char *name) { return SSL_set_tlsext_host_name(s, (void *)name); }
static inline EVP_PKEY *cs_ec_p256_generate(void) { return EVP_EC_gen("P-256"); }
static inline void cs_openssl_free(void *p) { OPENSSL_free(p); }
static inline void cs_openssl_clear_free(void *p, size_t n) { OPENSSL_clear_free(p, n); }
static inline int cs_x509_count(const STACK_OF(X509) *s) { return s ? sk_X509_num(s) : 0; }
static inline X509 *cs_x509_at(const STACK_OF(X509) *s, int i) { return sk_X509_value(s, i); }
static inline STACK_OF(X509) *cs_x509_list(void) { return sk_X509_new_null(); }
static inline int cs_x509_append(STACK_OF(X509) *s, X509 *c) { return sk_X509_push(s, c); }
static inline void cs_x509_list_free(STACK_OF(X509) *s) { sk_X509_pop_free(s, X509_free); }
static inline EVP_PKEY *cs_rsa_generate(unsigned bits) { return EVP_RSA_gen(bits); }

// A place in an SSL_CTX for an object of ours; `release` is called when the context goes.
static inline int cs_ssl_ctx_place(CRYPTO_EX_free *release) {
    return CRYPTO_get_ex_new_index(CRYPTO_EX_INDEX_SSL_CTX, 0, 0, 0, 0, release);
}

// Certificate status (OCSP) that a server staples to its handshake.
static inline int cs_ssl_ctx_ask_status(SSL_CTX *c, int (*f)(SSL *, void *), void *argument) {
    return SSL_CTX_set_tlsext_status_type(c, TLSEXT_STATUSTYPE_ocsp) == 1 &&
           SSL_CTX_set_tlsext_status_cb(c, f) == 1 && SSL_CTX_set_tlsext_status_arg(c, argument) == 1;
}
static inline int cs_ssl_ctx_give_status(SSL_CTX *c, int (*f)(SSL *, void *), void *argument) {
    return SSL_CTX_set_tlsext_status_cb(c, f) == 1 && SSL_CTX_set_tlsext_status_arg(c, argument) == 1;
}
static inline long cs_ssl_status(SSL *s, const unsigned char **bytes) { return SSL_get_tlsext_status_ocsp_resp(s, bytes); }
static inline long cs_ssl_set_status(SSL *s, const unsigned char *bytes, long count) {
    void *copy = OPENSSL_memdup(bytes, (size_t)count);
    return copy ? SSL_set_tlsext_status_ocsp_resp(s, copy, count) : 0;
}
static inline long cs_ssl_ctx_append(SSL_CTX *c, X509 *certificate) { return SSL_CTX_add1_chain_cert(c, certificate); }
