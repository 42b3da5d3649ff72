/* A well-behaved client for script/fairness: it sends each request of a file at its time, so many a second,
 * and measures until the answer is complete. The time runs from when the request was due, not from when a
 * connection was free to take it: a server that stalls is seen in every request that falls into the stall.
 * Prints one JSON object at its end; all times are in milliseconds.
 *
 *   probe --port P --requests FILE --from ADDRESS --rate N [--connections N] [--fresh N] [--timeout MS]
 * [--status N] [--tls]
 *
 *   --connections N   connections that are kept (default 8)
 *   --fresh N         every Nth request has a connection of its own (default 4; 0: none)
 *   --timeout MS      without an answer for so long, a request has failed (default 10000)
 *   --status N        the answer that is right (default 200)
 */
#include "client.h"

#include <getopt.h>
#include <signal.h>
#include <sys/epoll.h>

enum state { CLOSED, CONNECTING, HANDSHAKE, OPEN };

struct connection {
    enum state state;
    int fd, request, sent, is_fresh;
    uint32_t events;
    SSL *ssl;
    struct reader reader;
};

static int port, rate = 200, kept = 8, fresh_each = 4, timeout_ms = 10000, right_status = 200, uses_tls;
static uint32_t from;
static SSL_CTX *context;
static int epoll, due, done, errors, error_kinds, opened, total;
static struct connection *all;
static int64_t start;
static double *latencies, *fresh_latencies;
static int fresh_count, slot_count;
static char error_texts[8][160];
static char incoming[64 << 10];

static int64_t due_at(int request) {
    return start + (int64_t)request * 1000000 / rate;
}

static void want(struct connection *c, uint32_t events) {
    if (c->events == events) return;
    struct epoll_event event = {.events = events, .data.ptr = c};
    epoll_ctl(epoll, c->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &event);
    c->events = events;
}

static void shut(struct connection *c) {
    if (c->ssl) SSL_free(c->ssl);
    if (c->fd >= 0) close(c->fd);
    memset(c, 0, sizeof *c);
    c->fd = c->request = -1;
}

static void did_fail(struct connection *c, const char *why) {
    if (c->request >= 0) {
        errors++;
        done++;
        if (error_kinds < 8) {
            snprintf(error_texts[error_kinds++], sizeof error_texts[0], "request %d after %.0f ms: %s",
                     c->request, (now_us() - due_at(c->request)) / 1e3, why);
        }
    }
    shut(c);
}

static void send_on(struct connection *c) {
    while (c->request >= 0 && c->sent < (int)records[c->request].length) {
        int moved = transfer(c->ssl, c->fd, 1, (void *)(records[c->request].bytes + c->sent),
                             records[c->request].length - c->sent);
        if (moved == 0) break; /* An answer may be there already: what is read next tells. */
        if (moved < 0) return want(c, EPOLLIN | EPOLLOUT);
        c->sent += moved;
    }
    want(c, EPOLLIN);
}

static void give(struct connection *c, int request) {
    c->request = request;
    c->sent = 0;
    if (c->state == OPEN) return send_on(c);
    c->fd = begin_connecting(from, port, 0);
    if (c->fd < 0) return did_fail(c, strerror(errno));
    c->state = CONNECTING;
    c->events = 0;
    want(c, EPOLLOUT);
}

static void did_answer(struct connection *c) {
    double took = (now_us() - due_at(c->request)) / 1e3;
    if (c->reader.status != right_status) {
        char why[128];
        snprintf(why, sizeof why, "%.60s", c->reader.head);
        for (char *end = why; *end; end++)
            if (*end == '\r' || *end == '"' || *end == '\\') *end = 0;
        return did_fail(c, why);
    }
    latencies[done - errors] = took;
    if (c->is_fresh) fresh_latencies[fresh_count++] = took;
    done++;
    c->request = -1;
    c->reader.status = 0;
    if (c->is_fresh || c->reader.closes) shut(c);
}

static void read_on(struct connection *c) {
    for (;;) {
        int count = transfer(c->ssl, c->fd, 0, incoming, sizeof incoming);
        if (count < 0) return;
        if (count == 0) {
            /* Idle connections may be closed: one that waits for an answer may not. */
            return did_fail(c, "closed without an answer");
        }
        for (int at = 0, ended; at < count;) {
            int taken = c->request < 0 ? -1 : take_answer(&c->reader, incoming + at, count - at, 0, &ended);
            if (taken < 0) return did_fail(c, "not an HTTP answer");
            at += taken;
            if (ended && c->reader.status >= 200) {
                did_answer(c);
                if (c->state != OPEN) return;
            }
        }
    }
}

