#pragma once
#include <sqlite3.h>

// SQLITE_STATIC is a cast macro, which Swift does not import: the bytes stay valid until the statement is stepped and reset.
static inline int fanout_sqlite3_bind_text_static(sqlite3_stmt *statement, int index, const char *bytes, int length) {
  return sqlite3_bind_text(statement, index, bytes, length, SQLITE_STATIC);
}
static inline int fanout_sqlite3_bind_text_copied(sqlite3_stmt *statement, int index, const char *bytes, int length) {
  return sqlite3_bind_text(statement, index, bytes, length, SQLITE_TRANSIENT);
}
static inline int fanout_sqlite3_bind_blob_static(sqlite3_stmt *statement, int index, const void *bytes, int length) {
  return sqlite3_bind_blob(statement, index, bytes, length, SQLITE_STATIC);
}

static inline int fanout_sqlite3_bind_blob_copied(sqlite3_stmt *statement, int index, const void *bytes, int length) {
  return sqlite3_bind_blob(statement, index, bytes, length, SQLITE_TRANSIENT);
}

// Variadic. Has no effect once SQLite is in use.
static inline void fanout_sqlite3_disable_memory_statistics(void) {
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}
