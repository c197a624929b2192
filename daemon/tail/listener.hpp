#pragma once
#include <string_view>

#include "core/event.hpp"
#include "tail/stream.hpp"

namespace earshot::tail {

/// Hears of streams, all on the one thread that owns state. Order for a stream: appeared, then events and
/// changes, then removed.
class Listener {
 public:
  virtual ~Listener() = default;
  /// A stream has a transcript now: folded silently up to here (recent at start, or asked for), or new and
  /// empty: then its events follow.
  virtual void on_appeared(const Stream& stream) = 0;
  virtual void on_event(const Stream& stream, const Event& event) = 0;
  /// Lines were consumed (events came before this call), or its meta or its session became known: the
  /// snapshot may be another.
  virtual void on_changed(const Stream& stream) = 0;
  /// The bytes that were told are no longer what the file says. The new history's events follow from its
  /// first line.
  virtual void on_reset(const Stream& stream, std::string_view reason) = 0;
  /// Also of one that was only known: whoever asked for it had it from its file.
  virtual void on_removed(const Stream& stream) = 0;
  /// An internal compaction call of this session has begun (its file was born); nothing in the transcript
  /// says so yet.
  virtual void on_compacting(std::string_view session) = 0;
  /// All that one wake-up brought has been told: ring whoever waits.
  virtual void on_pumped() = 0;
};

}  // namespace earshot::tail
