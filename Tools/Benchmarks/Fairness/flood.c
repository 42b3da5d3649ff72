/* An attacker for script/fairness: many connections from one address (or several), each as fast as it can or
 * as slowly as it is told. It sends the requests of a file, over and over, and counts what became of them.
 * Prints one JSON object at its end.
 *
 *   flood --port P --requests FILE --from ADDRESS --connections N --seconds S [--tls] [options]
 *
 *   --addresses N      the connections come from N successive addresses (default 1)
 *   --per-record N     requests in each record of the file (default 1)
 *   --window N         records sent and not answered, on each connection; 0: as many as the socket takes
 * (default 1)
 *   --limit N          records on each connection, which is then closed and opened anew; 0: no limit (default
 * 0)
 *   --send-rate N      bytes a second on each connection (default: as fast as it goes)
 *   --read-rate N      the same for reading; 0 reads nothing (default: as fast as it goes)
 *   --raw              whatever arrives first is the answer: for bytes that are no HTTP
 *   --head             answers have no body
 *   --silent           sends nothing; with --tls, nothing after the handshake
 *   --key-updates      over TLS 1.3: changes its keys again and again, which nothing reads as a request
 *   --pause N          milliseconds before a connection that ended is opened anew (default 0)
 */
#include "client.h"

#include <getopt.h>
#include <signal.h>
#include <sys/epoll.h>

enum state { CLOSED, CONNECTING, HANDSHAKE, OPEN };

struct connection {
    enum state state;
    int fd, record, sent, sent_records, answered_records, answers_in_record, send_allowance, read_allowance;
    uint32_t events;
    int64_t opens_at;
    SSL *ssl;
    struct reader reader;
};

static int port, connections = 1, seconds = 5, addresses = 1, per_record = 1, window = 1, record_limit,
                 send_rate = -1, read_rate = -1, is_raw, is_head, is_silent, updates_keys, uses_tls, pause_ms;
static uint32_t from;
static SSL_CTX *context;
static int epoll, next_record;
static struct connection *all;
static volatile sig_atomic_t must_stop;
static char incoming[256 << 10];
static int64_t opened, failed, closed_by_peer, handshakes, requests, answers, statuses[6], sent_bytes,
    read_bytes;
static int open_now, most_open, most_waiting, waiting;

static int is_waiting(struct connection *c) {
    return c->state == OPEN && window && c->sent_records - c->answered_records >= window;
}

static void end(struct connection *c) {
    if (c->state == OPEN) open_now--;
    if (is_waiting(c)) waiting--;
    if (c->ssl) SSL_free(c->ssl);
    if (c->fd >= 0) {
        /* Reset rather than closed in order: no port of ours waits behind it. */
        struct linger none = {1, 0};
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
        close(c->fd);
    }
    memset(c, 0, sizeof *c);
    c->fd = -1;
    c->opens_at = now_us() + pause_ms * 1000;
}

static void want(struct connection *c, uint32_t events) {
    if (c->events == events) return;
    struct epoll_event event = {.events = events, .data.ptr = c};
    epoll_ctl(epoll, c->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &event);
    c->events = events;
}

static void begin(struct connection *c) {
    c->fd = begin_connecting(htonl(ntohl(from) + (c - all) % addresses), port, read_rate >= 0 ? 4096 : 0);
    if (c->fd < 0) {
        failed++;
        c->opens_at = now_us() + 10000;
        return;
    }
    c->state = CONNECTING;
    c->send_allowance = send_rate > 0 ? 1 : 0;
    c->record = -1;
    c->events = 0;
    want(c, EPOLLOUT);
}

static void did_open(struct connection *c) {
    c->state = OPEN;
    if (++open_now > most_open) most_open = open_now;
}

static int has_more(struct connection *c) {
    if (is_silent) return 0;
    if (c->record >= 0) return 1;
    if (record_limit && c->sent_records == record_limit) return 0;
    return !window || c->sent_records - c->answered_records < window;
}

/* Changes the keys as often as the socket takes it; 0 where the connection has ended. */
static int update_keys(struct connection *c) {
    for (int burst = 0; burst < 64; burst++) {
        if (SSL_key_update(c->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) != 1) break;
        int done = SSL_do_handshake(c->ssl);
        if (done != 1) {
            int why = SSL_get_error(c->ssl, done);
            if (why != SSL_ERROR_WANT_WRITE && why != SSL_ERROR_WANT_READ) return 0;
            break;
        }
        requests++;
    }
    want(c, EPOLLIN | EPOLLRDHUP | EPOLLOUT);
    return 1;
}

