#include "search/indexer.hpp"

#ifdef __linux__
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__APPLE__)
#include <pthread/qos.h>
#endif

namespace earshot::search {

void lower_thread_priority() {
#ifdef __linux__
  // A sandbox may forbid both: then the thread's rests have to be enough.
  constexpr int nicest = 19, io_of_thread = 1, io_idle = 3 << 13;
  static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), nicest));
  static_cast<void>(::syscall(SYS_ioprio_set, io_of_thread, 0, io_idle));
#elif defined(__APPLE__)
  static_cast<void>(::pthread_set_qos_class_self_np(QOS_CLASS_BACKGROUND, 0));
#endif
}

}  // namespace earshot::search
