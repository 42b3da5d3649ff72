// Linux calls that Glibc's module map leaves out, and the macros of descriptor passing, which do not import.
#pragma once
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

// Declared under _GNU_SOURCE only.
int memfd_create(const char *name, unsigned int flags);

static const unsigned int cs_memfd_cloexec = 1;

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

// Receives bytes, and the descriptor that came with them: -1 where there was none.
static inline ssize_t cs_receive_with_descriptor(int socket, void *bytes, size_t count, int *descriptor) {
    union { struct cmsghdr header; char space[CMSG_SPACE(sizeof(int))]; } control;
    struct iovec part = {.iov_base = bytes, .iov_len = count};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space};
    *descriptor = -1;
    ssize_t received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (received < 0) return received;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS
        && header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(descriptor, CMSG_DATA(header), sizeof *descriptor);
    return received;
}
