// libevent's core (loop, timers, signals) and the Linux calls that Glibc's module map leaves out.
#pragma once
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>
#include <sys/eventfd.h>
