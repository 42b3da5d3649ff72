/* A client for script/bench: N connections, each with one request under way, kept alive. Every request is signed for
 * itself (its own nonce, `rand` or number) before the clock starts, so that a server's check is real and the client
 * costs the same whoever answers. A connection that the server ends behind an answer is opened anew.
 *
 * Every answer is checked: its status, its length, and that its head and body are the ones that backend.c makes for this
 * very request when it has arrived whole (whole.h). The first fault ends the program with exit status 1. Prints one JSON
 * object.
 *
 *   load --port P --authority HOST:PORT --scheme NAME --key-id ID --secret HEX --requests N --connections C [--body BYTES]
 *        [--answer BYTES] [--release ID] [--device-key FILE] [--keyed] [--tls] [--status N [--contains TEXT]]
 *
 * --scheme is message-signatures, form-md5, auth-v1, sigv4 or none. A request with a body is a POST, one without a GET;
 * form-md5 sends its form as the body, filled up to BYTES. --release is the calling release where the key is a
 * session's, and --device-key the device's P-256 key (PKCS #8, DER), which then signs, too. --keyed gives each request an
 * Idempotency-Key of its own: with one key for all, a server that does a keyed request once would answer all but the
 * first out of its memory. --sources N makes the connections from N addresses, of which --source K is the first.
 * --status expects a refusal, whose body contains TEXT.
 *
 * --key-ids FILE has a key id in each line, which the requests use in turn in place of --key-id: sessions that share one
 * secret. --prepared FILE has whole requests, each behind its length (four bytes, little-endian), which are sent as they
 * are, once each, in place of those above; then an answer is checked for its status and framing alone, and --answers FILE
 * gets the bodies of all answers in the order of the requests, each behind its length.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "whole.h"

#define HEAD_MAX 3072
/* A body up to this size is sent with its head in one call. */
#define JOINED_BODY 4096
#define ANSWER_HEAD_MAX 2048
#define PATH "/api/v1/orders"

static int port, sources = 1, first_source, total = 10000, connections = 64, body_length, is_keyed, uses_tls, answer_length, status = 200;
static const char *authority = "127.0.0.1", *scheme = "message-signatures", *key_id = "", *release, *secret_hex = "",
                  *device_key_file, *contained = "", *key_ids_file, *prepared_file, *answers_file;

static void fail(const char *what) {
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void fault(const char *what, int request, const char *answer, int length) {
    fprintf(stderr, "load: request %d: %s\n", request, what);
    /* Not as text: a NUL stands where the head ends. */
    fwrite(answer, 1, length > 1500 ? 1500 : length, stderr);
    exit(1);
}

/* Text that grows in a buffer. */

struct text {
    char *bytes;
    int length, capacity;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    text->length += vsnprintf(text->bytes + text->length, text->capacity - text->length, format, arguments);
    va_end(arguments);
    if (text->length >= text->capacity) fail("a request is too long");
}

#define TEXT(name, size) \
    char name##_bytes[size] = ""; \
    struct text name = {name##_bytes, 0, size}

/* Keys and digests. */

static unsigned char secret[64];
static int secret_length;
static EVP_PKEY *device_key;

static void base64(char *to, const unsigned char *from, int count) { EVP_EncodeBlock((unsigned char *)to, from, count); }

static void hexadecimal(char *to, const unsigned char *from, int count) {
    for (int i = 0; i < count; i++) sprintf(to + 2 * i, "%02x", from[i]);
}

static void mac(unsigned char *to, const void *key, int key_length, const struct text *text) {
    HMAC(EVP_sha256(), key, key_length, (const unsigned char *)text->bytes, text->length, to, NULL);
}

static void digest(unsigned char *to, const EVP_MD *type, const void *bytes, int count) {
    EVP_Digest(bytes, count, to, NULL, type, NULL);
}

static void random_word(char *to, int bytes) {
    unsigned char random[16];
    RAND_bytes(random, bytes);
    hexadecimal(to, random, bytes);
}

static void read_keys(void) {
    for (const char *c = secret_hex; c[0] && c[1] && secret_length < (int)sizeof secret; c += 2)
        sscanf(c, "%2hhx", &secret[secret_length++]);
    if (!device_key_file) return;
    FILE *file = fopen(device_key_file, "rb");
    if (!file) fail(device_key_file);
    device_key = d2i_PrivateKey_fp(file, NULL);
    fclose(file);
    if (!device_key) fail("not a private key");
}

/* ECDSA as RFC 9421 has it: r and s, 32 bytes each. */
static void device_signature(unsigned char *to, const struct text *text) {
    unsigned char der[96];
    const unsigned char *at = der;
    size_t length = sizeof der;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, device_key) != 1 ||
        EVP_DigestSign(context, der, &length, (const unsigned char *)text->bytes, text->length) != 1)
        fail("the device's signature");
    EVP_MD_CTX_free(context);
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &at, length);
    BN_bn2binpad(ECDSA_SIG_get0_r(pair), to, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(pair), to + 32, 32);
    ECDSA_SIG_free(pair);
}

