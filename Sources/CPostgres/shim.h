#pragma once
#include <libpq-fe.h>

// PG_DIAG_SQLSTATE and its like are character macros, which Swift does not import.
static inline const char *fanout_pq_sqlstate(const PGresult *result) {
  return PQresultErrorField(result, 'C');
}
static inline const char *fanout_pq_primary_message(const PGresult *result) {
  return PQresultErrorField(result, 'M');
}
