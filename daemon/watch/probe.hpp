// Some mounts never notify. Nothing may be written below a root, so they are found out by what the sweep
// finds first.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "watch/clock.hpp"

namespace earshot::watch {

class Probe {
 public:
  static constexpr std::size_t heard_max =
      4096;  // paths that were heard of, by hash; a newer one takes an older one's place
  static constexpr std::size_t suspects_max = 16;  // more prove nothing more
  static constexpr std::size_t deaf_from =
      3;  // a hard link or a mapped write elsewhere is silent too: one is no proof
  static constexpr std::chrono::seconds patience{2};  // a notification may come after the sweep's find

  void heard(std::string_view path);                                        // a notification rang
  void found(std::string_view path, Clock::time_point now = Clock::now());  // the sweep saw a change
  bool deaf(Clock::time_point now = Clock::now()) const;
  std::string trouble(Clock::time_point now = Clock::now()) const;

 private:
  struct Suspect {
    std::string path;
    Clock::time_point since;
  };
  std::array<std::uint64_t, heard_max> heard_{};
  std::vector<Suspect> suspects_;
};

}  // namespace earshot::watch