/* Requests, written before the clock starts. */

struct request {
    /* The head, and the body if that is short. */
    char *bytes;
    int length;
    uint64_t head_sum, body_sum;
    /* The body of its answer, if it was prepared. */
    char *answer;
    uint32_t answer_length;
};

/* What all schemes say of one request. */
struct plan {
    const char *method;
    time_t now;
    struct text *target, *fields, *body;
    const char *key;
};

static struct request *requests;
/* The key ids that take turns; none without --key-ids. */
static char **key_ids;
static int key_id_count;
static char *shared_body, body_digest[96];
static unsigned int key_prefix;

static int is_scheme(const char *name) { return !strcmp(scheme, name); }

static void sign_message(struct plan *plan) {
    char nonce[33], text[128];
    unsigned char bytes[64];
    TEXT(names, 256);
    TEXT(values, 1024);
    TEXT(parameters, 768);
    TEXT(base, 3072);
    if (body_length) {
        add(&names, " \"accept-language\" \"content-type\"%s \"content-digest\"", is_keyed ? " \"idempotency-key\"" : "");
        add(&values, "\"accept-language\": en-GB,en;q=0.8\n\"content-type\": application/json\n");
        if (is_keyed) add(&values, "\"idempotency-key\": %s\n", plan->key);
        add(&values, "\"content-digest\": %s\n", body_digest);
    }
    random_word(nonce, 12);
    add(&parameters,
        "(\"@method\" \"@authority\" \"@path\" \"@query\" \"countersign-release\"%s);created=%ld;nonce=\"%s\";keyid=\"%s\";"
        "alg=\"hmac-sha256\";tag=\"countersign\"",
        names.bytes, (long)plan->now, nonce, key_id);
    add(&base,
        "\"@method\": %s\n\"@authority\": %s\n\"@path\": " PATH "\n\"@query\": %s\n\"countersign-release\": %s\n%s"
        "\"@signature-params\": %s",
        plan->method, authority, plan->target->bytes + strlen(PATH), release, values.bytes, parameters.bytes);
    mac(bytes, secret, secret_length, &base);
    base64(text, bytes, 32);
    TEXT(device, 512);
    char device_text[128];
    if (device_key) {
        TEXT(covered, 1024);
        add(&device, "(\"signature\";key=\"app\");created=%ld;keyid=\"%s\";alg=\"ecdsa-p256-sha256\";tag=\"countersign-device\"",
            (long)plan->now, key_id);
        add(&covered, "\"signature\";key=\"app\": :%s:\n\"@signature-params\": %s", text, device.bytes);
        device_signature(bytes, &covered);
        base64(device_text, bytes, 64);
    }
    add(plan->fields, "Countersign-Release: %s\r\nSignature-Input: app=%s", release, parameters.bytes);
    if (device_key) add(plan->fields, ", device=%s", device.bytes);
    add(plan->fields, "\r\nSignature: app=:%s:", text);
    if (device_key) add(plan->fields, ", device=:%s:", device_text);
    add(plan->fields, "\r\n");
    if (body_length) add(plan->fields, "Content-Digest: %s\r\n", body_digest);
}