static void go_on(struct connection *c) {
    if (c->state == CLOSED) return;
    if (c->state == CONNECTING) {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error) return did_fail(c, strerror(error));
        opened++;
        c->state = uses_tls ? HANDSHAKE : OPEN;
        if (uses_tls) {
            c->ssl = SSL_new(context);
            SSL_set_fd(c->ssl, c->fd);
        }
    }
    if (c->state == HANDSHAKE) {
        int shaken = SSL_connect(c->ssl);
        if (shaken != 1) {
            int why = SSL_get_error(c->ssl, shaken);
            if (why == SSL_ERROR_WANT_READ) return want(c, EPOLLIN);
            if (why == SSL_ERROR_WANT_WRITE) return want(c, EPOLLOUT);
            return did_fail(c, "the TLS handshake failed");
        }
        c->state = OPEN;
    }
    if (c->request >= 0 && c->sent < (int)records[c->request].length) send_on(c);
    read_on(c);
}

/* Hands out what is due, as far as there are connections for it; what has waited too long for one has failed.
 */
static void hand_out(void) {
    int64_t now = now_us(), timeout = (int64_t)timeout_ms * 1000;
    for (; due < total && now - due_at(due) > timeout; due++, errors++) done++;
    while (due < total && due_at(due) <= now) {
        int is_fresh = fresh_each && due % fresh_each == fresh_each - 1;
        int first = is_fresh ? kept : 0, end = is_fresh ? slot_count : kept, free_slot = -1;
        for (int i = first; i < end && free_slot < 0; i++)
            if (all[i].request < 0) free_slot = i;
        if (free_slot < 0) return;
        all[free_slot].is_fresh = is_fresh;
        give(&all[free_slot], due++);
    }
    for (int i = 0; i < slot_count; i++)
        if (all[i].request >= 0 && now - due_at(all[i].request) > timeout)
            did_fail(&all[i], "no answer in time");
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double share(double *sorted, int count, double part) {
    return count ? sorted[(int)((count - 1) * part)] : -1;
}

static void report(void) {
    int good = done - errors;
    qsort(latencies, good, sizeof *latencies, ascending);
    qsort(fresh_latencies, fresh_count, sizeof *fresh_latencies, ascending);
    printf("{\"requests\":%d,\"errors\":%d,\"seconds\":%.2f,\"connections\":%d,\"p50\":%.2f,\"p90\":%.2f,"
           "\"p99\":%.2f,\"most\":%.2f,"
           "\"fresh\":%d,\"fresh_p99\":%.2f,\"first_errors\":[",
           done, errors, (now_us() - start) / 1e6, opened, share(latencies, good, 0.5),
           share(latencies, good, 0.9), share(latencies, good, 0.99), share(latencies, good, 1), fresh_count,
           share(fresh_latencies, fresh_count, 0.99));
    for (int i = 0; i < error_kinds; i++) printf("%s\"%s\"", i ? "," : "", error_texts[i]);
    printf("]}\n");
}

static void read_options(int argc, char **argv) {
    static struct option options[] = {{"port", 1, 0, 'p'},        {"requests", 1, 0, 'r'},
                                      {"from", 1, 0, 'f'},        {"rate", 1, 0, 'n'},
                                      {"connections", 1, 0, 'c'}, {"fresh", 1, 0, 'F'},
                                      {"timeout", 1, 0, 't'},     {"status", 1, 0, 's'},
                                      {"tls", 0, &uses_tls, 1},   {0, 0, 0, 0}};
    const char *file = "";
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) switch (option) {
        case 'p': port = atoi(optarg); break;
        case 'r': file = optarg; break;
        case 'f': from = inet_addr(optarg); break;
        case 'n': rate = atoi(optarg); break;
        case 'c': kept = atoi(optarg); break;
        case 'F': fresh_each = atoi(optarg); break;
        case 't': timeout_ms = atoi(optarg); break;
        case 's': right_status = atoi(optarg); break;
        case 0: break;
        default: exit(2);
        }
    read_records(file);
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    context = SSL_CTX_new(TLS_client_method());
    epoll = epoll_create1(EPOLL_CLOEXEC);
    total = record_count;
    slot_count = kept + 1024;
    all = calloc(slot_count, sizeof *all);
    latencies = calloc(total, sizeof *latencies);
    fresh_latencies = calloc(total, sizeof *fresh_latencies);
    for (int i = 0; i < slot_count; i++) all[i].fd = all[i].request = -1;
    start = now_us();
    while (done < total) {
        hand_out();
        struct epoll_event events[64];
        int count = epoll_wait(epoll, events, 64, 1);
        for (int i = 0; i < count; i++) go_on(events[i].data.ptr);
    }
    report();
    return errors ? 1 : 0;
}
