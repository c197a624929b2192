// A file system whose change times come from a clock that ticks every 16 ms.
#define _GNU_SOURCE
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int statx(int directory, const char* path, int flags, unsigned mask, struct statx* into) {
  const int result = (int)syscall(SYS_statx, directory, path, flags, mask, into);
  if (result == 0) into->stx_ctime.tv_nsec -= into->stx_ctime.tv_nsec % 16000000;
  return result;
}