/* The parameters are sorted already, and need no escapes but the `:` of the time, which is signed as it is. */
static void sign_form(struct plan *plan) {
    char rand[33], moment[32], escaped[48], sum[33];
    unsigned char bytes[16];
    TEXT(signed_text, 8192);
    random_word(rand, 12);
    strftime(moment, sizeof moment, "%Y-%m-%d-%H:%M:%S", gmtime(&plan->now));
    strftime(escaped, sizeof escaped, "%Y-%m-%d-%H%%3A%M%%3A%S", gmtime(&plan->now));
    int known = snprintf(NULL, 0, "app_id=%s&note=&plat=ios&rand=%s&sign=%032d&timestamp=%s&ver=1.0", key_id, rand, 0, escaped);
    int filling = body_length > known ? body_length - known : 0;
    add(&signed_text, "app_id=%s&note=%.*s&plat=ios&private_key=%.*s&rand=%s&timestamp=%s&ver=1.0", key_id, filling,
        shared_body, secret_length, secret, rand, moment);
    digest(bytes, EVP_md5(), signed_text.bytes, signed_text.length);
    hexadecimal(sum, bytes, sizeof bytes);
    add(plan->body, "app_id=%s&note=%.*s&plat=ios&rand=%s&sign=%s&timestamp=%s&ver=1.0", key_id, filling, shared_body, rand, sum,
        escaped);
}

static void sign_query(struct plan *plan) {
    char sum[65];
    unsigned char bytes[32];
    TEXT(text, 1024);
    /* In the order of their names: auth_key, auth_timestamp, auth_version, [body_md5,] n, page[, size]. */
    TEXT(query, 512);
    add(&query, "auth_key=%s&auth_timestamp=%ld&auth_version=1.0&", key_id, (long)plan->now);
    if (body_length) {
        digest(bytes, EVP_md5(), shared_body, body_length);
        hexadecimal(sum, bytes, 16);
        add(&query, "body_md5=%s&", sum);
    }
    add(&query, "%s", plan->target->bytes + sizeof PATH);
    add(&text, "%s\n" PATH "\n%s", plan->method, query.bytes);
    mac(bytes, secret, secret_length, &text);
    hexadecimal(sum, bytes, 32);
    plan->target->length = 0;
    add(plan->target, PATH "?%s&auth_signature=%s", query.bytes, sum);
}

static void sign_sigv4(struct plan *plan) {
    static const char scope[] = "eu-west-1/execute-api/aws4_request";
    static unsigned char derived[32];
    static char derived_day[16];
    char moment[32], day[16], payload[65], sum[65];
    unsigned char bytes[32];
    strftime(moment, sizeof moment, "%Y%m%dT%H%M%SZ", gmtime(&plan->now));
    strftime(day, sizeof day, "%Y%m%d", gmtime(&plan->now));
    digest(bytes, EVP_sha256(), shared_body, body_length);
    hexadecimal(payload, bytes, 32);
    const char *type = body_length ? "content-type:application/json\n" : "", *type_name = body_length ? "content-type;" : "";
    TEXT(canonical, 2048);
    add(&canonical, "%s\n" PATH "\n%s\n%shost:%s\nx-amz-content-sha256:%s\nx-amz-date:%s\n\n%shost;x-amz-content-sha256;x-amz-date\n%s",
        plan->method, plan->target->bytes + sizeof PATH, type, authority, payload, moment, type_name, payload);
    digest(bytes, EVP_sha256(), canonical.bytes, canonical.length);
    hexadecimal(sum, bytes, 32);
    TEXT(text, 512);
    add(&text, "AWS4-HMAC-SHA256\n%s\n%s/%s\n%s", moment, day, scope, sum);
    if (strcmp(day, derived_day)) {
        const char *steps[] = {day, "eu-west-1", "execute-api", "aws4_request"};
        char first[80];
        int length = sprintf(first, "AWS4%.*s", secret_length, secret);
        for (int i = 0; i < 4; i++) {
            TEXT(step, 32);
            add(&step, "%s", steps[i]);
            if (i) mac(bytes, derived, 32, &step);
            else mac(bytes, first, length, &step);
            memcpy(derived, bytes, 32);
        }
        strcpy(derived_day, day);
    }
    mac(bytes, derived, 32, &text);
    hexadecimal(sum, bytes, 32);
    add(plan->fields,
        "X-Amz-Date: %s\r\nX-Amz-Content-Sha256: %s\r\nAuthorization: AWS4-HMAC-SHA256 Credential=%s/%s/%s, "
        "SignedHeaders=%shost;x-amz-content-sha256;x-amz-date, Signature=%s\r\n",
        moment, payload, key_id, day, scope, type_name, sum);
}

