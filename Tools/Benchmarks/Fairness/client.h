/* What flood.c and probe.c share: files of requests, the clock, non-blocking connections, and the reader of
 * answers. */
#ifndef CLIENT_H
#define CLIENT_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(2);
}

static int64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* A file of requests: for each its length in four bytes, least significant first, and then its bytes. */

struct record {
    const char *bytes;
    uint32_t length;
};

static struct record *records;
static int record_count;

static void read_records(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) fail(path);
    long size = ftell(file), at = 0;
    char *bytes = malloc(size + 1);
    rewind(file);
    if (!bytes || fread(bytes, 1, size, file) != (size_t)size) fail(path);
    fclose(file);
    while (at + 4 <= size) {
        uint32_t length;
        memcpy(&length, bytes + at, 4);
        if (length > size - at - 4) fail("a record is cut short");
        if ((record_count & (record_count - 1)) == 0)
            records = realloc(records, (record_count ? record_count * 2 : 1) * sizeof *records);
        records[record_count++] = (struct record){bytes + at + 4, length};
        at += 4 + length;
    }
    if (!record_count) fail("no requests");
}

/* A socket that is bound to `from` (an address in network order) and has begun to connect to 127.0.0.1; -1 if
 * it could not. */
static int begin_connecting(uint32_t from, int port, int receive_bytes) {
    struct sockaddr_in address = {.sin_family = AF_INET}, own = {.sin_family = AF_INET};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    own.sin_addr.s_addr = from;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    /* The port is chosen when it connects, so that ports towards other servers do not count. */
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    if (receive_bytes) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    if (bind(fd, (struct sockaddr *)&own, sizeof own) ||
        (connect(fd, (struct sockaddr *)&address, sizeof address) && errno != EINPROGRESS)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Sends or receives: the bytes moved, 0 at the end or after an error, -1 where it would wait. */
static int transfer(SSL *ssl, int fd, int sends, void *bytes, int count) {
    if (ssl) {
        int moved = sends ? SSL_write(ssl, bytes, count) : SSL_read(ssl, bytes, count);
        if (moved > 0) return moved;
        int why = SSL_get_error(ssl, moved);
        return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? -1 : 0;
    }
    int moved = sends ? send(fd, bytes, count, MSG_NOSIGNAL) : recv(fd, bytes, count, 0);
    if (moved < 0) return errno == EAGAIN || errno == EINTR ? -1 : 0;
    return sends && moved == 0 ? -1 : moved;
}

/* Reads answers out of a stream of bytes: status and `Content-Length`; a body is passed over. */

struct reader {
    int head_length, body_left, status, closes;
    char head[2048];
};

/* Takes bytes up to the end of one answer; how many. `*ended` says whether the answer is complete. -1: no
 * HTTP answer. */
static int take_answer(struct reader *reader, const char *bytes, int count, int has_no_body, int *ended) {
    int taken = 0;
    *ended = 0;
    if (!reader->body_left || reader->status == 0) {
        int before = reader->head_length, room = (int)sizeof reader->head - 1 - before;
        int copied = count < room ? count : room;
        memcpy(reader->head + before, bytes, copied);
        reader->head[before + copied] = 0;
        int from = before > 3 ? before - 3 : 0;
        char *end = memmem(reader->head + from, before + copied - from, "\r\n\r\n", 4);
        if (!end) {
            reader->head_length += copied;
            return copied == room ? -1 : copied;
        }
        int length = end + 4 - reader->head;
        taken = length - before;
        reader->head[length] = 0;
        if (strncmp(reader->head, "HTTP/1.1 ", 9)) return -1;
        reader->status = atoi(reader->head + 9);
        char *field = strcasestr(reader->head, "\r\ncontent-length:");
        reader->body_left = field && !has_no_body && reader->status >= 200 ? atoi(field + 17) : 0;
        reader->closes |= strcasestr(reader->head, "\r\nconnection: close") != NULL;
        reader->head_length = 0;
    }
    int rest = count - taken < reader->body_left ? count - taken : reader->body_left;
    reader->body_left -= rest;
    taken += rest;
    *ended = reader->body_left == 0;
    return taken;
}

#endif
