// A mount that never notifies: every watch succeeds, and no event arrives.
#include <stdint.h>
#include <sys/eventfd.h>

int inotify_init1(int flags) {
  (void)flags;
  return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

int inotify_add_watch(int fd, const char* path, uint32_t mask) {
  (void)fd, (void)mask;
  uint32_t hash = 5381;  // one descriptor per path, as the kernel returns
  for (; *path; ++path) hash = hash * 33 + (unsigned char)*path;
  return (int)(hash & 0x7fffffff);
}

int inotify_rm_watch(int fd, int wd) {
  (void)fd, (void)wd;
  return 0;
}
