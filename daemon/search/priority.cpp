#include "search/indexer.hpp"

#ifdef __linux__
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#elif defined(__APPLE__)
#include <pthread/qos.h>
#endif

namespace earshot::search {

void lower_thread_priority() {
#ifdef __linux__
  // A sandbox may forbid these: then the thread's rests have to be enough.
  constexpr int nicest = 19, io_of_thread = 1, io_idle = 3 << 13;
  static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), nicest));
  static_cast<void>(::syscall(SYS_ioprio_set, io_of_thread, 0, io_idle));
  // Since Linux 6.12 a thread that wakes up waits until the running one has used its slice, whatever its
  // niceness, unless its own slice is shorter. Older versions ignore `slice_ns`. Not SCHED_IDLE: on a busy
  // machine such a thread would hold a lock for too long.
  struct {
    std::uint32_t size = 48, policy = SCHED_BATCH;
    std::uint64_t flags = 0;
    std::int32_t nice = nicest;
    std::uint32_t priority = 0;
    std::uint64_t slice_ns = 100'000'000, deadline_ns = 0, period_ns = 0;
  } attributes;  // struct sched_attr, which glibc 2.36 lacks
  static_assert(sizeof attributes == 48);
  static_cast<void>(::syscall(SYS_sched_setattr, 0, &attributes, 0));
#elif defined(__APPLE__)
  static_cast<void>(::pthread_set_qos_class_self_np(QOS_CLASS_BACKGROUND, 0));
#endif
}

}  // namespace earshot::search
