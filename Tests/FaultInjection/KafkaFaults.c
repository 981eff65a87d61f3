// Has librdkafka fail as it does in the field, where nobody can have it do so on purpose.
//
//   KAFKA_FAULT  a file; what it holds is the fault from then on:
//     "silent-until-seek TOPIC PARTITION"  nothing comes of that partition any more, until a position in it is sought
//     "silent-until-new TOPIC PARTITION"   …until another client is made
//     "fatal"                              the consumer fails for good, once
//   The name of the topic is the one without its prefix.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define REAL(name) \
  static typeof(&name) real; \
  if (!real) real = (typeof(&name))dlsym(RTLD_NEXT, #name)

static struct { char kind[32], topic[128]; int partition; } fault;
static rd_kafka_t *consumer;

/// Takes the file's fault over. All of this is for the consumer's thread alone.
static void look(void) {
  const char *path = getenv("KAFKA_FAULT");
  FILE *file = path ? fopen(path, "re") : NULL;
  if (!file) return;
  fault.partition = -1;
  if (fscanf(file, "%31s %127s %d", fault.kind, fault.topic, &fault.partition) < 1) fault.kind[0] = 0;
  fclose(file);
  unlink(path);
}

static int is_silent(const char *topic, int partition) {
  if (strncmp(fault.kind, "silent", 6) != 0 || partition != fault.partition) return 0;
  size_t length = strlen(topic), suffix = strlen(fault.topic);
  return length >= suffix && strcmp(topic + length - suffix, fault.topic) == 0;
}

static void heal(const char *kind) {
  if (strcmp(fault.kind, kind) == 0) fault.kind[0] = 0;
}

rd_kafka_queue_t *rd_kafka_queue_get_consumer(rd_kafka_t *client) {
  REAL(rd_kafka_queue_get_consumer);
  consumer = client;
  return real(client);
}

rd_kafka_t *rd_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, char *text, size_t size) {
  REAL(rd_kafka_new);
  if (type == RD_KAFKA_CONSUMER) heal("silent-until-new");
  return real(type, conf, text, size);
}

ssize_t rd_kafka_consume_batch_queue(
  rd_kafka_queue_t *queue, int timeout, rd_kafka_message_t **messages, size_t size) {
  REAL(rd_kafka_consume_batch_queue);
  look();
  if (strcmp(fault.kind, "fatal") == 0) {
    heal("fatal");
    rd_kafka_test_fatal_error(consumer, RD_KAFKA_RESP_ERR_UNKNOWN, "for a test");
  }
  ssize_t count = real(queue, timeout, messages, size);
  ssize_t kept = 0;
  for (ssize_t i = 0; i < count; i++) {
    rd_kafka_message_t *message = messages[i];
    if (message->rkt && is_silent(rd_kafka_topic_name(message->rkt), message->partition))
      rd_kafka_message_destroy(message);
    else
      messages[kept++] = message;
  }
  return count < 0 ? count : kept;
}

rd_kafka_error_t *rd_kafka_seek_partitions(
  rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions, int timeout) {
  REAL(rd_kafka_seek_partitions);
  for (int i = 0; i < partitions->cnt; i++)
    if (is_silent(partitions->elems[i].topic, partitions->elems[i].partition)) heal("silent-until-seek");
  return real(client, partitions, timeout);
}
