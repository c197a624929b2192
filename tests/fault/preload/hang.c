// A disk that hangs: while the file HANG exists, reads of transcripts below a directory `-slow` block, and
// reads with RWF_NOWAIT fail with EAGAIN. HANG.reached is created when a read blocks.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int hangs(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = 0;
  return strstr(path, "/-slow/") && access(getenv("HANG"), F_OK) == 0;
}

static void wait_for_disk(int fd) {
  char reached[4096];
  if (!hangs(fd)) return;
  snprintf(reached, sizeof reached, "%s.reached", getenv("HANG"));
  close(open(reached, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  while (hangs(fd)) usleep(1000);
}

ssize_t preadv2(int fd, const struct iovec* pieces, int count, off_t offset, int flags) {
  if (flags & RWF_NOWAIT && hangs(fd)) {
    errno = EAGAIN;
    return -1;
  }
  if (!(flags & RWF_NOWAIT)) wait_for_disk(fd);
  return syscall(SYS_preadv2, fd, pieces, (long)count, (long)offset, 0L, (long)flags);
}

ssize_t pread(int fd, void* into, size_t bytes, off_t offset) {
  wait_for_disk(fd);
  return syscall(SYS_pread64, fd, into, bytes, offset);
}
