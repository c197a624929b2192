// kill -9 at the Nth step: a step is a call that reads, writes, creates, moves or waits.
// The call number DIE_AT is not made.
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

extern int getpid(void);

static void step(void) {
  static atomic_long steps;
  static atomic_long die_at;
  if (!atomic_load(&die_at)) atomic_store(&die_at, getenv("DIE_AT") ? atol(getenv("DIE_AT")) : -1);
  if (atomic_fetch_add(&steps, 1) + 1 == atomic_load(&die_at)) kill(getpid(), SIGKILL);
}

// Each takes at most six integers or pointers, which are passed on unchanged.
typedef long Call(long, long, long, long, long, long);
#define STEP(name)                                            \
  long name(long a, long b, long c, long d, long e, long f) { \
    static Call* next;                                        \
    if (!next) next = (Call*)dlsym(RTLD_NEXT, #name);         \
    step();                                                   \
    return next(a, b, c, d, e, f);                            \
  }

STEP(open)
STEP(openat)
STEP(read)
STEP(pread)
STEP(preadv2)
STEP(write)
STEP(pwrite)
STEP(send)
STEP(sendmsg)
STEP(recvmsg)
STEP(accept4)
STEP(fsync)
STEP(flock)
STEP(link)
STEP(rename)
STEP(unlink)
STEP(mkdir)
STEP(bind)
STEP(listen)
STEP(stat)
STEP(lstat)
STEP(fstatat)
STEP(statx)
STEP(readdir)
STEP(getdents64)
STEP(inotify_init1)
STEP(inotify_add_watch)
STEP(epoll_wait)
