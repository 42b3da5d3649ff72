/* What Swift needs of C: epoll, which its module of glibc leaves out, and io_uring without liburing. glibc
 * has no functions for its three system calls; loads and stores of the rings' heads and tails are ordered
 * against the kernel's. */
#include <linux/io_uring.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int ring_setup(uint32_t entries, struct io_uring_params *parameters) {
    return (int)syscall(__NR_io_uring_setup, entries, parameters);
}

static inline int ring_enter(int ring, uint32_t submitted, uint32_t awaited, uint32_t flags) {
    return (int)syscall(__NR_io_uring_enter, ring, submitted, awaited, flags, NULL, 0);
}

static inline int ring_register(int ring, uint32_t operation, const void *argument, uint32_t count) {
    return (int)syscall(__NR_io_uring_register, ring, operation, argument, count);
}

static inline uint32_t ring_load(const uint32_t *from) { return __atomic_load_n(from, __ATOMIC_ACQUIRE); }
static inline void ring_store(uint32_t *to, uint32_t value) { __atomic_store_n(to, value, __ATOMIC_RELEASE); }
static inline void ring_store_short(uint16_t *to, uint16_t value) {
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}
