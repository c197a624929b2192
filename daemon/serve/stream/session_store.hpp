// Sessions, each with its streams, status and `session` frame.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "core/event_json.hpp"
#include "serve/stream/live_log.hpp"
#include "serve/stream/subscription.hpp"
#include "status/status.hpp"
#include "tail/stream.hpp"

namespace earshot::serve {

/// One stream of a session. The stream outlives its membership: SessionStore::remove_stream() comes first.
struct Member {
  const tail::Stream* stream = nullptr;
  bool meta_known = false;  // a session frame was sent after its meta file was read
  std::uint32_t id = 0;     // in the log's tags; never used twice
};

/// A todo list from a file.
struct FileTodos {
  std::vector<Todo> todos;
  std::string time;  // RFC 3339; the transcript's list wins when it is newer
};

struct Session {
  std::uint32_t id = 0;          // in the log's tags; never used twice
  std::uint32_t generation = 0;  // grows when a key of filters changes
  std::string name;              // empty: one stream whose session is unknown yet; without a frame
  std::string project;           // the first working directory; empty: unknown
  std::string program;           // agent program; empty: unknown
  std::string directory;         // used instead of the project until then

  std::vector<Member> members;
  std::optional<status::Status> status;
  std::optional<FileTodos> todos;

  Position changed = 0;                             // head of the log at the last change
  bool pending = false;                             // reported at the end of the pump
  bool summary_due = false;                         // then also to the status tracker
  bool is_throttled = false;                        // its state is sent after `limits.state`
  std::optional<Clock::time_point> states_sent_at;  // to connections with `deliver: state`
  Position retired = 0;                             // head of the log when the last member was removed
  std::array<Frame, audience_count> frames;         // null: not encoded

  void changed_now(Position head) {
    frames = {};
    changed = head;
  }

  std::string_view project_or_directory() const { return project.empty() ? directory : project; }
  /// The main stream: of several (one session id in two directories) the one with the newest activity. Null:
  /// none.
  const tail::Stream* main() const;
  std::int64_t modified_ms() const;  // of its newest file
  bool process_lives() const;        // as the registry has it
};

/// The state of the transcripts, for the status tracker.
status::TranscriptSummary transcript_summary(const Session& session);

/// The payload of a `session` frame; uses the view and filter of `options`.
std::string session_payload(const Session& session, std::string_view host, const EncodeOptions& options = {});

class SessionStore {
 public:
  explicit SessionStore(std::string host) : host_(std::move(host)) {}
  /// The redactor, which outlives this object.
  void set_filter(const TextFilter& filter) { filter_ = &filter; }
  /// Sessions are named `<session>@<host>`; those of an offline host have the status `host_offline`.
  void set_multi_host(std::function<bool(std::string_view host)> is_online) {
    host_.clear();
    is_online_ = std::move(is_online);
  }
  SessionStore(const SessionStore&) = delete;
  SessionStore& operator=(const SessionStore&) = delete;

  /// The session of this stream, created if needed; moves a stream whose session became known.
  Session& session_of(const tail::Stream& stream);
  /// By name, created if needed (a process without a transcript).
  Session& find_or_create(std::string_view name);
  Session* find(std::string_view name);
  Session* find(std::uint32_t id);

  /// Returns the session, possibly without members, or null for an unknown stream.
  Session* remove_stream(const tail::Stream& stream, Position log_head);
  /// Updates the keys of filters from the transcripts.
  void refresh(Session& session);
  /// Removes sessions without members and process that no frame in the log refers to. Returns the number of
  /// those still referred to.
  std::size_t purge(Position log_first);

  /// Encoded once until `session.frames` are reset.
  Frame frame(Session& session, Audience audience);
  bool contains(const tail::Stream& stream) const { return by_stream_.contains(&stream); }
  std::uint32_t stream_id(const tail::Stream& stream) const;
  /// Null: removed.
  const tail::Stream* find_stream(std::uint32_t id) const;

  std::string_view host_of(std::string_view session) const {
    if (!host_.empty()) return host_;
    const auto at = session.rfind('@');
    return at == session.npos ? std::string_view() : session.substr(at + 1);
  }

  /// What filters compare with; valid until the session changes.
  SessionKeys keys_of(const Session& session) const {
    return {host_of(session.name), session.name, session.project_or_directory(), session.program};
  }

  std::size_t size() const { return by_id_.size(); }
  void for_each(const std::function<void(Session&)>& visit);  // by name

 private:
  Session& make(std::string_view name);

  std::string host_;                                      // empty: the names of sessions have hosts
  std::function<bool(std::string_view host)> is_online_;  // likewise
  const TextFilter* filter_ = nullptr;
  struct Known {
    Session* session = nullptr;
    std::uint32_t id = 0;
  };

  std::uint32_t next_id_ = 1, next_stream_ = 1;
  std::unordered_map<std::uint32_t, std::unique_ptr<Session>> by_id_;
  std::map<std::string, Session*, std::less<>> by_name_;
  std::unordered_map<const tail::Stream*, Known> by_stream_;
  std::unordered_map<std::uint32_t, const tail::Stream*> streams_;
};

}  // namespace earshot::serve
