// Deletes files whose names begin with `vanishing` when they are opened: they vanish between listing and opening.
// Those that begin with `vanishing-returns` are there again after each of the first eight openings.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int returns = 8;

static int opened(const char* path, int flags, int mode) {
  const char* name = strrchr(path, '/');
  if (name && strncmp(name, "/vanishing-returns", 18) == 0) {
    char away[PATH_MAX];
    snprintf(away, sizeof away, "%s.away", path);
    const int is_away = returns > 0 && rename(path, away) == 0;
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode), error = errno;
    if (is_away) returns--, rename(away, path);
    errno = error;
    return fd;
  }
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
