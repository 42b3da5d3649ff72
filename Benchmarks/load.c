/* A client for script/bench: N connections, each with one request under way, kept alive. Every request is signed for
 * itself (RFC 9421, hmac-sha256, its own nonce) before the clock starts, so that a server's check is real and the
 * client costs the same whoever answers. A connection that the server ends behind an answer is opened anew. Prints one JSON object;
 * exits 1 where an answer was not 200.
 *
 *   load --port P --authority HOST:PORT --key-id ID --secret HEX --requests N --connections C --body BYTES [--keyed] [--tls]
 *
 * --keyed gives each request an Idempotency-Key of its own: with one key for all, a server that does a keyed request once would
 * answer all but the first out of its memory.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEAD_MAX 1536

static int port, total = 10000, connections = 64, body_length, is_keyed, uses_tls;
static const char *authority = "127.0.0.1", *key_id = "", *secret_hex = "";

static void fail(const char *what) {
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* Requests, written before the clock starts. */

static unsigned char secret[64];
static int secret_length;
static char *body, body_digest[96];
static char **requests;
static int *lengths;
static unsigned int key_prefix;

static void base64(char *to, const unsigned char *from, int count) { EVP_EncodeBlock((unsigned char *)to, from, count); }

static void write_request(int index) {
    char key[32];
    const char *fields[][2] = {{"accept-language", "en-GB,en;q=0.8"}, {"content-type", "application/json"}, {"idempotency-key", key}};
    int field_count = body_length ? is_keyed ? 3 : 2 : 0;
    const char *method = body_length ? "POST" : "GET";
    char names[256], values[1024], base[2048], parameters[512], nonce[33], mac_text[64];
    unsigned char random[12], mac[32];
    int used = 0, named = 0;
    names[0] = values[0] = 0;
    snprintf(key, sizeof key, "%08x-%08x", key_prefix, index);
    for (int i = 0; i < field_count; i++) {
        named += sprintf(names + named, " \"%s\"", fields[i][0]);
        used += sprintf(values + used, "\"%s\": %s\n", fields[i][0], fields[i][1]);
    }
    if (body_length) {
        sprintf(names + named, " \"content-digest\"");
        sprintf(values + used, "\"content-digest\": %s\n", body_digest);
    }
    RAND_bytes(random, sizeof random);
    base64(nonce, random, sizeof random);
    for (char *c = nonce; *c; c++) if (*c == '+' || *c == '/') *c = '_';
    sprintf(parameters,
            "(\"@method\" \"@authority\" \"@path\" \"@query\" \"countersign-release\"%s);created=%ld;nonce=\"%s\";"
            "keyid=\"%s\";alg=\"hmac-sha256\";tag=\"countersign\"",
            names, (long)time(NULL), nonce, key_id);
    int count = sprintf(base,
                        "\"@method\": %s\n\"@authority\": %s\n\"@path\": /api/v1/orders\n\"@query\": ?page=2\n"
                        "\"countersign-release\": %s\n%s\"@signature-params\": %s",
                        method, authority, key_id, values, parameters);
    HMAC(EVP_sha256(), secret, secret_length, (unsigned char *)base, count, mac, NULL);
    base64(mac_text, mac, sizeof mac);
    char *head = malloc(HEAD_MAX + body_length);
    if (!head) fail("memory");
    int length = snprintf(head, HEAD_MAX,
                          "%s /api/v1/orders?page=2 HTTP/1.1\r\nHost: %s\r\nUser-Agent: load\r\nAccept: */*\r\n"
                          "Accept-Encoding: identity\r\nCountersign-Release: %s\r\nSignature-Input: app=%s\r\n"
                          "Signature: app=:%s:\r\n",
                          method, authority, key_id, parameters, mac_text);
    if (body_length) {
        for (int i = 0; i < field_count; i++)
            length += snprintf(head + length, HEAD_MAX - length, "%s: %s\r\n", fields[i][0], fields[i][1]);
        length += snprintf(head + length, HEAD_MAX - length, "Content-Digest: %s\r\nContent-Length: %d\r\n", body_digest,
                           body_length);
    }
    length += snprintf(head + length, HEAD_MAX - length, "\r\n");
    if (length >= HEAD_MAX) fail("a head is too long");
    memcpy(head + length, body, body_length);
    requests[index] = realloc(head, length + body_length);
    lengths[index] = length + body_length;
}

static void write_requests(void) {
    for (const char *c = secret_hex; c[0] && c[1] && secret_length < (int)sizeof secret; c += 2)
        sscanf(c, "%2hhx", &secret[secret_length++]);
    body = malloc(body_length + 1);
    memset(body, 'x', body_length);
    unsigned char hash[32];
    char text[64];
    EVP_Digest(body, body_length, hash, NULL, EVP_sha256(), NULL);
    base64(text, hash, sizeof hash);
    snprintf(body_digest, sizeof body_digest, "sha-256=:%s:", text);
    RAND_bytes((unsigned char *)&key_prefix, sizeof key_prefix);
    requests = calloc(total, sizeof *requests);
    lengths = calloc(total, sizeof *lengths);
    for (int i = 0; i < total; i++) write_request(i);
}

