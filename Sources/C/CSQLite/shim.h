#pragma once
#include <sqlite3.h>

// A destructor constant that is a cast of -1: SQLite copies the bytes before the call returns.
static inline sqlite3_destructor_type cs_sqlite_transient(void) { return SQLITE_TRANSIENT; }

// sqlite3_db_config is variadic and does not import.
static inline int cs_sqlite_set(sqlite3 *db, int option, int value) {
    return sqlite3_db_config(db, option, value, (int *)0);
}
