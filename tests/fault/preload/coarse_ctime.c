// A file system whose clock ticks slowly: TICK names a file whose first eight bytes are the time of the
// current tick in nanoseconds since 1970; 0: the clock is exact. The daemon sees no later change time, and
// its wall clock stands at the tick.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t* tick;

__attribute__((constructor)) static void begin(void) {
  const int fd = open(getenv("TICK"), O_RDONLY | O_CLOEXEC);
  void* page = fd < 0 ? MAP_FAILED : mmap(0, sizeof *tick, PROT_READ, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) abort();
  tick = page;
  close(fd);
}

static int64_t current_tick(void) { return tick ? *tick : 0; }

int statx(int directory, const char* path, int flags, unsigned mask, struct statx* into) {
  const int result = (int)syscall(SYS_statx, directory, path, flags, mask, into);
  const int64_t now = current_tick();
  if (result == 0 && now && into->stx_ctime.tv_sec * 1000000000 + into->stx_ctime.tv_nsec > now) {
    into->stx_ctime.tv_sec = now / 1000000000;
    into->stx_ctime.tv_nsec = (uint32_t)(now % 1000000000);
  }
  return result;
}

int clock_gettime(clockid_t id, struct timespec* time) {
  const int failed = (int)syscall(SYS_clock_gettime, id, time);
  const int64_t now = current_tick();
  if (!failed && now && id == CLOCK_REALTIME && time->tv_sec * 1000000000 + time->tv_nsec > now) {
    time->tv_sec = now / 1000000000;
    time->tv_nsec = now % 1000000000;
  }
  return failed;
}
