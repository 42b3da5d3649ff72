// Clocks that a test sets while a program runs, for that program: LD_PRELOAD it. JUMPING_CLOCK names a file of two whole
// numbers of 8 bytes each, in nanoseconds: how far the wall clock is ahead of the machine's, and how far all others are.
// A test that changes them sets the clocks. No wait with a limit sleeps for more than SLICE of real time before it looks at
// its clock again, so time that a test adds passes for every timer. (libfaketime sets a variable of the environment as it
// starts, and Swift's runtime then finds no arguments.)
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { WALL, OTHERS };
static const int64_t SECOND = 1000000000, SLICE = 20000000;
static const volatile int64_t none[2], *shifts = none;

static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_epoll)(int, struct epoll_event *, int, int);
static int (*real_poll)(struct pollfd *, nfds_t, int);
static int (*real_sleep)(const struct timespec *, struct timespec *);
static int (*real_wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*real_semaphore)(sem_t *, const struct timespec *);
static int (*real_timer)(int, int, const struct itimerspec *, struct itimerspec *);

__attribute__((constructor)) static void begin(void) {
    if (real_gettime) return;
    real_epoll = dlsym(RTLD_NEXT, "epoll_wait");
    real_poll = dlsym(RTLD_NEXT, "poll");
    real_sleep = dlsym(RTLD_NEXT, "nanosleep");
    real_wait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!real_wait) real_wait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    real_semaphore = dlsym(RTLD_NEXT, "sem_timedwait");
    real_timer = dlsym(RTLD_NEXT, "timerfd_settime");
    real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("JUMPING_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) shifts = mapped;
}

static int64_t number(const struct timespec *time) { return time->tv_sec * SECOND + time->tv_nsec; }

static struct timespec timespec_of(int64_t nanoseconds) {
    if (nanoseconds < 0) nanoseconds = 0;
    return (struct timespec){ .tv_sec = nanoseconds / SECOND, .tv_nsec = nanoseconds % SECOND };
}

static int64_t shift_of(clockid_t clock) {
    switch (clock) {
    case CLOCK_REALTIME: case CLOCK_REALTIME_COARSE: case CLOCK_TAI: return shifts[WALL];
    case CLOCK_MONOTONIC: case CLOCK_MONOTONIC_COARSE: case CLOCK_MONOTONIC_RAW: case CLOCK_BOOTTIME: return shifts[OTHERS];
    default: return 0;  // CPU time
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    begin();
    int verdict = real_gettime(clock, now);
    int64_t shift = verdict ? 0 : shift_of(clock);
    if (shift) *now = timespec_of(number(now) + shift);
    return verdict;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec moment;
    if (clock_gettime(CLOCK_REALTIME, &moment)) return -1;
    now->tv_sec = moment.tv_sec;
    now->tv_usec = moment.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec moment;
    if (clock_gettime(CLOCK_REALTIME, &moment)) return -1;
    if (out) *out = moment.tv_sec;
    return moment.tv_sec;
}

static int64_t now(clockid_t clock) {
    struct timespec moment;
    clock_gettime(clock, &moment);
    return number(&moment);
}

static int64_t slice(int64_t left) { return left < SLICE ? left : SLICE; }

// Milliseconds, rounded up, as `epoll_wait` and `poll` take them.
static int milliseconds(int64_t left) { return left <= 0 ? 0 : (int)((slice(left) + 999999) / 1000000); }

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout) {
    begin();
    if (timeout <= 0) return real_epoll(epoll, events, most, timeout);
    int64_t end = now(CLOCK_MONOTONIC) + timeout * (int64_t)1000000;
    for (;;) {
        int64_t left = end - now(CLOCK_MONOTONIC);
        int count = real_epoll(epoll, events, most, milliseconds(left));
        if (count != 0 || left <= 0) return count;
    }
}

int poll(struct pollfd *entries, nfds_t count, int timeout) {
    begin();
    if (timeout <= 0) return real_poll(entries, count, timeout);
    int64_t end = now(CLOCK_MONOTONIC) + timeout * (int64_t)1000000;
    for (;;) {
        int64_t left = end - now(CLOCK_MONOTONIC);
        int ready = real_poll(entries, count, milliseconds(left));
        if (ready != 0 || left <= 0) return ready;
    }
}