/* Connections. */

struct connection {
    int fd, request, sent, filled, left;
    SSL *ssl;
    struct timespec began;
    char buffer[8192];
};

static SSL_CTX *context;
static int epoll, next, done, refused, reopened;
static float *latencies;

static int transfer(struct connection *c, int writes, void *data, int count) {
    if (c->ssl) {
        int moved = writes ? SSL_write(c->ssl, data, count) : SSL_read(c->ssl, data, count);
        if (moved > 0) return moved;
        int why = SSL_get_error(c->ssl, moved);
        return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? -1 : 0;
    }
    int moved = writes ? send(c->fd, data, count, MSG_NOSIGNAL) : recv(c->fd, data, count, 0);
    return moved < 0 && errno != EAGAIN ? 0 : moved;
}

static void open_connection(struct connection *c) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int one = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c->fd, (struct sockaddr *)&address, sizeof address)) fail("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (uses_tls) {
        c->ssl = SSL_new(context);
        SSL_set_fd(c->ssl, c->fd);
        if (SSL_connect(c->ssl) != 1) fail("TLS handshake");
    }
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event);
}

/* A server may end a connection after so many requests, and says so in the answer. */
static void reopen(struct connection *c) {
    if (c->ssl) SSL_free(c->ssl);
    c->ssl = NULL;
    close(c->fd);
    reopened++;
    open_connection(c);
}

static void begin(struct connection *c) {
    if (next == total) return;
    c->request = next++;
    c->filled = c->left = 0;
    clock_gettime(CLOCK_MONOTONIC, &c->began);
    /* A request is far smaller than a socket's buffer, and the last answer was read: one write takes it. */
    if (transfer(c, 1, requests[c->request], lengths[c->request]) != lengths[c->request]) fail("a short write");
}

/* Reads one answer; its body is as long as Content-Length says. */
static void read_answer(struct connection *c) {
    for (;;) {
        int moved = transfer(c, 0, c->buffer + c->filled, sizeof c->buffer - 1 - c->filled);
        if (moved < 0) return;
        if (moved == 0) fail("closed by the server");
        c->filled += moved;
        c->buffer[c->filled] = 0;
        char *end = strstr(c->buffer, "\r\n\r\n");
        if (!end) continue;
        char *length = strcasestr(c->buffer, "\r\ncontent-length:");
        if (!length || length > end) fail("an answer without a length");
        if (c->filled < end + 4 - c->buffer + atoi(length + 17)) continue;
        if (strncmp(c->buffer, "HTTP/1.1 200 ", 13) && refused++ == 0) fprintf(stderr, "load: %s\n", c->buffer);
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        latencies[done++] = (now.tv_sec - c->began.tv_sec) * 1e6f + (now.tv_nsec - c->began.tv_nsec) / 1e3f;
        *end = 0;
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
    static struct option options[] = {{"port", 1, 0, 'p'},     {"authority", 1, 0, 'a'},   {"key-id", 1, 0, 'k'},
                                      {"secret", 1, 0, 's'},   {"requests", 1, 0, 'n'},    {"connections", 1, 0, 'c'},
                                      {"body", 1, 0, 'b'},     {"tls", 0, &uses_tls, 1},   {"keyed", 0, &is_keyed, 1}, {0, 0, 0, 0}};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) switch (option) {
        case 'p': port = atoi(optarg); break;
        case 'a': authority = optarg; break;
        case 'k': key_id = optarg; break;
        case 's': secret_hex = optarg; break;
        case 'n': total = atoi(optarg); break;
        case 'c': connections = atoi(optarg); break;
        case 'b': body_length = atoi(optarg); break;
        case 0: break;
        default: exit(2);
        }
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    write_requests();
    latencies = calloc(total, sizeof *latencies);
    context = SSL_CTX_new(TLS_client_method());
    epoll = epoll_create1(0);
    struct connection *all = calloc(connections, sizeof *all);
    for (int i = 0; i < connections; i++) open_connection(&all[i]);

    struct timespec start, stop;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < connections; i++) begin(&all[i]);
    while (done < total) {
        struct epoll_event events[64];
        int count = epoll_wait(epoll, events, 64, 10000);
        if (count == 0) fail("no answer for ten seconds");
        for (int i = 0; i < count; i++) read_answer(events[i].data.ptr);
    }
    clock_gettime(CLOCK_MONOTONIC, &stop);
    double seconds = (stop.tv_sec - start.tv_sec) + (stop.tv_nsec - start.tv_nsec) / 1e9;
    qsort(latencies, done, sizeof *latencies, ascending);
    printf("{\"requests\":%d,\"refused\":%d,\"reopened\":%d,\"seconds\":%.3f,\"per_second\":%.0f,\"median_us\":%.0f,\"p99_us\":%.0f}\n",
           done, refused, reopened, seconds, done / seconds, latencies[done / 2], latencies[done / 100 * 99]);
    return refused ? 1 : 0;
}