/* The checksum over what the backend should get, from the head as it is sent. */
static uint64_t head_checksum(const char *head, const struct plan *plan) {
    uint64_t sum = with_part(0, -2, plan->method, strlen(plan->method));
    sum = with_part(sum, -1, plan->target->bytes, plan->target->length);
    for (int i = 0; i < FORWARDED_FIELDS; i++) {
        char name[32];
        sprintf(name, "\r\n%s: ", forwarded_fields[i]);
        const char *found = strcasestr(head, name);
        if (!found) continue;
        found += strlen(name);
        sum = with_part(sum, i, found, strstr(found, "\r\n") - found);
    }
    return sum;
}

static void write_request(int index) {
    char key[32];
    if (key_id_count) key_id = key_ids[index % key_id_count];
    TEXT(target, 512);
    TEXT(fields, 2048);
    TEXT(form, 8192);
    TEXT(head, HEAD_MAX);
    struct plan plan = {body_length ? "POST" : "GET", time(NULL), &target, &fields, &form, key};
    snprintf(key, sizeof key, "%08x-%08x", key_prefix, index);
    add(&target, PATH "?n=%08d&page=2", index);
    if (answer_length) add(&target, "&size=%d", answer_length);
    if (is_scheme("message-signatures")) sign_message(&plan);
    else if (is_scheme("form-md5")) sign_form(&plan);
    else if (is_scheme("auth-v1")) sign_query(&plan);
    else if (is_scheme("sigv4")) sign_sigv4(&plan);
    else if (!is_scheme("none")) fail("unknown scheme");
    const char *body = form.length ? form.bytes : shared_body;
    int length = form.length ? form.length : body_length;
    add(&head, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: load\r\nAccept: */*\r\nAccept-Encoding: identity\r\n%s", plan.method,
        target.bytes, authority, fields.length ? fields.bytes : "");
    if (length) {
        add(&head, "Accept-Language: en-GB,en;q=0.8\r\nContent-Type: %s\r\n",
            form.length ? "application/x-www-form-urlencoded" : "application/json");
        if (is_keyed) add(&head, "Idempotency-Key: %s\r\n", key);
        add(&head, "Content-Length: %d\r\n", length);
    }
    add(&head, "\r\n");
    int joined = length <= JOINED_BODY ? length : 0;
    struct request *request = &requests[index];
    request->length = head.length + joined;
    request->bytes = malloc(request->length);
    if (!request->bytes) fail("memory");
    memcpy(request->bytes, head.bytes, head.length);
    memcpy(request->bytes + head.length, body, joined);
    request->head_sum = head_checksum(head.bytes, &plan);
    /* Of the body that all share it is computed once. */
    request->body_sum = !form.length && index ? requests[0].body_sum : checksum(0, body, length);
}

/* A whole file, with a NUL behind it. */
static char *read_file(const char *path, long *length) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) || (*length = ftell(file)) < 0 || fseek(file, 0, SEEK_SET)) fail(path);
    char *bytes = malloc(*length + 1);
    if (!bytes || fread(bytes, 1, *length, file) != (size_t)*length) fail(path);
    bytes[*length] = 0;
    fclose(file);
    return bytes;
}

static void read_key_ids(void) {
    long length;
    char *at = read_file(key_ids_file, &length);
    key_ids = calloc(length / 2 + 1, sizeof *key_ids);
    for (char *line; (line = strsep(&at, "\n"));)
        if (*line) key_ids[key_id_count++] = line;
    if (!key_id_count) fail("no key ids");
}

