// The live log, once for each way that events are shown. All have the same positions.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "core/event_json.hpp"
#include "serve/stream/live_log.hpp"

namespace earshot::serve {

/// How much a connection is shown, and whether secrets in it are replaced.
enum class Audience : std::uint8_t {
  full,  // everything, redacted
  meta,  // no text, no inputs, no outputs
  raw,   // everything as it stands in the transcript: only for the owner, over the Unix socket
};
constexpr std::size_t audience_count = 3;
constexpr std::array<Audience, audience_count> all_audiences = {Audience::full, Audience::meta,
                                                                Audience::raw};

inline View view_of(Audience audience) { return audience == Audience::meta ? View::meta : View::full; }

class Subscriber;

struct AudienceLog {
  static constexpr std::size_t removed_max = 4096;  // older ones: a client that fell behind is not told

  explicit AudienceLog(std::size_t log_bytes_max);
  AudienceLog(const AudienceLog&) = delete;
  AudienceLog& operator=(const AudienceLog&) = delete;

  LiveLog log;
  std::size_t readers = 0;  // with an event subscription; without one nothing is encoded
  std::vector<Subscriber*>
      catch_up_subscribers;  // that want what they miss from the files: they hear what is let go
  std::deque<std::pair<Position, Frame>>
      removed;  // `stream.removed` frames that were let go: nothing repeats them
};

}  // namespace earshot::serve
