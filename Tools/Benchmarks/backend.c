/* The backend of script/bench, one thread: it checks that each request arrived whole and answers with checksums of it
 * (whole.h). Prints `listening`. `GET /seen` tells how many requests it had, and how many bytes of bodies; of every
 * other request the query has `n`, a number of eight digits, and may have `size`, the bytes of the answer's body.
 * What it cannot read, it prints, and ends with exit status 1: then the measurement fails, too.
 *
 *   backend PORT
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "whole.h"

#define HEAD_MOST 16384
#define BODY_MOST (1 << 20)

struct connection {
    int fd, filled, capacity;
    char *buffer;
    /* The answer: its head with the start of its body, and how much of it and of the rest is left to send. */
    char answer[512];
    int length, sent, rest, waits;
};

static int epoll, answer_size = 128;
static unsigned long long requests, body_bytes;
static char fill[MOST_ANSWER];

static void fail(const char *what, const char *detail, int length) {
    fprintf(stderr, "backend: %s: %.*s\n", what, length, detail);
    exit(1);
}

static void watch(struct connection *c, int operation, unsigned events) {
    struct epoll_event event = {.events = events, .data.ptr = c};
    if (epoll_ctl(epoll, operation, c->fd, &event)) fail("epoll_ctl", strerror(errno), 100);
}

static void accept_connection(int listener) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK), one = 1;
    if (fd < 0) return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct connection *c = calloc(1, sizeof *c);
    c->fd = fd;
    c->capacity = 4096;
    c->buffer = malloc(c->capacity);
    watch(c, EPOLL_CTL_ADD, EPOLLIN);
}

static void close_connection(struct connection *c) {
    if (c->filled || c->sent < c->length + c->rest) fail("closed within a request", c->buffer, c->filled);
    close(c->fd);
    free(c->buffer);
    free(c);
}

/* Sends what is left of the answer. */
static void send_answer(struct connection *c) {
    while (c->sent < c->length + c->rest) {
        struct iovec parts[2] = {{c->answer, c->length}, {fill + sizeof fill - c->rest, c->rest}};
        int into = c->sent < c->length ? 0 : c->sent - c->length;
        parts[0].iov_base = c->answer + (into ? c->length : c->sent);
        parts[0].iov_len = c->sent < c->length ? c->length - c->sent : 0;
        parts[1].iov_base = (char *)parts[1].iov_base + into;
        parts[1].iov_len -= into;
        int moved = writev(c->fd, parts, 2);
        if (moved < 0 && errno != EAGAIN) fail("an answer was not read", strerror(errno), 100);
        if (moved < 0) break;
        c->sent += moved;
    }
    int waits = c->sent < c->length + c->rest;
    if (waits != c->waits) watch(c, EPOLL_CTL_MOD, waits ? EPOLLOUT : EPOLLIN);
    c->waits = waits;
}

/* A parameter of the query. `name` ends in `=`. */
static unsigned number(const char *target, int length, const char *name, unsigned otherwise) {
    int name_length = strlen(name);
    for (const char *at = target, *end = target + length; (at = memmem(at, end - at, name, name_length)); at++)
        if (at > target && (at[-1] == '?' || at[-1] == '&')) return strtoul(at + name_length, NULL, 10);
    return otherwise;
}

struct field {
    const char *value;
    int length;
};

/* The forwarded fields of a head, and the length of its body. */
static int read_fields(char *at, char *end, struct field *fields) {
    int body = 0;
    while (at < end) {
        char *line_end = memchr(at, '\r', end - at), *colon = line_end ? memchr(at, ':', line_end - at) : NULL;
        if (!colon || line_end[1] != '\n') fail("a field", at, end - at);
        int name_length = colon - at;
        char *value = colon + 1;
        while (value < line_end && *value == ' ') value++;
        for (int i = 0; i < FORWARDED_FIELDS; i++) {
            if (name_length != (int)strlen(forwarded_fields[i]) || strncasecmp(at, forwarded_fields[i], name_length)) continue;
            if (fields[i].value) fail("a field twice", at, line_end - at);
            fields[i] = (struct field){value, line_end - value};
            if (i == CONTENT_LENGTH) body = atoi(value);
        }
        if (name_length == 17 && !strncasecmp(at, "transfer-encoding", 17)) fail("chunks", at, line_end - at);
        at = line_end + 2;
    }
    if (body < 0 || body > BODY_MOST) fail("a length", at, 0);
    return body;
}

