// The tail room's front door: which transcripts exist below the roots, which are live, and every new line of
// them as events.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tail/archive.hpp"
#include "tail/health.hpp"
#include "tail/listener.hpp"
#include "tail/roots.hpp"
#include "tail/stream.hpp"
#include "watch/watch_mux.hpp"

namespace earshot::tail {

struct Options {
  std::vector<Root> roots;
  std::uint64_t hash_key = 0;              // the host's secret
  std::chrono::milliseconds recent = std::chrono::hours(24);  // files that changed since then are folded at start
  std::size_t line_bytes_max = 16 << 20;
  std::chrono::milliseconds retry_first{1000};   // after an error of the disk or of permissions; doubles …
  std::chrono::milliseconds retry_last{60'000};  // … up to this
  std::chrono::milliseconds linger{
      500};  // an unlinked file that was open is read until nothing came for so long
  std::chrono::milliseconds quiet{60'000};  // a descriptor that was not used for so long is closed
  const TextFilter* filter = nullptr;       // of every transcript; outlives the tail
};

struct Counters {
  std::uint64_t bytes_read = 0;  // fed to transcripts
  std::uint64_t looks = 0, resets = 0, verifications = 0, events = 0;
  std::size_t open_files = 0, known_files = 0, streams = 0, directories = 0;
  std::uint64_t pending_bytes = 0;  // read, but of lines that have no end yet
};

/// One thread owns it: every call, and every call of the listener, happens on `io`'s. Errors of files are
/// values: health().
class Tail final : public Archive {
 public:
  /// `disk` runs one task at a time, in order, on another thread; join it before `io` is destroyed. The
  /// switchboard and the listener outlive this object.
  Tail(boost::asio::io_context& io, boost::asio::any_io_executor disk, watch::WatchMux& switchboard,
       Options options, Listener& listener);
  ~Tail() override;

  /// Watches, scans, folds what is recent (on_appeared for each), then calls `on_ready` once.
  void start(std::function<void()> on_ready);
  /// No call of the listener after this.
  void stop();

  /// Every known transcript, cold ones included (their transcript() is null). The reference is good during
  /// the call.
  void for_each(const std::function<void(const Stream&)>& visit) const;
  /// Null: no such transcript. That of a cold one is good until the next call of find() or for_each().
  const Stream* find(std::string_view name) const override;
  /// Folds a cold one silently, tells on_appeared, then calls `then` with it; with null when there is none or
  /// it cannot be read. One that is folded already: at once.
  void fold(std::string_view name, std::function<void(const Stream*)> then) override;
  void doubt(const Stream& stream) override;
  void told(const Stream& stream, const Cursor& end) override;
  std::unique_ptr<History> history(const Stream& stream) override;
  void record(const Stream& stream, const Cursor& end, std::function<void(RecordText)> then) override;

  std::vector<Health> health() const;
  Counters counters() const;

 private:
  class Impl;
  std::shared_ptr<Impl> house_;
};

}  // namespace earshot::tail
