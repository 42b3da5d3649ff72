#pragma once
#include <sqlite3.h>

// A destructor constant that is a cast of -1: SQLite copies the bytes before the call returns.
static inline sqlite3_destructor_type cs_sqlite_transient(void) { return SQLITE_TRANSIENT; }

// sqlite3_db_config is variadic and does not import.
static inline int cs_sqlite_distrust_schema(sqlite3 *db) {
    return sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)0);
}