/* Sends what the window and the rate allow; 0 where the connection has ended. */
static int send_more(struct connection *c) {
    if (updates_keys) return update_keys(c);
    uint32_t events =
        read_rate == 0 || (read_rate > 0 && c->read_allowance <= 0) ? EPOLLRDHUP : EPOLLIN | EPOLLRDHUP;
    for (int burst = 0; burst < 64 && has_more(c); burst++) {
        if (c->record < 0) {
            c->record = next_record++ % record_count;
            c->sent = 0;
        }
        int count = (int)records[c->record].length - c->sent;
        if (send_rate > 0 && count > c->send_allowance) count = c->send_allowance;
        if (count <= 0) break;
        int moved = transfer(c->ssl, c->fd, 1, (void *)(records[c->record].bytes + c->sent), count);
        if (moved == 0) return 0;
        if (moved < 0) break;
        sent_bytes += moved;
        c->sent += moved;
        if (send_rate > 0) c->send_allowance -= moved;
        if (c->sent == (int)records[c->record].length) {
            c->record = -1;
            c->sent_records++;
            requests += per_record;
            if (is_waiting(c) && ++waiting > most_waiting) most_waiting = waiting;
        }
    }
    want(c, send_rate < 0 && has_more(c) ? events | EPOLLOUT : events);
    return 1;
}

static void did_answer(struct connection *c, int status) {
    answers++;
    statuses[status >= 100 && status < 600 ? status / 100 : 0]++;
    if (++c->answers_in_record < per_record) return;
    int was_waiting = is_waiting(c);
    c->answers_in_record = 0;
    c->answered_records++;
    if (was_waiting && !is_waiting(c)) waiting--;
}

/* Reads what there is, or what the rate allows; 0 where the connection has ended. */
static int read_more(struct connection *c) {
    for (int burst = 0; read_rate && burst < 4; burst++) {
        int most = sizeof incoming;
        if (read_rate > 0 && most > c->read_allowance) most = c->read_allowance;
        if (most <= 0) return 1;
        int count = transfer(c->ssl, c->fd, 0, incoming, most);
        if (count == 0) return 0;
        if (count < 0) return 1;
        read_bytes += count;
        if (read_rate > 0) c->read_allowance -= count;
        for (int at = 0; at < count;) {
            int ended = 0, taken = is_raw
                                       ? count - at
                                       : take_answer(&c->reader, incoming + at, count - at, is_head, &ended);
            if (taken < 0) return 0;
            at += taken;
            if (is_raw) ended = 1;
            if (!ended) continue;
            if (is_raw || c->reader.status >= 200) did_answer(c, is_raw ? 0 : c->reader.status);
            c->reader.status = 0;
        }
        if (record_limit && c->answered_records >= record_limit) {
            end(c);
            return -1;
        }
        if (count < most) return 1;
    }
    return 1;
}

static void go_on(struct connection *c, uint32_t events) {
    if (c->state == CONNECTING) {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error) {
            failed++;
            return end(c);
        }
        opened++;
        if (uses_tls) {
            c->ssl = SSL_new(context);
            SSL_set_fd(c->ssl, c->fd);
            c->state = HANDSHAKE;
        } else {
            did_open(c);
        }
    }
    if (c->state == HANDSHAKE) {
        int done = SSL_connect(c->ssl);
        if (done != 1) {
            int why = SSL_get_error(c->ssl, done);
            if (why == SSL_ERROR_WANT_READ) return want(c, EPOLLIN);
            if (why == SSL_ERROR_WANT_WRITE) return want(c, EPOLLOUT);
            closed_by_peer++;
            return end(c);
        }
        handshakes++;
        did_open(c);
    }
    int goes_on = 1;
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) goes_on = read_more(c);
    if (goes_on < 0) return;
    if (goes_on && events & (EPOLLHUP | EPOLLERR)) goes_on = 0;
    if (goes_on && events & EPOLLRDHUP && !(events & EPOLLIN)) goes_on = 0;
    if (goes_on && read_rate == 0 && events & EPOLLRDHUP) goes_on = 0;
    if (goes_on) goes_on = send_more(c);
    if (!goes_on) {
        closed_by_peer++;
        end(c);
    }
}

