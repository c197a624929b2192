// Fixtures of the serve tests: a stream without a file, transcript lines, and waiting for conditions.
#pragma once
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/transcript.hpp"
#include "serve/stream/session_store.hpp"
#include "tail/stream.hpp"
#include "unit/support/temporary_directory.hpp"

namespace earshot::test {

/// A stream with the bytes that the test writes.
class FakeStream final : public tail::Stream {
 public:
  /// `format`: null: that of Claude Code.
  FakeStream(std::string name, std::string session, std::string agent = {},
             const RecordFormat* format = nullptr);

  const std::string& name() const override { return name_; }
  const std::string& session() const override { return session_; }
  const StreamIdentity& path_identity() const override { return identity_; }
  const std::string& agent() const override { return agent_; }
  const std::string& directory() const override { return directory_; }
  const std::string& path() const override { return name_; }
  const SubagentMeta& meta() const override { return meta_; }
  const Transcript* transcript() const override { return transcript_.get(); }
  std::int64_t modified_ms() const override { return modified_ms_; }
  std::uint64_t published_bytes() const override {
    return transcript_ ? transcript_->bytes_read() : written_.size();
  }
  const std::string& text() const { return written_; }

  /// Feeds complete lines; events are sent to the listener (null: folded as history), then on_changed().
  void write(std::string_view lines, tail::StreamObserver* listener);
  void rename(std::string name) { name_ = std::move(name); }
  /// A new history.
  void restart();
  /// The file was truncated and written again; nothing of it was read since.
  void unread();
  /// The cursors of all events, from folding everything written in one piece.
  std::vector<Cursor> cursors() const { return cursors(nullptr); }
  /// Only of events with a wanted type.
  std::vector<Cursor> cursors(const std::function<bool(std::string_view type)>& wanted) const;

  SubagentMeta meta_;
  std::int64_t modified_ms_;
  std::string session_, directory_ = "-home-u-api";

 private:
  TranscriptOptions options() const;

  const StreamIdentity identity_;  // the tests name the session themselves
  std::string name_, agent_, written_;
  const RecordFormat* format_;
  std::unique_ptr<Transcript> transcript_;
  Workspace workspace_;
};

/// Lines as the agent program writes them. `n` makes their ids differ.
std::string prompt(int n, std::string_view text, std::string_view cwd = "/home/u/api");
std::string call(int n, std::string_view tool, std::string_view input, std::string_view call_id);
std::string result(int n, std::string_view call_id, std::string_view text);
std::string answer(int n, std::string_view text);

/// The value at a JSON pointer, as compact JSON; `absent` when there is none; `no JSON` for other text.
std::string at(std::string_view json, std::string_view pointer);

/// Payloads of complete server frames. Throws std::runtime_error for anything else.
std::vector<std::string> unframe(std::string_view bytes);

/// The session's frame for clients that may read everything.
std::string payload_of(serve::SessionStore& sessions, serve::Session& session);

/// Runs the loop until the condition is true; false after `patience`.
bool run_until(boost::asio::io_context& io, const std::function<bool()>& condition,
               std::chrono::seconds patience = std::chrono::seconds(60));

}  // namespace earshot::test