static void write_answer(struct connection *c, char *end, int body_length, struct field *fields) {
    char *method_end = memchr(c->buffer, ' ', end - c->buffer);
    char *target = method_end + 1, *target_end = memchr(target, ' ', end - target);
    int target_length = target_end - target;
    if (!strncmp(target, "/seen ", 6)) {
        char text[96];
        int length = sprintf(text, "{\"requests\":%llu,\"bytes\":%llu}", requests, body_bytes);
        c->length = sprintf(c->answer, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", length, text);
        c->rest = 0;
        return;
    }
    uint64_t head = with_part(0, -2, c->buffer, method_end - c->buffer);
    head = with_part(head, -1, target, target_length);
    for (int i = 0; i < FORWARDED_FIELDS; i++)
        if (fields[i].value) head = with_part(head, i, fields[i].value, fields[i].length);
    uint64_t body = checksum(0, end + 4, body_length);
    unsigned index = number(target, target_length, "n=", 99999999);
    unsigned size = number(target, target_length, "size=", answer_size);
    if (index > 99999999 || size < LEAST_ANSWER || size > MOST_ANSWER) fail("a target", target, target_length);
    requests++;
    body_bytes += body_length;
    c->length = sprintf(c->answer,
                        "HTTP/1.1 200 OK\r\nServer: backend\r\nContent-Type: application/json\r\nContent-Length: %u\r\n"
                        "Cache-Control: no-store\r\nETag: \"%016llx\"\r\n\r\n" ANSWER_START,
                        size, (unsigned long long)(head ^ body), index, (unsigned long long)head,
                        (unsigned long long)body);
    c->rest = size - ANSWER_START_LENGTH;
}

static void read_requests(struct connection *c) {
    int moved = recv(c->fd, c->buffer + c->filled, c->capacity - c->filled, 0);
    if (moved < 0 && errno == EAGAIN) return;
    if (moved <= 0) return close_connection(c);
    c->filled += moved;
    char *end = memmem(c->buffer, c->filled, "\r\n\r\n", 4);
    if (!end && c->filled > HEAD_MOST) fail("a long head", c->buffer, 200);
    int whole = HEAD_MOST;
    if (end) {
        char *line_end = memchr(c->buffer, '\r', c->filled);
        struct field fields[FORWARDED_FIELDS] = {0};
        if (line_end - c->buffer < 14 || strncmp(line_end - 9, " HTTP/1.1", 9)) fail("a line", c->buffer, 100);
        int body_length = read_fields(line_end + 2, end + 2, fields);
        whole = end + 4 - c->buffer + body_length;
        if (c->filled > whole) fail("bytes behind a request", c->buffer, c->filled);
        if (c->filled == whole) {
            write_answer(c, end, body_length, fields);
            c->filled = c->sent = 0;
            return send_answer(c);
        }
    }
    if (whole > c->capacity) c->buffer = realloc(c->buffer, c->capacity = whole);
}

int main(int argc, char **argv) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(argc == 2 ? atoi(argv[1]) : 0)};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (argc != 2 || bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096))
        fail("cannot listen", strerror(errno), 100);
    memset(fill, ANSWER_FILL, sizeof fill);
    memcpy(fill + sizeof fill - ANSWER_END_LENGTH, ANSWER_END, ANSWER_END_LENGTH);
    epoll = epoll_create1(0);
    struct connection own = {.fd = listener};
    watch(&own, EPOLL_CTL_ADD, EPOLLIN);
    puts("listening");
    fflush(stdout);
    for (;;) {
        struct epoll_event events[64];
        int count = epoll_wait(epoll, events, 64, -1);
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            if (c == &own) accept_connection(listener);
            else if (c->waits) send_answer(c);
            else read_requests(c);
        }
    }
}
