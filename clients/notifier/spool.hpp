// Queued notices on disk, one file each, so that they survive a crash.
//
//   KEY.json      queued
//   KEY.sending   being sent; after a crash it is sent once more
//   KEY.resending     being sent after a crash; after another crash it is a dead letter
#pragma once
#include <string>
#include <vector>

#include "notifier/queued_notice.hpp"

namespace earshot::notifier {

class Spool {
 public:
  static constexpr std::size_t file_bytes_max = 256 << 10;  // larger files are ignored

  /// `directory` must exist.
  explicit Spool(std::string directory) : directory_(std::move(directory)) {}

  struct Contents {
    std::vector<QueuedNotice> queued_notices;  // oldest first
    std::vector<QueuedNotice> interrupted;     // by two crashes while being sent
  };
  Contents load() const;

  /// Returns an error; empty: done.
  std::string save(const QueuedNotice& queued) const;
  void begin(const QueuedNotice& queued) const;
  /// The attempt failed: a later crash is not an interrupted delivery.
  void failed(const QueuedNotice& queued) const;
  void remove(const QueuedNotice& queued) const;

 private:
  std::string path(const QueuedNotice& queued, const char* suffix) const;
  std::string directory_;
};

}  // namespace earshot::notifier
