// Ends a program as kill -9 would, at one of the points that it passes on its boundary to the store and to Kafka: before or after
// a commit, a produced record, its acknowledgement, an offset that is stored or committed.
//
//   CRASH_TRAIL  a file that gets a line for each point passed, as in "before commit facts"
//   CRASH_AT     at which of them a thread stops and a moment later all ends, and at which time of passing, as in
//                "2 before commit facts"; the last line is "killed" then. Without it the points are only noted.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// MARK: Points

static int trail = -1;
static char deadly[128];
static long passings_left;
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("CRASH_TRAIL");
  const char *point = getenv("CRASH_AT");
  if (path) trail = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (!point) return;
  char *name;
  passings_left = strtol(point, &name, 10);
  snprintf(deadly, sizeof deadly, "%s\n", name + strspn(name, " "));
}

static void write_line(const char *text) {
  if (trail >= 0 && write(trail, text, strlen(text)) < 0) abort();
}

static void pass(const char *side, const char *step, const char *subject) {
  char line[sizeof deadly];
  snprintf(line, sizeof line, "%s %s %s\n", side, step, subject);
  pthread_mutex_lock(&order);
  write_line(line);
  int is_end = strcmp(line, deadly) == 0 && --passings_left == 0;
  pthread_mutex_unlock(&order);
  if (!is_end) return;
  // This thread gets no further. The others go on a little: what one of them does too early is done when all ends.
  usleep(400000);
  write_line("killed\n");
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

static void before(const char *step, const char *subject) { pass("before", step, subject); }
static void after(const char *step, const char *subject) { pass("after", step, subject); }

/// Finds the function that the program would call without this library.
#define REAL(name) \
  static typeof(&name) real; \
  if (!real) real = (typeof(&name))dlsym(RTLD_NEXT, #name)

// MARK: What a commit is for

/// The tables that the statements of a transaction write to.
enum { SCHEMA = 1, FACTS = 2, VIEWS = 4, OTHER = 8 };

static _Thread_local int written;
/// Slices have a thread of their own, which writes no facts.
static _Thread_local int has_written_facts;

static int kind_of_table(const char *name) {
  static const struct { const char *name; int kind; } tables[] = {
    {"edge", FACTS}, {"post", FACTS}, {"seen", FACTS}, {"feed", VIEWS}, {"feed_row", VIEWS}, {"feed_trim", VIEWS},
    {"post_former", OTHER}, {"setting", OTHER},
  };
  size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz_");
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    if (strlen(tables[i].name) == length && strncmp(tables[i].name, name, length) == 0) return tables[i].kind;
  return 0;
}

static int kind_of_statement(const char *sql) {
  static const char *const verbs[] = {"INSERT INTO ", "INSERT OR IGNORE INTO ", "UPDATE ", "DELETE FROM "};
  int kind = strstr(sql, "CREATE TABLE") ? SCHEMA : 0;
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
    for (const char *place = sql; (place = strstr(place, verbs[i])); ) kind |= kind_of_table(place += strlen(verbs[i]));
  return kind;
}

static const char *subject_of(int kind) {
  if (kind & SCHEMA) return "schema";
  if (kind & VIEWS) return has_written_facts ? "views" : "slice";
  if (kind & FACTS) return "facts";
  return "other";
}

static void note_write(int kind) {
  written |= kind;
  if (kind & FACTS) has_written_facts = 1;
}

// MARK: SQLite

int sqlite3_exec(sqlite3 *db, const char *sql, int (*row)(void *, int, char **, char **), void *context, char **error) {
  REAL(sqlite3_exec);
  if (strcmp(sql, "COMMIT") != 0) {
    if (strncmp(sql, "BEGIN", 5) == 0) written = 0;
    note_write(kind_of_statement(sql));
    return real(db, sql, row, context, error);
  }
  const char *subject = subject_of(written);
  before("commit", subject);
  int result = real(db, sql, row, context, error);
  if (result == SQLITE_OK) after("commit", subject);
  return result;
}

int sqlite3_step(sqlite3_stmt *statement) {
  REAL(sqlite3_step);
  if (!sqlite3_stmt_readonly(statement)) note_write(kind_of_statement(sqlite3_sql(statement)));
  return real(statement);
}

// MARK: PostgreSQL

static struct { PGconn *connection; char name[16]; int kind; } prepared[4096];
static int prepared_count;
static pthread_mutex_t preparing = PTHREAD_MUTEX_INITIALIZER;

int PQsendPrepare(PGconn *connection, const char *name, const char *sql, int count, const Oid *types) {
  REAL(PQsendPrepare);
  pthread_mutex_lock(&preparing);
  if (prepared_count == sizeof prepared / sizeof *prepared) abort();
  prepared[prepared_count].connection = connection;
  snprintf(prepared[prepared_count].name, sizeof prepared->name, "%s", name);
  prepared[prepared_count++].kind = kind_of_statement(sql);
  pthread_mutex_unlock(&preparing);
  return real(connection, name, sql, count, types);
}

static int kind_of_prepared(PGconn *connection, const char *name) {
  int kind = 0;
  pthread_mutex_lock(&preparing);
  // The last one: another connection may have had the address before.
  for (int i = prepared_count - 1; i >= 0 && !kind; i--)
    if (prepared[i].connection == connection && strcmp(prepared[i].name, name) == 0) {
      kind = prepared[i].kind;
      break;
    }
  pthread_mutex_unlock(&preparing);
  return kind;
}

/// What is committed by the statement whose answer this thread waits for.
static _Thread_local const char *committing;

static void send_commit(const char *subject) {
  before("commit", subject);
  committing = subject;
}

int PQsendQuery(PGconn *connection, const char *sql) {
  REAL(PQsendQuery);
  if (strcmp(sql, "COMMIT") == 0) {
    send_commit(subject_of(written));
  } else {
    if (strcmp(sql, "BEGIN") == 0) written = 0;
    note_write(kind_of_statement(sql));
  }
  return real(connection, sql);
}

int PQsendQueryPrepared(PGconn *connection, const char *name, int count, const char *const *values, const int *lengths,
  const int *formats, int format) {
  REAL(PQsendQueryPrepared);
  int kind = kind_of_prepared(connection, name);
  note_write(kind);
  // A statement that changes something outside of a transaction is one by itself.
  if (kind && PQtransactionStatus(connection) == PQTRANS_IDLE) send_commit(subject_of(kind));
  return real(connection, name, count, values, lengths, formats, format);
}

PGresult *PQgetResult(PGconn *connection) {
  REAL(PQgetResult);
  PGresult *result = real(connection);
  const char *subject = committing;
  committing = NULL;
  ExecStatusType status = PQresultStatus(result);
  if (subject && (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)) after("commit", subject);
  return result;
}

// MARK: Kafka

/// The topic's name without its prefix.
static const char *plain_name(const char *topic) {
  const char *dot = strrchr(topic, '.');
  return dot ? dot + 1 : topic;
}

rd_kafka_error_t *rd_kafka_produceva(rd_kafka_t *client, const rd_kafka_vu_t *arguments, size_t count) {
  REAL(rd_kafka_produceva);
  const char *topic = "?";
  for (size_t i = 0; i < count; i++)
    if (arguments[i].vtype == RD_KAFKA_VTYPE_TOPIC) topic = plain_name(arguments[i].u.cstr);
  before("produce", topic);
  rd_kafka_error_t *error = real(client, arguments, count);
  if (!error) after("produce", topic);
  return error;
}

static void (*receive_report)(rd_kafka_t *, const rd_kafka_message_t *, void *);

/// Before it the brokers have the record, but the program does not know.
static void report(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
  const char *topic = plain_name(rd_kafka_topic_name(message->rkt));
  if (!message->err) before("acknowledgement", topic);
  receive_report(client, message, opaque);
  if (!message->err) after("acknowledgement", topic);
}

void rd_kafka_conf_set_dr_msg_cb(
  rd_kafka_conf_t *conf, void (*receiver)(rd_kafka_t *, const rd_kafka_message_t *, void *)) {
  REAL(rd_kafka_conf_set_dr_msg_cb);
  receive_report = receiver;
  real(conf, report);
}

rd_kafka_resp_err_t rd_kafka_offsets_store(rd_kafka_t *client, rd_kafka_topic_partition_list_t *offsets) {
  REAL(rd_kafka_offsets_store);
  const char *topic = offsets->cnt > 0 ? plain_name(offsets->elems[0].topic) : "?";
  before("store-offset", topic);
  rd_kafka_resp_err_t code = real(client, offsets);
  after("store-offset", topic);
  return code;
}

rd_kafka_resp_err_t rd_kafka_assign(rd_kafka_t *client, const rd_kafka_topic_partition_list_t *partitions) {
  REAL(rd_kafka_assign);
  const char *step = partitions && partitions->cnt > 0 ? "take" : "give-up";
  before(step, "partitions");
  rd_kafka_resp_err_t code = real(client, partitions);
  after(step, "partitions");
  return code;
}

rd_kafka_error_t *rd_kafka_consumer_close_queue(rd_kafka_t *client, rd_kafka_queue_t *queue) {
  REAL(rd_kafka_consumer_close_queue);
  before("close", "consumer");
  rd_kafka_error_t *error = real(client, queue);
  after("close", "consumer");
  return error;
}

/// librdkafka's own threads commit what is stored, so that is seen only on the wire: a request begins with its size and what it is.
ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
  REAL(sendmsg);
  size_t total = 0;
  for (size_t i = 0; i < message->msg_iovlen; i++) total += message->msg_iov[i].iov_len;
  int is_commit = 0;
  if (total > 8 && message->msg_iov[0].iov_len >= 8) {
    uint32_t size;
    uint16_t key;
    memcpy(&size, message->msg_iov[0].iov_base, sizeof size);
    memcpy(&key, (const char *)message->msg_iov[0].iov_base + sizeof size, sizeof key);
    is_commit = ntohl(size) == total - sizeof size && ntohs(key) == 8 /* OffsetCommit */;
  }
  if (is_commit) before("commit", "offsets");
  ssize_t sent = real(socket, message, flags);
  if (is_commit && sent == (ssize_t)total) after("commit", "offsets");
  return sent;
}
