// Linux calls that Glibc's module map leaves out, and the macros of descriptor passing, which do not import.
#pragma once
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

// Declared under _GNU_SOURCE only.
int memfd_create(const char *name, unsigned int flags);

static const unsigned int cs_memfd_cloexec = 1;

// O_PATH, defined under _GNU_SOURCE only. Source: asm-generic/fcntl.h.
static const int cs_open_path = 010000000;

// Asks the processor to fetch the cache line of an address that will be read soon. Has no other effect, and
// never faults.
static inline void cs_prefetch(const void *address) { __builtin_prefetch(address, 0, 3); }

// Declared under _GNU_SOURCE only, and also by <sys/socket.h> of other modules: so under a name of its own.
static inline int cs_accept_closing_on_exec(int socket) {
    int accept4(int socket, struct sockaddr *address, socklen_t *length, int flags);
    return accept4(socket, 0, 0, SOCK_CLOEXEC);
}

// Reserves blocks for the first `size` bytes of a file without making it longer; returns an errno, or 0. Declared
// under _GNU_SOURCE only. Source: fallocate(2), FALLOC_FL_KEEP_SIZE.
static inline int cs_reserve(int file, off_t size) {
    int fallocate(int file, int mode, off_t offset, off_t size);
    for (;;) {
        if (fallocate(file, 1, 0, size) == 0) return 0;
        if (errno != EINTR) return errno;
    }
}

// Sends bytes over a Unix socket, with one descriptor if `descriptor` is not negative. Source: cmsg(3).
static inline ssize_t cs_send_with_descriptor(int socket, const void *bytes, size_t count, int descriptor) {
    union { struct cmsghdr header; char space[CMSG_SPACE(sizeof(int))]; } control;
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = count};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    memset(&control, 0, sizeof control);
    if (descriptor >= 0) {
        message.msg_control = control.space;
        message.msg_controllen = sizeof control.space;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL);
}

// Receives bytes, and the descriptor that came with them: -1 where there was none. Where there were several,
// all that the kernel has installed are closed; a control buffer for one has room for two, because of its
// alignment.
static inline ssize_t cs_receive_with_descriptor(int socket, void *bytes, size_t count, int *descriptor) {
    union { struct cmsghdr header; char space[CMSG_SPACE(sizeof(int))]; } control;
    struct iovec part = {.iov_base = bytes, .iov_len = count};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space};
    *descriptor = -1;
    ssize_t received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (received < 0) return received;
    int installed = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        size_t passed = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t index = 0; index < passed; index++) {
            int number;
            memcpy(&number, CMSG_DATA(header) + index * sizeof number, sizeof number);
            if (installed++ == 0) *descriptor = number;
            else close(number);
        }
    }
    if (*descriptor >= 0 && (installed > 1 || message.msg_flags & MSG_CTRUNC)) {
        close(*descriptor);
        *descriptor = -1;
    }
    return received;
}
