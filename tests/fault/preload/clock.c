// A wall clock that jumps: CLOCK_OFFSET names a file whose first eight bytes are seconds to add to the time.
// The monotonic clock is not changed.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t* offset;

__attribute__((constructor)) static void begin(void) {
  const int fd = open(getenv("CLOCK_OFFSET"), O_RDONLY | O_CLOEXEC);
  void* page = fd < 0 ? MAP_FAILED : mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) abort();
  offset = page;
  close(fd);
}

int clock_gettime(clockid_t id, struct timespec* time) {
  const int failed = (int)syscall(SYS_clock_gettime, id, time);
  if (!failed && offset && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) time->tv_sec += *offset;
  return failed;
}

int gettimeofday(struct timeval* restrict time, void* restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* into) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (into) *into = now.tv_sec;
  return now.tv_sec;
}
