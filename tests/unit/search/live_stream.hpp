// A live stream as the event loop has it, without a tail: the test says when the loop reads.
#pragma once
#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "search/growth.hpp"
#include "tail/stream.hpp"

namespace earshot::test {

class LiveStream final : public tail::Stream {
 public:
  LiveStream(std::string name, std::string path, TranscriptOptions options, search::GrowthLog& log)
      : name_(std::move(name)), path_(std::move(path)), transcript_(std::move(options)), log_(log) {}

  /// Reads up to `bytes_max` bytes of what the file has more, as the tail does.
  void read(std::size_t bytes_max = SIZE_MAX) {
    const std::string bytes = next(bytes_max);
    log_.begin_feed(*this);
    const Cursor before = transcript_.end();
    Sink sink(*this);
    transcript_.feed(std::span(bytes).first(bytes.size() - feed_padding), workspace_, sink);
    if (transcript_.end() != before) log_.mark(*this);
  }
  /// The same without events, as before a stream is announced.
  void fold() {
    const std::string bytes = next(SIZE_MAX);
    struct : EventSink {
      void on_event(const Event&) override {}
    } none;
    transcript_.feed(std::span(bytes).first(bytes.size() - feed_padding), workspace_, none);
    log_.mark(*this);
  }

  const std::string& name() const override { return name_; }
  const std::string& session() const override { return identity_.session; }
  const StreamIdentity& path_identity() const override { return identity_; }
  const std::string& agent() const override { return identity_.agent; }
  const std::string& directory() const override { return identity_.directory; }
  const std::string& path() const override { return path_; }
  const SubagentMeta& meta() const override { return meta_; }
  const Transcript* transcript() const override { return &transcript_; }
  std::int64_t modified_ms() const override { return 0; }
  std::uint64_t published_bytes() const override { return transcript_.bytes_read(); }

 private:
  struct Sink final : EventSink {
    explicit Sink(LiveStream& stream) : of(stream) {}
    void on_event(const Event& event) override { of.log_.add(of, event); }
    LiveStream& of;
  };

  std::string next(std::size_t bytes_max) const {
    std::ifstream file(path_, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(transcript_.bytes_read()));
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    bytes.resize(std::min(bytes.size(), bytes_max));
    return bytes + std::string(feed_padding, '\0');
  }

  const std::string name_, path_;
  StreamIdentity identity_;
  SubagentMeta meta_;
  Workspace workspace_;
  Transcript transcript_;
  search::GrowthLog& log_;
};

}  // namespace earshot::test
