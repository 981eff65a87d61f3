// Has the system refuse a program's writes to the files of one folder, as it does when a file system was set read-only after an
// error of its device, or when the device is gone. Neither can be brought about from outside while a program has files open there.
//
//   DISK_FAULT_FOLDER  the folder
//   DISK_FAULT         a file: while it is there, writes fail with the error whose number it holds. With a minus sign before that,
//                      a file that was open then fails for good, as one does whose device is gone, and has to be opened anew.
//
// These are the calls by which SQLite opens, reads and writes files.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define REAL(name) \
  static typeof(&name) real; \
  if (!real) real = (typeof(&name))dlsym(RTLD_NEXT, #name)

#define DESCRIPTORS 1024

/// The errors of files that fail for good.
static _Atomic int dead[DESCRIPTORS];

static int is_in_folder(const char *path) {
  const char *folder = getenv("DISK_FAULT_FOLDER");
  return folder && strncmp(path, folder, strlen(folder)) == 0;
}

/// What the switch says: 0 if there is none.
static int error_now(void) {
  const char *path = getenv("DISK_FAULT");
  FILE *file = path ? fopen(path, "re") : NULL;
  int number = 0;
  if (!file) return 0;
  if (fscanf(file, "%d", &number) != 1) number = 0;
  fclose(file);
  return number;
}

static int is_file_in_folder(int descriptor) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return is_in_folder(path);
}

/// Whether the call must fail, with errno set.
static int fails(int descriptor, int is_write) {
  if (descriptor < 0 || descriptor >= DESCRIPTORS || !getenv("DISK_FAULT_FOLDER")) return 0;
  if (!dead[descriptor] && is_file_in_folder(descriptor)) {
    int error = error_now();
    if (error > 0 && is_write) {
      errno = error;
      return 1;
    }
    if (error < 0)
      for (int i = 0; i < DESCRIPTORS; i++)
        if (is_file_in_folder(i)) dead[i] = -error;
  }
  if (dead[descriptor]) errno = dead[descriptor];
  return dead[descriptor] != 0;
}

ssize_t pread64(int descriptor, void *bytes, size_t count, off64_t offset) {
  REAL(pread64);
  return fails(descriptor, 0) ? -1 : real(descriptor, bytes, count, offset);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) {
  REAL(pwrite64);
  return fails(descriptor, 1) ? -1 : real(descriptor, bytes, count, offset);
}

int ftruncate64(int descriptor, off64_t size) {
  REAL(ftruncate64);
  return fails(descriptor, 1) ? -1 : real(descriptor, size);
}

int fdatasync(int descriptor) {
  REAL(fdatasync);
  return fails(descriptor, 1) ? -1 : real(descriptor);
}

int open64(const char *path, int flags, ...) {
  REAL(open64);
  va_list rest;
  va_start(rest, flags);
  mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  // What is gone can't be opened at all, and what is read-only not for writing.
  int error = is_in_folder(path) ? error_now() : 0;
  if (error < 0 || (error == EROFS && (flags & O_ACCMODE) != O_RDONLY)) {
    errno = abs(error);
    return -1;
  }
  int descriptor = real(path, flags, mode);
  // It may have been that of a dead file before.
  if (descriptor >= 0 && descriptor < DESCRIPTORS) dead[descriptor] = 0;
  return descriptor;
}
