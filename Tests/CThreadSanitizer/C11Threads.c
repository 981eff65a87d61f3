// C11's threads on POSIX threads, for Thread Sanitizer: it sees the latter only, and Debian's librdkafka uses the former.
// The program's own definitions come before those of the C library. What is here is what librdkafka calls.

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>

_Static_assert(sizeof(thrd_t) == sizeof(pthread_t), "one is stored in the other");
_Static_assert(sizeof(mtx_t) >= sizeof(pthread_mutex_t), "one is stored in the other");
_Static_assert(sizeof(cnd_t) >= sizeof(pthread_cond_t), "one is stored in the other");
_Static_assert(sizeof(once_flag) == sizeof(pthread_once_t), "one is stored in the other");

static int code(int error) {
  switch (error) {
    case 0: return thrd_success;
    case EBUSY: return thrd_busy;
    case ENOMEM: return thrd_nomem;
    case ETIMEDOUT: return thrd_timedout;
    default: return thrd_error;
  }
}

struct start {
  thrd_start_t function;
  void *argument;
};

static void *run(void *argument) {
  struct start start = *(struct start *)argument;
  free(argument);
  return (void *)(long)start.function(start.argument);
}

int thrd_create(thrd_t *thread, thrd_start_t function, void *argument) {
  struct start *start = malloc(sizeof *start);
  if (!start) return thrd_nomem;
  *start = (struct start){function, argument};
  int error = pthread_create((pthread_t *)thread, NULL, run, start);
  if (error) free(start);
  return error == EAGAIN ? thrd_nomem : code(error);
}

int thrd_join(thrd_t thread, int *result) {
  void *value;
  int error = pthread_join((pthread_t)thread, &value);
  if (!error && result) *result = (int)(long)value;
  return code(error);
}

int mtx_init(mtx_t *mutex, int type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  if (type & mtx_recursive) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  int error = pthread_mutex_init((pthread_mutex_t *)mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
  return code(error);
}

void mtx_destroy(mtx_t *mutex) { pthread_mutex_destroy((pthread_mutex_t *)mutex); }
int mtx_lock(mtx_t *mutex) { return code(pthread_mutex_lock((pthread_mutex_t *)mutex)); }
int mtx_unlock(mtx_t *mutex) { return code(pthread_mutex_unlock((pthread_mutex_t *)mutex)); }

int cnd_init(cnd_t *condition) { return code(pthread_cond_init((pthread_cond_t *)condition, NULL)); }
void cnd_destroy(cnd_t *condition) { pthread_cond_destroy((pthread_cond_t *)condition); }
int cnd_signal(cnd_t *condition) { return code(pthread_cond_signal((pthread_cond_t *)condition)); }
int cnd_broadcast(cnd_t *condition) { return code(pthread_cond_broadcast((pthread_cond_t *)condition)); }

int cnd_wait(cnd_t *condition, mtx_t *mutex) {
  return code(pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex));
}

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until) {
  return code(pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until));
}

void call_once(once_flag *flag, void (*function)(void)) { pthread_once((pthread_once_t *)flag, function); }
