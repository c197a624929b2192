// Sessions, each with its streams, status and `session` frame.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "base/clock.hpp"
#include "base/containers.hpp"
#include "core/event_json.hpp"
#include "models/usage_ledger.hpp"
#include "serve/slices.hpp"
#include "serve/stream/live_log.hpp"
#include "serve/stream/seen_marks.hpp"
#include "serve/stream/session_numbers.hpp"
#include "serve/stream/subscription.hpp"
#include "status/status.hpp"
#include "tail/stream.hpp"

namespace earshot {

inline bool operator==(const LimitState& a, const LimitState& b) {
  return a.time == b.time && a.limit == b.limit && a.plan == b.plan && a.reached == b.reached &&
         a.windows == b.windows;
}

}  // namespace earshot

namespace earshot::serve {

/// One stream of a session. The stream outlives its membership: SessionStore::remove_stream() is called
/// first.
struct Member {
  const tail::Stream* stream = nullptr;
  bool meta_known = false;  // a session frame was sent after its meta file was read
  std::uint32_t id = 0;     // in the log's tags; never used twice
  UsageAccount used = {};
  Usage counted = {};  // the most that it used so far: a new history adds nothing to the metrics
};

/// Null: there is no stream, or it was not read.
inline const StreamState* state_of(const tail::Stream* stream) {
  return stream && stream->transcript() ? &stream->transcript()->state() : nullptr;
}

/// A todo list from a file.
struct FileTodos {
  std::vector<Todo> todos;
  std::string time;  // RFC 3339; the transcript's list wins when it is newer
};

/// What a status line, or at a hub the session's host, states about a session.
struct ReportedNumbers {
  std::optional<std::uint64_t> context_window;
  std::optional<double> cost_usd;
  std::string cost_source;  // recorded, estimated, mixed
  std::vector<LimitState> limits;
  std::optional<TimeSpent> times;
  bool is_from_host = false;  // then they win over what relayed events contain
  friend bool operator==(const ReportedNumbers&, const ReportedNumbers&) = default;
};

struct Session {
  std::uint32_t id = 0;          // in the log's tags; never used twice
  std::uint32_t generation = 0;  // grows when a key of filters changes
  std::string name;              // empty: one stream of an unknown session; without a frame
  std::string project;           // the first working directory; empty: unknown
  std::string program;           // agent program; empty: unknown
  std::string directory;         // used instead of the project until then
  static constexpr std::size_t projects_max = 16;
  /// That removed streams had, or that its host states; at projects_max further ones are not known.
  std::vector<std::string> other_projects;

  std::vector<Member> members;
  std::optional<status::Status> status;
  LiveWaits live_waits;
  std::optional<FileTodos> todos;
  Rare<ReportedNumbers> reported;
  const LimitState* account = nullptr;  // the limit of its account, as a status line states it; null: none
  std::int64_t clock_offset_ms = 0;     // to be added to the times of its host; 0: that clock is right
  const SeenMarks* seen = nullptr;      // outlives the session; null: every turn was seen
  bool was_unseen = false;              // as the last appended frame has it
  std::optional<Clock::time_point> wait_began;  // of the present wait for the user, for the metrics
  double counted_usd = 0;                       // of its cost, by the metrics
  std::map<std::string, double> grown_usd;      // since then, by model: what its streams do not repeat
  bool cost_changed = false;                    // since then, perhaps

  Position changed = 0;      // head of the log at the last change
  std::uint64_t change = 0;  // number of the last change, see SessionStore::changes()
  bool was_hidden = false;   // clients did not see it at its last change
  /// It was live when it was read, or since; else a client asked for it, and the metrics do not count it.
  bool was_live = false;
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
  bool has_events() const;           // not only metadata was read
  /// Clients see it: it has events, or a process of it was seen.
  bool is_shown() const {
    return !name.empty() && (has_events() || (status && status->reason != status::host_offline_reason));
  }
  void set_status(const status::Status& next);
  void add_project(std::string_view added);
  std::int64_t finished_ms() const;  // when the last turn of the main stream was finished; 0: unknown
  /// True if the last turn was completed or failed and the user has not seen the session since.
  bool is_unseen() const;
};

/// Of a stream; a subagent belongs to the main stream whose name its own one begins with. Empty: unknown.
std::string_view project_of(const Session& session, const tail::Stream& stream);
/// All that it is or was in use in, by its main streams.
std::set<std::string> projects_of(const Session& session);

class SessionStore {
 public:
  static constexpr std::size_t removed_max = 1024;  // whose project is known; the session's counts for others
  static constexpr std::size_t reported_max = 10'000;  // sessions; above it the earliest is dropped

  explicit SessionStore(std::string host) : host_(std::move(host)) {}
  /// The redactor, which outlives this object.
  void set_filter(const TextFilter& filter) { filter_ = &filter; }
  /// Outlives this object; otherwise the built-in table is used.
  void set_models(const ModelTable& models) { models_ = &models; }
  const ModelTable& models() const { return *models_; }
  /// Sessions are named `<session>@<host>`; those of an offline host have the status `host_offline`.
  void set_multi_host(std::function<bool(std::string_view host)> is_online) {
    host_.clear();
    is_online_ = std::move(is_online);
  }
  /// As set_multi_host() has it.
  bool is_online(std::string_view host) const { return is_online_ && is_online_(host); }
  SessionStore(const SessionStore&) = delete;
  SessionStore& operator=(const SessionStore&) = delete;