static void read_prepared(void) {
    long length;
    char *bytes = read_file(prepared_file, &length), *end = bytes + length;
    requests = calloc(total, sizeof *requests);
    for (int i = 0; i < total; i++) {
        uint32_t count;
        if (end - bytes < (long)sizeof count) fail("fewer requests than expected");
        memcpy(&count, bytes, sizeof count);
        bytes += sizeof count;
        if (count > (size_t)(end - bytes)) fail("a request that is cut off");
        requests[i].bytes = bytes;
        requests[i].length = count;
        bytes += count;
    }
    if (bytes != end) fail("more requests than expected");
}

static void write_answers(void) {
    FILE *file = fopen(answers_file, "wb");
    if (!file) fail(answers_file);
    for (int i = 0; i < total; i++) {
        fwrite(&requests[i].answer_length, sizeof requests[i].answer_length, 1, file);
        fwrite(requests[i].answer, 1, requests[i].answer_length, file);
    }
    if (ferror(file) || fclose(file)) fail(answers_file);
}

static void write_requests(void) {
    unsigned char hash[32];
    char text[64];
    if (prepared_file) {
        read_prepared();
        return;
    }
    read_keys();
    if (key_ids_file) read_key_ids();
    if (!release) release = key_id;
    shared_body = malloc(body_length + 1);
    /* Letters and digits, so that it can be a value of a form; no two parts of it are alike. */
    for (unsigned i = 0, state = 1; i < (unsigned)body_length; i++) {
        state = state * 1103515245 + 12345;
        shared_body[i] = "0123456789abcdefghijklmnopqrstuv"[state >> 27];
    }
    digest(hash, EVP_sha256(), shared_body, body_length);
    base64(text, hash, sizeof hash);
    snprintf(body_digest, sizeof body_digest, "sha-256=:%s:", text);
    RAND_bytes((unsigned char *)&key_prefix, sizeof key_prefix);
    requests = calloc(total, sizeof *requests);
    for (int i = 0; i < total; i++) write_request(i);
}

/* Connections. */

struct connection {
    int fd, request, sent, filled, waits_to_send;
    /* The last byte of its address. */
    int source;
    SSL *ssl;
    struct timespec began;
    char *buffer;
};

static SSL_CTX *context;
static int epoll, next, done, reopened, capacity;
static float *latencies;
static char *fill;

static int transfer(struct connection *c, int writes, void *data, int count, int flags) {
    if (c->ssl) {
        int moved = writes ? SSL_write(c->ssl, data, count) : SSL_read(c->ssl, data, count);
        if (moved > 0) return moved;
        int why = SSL_get_error(c->ssl, moved);
        return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? -1 : 0;
    }
    int moved = writes ? send(c->fd, data, count, MSG_NOSIGNAL | flags) : recv(c->fd, data, count, 0);
    return moved < 0 && errno != EAGAIN ? 0 : moved;
}

static void watch(struct connection *c, int operation, unsigned events) {
    struct epoll_event event = {.events = events, .data.ptr = c};
    if (epoll_ctl(epoll, operation, c->fd, &event)) fail("epoll_ctl");
}

static void open_connection(struct connection *c) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int one = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (sources > 1) {
        struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + c->source)};
        setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
        if (bind(c->fd, (struct sockaddr *)&own, sizeof own)) fail("bind");
    }
    if (connect(c->fd, (struct sockaddr *)&address, sizeof address)) fail("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (uses_tls) {
        c->ssl = SSL_new(context);
        SSL_set_fd(c->ssl, c->fd);
        if (SSL_connect(c->ssl) != 1) fail("TLS handshake");
    }
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    watch(c, EPOLL_CTL_ADD, EPOLLIN);
}

/* A server may end a connection after so many requests, and says so in the answer. */
static void reopen(struct connection *c) {
    if (c->ssl) SSL_free(c->ssl);
    c->ssl = NULL;
    close(c->fd);
    reopened++;
    open_connection(c);
}