int nanosleep(const struct timespec *time, struct timespec *rest) {
    begin();
    for (int64_t end = now(CLOCK_MONOTONIC) + number(time);;) {
        int64_t left = end - now(CLOCK_MONOTONIC);
        if (left <= 0) return 0;
        struct timespec part = timespec_of(slice(left));
        if (real_sleep(&part, NULL)) {
            left = end - now(CLOCK_MONOTONIC);
            if (rest) *rest = timespec_of(left);
            return -1;
        }
    }
}

int usleep(useconds_t time) {
    struct timespec whole = timespec_of(time * (int64_t)1000);
    return nanosleep(&whole, NULL);
}

unsigned sleep(unsigned seconds) {
    struct timespec whole = { .tv_sec = seconds }, rest = { 0 };
    return nanosleep(&whole, &rest) ? (unsigned)rest.tv_sec : 0;
}

// A condition does not tell its clock. Of the two, the wall clock is decades ahead.
static clockid_t clock_of(int64_t deadline) {
    return deadline > now(CLOCK_REALTIME) / 2 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict time) {
    begin();
    clockid_t clock = clock_of(number(time));
    int64_t left = number(time) - now(clock);
    struct timespec deadline = timespec_of(now(clock) - shift_of(clock) + slice(left));
    int verdict = real_wait(condition, mutex, &deadline);
    // A spurious wake-up, which every caller must expect: to wait again here could miss a signal.
    return verdict == ETIMEDOUT && now(clock) < number(time) ? 0 : verdict;
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict time) {
    begin();
    for (;;) {
        int64_t left = number(time) - now(CLOCK_REALTIME);
        struct timespec deadline = timespec_of(now(CLOCK_REALTIME) - shifts[WALL] + slice(left));
        if (!real_semaphore(semaphore, &deadline)) return 0;
        if (errno != ETIMEDOUT || left <= 0) return -1;
    }
}

// Timers of descriptors: libdispatch's, which `Task.sleep` uses. A thread fires those whose time has come by a jump.
static struct { int64_t end; clockid_t clock; } timers[1024];
static pthread_mutex_t timers_lock = PTHREAD_MUTEX_INITIALIZER;

static void *fire(void *unused) {
    (void)unused;
    for (struct timespec part = { .tv_nsec = 20000000 };; real_sleep(&part, NULL)) {
        pthread_mutex_lock(&timers_lock);
        for (int timer = 0; timer < 1024; timer++) {
            if (!timers[timer].end || now(timers[timer].clock) < timers[timer].end) continue;
            timers[timer].end = 0;
            struct itimerspec left, soon = { .it_value = { .tv_nsec = 1 } };
            // One that has fired is not armed any more.
            if (timerfd_gettime(timer, &left) == 0 && number(&left.it_value)) real_timer(timer, 0, &soon, NULL);
        }
        pthread_mutex_unlock(&timers_lock);
    }
    return NULL;
}

static void start_to_fire(void) {
    pthread_t thread;
    sigset_t all, former;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &former);
    if (pthread_create(&thread, NULL, fire, NULL) == 0) pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &former, NULL);
}

int timerfd_settime(int timer, int flags, const struct itimerspec *value, struct itimerspec *former) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    begin();
    int64_t set = number(&value->it_value);
    if (!set || timer >= 1024) return real_timer(timer, flags, value, former);
    pthread_once(&once, start_to_fire);
    clockid_t clock = clock_of(set);
    struct itimerspec moved = *value;
    int64_t end = set;
    if (flags & TFD_TIMER_ABSTIME) {
        int64_t left = set - shift_of(clock);
        moved.it_value = timespec_of(left > 0 ? left : 1);
    } else {
        clock = CLOCK_MONOTONIC;
        end = now(clock) + set;
    }
    pthread_mutex_lock(&timers_lock);
    timers[timer].end = end;
    timers[timer].clock = clock;
    int verdict = real_timer(timer, flags, &moved, former);
    pthread_mutex_unlock(&timers_lock);
    return verdict;
}
