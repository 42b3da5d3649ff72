"""The preloaded clocks (Tests/Support/jumping_clock.c): the wall clock jumps alone, and time that a test adds passes for
each way in which a program can wait."""

import os
import subprocess

import processes
import pytest
from clock import Clock
from waiting import until

PROGRAM = r'''
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static long read_clock(clockid_t clock) { struct timespec at; clock_gettime(clock, &at); return at.tv_sec; }

static struct timespec later(clockid_t clock) { return (struct timespec){ .tv_sec = read_clock(clock) + 1000 }; }

static void wait_for_condition(clockid_t clock) {
    pthread_condattr_t attributes;
    pthread_cond_t condition;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, clock);
    pthread_cond_init(&condition, &attributes);
    struct timespec deadline = later(clock);
    pthread_mutex_lock(&mutex);
    while (pthread_cond_timedwait(&condition, &mutex, &deadline) == 0) {}
}

static void wait_for_timer(clockid_t clock, int flags) {
    int timer = timerfd_create(clock, 0), epoll = epoll_create1(0);
    struct itimerspec value = { .it_value = flags ? later(clock) : (struct timespec){ .tv_sec = 1000 } };
    struct epoll_event event = { .events = EPOLLIN };
    timerfd_settime(timer, flags, &value, NULL);
    epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event);
    if (epoll_wait(epoll, &event, 1, -1) != 1) abort();
    unsigned long count;
    if (read(timer, &count, sizeof count) != sizeof count || count != 1) abort();
}

int main(int count, char **words) {
    setbuf(stdout, NULL);
    const char *way = count > 1 ? words[1] : "clocks";
    if (!strcmp(way, "clocks")) {
        struct timeval day;
        gettimeofday(&day, NULL);
        printf("%ld %ld %ld %ld %ld\n", read_clock(CLOCK_REALTIME), (long)time(NULL), (long)day.tv_sec,
               read_clock(CLOCK_MONOTONIC), read_clock(CLOCK_BOOTTIME));
        return 0;
    }
    puts("waits");
    if (!strcmp(way, "poll") && poll(NULL, 0, 1000000) != 0) abort();
    struct epoll_event event;
    if (!strcmp(way, "epoll") && epoll_wait(epoll_create1(0), &event, 1, 1000000) != 0) abort();
    if (!strcmp(way, "sleep") && sleep(1000) != 0) abort();
    if (!strcmp(way, "usleep") && usleep(1000000000) != 0) abort();
    struct timespec rest = { .tv_sec = 1000 };
    if (!strcmp(way, "nanosleep") && nanosleep(&rest, NULL) != 0) abort();
    if (!strcmp(way, "condition")) wait_for_condition(CLOCK_MONOTONIC);
    if (!strcmp(way, "condition of the wall clock")) wait_for_condition(CLOCK_REALTIME);
    if (!strcmp(way, "timer")) wait_for_timer(CLOCK_MONOTONIC, 0);
    if (!strcmp(way, "timer at a time")) wait_for_timer(CLOCK_MONOTONIC, TFD_TIMER_ABSTIME);
    if (!strcmp(way, "timer of the wall clock")) wait_for_timer(CLOCK_REALTIME, TFD_TIMER_ABSTIME);
    if (!strcmp(way, "semaphore")) {
        sem_t semaphore;
        struct timespec deadline = later(CLOCK_REALTIME);
        sem_init(&semaphore, 0, 0);
        if (sem_timedwait(&semaphore, &deadline) == 0) abort();
    }
    return 0;
}
'''
WAYS = ("poll", "epoll", "sleep", "usleep", "nanosleep", "condition", "condition of the wall clock", "timer", "timer at a time",
        "timer of the wall clock", "semaphore")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "waits"
    subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", path, "-x", "c", "-"], input=PROGRAM, text=True, check=True)
    return path


@pytest.fixture
def clock(tmp_path):
    return Clock(tmp_path)


def clocks(program, clock: Clock | None = None) -> list[int]:
    """The wall clock in three readings, the monotonic clock, and the time since the machine started."""
    environment = os.environ | (clock.environment if clock else {})
    return [int(word) for word in subprocess.run([program], env=environment, stdout=subprocess.PIPE, check=True).stdout.split()]


def ahead(program, clock: Clock) -> list[int]:
    """Whole thousands of seconds."""
    return [round((shifted - plain) / 1000) for plain, shifted in zip(clocks(program), clocks(program, clock))]


def test_a_jump_moves_the_wall_clock_alone(program, clock):
    assert ahead(program, clock) == [0, 0, 0, 0, 0]
    clock.jumps(86_000)
    assert ahead(program, clock) == [86, 86, 86, 0, 0]
    clock.advance(5_000)
    assert ahead(program, clock) == [91, 91, 91, 5, 5]
    clock.jumps(-86_000)
    assert ahead(program, clock) == [-81, -81, -81, 5, 5]


@pytest.mark.parametrize("way", WAYS)
def test_added_time_ends_each_wait(program, clock, way):
    # A shift from the start, which deadlines must be translated by.
    clock.advance(3_000)
    waiting = processes.start([program, way], env=os.environ | clock.environment, stdout=subprocess.PIPE, text=True)
    assert waiting.stdout.readline() == "waits\n"
    steps = []

    def ends() -> bool:
        steps.append(clock.advance(600))
        return waiting.poll() is not None

    until(ends, "the wait")
    assert waiting.returncode == 0 and len(steps) >= 2, "it ended before its time"
