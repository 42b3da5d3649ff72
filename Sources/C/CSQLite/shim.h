#pragma once
#include <sqlite3.h>

// A destructor constant that is a cast of -1: SQLite copies the bytes before the call returns.
static inline sqlite3_destructor_type cs_sqlite_transient(void) { return SQLITE_TRANSIENT; }

// sqlite3_db_config is variadic and does not import.
static inline int cs_sqlite_set(sqlite3 *db, int option, int value) {
    return sqlite3_db_config(db, option, value, (int *)0);
}

// Reads from the database file itself, through SQLite's own descriptor: a structure of function pointers. A file that
// ends before has zeros there, as SQLite itself has it.
static inline int cs_sqlite_read(sqlite3 *db, void *bytes, int count, sqlite3_int64 offset) {
    sqlite3_file *file = 0;
    int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (code != SQLITE_OK) return code;
    if (!file || !file->pMethods) return SQLITE_IOERR;
    code = file->pMethods->xRead(file, bytes, count, offset);
    return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
}
