// Deletes files whose names begin with `vanishing` when they are opened: they vanish between listing and opening.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int opened(const char* path, int flags, int mode) {
  const char* name = strrchr(path, '/');
  if (name && strncmp(name, "/vanishing", 10) == 0) unlink(path);
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = flags & O_CREAT ? va_arg(rest, int) : 0;
  va_end(rest);
  return opened(path, flags, mode);
}

int __open_2(const char* path, int flags) { return opened(path, flags, 0); }
