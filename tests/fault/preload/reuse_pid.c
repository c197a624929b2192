// usage: reuse_pid PID: starts an idle process with this pid. Exit code 2: not permitted.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char** words) {
  pid_t pid = count == 2 ? atoi(words[1]) : 0;
  struct clone_args how = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1};
  const long child = syscall(SYS_clone3, &how, sizeof how);
  if (child < 0) {
    fprintf(stderr, "reuse_pid %s: %s\n", words[1], strerror(errno));
    return errno == EPERM || errno == ENOSYS ? 2 : 1;
  }
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  puts("born");
  fflush(stdout);
  return waitpid((pid_t)child, 0, 0) < 0;
}
