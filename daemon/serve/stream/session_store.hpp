// Streams grouped into what the user calls a session, and the frame that shows one.
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
#include "serve/stream/audience_log.hpp"
#include "serve/stream/frame.hpp"
#include "status/status.hpp"
#include "tail/stream.hpp"

namespace earshot::serve {

/// One stream of a session. The stream outlives its membership: SessionStore::remove_stream() comes first.
struct Member {
  const tail::Stream* stream = nullptr;
  bool meta_known = false;  // a session frame has been told since its meta file was read
  std::uint32_t id = 0;     // in the log's tags; never used twice
};

/// A todo list from files beside the transcripts.
struct FileTodos {
  std::vector<Todo> todos;
  std::string time;  // RFC 3339; the transcript's list wins when it is newer
};

struct Session {
  std::uint32_t id = 0;          // in the log's tags; never used twice
  std::uint32_t generation = 0;  // grows when what filters look at (project, directory) changes
  std::string name;       // empty: a stream that does not know its session yet, alone; no frame shows it
  std::string project;    // the first working directory; empty: not known
  std::string directory;  // stands for the project until then

  std::vector<Member> members;
  std::optional<status::Status> status;
  std::optional<FileTodos> todos;

  Position changed = 0;           // where the log was when it last changed
  bool pending = false;           // waits for the pump's end
  bool summary_due = false;       // the board is to hear of it then
  bool late = false;              // waits for its next turn to be told to those who asked for states
  watch::Clock::time_point told;  // when those heard of it last
  Position retired = 0;           // with no members: where the log was
  std::array<Frame, audience_count> frames;  // null: to be built again

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

/// What the transcripts of a session say, for the status board.
status::TranscriptSummary transcript_summary(const Session& session);

/// A `session` frame's payload: in that view, through that filter; the other options do not matter.
std::string session_payload(const Session& session, std::string_view host, const EncodeOptions& shown = {});

class SessionStore {
 public:
  explicit SessionStore(std::string host) : host_(std::move(host)) {}
  /// Through which the frames' texts go. It outlives this object.
  void set_filter(const TextFilter& filter) { filter_ = &filter; }
  /// Their names say whose they are: `<session>@<host>`. A session of a host that is not heard is shown so.
  void set_multi_host(std::function<bool(std::string_view host)> is_online) {
    host_.clear();
    is_online_ = std::move(is_online);
  }
  SessionStore(const SessionStore&) = delete;
  SessionStore& operator=(const SessionStore&) = delete;

  /// The session of this stream, made when it is new; a stream that learnt its session moves there.
  Session& session_of(const tail::Stream& stream);
  /// By name, made when there is none (a process without a transcript yet).
  Session& find_or_create(std::string_view name);
  Session* find(std::string_view name);
  Session* find(std::uint32_t id);

  /// Its session (still there, perhaps without members), or null when the stream was never told.
  Session* remove_stream(const tail::Stream& stream, Position log_head);
  /// What filters look at is read again from the transcripts.
  void refresh(Session& session);
  /// Forgets sessions without members and process that no frame in the log speaks of any more. Returns how
  /// many must still wait.
  std::size_t purge(Position log_first);

  /// Encoded once until `session.frames` are reset; shared by all who are sent it.
  Frame frame(Session& session, Audience audience);
  /// The number of a stream that was told; 0: it was not.
  bool contains(const tail::Stream& stream) const { return by_stream_.contains(&stream); }
  std::uint32_t stream_id(const tail::Stream& stream) const;
  /// Null: it is no more.
  const tail::Stream* find_stream(std::uint32_t id) const;

  std::string_view host_of(std::string_view session) const {
    if (!host_.empty()) return host_;
    const auto at = session.rfind('@');
    return at == session.npos ? std::string_view() : session.substr(at + 1);
  }

  std::size_t size() const { return by_id_.size(); }
  void for_each(const std::function<void(Session&)>& visit);  // by name

 private:
  Session& make(std::string_view name);

  std::string host_;                                      // empty: the sessions' names say whose they are
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
