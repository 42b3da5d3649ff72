// libevent's core (loop, timers, signals) and the Linux calls that Glibc's module map leaves out.
// The system headers come first: libevent's configuration defines _GNU_SOURCE, which would give `fd_set` a second shape.
#pragma once
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <event2/event.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

// Declared under _GNU_SOURCE only.
int pthread_setname_np(unsigned long thread, const char *name);
int accept4(int descriptor, struct sockaddr *address, socklen_t *length, int flags);

// An enumerator of <netinet/in.h>, which cannot be included beside Glibc's module map.
static const int cs_ipproto_tcp = 6;

// Bytes in the socket that the other side has not acknowledged (SIOCOUTQ); `ioctl` is variadic and does not import.
static inline int cs_unsent_bytes(int descriptor) {
    int count = 0;
    return ioctl(descriptor, TIOCOUTQ, &count) == 0 ? count : 0;
}
