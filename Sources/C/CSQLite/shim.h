#pragma once
#include <sqlite3.h>

// A destructor constant that is a cast of -1: SQLite copies the bytes before the call returns.
static inline sqlite3_destructor_type cs_sqlite_transient(void) { return SQLITE_TRANSIENT; }
