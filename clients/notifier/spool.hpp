// Letters on disk, a file each: what was decided to be told outlives a crash.
//
//   KEY.json      waits
//   KEY.sending   was being sent: if the program died then, it is sent once more
//   KEY.again     was being sent that once more
#pragma once
#include <string>
#include <vector>

#include "notifier/letter.hpp"

namespace earshot::notifier {

class Spool {
 public:
  static constexpr std::size_t letter_bytes_max = 256 << 10;  // a larger file is not ours

  /// `directory` is there.
  explicit Spool(std::string directory) : directory_(std::move(directory)) {}

  struct Found {
    std::vector<Letter> letters;      // the oldest first
    std::vector<Letter> interrupted;  // twice while they were sent
  };
  Found load() const;

  /// Why not; empty: it is on disk.
  std::string save(const Letter& letter) const;
  void begin(const Letter& letter) const;  // it is being sent
  void failed(
      const Letter& letter) const;  // it is certain that it was not sent, or that it may be sent again
  void remove(const Letter& letter) const;

 private:
  std::string path(const Letter& letter, const char* suffix) const;
  std::string directory_;
};

}  // namespace earshot::notifier
