// A transcript that is followed: what was read of it, and how to tell whether the file still says so.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agents/claude_code/layout.hpp"
#include "base/clock.hpp"
#include "core/prefix_hash.hpp"
#include "tail/files.hpp"
#include "tail/prefix_check.hpp"
#include "tail/stream.hpp"

namespace earshot::tail {

class FollowedFile final : public Stream, public std::enable_shared_from_this<FollowedFile> {
 public:
  FollowedFile(std::string name, std::string path, Identity identity, TranscriptOptions options,
               const Facts& facts);

  const std::string& name() const override { return name_; }
  const std::string& session() const override;
  const std::string& agent() const override { return identity_.agent; }
  const std::string& directory() const override { return identity_.directory; }
  const std::string& path() const override { return path_; }
  const AgentMeta& meta() const override { return meta_; }
  const Transcript* transcript() const override { return appeared ? &transcript_ : nullptr; }
  std::int64_t modified_ms() const override { return facts.modified_ms(); }
  std::uint64_t published_bytes() const override { return appeared ? read() : silent_bytes; }

  std::uint64_t read() const { return transcript_.bytes_read(); }
  /// How many bytes before read() a look reads again.
  std::size_t before() const;
  /// Those bytes are what was read.
  bool continues(std::span<const char> before) const;
  /// The next bytes; the `before` bytes in front of them lie at `bytes`' beginning. True when whole lines
  /// were among them.
  bool feed(std::span<const char> bytes, std::size_t before, Workspace& workspace, EventSink& sink);
  void restart();
  /// What the file must still say, for check().
  PrefixCheck claim() const;
  void set_meta(AgentMeta meta) { meta_ = std::move(meta); }

  // Where it stands in the machinery: Looks and Folds keep these.
  bool appeared = false;           // the listener knows it
  std::uint64_t silent_bytes = 0;  // until then: how far it is folded before it is told
  bool removed = false;
  bool queued = false;    // a look is due
  bool busy = false;      // the second thread is at it: looks wait
  bool again = false;     // rang meanwhile
  bool later = false;     // a look at a later time is due
  bool unproven = false;  // bytes were appended since all before them were compared
  bool doubted = false;   // the next look compares them
  int misses = 0;         // reads in a row that brought nothing though the file should hold more
  Facts facts;            // of the file that was read; its times are those of read() bytes
  Descriptor file;        // open while it is hot
  watch::Clock::time_point used;
  std::optional<watch::Clock::time_point> lingers_until;  // it is unlinked, and may still grow
  std::chrono::milliseconds retry{0};
  std::vector<std::function<void(const Stream*)>> waiters;  // for its fold

 private:
  std::string name_, path_;
  Identity identity_;
  TranscriptOptions options_;
  AgentMeta meta_;
  Transcript transcript_;
  std::uint64_t before_hash_ = 0;  // of the last before() bytes
  std::optional<LineHash> tail_;   // of the unterminated line
};

}  // namespace earshot::tail
