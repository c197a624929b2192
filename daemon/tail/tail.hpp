// Finds the transcripts below the roots, follows them and delivers the events of every new line.
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

#include "agents/roots.hpp"
#include "tail/followed_file.hpp"
#include "tail/history.hpp"
#include "tail/stream.hpp"
#include "watch/watchers.hpp"

namespace earshot::tail {

struct Options {
  std::vector<Root> roots;
  std::uint64_t hash_key = 0;  // the host's secret
  std::chrono::milliseconds recent =
      std::chrono::hours(24);  // files that changed since then are folded at start
  std::size_t line_bytes_max = 16 << 20;
  std::chrono::milliseconds retry_first{1000};   // after an I/O or permission error; doubles each time …
  std::chrono::milliseconds retry_last{60'000};  // … up to this
  std::chrono::milliseconds linger{500};    // an unlinked open file is read until it did not grow for so long
  std::chrono::milliseconds quiet{60'000};  // an unused descriptor is closed after this time
  /// A larger file that was changed at the moment of a check is compared at the next change or resume only.
  std::uint64_t verify_bytes_max = 64 << 20;
  /// How many files of listings, and of removed directories, are handled in one turn of the loop.
  std::size_t files_per_turn = 64;
  const TextFilter* filter = nullptr;  // for every transcript; thread-safe; outlives the tail
  /// Threads that read history; joined before `filter` is destroyed. None: the disk thread reads it.
  boost::asio::any_io_executor fold_executor = {};
  std::size_t folds_max = 2;  // at a time
};

struct Counters {
  std::uint64_t bytes_read = 0;  // fed to transcripts
  std::uint64_t checks = 0, resets = 0, verifications = 0, events = 0;
  std::size_t active_verifications = 0;
  std::size_t open_files = 0, known_files = 0, streams = 0, directories = 0;
  std::uint64_t pending_bytes = 0;  // read, but of unterminated lines
  std::uint64_t dropped = 0;        // RecordCounts::dropped of the followed transcripts
};

/// All calls, and all calls of the observer, happen on the thread of `io`. Errors of files are reported by
/// problems().
class Tail final : public Archive {
 public:
  /// `disk` runs one task at a time, in order, on another thread; join it before `io` is destroyed. The mux
  /// and the observer outlive this object. Becomes a client of the mux: later clients receive a hint after
  /// the events that it causes were delivered.
  Tail(boost::asio::io_context& io, boost::asio::any_io_executor disk, watch::WatchMux& mux, Options options,
       StreamObserver& observer);
  ~Tail() override;

  /// Watches and scans the roots, folds recent files (on_added for each), then calls `on_ready` once.
  void start(std::function<void()> on_ready);
  /// The observer is not called after this.
  void stop();

  /// Visits all known streams; those of cold ones are valid during the call.
  void for_each(const std::function<void(const Stream&)>& visit) const;
  /// Visits those that are not cold, in any order.
  void for_each_live(const std::function<void(const Stream&)>& visit) const;
  /// The number of streams of a root, cold ones included.
  std::size_t known_files(std::string_view root) const;
  /// As for_each(), for at most `count` of them, behind `place`, which becomes that of the last one. False:
  /// there are no more. Streams may come and go between the calls.
  struct Place {
    std::string directory, stem;
  };
  bool for_some(Place& place, std::size_t count, const std::function<void(const Stream&)>& visit) const;
  /// The names of the session's cold streams. After the first call the work does not depend on the number of
  /// files.
  std::vector<std::string> cold_streams_of(std::string_view session) const;
  /// A cold stream is valid until the next call of find(), for_each() or for_some().
  const Stream* find(std::string_view name) const override;
  const Stream* find_moved(std::string_view name) const override;
  /// Calls `then` after on_added(), or at once if the stream is not cold.
  void fold(std::string_view name, std::function<void(const Stream*)> then) override;
  void release(std::string_view name) override;
  void request_verify(const Stream& stream) override;
  void mark_published(const Stream& stream, const Cursor& end) override;
  std::unique_ptr<History> history(const Stream& stream) override;
  void record(const Stream& stream, const Cursor& end, std::function<void(RecordText)> then) override;

  std::vector<FileProblem> problems() const;
  Counters counters() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace earshot::tail