  /// The session of this stream, created if needed; moves a stream when its session becomes known.
  Session& session_of(const tail::Stream& stream);
  /// By name, created if needed (a process without a transcript).
  Session& find_or_create(std::string_view name);
  Session* find(std::string_view name);
  const Session* find(std::string_view name) const;
  Session* find(std::uint32_t id);

  /// A report about a session, which need not be known yet. Returns the session if it is known and
  /// something changed.
  Session* report(std::string_view name, const ReportedNumbers& numbers);
  /// The limit of the account of this session, for all sessions of its root. True if it changed.
  bool report_limit(const Session& session, LimitState limit);
  /// Of the sessions of this host, in ms. Returns those that are known.
  std::vector<Session*> set_clock_offset(std::string_view host, std::int64_t offset_ms);
  SeenMarks& seen() { return seen_; }
  const SeenMarks& seen() const { return seen_; }

  /// The stream was read, or has a new history.
  void account_for(Member& member);
  void note_cost(Session& session) {
    if (!std::exchange(session.cost_changed, true)) changed_costs_.push_back(session.id);
  }
  /// The sessions whose cost may have changed since the last call.
  std::vector<Session*> take_changed_costs();

  /// Returns the session, possibly without members, or null for an unknown stream.
  Session* remove_stream(const tail::Stream& stream, Position log_head);
  /// The session has changed; `log_head` is the position of the next frame.
  void note_change(Session& session, Position log_head) {
    session.changed_now(log_head);
    session.change = ++changes_;
  }
  /// Changes of all sessions so far. Unlike positions of the log no two are equal.
  std::uint64_t changes() const { return changes_; }
  /// Updates the keys of filters from the transcripts.
  void refresh(Session& session);
  /// Removes sessions without members and process that no frame in the log refers to. Returns the number of
  /// those still referred to.
  std::size_t purge(Position log_first);

  /// The payload of its `session` frame.
  std::string payload(const Session& session, const EncodeOptions& options) const;
  /// Encoded once until `session.frames` are reset.
  Frame frame(Session& session, Audience audience);
  bool contains(const tail::Stream& stream) const { return by_stream_.contains(&stream); }
  std::uint32_t stream_id(const tail::Stream& stream) const;
  /// Null: removed.
  const tail::Stream* find_stream(std::uint32_t id) const;
  /// Null: it is not a removed stream, or one of the earlier ones.
  const std::string* project_of_removed(std::uint32_t id) const { return removed_.find(std::to_string(id)); }

  std::string_view host_of(std::string_view session) const {
    if (!host_.empty()) return host_;
    const auto at = session.rfind('@');
    return at == session.npos ? std::string_view() : session.substr(at + 1);
  }

  /// At a hub; otherwise empty.
  std::string_view remote_host_of(std::string_view session) const {
    return host_.empty() ? host_of(session) : std::string_view();
  }

  /// What filters compare with; valid until the session changes.
  SessionKeys keys_of(const Session& session) const {
    return {host_of(session.name), session.name, session.project_or_directory(), session.program};
  }

  std::size_t size() const { return by_name_.size(); }  // without streams whose session is not known yet
  void for_each(const std::function<void(Session&)>& visit);  // by name
  void for_each(const std::function<void(const Session&)>& visit) const;
  /// Visits sessions with a name after `name`, by name, until `visit` returns false. False: there are more.
  bool visit_after(std::string_view name, const std::function<bool(Session&)>& visit);
  /// Visits them until the slice is over; `name` becomes that of the last one. True: there are no more.
  bool visit_slice(Slice& slice, std::string& name, const std::function<void(Session&)>& visit);

 private:
  Session& make(std::string_view name);

  std::string host_;                                      // empty: the names of sessions have hosts
  std::function<bool(std::string_view host)> is_online_;  // likewise
  const TextFilter* filter_ = nullptr;
  const ModelTable* models_ = &ModelTable::built_in();
  struct Known {
    Session* session = nullptr;
    std::uint32_t id = 0;
  };

  UsageLedger ledger_;  // outlives the sessions
  std::uint32_t next_id_ = 1, next_stream_ = 1;
  std::uint64_t changes_ = 0;
  std::unordered_map<std::uint32_t, std::unique_ptr<Session>> by_id_;
  std::map<std::string, Session*, std::less<>> by_name_;
  std::unordered_map<const tail::Stream*, Known> by_stream_;
  BoundedMap<ReportedNumbers, reported_max> reported_;
  std::map<std::string, LimitState, std::less<>> accounts_;         // by root
  std::map<std::string, std::int64_t, std::less<>> clock_offsets_;  // by host, those that are not 0
  SeenMarks seen_;
  std::unordered_map<std::uint32_t, const tail::Stream*> streams_;
  std::vector<std::uint32_t> changed_costs_;      // sessions
  BoundedMap<std::string, removed_max> removed_;  // projects by Member::id
};

/// Visits all sessions for a client in slices, so that neither many sessions nor slow filters delay others. A
/// session that is created meanwhile may be missed.
class SessionScans : public Slices {
 public:
  static constexpr std::size_t slice_sessions_max = Slice::steps_max;
  using Visit = std::function<void(Session&)>;

  SessionScans(boost::asio::io_context& io, SessionStore& sessions) : Slices(io), sessions_(sessions) {}

  using Slices::begin;
  /// Visits all sessions, then calls `done`, during the call if one slice is enough.
  void begin(const void* owner, Visit visit, std::function<void()> done);

 private:
  SessionStore& sessions_;
};

}  // namespace earshot::serve
