// Letters on disk, a file each: what was decided to be told outlives a crash.
//
//   KEY.json      waits
//   KEY.sending   was being sent: if the program died then, it is sent once more
//   KEY.again     was being sent that once more
#pragma once
#include <string>
#include <vector>

#include "notifier/queued_notice.hpp"

namespace earshot::notifier {

class Spool {
 public:
  static constexpr std::size_t file_bytes_max = 256 << 10;  // a larger file is not ours

  /// `directory` is there.
  explicit Spool(std::string directory) : directory_(std::move(directory)) {}

  struct Found {
    std::vector<QueuedNotice> queued_notices;  // the oldest first
    std::vector<QueuedNotice> interrupted;     // twice while they were sent
  };
  Found load() const;

  /// Why not; empty: it is on disk.
  std::string save(const QueuedNotice& queued) const;
  void begin(const QueuedNotice& queued) const;  // it is being sent
  void failed(
      const QueuedNotice& queued) const;  // it is certain that it was not sent, or that it may be sent again
  void remove(const QueuedNotice& queued) const;

 private:
  std::string path(const QueuedNotice& queued, const char* suffix) const;
  std::string directory_;
};

}  // namespace earshot::notifier
