// A disk that begins to fail, for one program: LD_PRELOAD it. While the file that FAILING_DISK names is there, writes to and
// fsyncs of files whose name has `.db` in it, or what FAILING_FILES says, fail: with EIO, or with what stands in the file, in
// decimal; with a negative number, only the fsyncs. Each failure is a line in the file named so with `.log` behind it, so that a
// test can see that it happened.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_failing(int file, const char *call) {
    const char *switched = getenv("FAILING_DISK");
    if (!switched) return 0;
    int error = EIO, descriptor = open(switched, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return 0;
    char text[16] = {0};
    if (read(descriptor, text, sizeof text - 1) > 0 && atoi(text) != 0) error = atoi(text);
    close(descriptor);
    if (error < 0 && strstr(call, "write")) return 0;

    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (length < 0) return 0;
    name[length] = 0;
    const char *files = getenv("FAILING_FILES");
    if (!strstr(name, files ? files : ".db")) return 0;

    char log[4096];
    snprintf(log, sizeof log, "%s.log", switched);
    descriptor = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (descriptor >= 0) {
        dprintf(descriptor, "%s %s\n", call, name);
        close(descriptor);
    }
    errno = abs(error);
    return 1;
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
    static ssize_t (*next)(int, const void *, size_t, off64_t);
    if (!next) next = dlsym(RTLD_NEXT, "pwrite64");
    return is_failing(file, "pwrite") ? -1 : next(file, bytes, count, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    static ssize_t (*next)(int, const void *, size_t, off_t);
    if (!next) next = dlsym(RTLD_NEXT, "pwrite");
    return is_failing(file, "pwrite") ? -1 : next(file, bytes, count, offset);
}

int fsync(int file) {
    static int (*next)(int);
    if (!next) next = dlsym(RTLD_NEXT, "fsync");
    return is_failing(file, "fsync") ? -1 : next(file);
}

int fdatasync(int file) {
    static int (*next)(int);
    if (!next) next = dlsym(RTLD_NEXT, "fdatasync");
    return is_failing(file, "fdatasync") ? -1 : next(file);
}