/* Bytes of a rate that fall into one tick; under one byte a tick, one byte now and then. */
static int share_of_tick(int bytes_per_second, int64_t now, int index) {
    if (bytes_per_second >= 100) return bytes_per_second / 100;
    int ticks = 100 / bytes_per_second;
    return (now / 10000) % ticks == index % ticks;
}

/* Every ten milliseconds (or each, where no rate is set): opens what is due, and gives each connection its
 * share of the rates. */
static void tick(int64_t now) {
    for (int i = 0; i < connections; i++) {
        struct connection *c = &all[i];
        if (c->state == CLOSED && c->opens_at <= now) begin(c);
        if (c->state != OPEN || (send_rate <= 0 && read_rate <= 0)) continue;
        /* A rate under one byte a tick: one byte now and then. */
        if (send_rate > 0) c->send_allowance += share_of_tick(send_rate, now, i);
        if (read_rate > 0) c->read_allowance += share_of_tick(read_rate, now, i);
        int goes_on = read_rate > 0 ? read_more(c) : 1;
        if (goes_on > 0) goes_on = send_more(c);
        if (goes_on == 0) {
            closed_by_peer++;
            end(c);
        }
    }
}

static void read_options(int argc, char **argv) {
    static struct option options[] = {{"port", 1, 0, 'p'},          {"requests", 1, 0, 'r'},
                                      {"from", 1, 0, 'f'},          {"connections", 1, 0, 'c'},
                                      {"seconds", 1, 0, 's'},       {"addresses", 1, 0, 'a'},
                                      {"per-record", 1, 0, 'n'},    {"window", 1, 0, 'w'},
                                      {"limit", 1, 0, 'l'},         {"send-rate", 1, 0, 'S'},
                                      {"read-rate", 1, 0, 'R'},     {"pause", 1, 0, 'P'},
                                      {"raw", 0, &is_raw, 1},       {"head", 0, &is_head, 1},
                                      {"silent", 0, &is_silent, 1}, {"key-updates", 0, &updates_keys, 1},
                                      {"tls", 0, &uses_tls, 1},     {0, 0, 0, 0}};
    const char *file = NULL;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) switch (option) {
        case 'p': port = atoi(optarg); break;
        case 'r': file = optarg; break;
        case 'f': from = inet_addr(optarg); break;
        case 'c': connections = atoi(optarg); break;
        case 's': seconds = atoi(optarg); break;
        case 'a': addresses = atoi(optarg); break;
        case 'n': per_record = atoi(optarg); break;
        case 'w': window = atoi(optarg); break;
        case 'l': record_limit = atoi(optarg); break;
        case 'S': send_rate = atoi(optarg); break;
        case 'R': read_rate = atoi(optarg); break;
        case 'P': pause_ms = atoi(optarg); break;
        case 0: break;
        default: exit(2);
        }
    if (file)
        read_records(file);
    else if (!is_silent && !updates_keys)
        fail("--requests is needed");
}

static void stop(int signal) {
    (void)signal;
    must_stop = 1;
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
    context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    all = calloc(connections, sizeof *all);
    for (int i = 0; i < connections; i++) all[i].fd = -1;
    int64_t start = now_us(), ticked = 0;
    while (!must_stop) {
        int64_t now = now_us();
        if (now - start >= (int64_t)seconds * 1000000) break;
        if (now - ticked >= (pause_ms || send_rate > 0 || read_rate > 0 ? 10000 : 1000)) {
            tick(now);
            ticked = now;
        }
        struct epoll_event events[256];
        int count = epoll_wait(epoll, events, 256, 1);
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            go_on(c, events[i].events);
            if (c->state == CLOSED && c->opens_at <= now) begin(c);
        }
    }
    double took = (now_us() - start) / 1e6;
    printf("{\"seconds\":%.2f,\"opened\":%ld,\"failed\":%ld,\"closed_by_peer\":%ld,\"handshakes\":%ld,"
           "\"requests\":%ld,"
           "\"answers\":%ld,\"unread\":%ld,\"informed\":%ld,\"succeeded\":%ld,\"redirected\":%ld,\"refused\":"
           "%ld,\"errors\":%ld,"
           "\"sent_bytes\":%ld,\"read_bytes\":%ld,\"most_open\":%d,\"open\":%d,\"most_waiting\":%d,"
           "\"waiting\":%d}\n",
           took, opened, failed, closed_by_peer, handshakes, requests, answers, statuses[0], statuses[1],
           statuses[2], statuses[3], statuses[4], statuses[5], sent_bytes, read_bytes, most_open, open_now,
           most_waiting, waiting);
    return 0;
}
