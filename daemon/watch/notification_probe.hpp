// Some mounts never notify. Nothing may be written below a root, so they are found out by what the sweep
// finds first.
#pragma once
#include <bitset>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace earshot::watch {

class NotificationProbe {
 public:
  static constexpr std::size_t heard_bits =
      1 << 18;  // one for each path that was heard of, by hash; two that share one are both taken as heard of
  static constexpr std::size_t suspects_max = 16;  // more prove nothing more
  static constexpr std::size_t deaf_from =
      3;  // a hard link or a mapped write elsewhere is silent too: one is no proof
  static constexpr std::chrono::seconds patience{2};  // a notification may come after the sweep's find

  void heard(std::string_view path);  // a notification rang
  /// Some rang nowhere, or were never asked for: what is found during the amnesty proves nothing.
  void lost(Clock::duration amnesty, Clock::time_point now = Clock::now());
  /// The sweep saw a change; `entry`: a name came or went.
  void found(std::string_view path, bool entry, Clock::time_point now = Clock::now());
  bool deaf(Clock::time_point now = Clock::now()) const;
  /// A name came or went and nobody said so: no proof of a deaf mount, but a reason to sweep as if it were.
  bool suspicious() const;
  std::string problem(Clock::time_point now = Clock::now()) const;

 private:
  struct Suspect {
    std::string path;
    Clock::time_point since;
    bool entry;
  };
  std::bitset<heard_bits> heard_;
  std::vector<Suspect> suspects_;
  Clock::time_point amnesty_until_ = Clock::time_point::min();
};

}  // namespace earshot::watch
