// Writes each SQL statement that a program runs in SQLite to the file that STATEMENTS names, a line each: the database
// connection's number, in the order in which connections were opened, and the statement. LD_PRELOAD it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

static int file = -1, opened = 0;

static int note(unsigned type, void *number, void *statement, void *text) {
    (void)type;
    (void)statement;
    const char *sql = text;
    // Of a trigger that fires; the statement that has it fire was written.
    if (strncmp(sql, "--", 2) == 0) return 0;
    char line[512];
    int length = snprintf(line, sizeof line, "%ld %s", (long)number, sql);
    if (length > (int)sizeof line - 1) length = sizeof line - 1;
    for (int place = 0; place < length; place++)
        if (line[place] == '\n') line[place] = ' ';
    line[length] = '\n';
    if (write(file, line, length + 1) < 0) abort();
    return 0;
}

int sqlite3_open_v2(const char *path, sqlite3 **connection, int flags, const char *module) {
    int (*next)(const char *, sqlite3 **, int, const char *) = dlsym(RTLD_NEXT, "sqlite3_open_v2");
    int code = next(path, connection, flags, module);
    const char *name = getenv("STATEMENTS");
    if (code != SQLITE_OK || !name) return code;
    if (file < 0) file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) abort();
    long number = __atomic_add_fetch(&opened, 1, __ATOMIC_RELAXED);
    sqlite3_trace_v2(*connection, SQLITE_TRACE_STMT, note, (void *)number);
    return code;
}
