// The contended half of Swift's Mutex, for Thread Sanitizer: it lies in libswiftSynchronization, which is not instrumented, while
// the other half is inlined. So the sanitizer would see a mutex being released and never taken. Each call is passed on.

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <stdbool.h>
#include <stdint.h>

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *mutex

#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

SWIFT void fanout_mutex_lock(uint32_t thread, SELF) __asm__(LOCK);
SWIFT bool fanout_mutex_try_lock(SELF) __asm__(TRY_LOCK);
SWIFT void fanout_mutex_unlock(SELF) __asm__(UNLOCK);

SWIFT void fanout_mutex_lock(uint32_t thread, SELF) {
  ((SWIFT void (*)(uint32_t, SELF))dlsym(RTLD_NEXT, LOCK))(thread, mutex);
  __tsan_acquire(mutex);
}

SWIFT bool fanout_mutex_try_lock(SELF) {
  bool taken = ((SWIFT bool (*)(SELF))dlsym(RTLD_NEXT, TRY_LOCK))(mutex);
  if (taken) __tsan_acquire(mutex);
  return taken;
}

SWIFT void fanout_mutex_unlock(SELF) {
  __tsan_release(mutex);
  ((SWIFT void (*)(SELF))dlsym(RTLD_NEXT, UNLOCK))(mutex);
}
