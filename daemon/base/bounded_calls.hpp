// Bounds the time of file system calls below directories whose file system may stop answering (FUSE,
// network).
#pragma once
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace earshot {

/// How long a call may take on the thread of the event loop and on any other thread.
constexpr std::chrono::milliseconds loop_call_patience{100};
constexpr std::chrono::milliseconds call_patience{2000};

/// Replaces the directories below which calls are bounded. Such a call runs on a thread of its own. If it
/// takes longer than allowed, it is abandoned with the error ETIMEDOUT, and further calls below the directory
/// fail at once until it has returned: then `on_answer(directory)` is called, on that thread.
void bound_calls_below(const std::vector<std::string>& directories,
                       std::function<void(const std::string& directory)> on_answer);

/// The bounded calls of this thread take at most so long; without this, call_patience.
void set_call_patience(std::chrono::milliseconds patience);

// --- For base/system.cpp, and for calls that are not in it ---

class BoundedDirectory;
/// False: no call is bounded.
bool has_bounded_directories();
/// Null: calls for this path, or this descriptor, are not bounded.
std::shared_ptr<BoundedDirectory> bounded_directory_of(std::string_view path);
std::shared_ptr<BoundedDirectory> bounded_directory_of(int fd);
/// The calls for this descriptor are bounded until it is forgotten.
void add_bounded_descriptor(int fd, std::shared_ptr<BoundedDirectory> directory);
std::shared_ptr<BoundedDirectory> forget_bounded_descriptor(int fd);
/// False: it was abandoned and may still run, or did not begin.
bool run_bounded(BoundedDirectory& directory, std::function<void()> call);
/// Runs it later, without waiting.
void post_bounded(BoundedDirectory& directory, std::function<void()> call);

/// The result of `call()`, which may run on another thread, and its errno; `on_timeout` and ETIMEDOUT if it
/// was abandoned. An abandoned call outlives this one: it owns what it uses.
template <class Call, class Result>
Result bounded(const std::shared_ptr<BoundedDirectory>& directory, Call call, Result on_timeout) {
  auto result = std::make_shared<std::optional<std::pair<Result, int>>>();
  const bool is_done = run_bounded(*directory, [result, call = std::move(call)]() mutable {
    Result value = call();
    *result = std::pair(std::move(value), errno);
  });
  errno = is_done ? (*result)->second : ETIMEDOUT;
  return is_done ? std::move((*result)->first) : std::move(on_timeout);
}

}  // namespace earshot