static void send_request(struct connection *c) {
    struct request *request = &requests[c->request];
    int tail = is_scheme("form-md5") || body_length <= JOINED_BODY ? 0 : body_length;
    while (c->sent < request->length + tail) {
        int in_head = c->sent < request->length;
        char *from = in_head ? request->bytes + c->sent : shared_body + c->sent - request->length;
        int count = (in_head ? request->length : request->length + tail) - c->sent;
        int moved = transfer(c, 1, from, count, in_head && tail ? MSG_MORE : 0);
        if (moved == 0) fail("closed by the server before a request was sent");
        if (moved < 0) break;
        c->sent += moved;
    }
    int waits = c->sent < request->length + tail;
    if (waits != c->waits_to_send) watch(c, EPOLL_CTL_MOD, waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
    c->waits_to_send = waits;
}

static void begin(struct connection *c) {
    if (next == total) return;
    c->request = next++;
    c->filled = c->sent = 0;
    clock_gettime(CLOCK_MONOTONIC, &c->began);
    send_request(c);
}

/* A field of the answer's head, which must be there once. The head ends in a NUL in place of its empty line. */
static char *field(struct connection *c, const char *name) {
    char *found = strcasestr(c->buffer, name);
    if (!found) fault("an answer without a field", c->request, c->buffer, c->filled);
    if (strcasestr(found + 2, name)) fault("a field twice", c->request, c->buffer, c->filled);
    return found + strlen(name);
}

/* Compares an answer with the one that the backend makes for this request. */
static void check_answer(struct connection *c, const char *body, int length) {
    char expected[128];
    struct request *request = &requests[c->request];
    if (atoi(c->buffer + 9) != status) fault("another status than expected", c->request, c->buffer, c->filled);
    if (prepared_file) {
        request->answer = malloc(length + 1);
        if (!request->answer) fail("memory");
        memcpy(request->answer, body, length);
        request->answer_length = length;
        return;
    }
    if (status != 200) {
        if (!memmem(body, length, contained, strlen(contained)))
            fault("not the expected refusal", c->request, c->buffer, c->filled);
        return;
    }
    sprintf(expected, ANSWER_START, (unsigned)c->request, (unsigned long long)request->head_sum,
            (unsigned long long)request->body_sum);
    int rest = length - LEAST_ANSWER;
    if (length < LEAST_ANSWER || (answer_length && length != answer_length) || memcmp(body, expected, ANSWER_START_LENGTH))
        fault("the request did not arrive whole, or this is another's answer", c->request, c->buffer, c->filled);
    sprintf(expected, "\"%016llx\"\r\n", (unsigned long long)(request->head_sum ^ request->body_sum));
    if (strncmp(field(c, "\r\netag: "), expected, strlen(expected)) ||
        strncmp(field(c, "\r\ncontent-type: "), "application/json\r\n", 18) ||
        strncmp(field(c, "\r\ncache-control: "), "no-store\r\n", 10))
        fault("the head of another answer", c->request, c->buffer, c->filled);
    if (memcmp(body + ANSWER_START_LENGTH, fill, rest) || memcmp(body + length - ANSWER_END_LENGTH, ANSWER_END, ANSWER_END_LENGTH))
        fault("the answer's body was changed", c->request, c->buffer, c->filled);
}

/* Reads what there is; if that completes an answer, checks it and begins the next request. */
static void read_answer(struct connection *c) {
    for (;;) {
        int moved = transfer(c, 0, c->buffer + c->filled, capacity - 1 - c->filled, 0);
        if (moved < 0) return;
        if (moved == 0) fail("closed by the server, or a long answer");
        c->filled += moved;
        c->buffer[c->filled] = 0;
        char *end = strstr(c->buffer, "\r\n\r\n");
        if (!end) continue;
        end[2] = 0;
        int length = atoi(field(c, "\r\ncontent-length: ")), whole = end + 4 - c->buffer + length;
        if (c->filled < whole) {
            end[2] = '\r';
            continue;
        }
        if (c->filled > whole) fault("bytes behind the answer", c->request, c->buffer, c->filled);
        if (strncmp(c->buffer, "HTTP/1.1 ", 9)) fault("not an answer", c->request, c->buffer, c->filled);
        check_answer(c, end + 4, length);
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        latencies[done++] = (now.tv_sec - c->began.tv_sec) * 1e6f + (now.tv_nsec - c->began.tv_nsec) / 1e3f;
        if (strcasestr(c->buffer, "\r\nconnection: close")) reopen(c);
        begin(c);
        return;
    }
}

static int ascending(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void read_options(int argc, char **argv) {
    static struct option options[] = {
        {"port", 1, 0, 'p'},       {"authority", 1, 0, 'a'},  {"scheme", 1, 0, 'm'},   {"key-id", 1, 0, 'k'},
        {"release", 1, 0, 'r'},    {"secret", 1, 0, 's'},     {"requests", 1, 0, 'n'}, {"connections", 1, 0, 'c'},
        {"body", 1, 0, 'b'},       {"answer", 1, 0, 'w'},     {"status", 1, 0, 'e'},   {"contains", 1, 0, 't'},
        {"device-key", 1, 0, 'd'}, {"sources", 1, 0, 'o'},    {"source", 1, 0, 'f'},   {"key-ids", 1, 0, 'i'},
        {"prepared", 1, 0, 'q'},   {"answers", 1, 0, 'g'},
        {"tls", 0, &uses_tls, 1},  {"keyed", 0, &is_keyed, 1}, {0, 0, 0, 0}};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) switch (option) {
        case 'p': port = atoi(optarg); break;
        case 'a': authority = optarg; break;
        case 'm': scheme = optarg; break;
        case 'k': key_id = optarg; break;
        case 'r': release = optarg; break;
        case 's': secret_hex = optarg; break;
        case 'n': total = atoi(optarg); break;
        case 'c': connections = atoi(optarg); break;
        case 'o': sources = atoi(optarg); break;
        case 'f': first_source = atoi(optarg); break;
        case 'b': body_length = atoi(optarg); break;
        case 'w': answer_length = atoi(optarg); break;
        case 'e': status = atoi(optarg); break;
        case 't': contained = optarg; break;
        case 'd': device_key_file = optarg; break;
        case 'i': key_ids_file = optarg; break;
        case 'q': prepared_file = optarg; break;
        case 'g': answers_file = optarg; break;
        case 0: break;
        default: exit(2);
        }
    if (answer_length && (answer_length < LEAST_ANSWER || answer_length > MOST_ANSWER)) fail("the length of an answer");
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    write_requests();
    capacity = ANSWER_HEAD_MAX + (answer_length > 8192 ? answer_length : 8192);
    fill = malloc(MOST_ANSWER);
    memset(fill, ANSWER_FILL, MOST_ANSWER);
    latencies = calloc(total, sizeof *latencies);
    context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    epoll = epoll_create1(0);
    struct connection *all = calloc(connections, sizeof *all);
    for (int i = 0; i < connections; i++) {
        all[i].buffer = malloc(capacity);
        all[i].source = first_source + i % sources;
        open_connection(&all[i]);
    }

    struct timespec start, stop;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < connections; i++) begin(&all[i]);
    while (done < total) {
        struct epoll_event events[64];
        int count = epoll_wait(epoll, events, 64, 10000);
        if (count == 0) fail("no answer for ten seconds");
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            if (events[i].events & EPOLLOUT) send_request(c);
            if (events[i].events & ~EPOLLOUT) read_answer(c);
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &stop);
    if (answers_file) write_answers();
    double seconds = (stop.tv_sec - start.tv_sec) + (stop.tv_nsec - start.tv_nsec) / 1e9;
    qsort(latencies, done, sizeof *latencies, ascending);
    printf("{\"requests\":%d,\"reopened\":%d,\"seconds\":%.3f,\"per_second\":%.0f,\"median_us\":%.0f,\"p99_us\":%.0f}\n", done,
           reopened, seconds, done / seconds, latencies[done / 2], latencies[(int)(done * 0.99)]);
    return 0;
}
