// The subscription of one connection and the ordered queue of frames it must receive. No socket: it returns
// bytes to send and is informed how many were sent.
#pragma once
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/clock.hpp"
#include "serve/server_context.hpp"
#include "serve/stream/catch_up.hpp"
#include "serve/stream/records.hpp"
#include "serve/stream/session_pages.hpp"
#include "serve/stream/subscription.hpp"

namespace earshot::serve {

/// Buffers for one gathered write; they refer to the log and the queue. Valid until a frame is appended or
/// queued.
class Batch {
 public:
  static constexpr std::size_t pieces_max = 64;  // further frames are sent by the next write
  std::span<const iovec> iovecs() const { return {iovecs_.data(), count_}; }
  std::size_t bytes() const { return bytes_; }
  bool empty() const { return count_ == 0; }
  bool full = false;  // more frames are ready

  Batch() {}  // leaves the runs uninitialised: every wake-up makes a batch for every connection
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

 private:
  friend class Subscriber;
  enum class From : std::uint8_t { queue, log, chunk };
  void add(std::span<const char> bytes, From from, const LiveLog::Run& run, std::size_t bytes_max);

  std::array<iovec, pieces_max> iovecs_;
  union {
    std::array<LiveLog::Run, pieces_max> runs_;
  };
  std::array<From, pieces_max> from_;
  std::size_t count_ = 0, bytes_ = 0;
  Position scanned = 0;  // frames before it are in the batch, were sent or are not wanted
};

/// The part of a connection's queue that is read from files. Frames behind it wait until it is done.
struct Resume {
  struct Reading {  // a chunk that is being sent
    std::string stream;
    std::shared_ptr<Chunk> chunk;
    Position at = 0;
    bool last = false;  // of this stream
    Cursor end = {};    // the position of the reader after the last chunk
  };
  struct OtherHistory {  // a stream that does not match the client's cursor
    std::string stream, reason;
  };
  template <class Value>
  using ByStream = std::map<std::string, Value, std::less<>>;

  bool is_requested = true;  // else the client fell behind
  bool begun = false;
  ByStream<EventRange> missing;                      // not sent yet
  ByStream<std::uint32_t> stream_ids;                // of streams that are not cold
  std::set<std::string, std::less<>> new_histories;  // streams that a `reset` precedes
  ByStream<std::string> present;  // names of streams that were renamed; the client knows those above
  std::deque<Reading> reading;
  std::vector<OtherHistory> others;  // reported after everything else
  std::size_t resets_pushed = 0;     // of `others`
  bool is_read = false;              // only `others` are left
  std::vector<std::string> cursors;  // `<stream>:<cursor>` that the client has reached

  bool done() const { return begun && missing.empty() && reading.empty(); }
  void rename(std::string_view from, const std::string& to) {
    bool was_renamed = false;
    for (auto& [known, name] : present)
      if (name == from) name = to, was_renamed = true;
    if (!was_renamed && !present.contains(from) && is_about(from)) present.emplace(from, to);
  }
  bool is_about(std::string_view stream) const {
    return missing.contains(stream) ||
           std::any_of(others.begin(), others.end(),
                       [&](const OtherHistory& each) { return each.stream == stream; });
  }
  StreamNames names_of(const std::string& stream) const {
    const auto renamed = present.find(stream);
    return {stream, renamed == present.end() ? stream : renamed->second};
  }
};

class Subscriber final : private EvictionListener {
 public:
  explicit Subscriber(ServerContext& context) : context_(context) {}
  ~Subscriber() { close(); }
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  /// Before the first subscription.
  void set_audience(Audience audience) { audience_ = audience; }
  /// Reads later than in the batch that appended, see AudienceLog::append(). Before the first subscription.
  void set_patient(bool is_patient) { is_patient_ = is_patient; }
  /// The sessions this connection may see; null: all. Other sessions, and streams that were never read, do
  /// not exist for it. Before the first subscription; `allowed` outlives this object.
  void restrict_to(const Filter* allowed) { allowed_ = allowed && !allowed->empty() ? allowed : nullptr; }
  Audience audience() const { return audience_; }
  /// Called when frames may be ready without growth of the log. Call gather() later, not during the call.
  std::function<void()> on_more;
  /// Frames are ready.
  void wake() const {
    if (on_more) on_more();
  }

  /// Queues a frame for this connection, behind the frames in the log but before missed events from files.
  void push_answer(std::string_view payload);

  /// Replaces the subscription: no frame of the former one follows. Queues `session` frames, `ready` and
  /// missed events. All describe one head of the log: the current one, unless the sessions are matched in
  /// several slices (SessionScans).
  void subscribe(message::Subscribe asked);
  /// Queues the next page of the snapshot, or an `error`.
  void next_page(const message::NextPage& asked);
  void read(const message::Read& asked);
  /// Ends the subscription; shared state is not accessed afterwards.
  void close();

  /// For `deliver: state`: queues the session's frame, encoded when it is sent.
  void session_changed(const Session& session);
  /// A `session` frame was appended to the log: for `new_streams: beginning`, sends the history of streams
  /// that it mentions for the first time.
  void session_shown(const Session& session);
  /// A stream without history appeared: its events arrive from the first one on.
  void stream_appeared(std::uint32_t stream);
  void stream_renamed(std::string_view from, const std::string& to);
  /// A stream was folded up to its published bytes: it may be one that a resume found unreadable.
  void stream_readable(const tail::Stream& stream);
  /// Sends bookmarks of streams to a filtered subscription from time to time.
  void tick(Clock::time_point now);

  /// Frames of the log that were not sent yet; some may not be wanted.
  Position frames_behind() const { return reads_log() ? context_.logs.head() - position_ : 0; }
  /// Collects what is sent next. An empty batch: nothing is ready.
  void gather(Batch& batch);
  /// `bytes` of this batch were sent. Returns the unsent rest of a partly sent frame, to be copied now and
  /// sent before anything else.
  std::span<const char> sent(const Batch& batch, std::size_t bytes);

  /// The client is not reading: drops queued session frames that the log has overtaken, to free their memory.
  void shed();
  /// Too many unsent answers: read no further message.
  bool is_congested() const { return answer_bytes_ > context_.limits.own_bytes_max; }
  /// Unsent session frames; shared with other connections as long as the session does not change.
  std::size_t snapshot_bytes() const { return snapshot_bytes_; }

  // Called by CatchUps

  /// Calls CatchUps::consumed() when the chunk was sent; the next one of this stream follows only then.
  void on_chunk(const std::string& stream, std::shared_ptr<Chunk> chunk);
  /// The last call for this stream. After `up`, `end` is the position behind the last chunk.
  void on_caught(const std::string& stream, ReplayResult how, const Cursor& end);

 private:
  static constexpr std::size_t unreadable_max = 65'536;  // streams; further ones are not reset again
  static constexpr std::size_t resets_per_turn = 32;     // of the loop; with each, a session frame is encoded

  /// subscribe() leads to `starting`, from any state. With `deliver: events`: starting, live ⇄ behind; with
  /// `deliver: state`: starting, live ⇄ paging. One scan of the sessions at a time.
  enum class State : std::uint8_t {
    idle,      // there is no subscription
    starting,  // the sessions of the snapshot are being found; nothing is received yet
    live,
    paging,  // live, and the sessions of a page are being found
    behind,  // the log has evicted unsent frames: the sessions that changed since are being found
  };
  /// A snapshot that is sent by page. Sessions that changed since it began are sent at once, like all
  /// changes; the order of the others is fixed. So the last key says which were sent, and no list of them is
  /// kept.
  struct Pages {
    std::uint64_t changes = 0;    // SessionStore::changes() when it began
    std::optional<PageKey> last;  // of the last page
    std::string next;             // the continuation; empty: none is valid now
  };
  struct Subscription {
    message::Subscribe asked;
    std::bitset<frame_types> types = {};  // that the filter matches
    Pages pages = {};
    // For `new_streams: beginning`: the streams that are sent. Cold ones have no id.
    std::unordered_set<std::uint32_t> known_streams = {};
    std::set<std::string, std::less<>> known_cold = {};
  };
  /// Sessions that are being found.
  struct Found {
    std::uint64_t begun = 0;  // SessionStore::changes()
    bool is_complete = false;
    std::vector<std::uint32_t> ids = {};
  };
  /// A page that is being found or sent.
  struct Page {
    PageSelection selection;
    std::vector<std::uint32_t> ids{};  // to be sent, the first at the end
  };
  /// answer: of the connection, the others of its subscription. reset: followed by its session's frame.
  /// snapshot: a `session` frame, shared with other connections.
  enum class Kind { answer, control, reset, snapshot, resume };
  struct Queued {
    Position at;  // sent after the log frames before this position
    Kind kind;
    Frame frame;                     // null for resume
    std::unique_ptr<Resume> resume;  // null for the other kinds
  };
  struct CachedMatch {  // whether the filter matches a session, until that changes
    std::uint32_t session = 0, generation = 0;
    bool matches = false;
  };
  static constexpr std::size_t cached_matches = 256;  // direct-mapped; a collision is evaluated again
  struct Mute {  // log frames of this stream before this position: a snapshot has replaced them
    std::uint32_t stream;
    Position until;
  };

  AudienceLog& audience_log() { return context_.logs.of(audience_); }
  LiveLog& log() { return audience_log().log; }

  // subscriber.cpp: the states and the queue
  const std::string& id() const { return subscription_->asked.id; }
  const Filter& filter() const { return subscription_->asked.filter; }
  bool has_begun() const { return state_ >= State::live; }
  bool reads_log() const { return has_begun() && !subscription_->asked.state; }
  bool wants_states() const { return has_begun() && subscription_->asked.state; }
  void end_subscription();
  void start_live();
  void listen();
  void unlisten();
  bool may_see(const Session* session) const;
  bool may_see(const tail::Stream* stream) const;
  bool matches(const Session& session);
  bool wants(const Session& session);
  bool wants(const Session& session, const tail::Stream& stream);
  bool wants(const Tags& tags);
  bool is_in_snapshot(const Session& session);
  void scan(SessionScans::Visit visit, std::function<void()> done);
  std::vector<Session*> take_found(const std::function<bool(const Session&)>& wanted);
  bool is_muted(std::uint32_t stream, Position at) const;
  Queued queued(Position at, Kind kind, Frame frame);
  void push(Kind kind, Frame frame);
  void push(Kind kind, std::string_view payload) { push(kind, make_frame(payload)); }
  void push_resume(Position at, std::unique_ptr<Resume> resume);
  std::size_t& bytes_of(Kind kind) { return kind == Kind::snapshot ? snapshot_bytes_ : answer_bytes_; }
  void release(const Queued& queued) {
    if (queued.frame) bytes_of(queued.kind) -= queued.frame->size();
  }
  std::vector<std::string> moved_cursors(std::uint64_t since);
  bool add_states();
  void add_log(Batch& batch, Position until);
  /// `next`: in queue_.
  bool add_queued(Batch& batch, std::list<Queued>::iterator& next);

  // subscriber.cpp: snapshots by page
  void find_page();
  void page_found();
  bool add_page();
  void finish_page();

  // subscriber.cpp: falling behind
  void fall_behind();
  void on_evict(Position next) override;
  void rename_missed(const std::string& from, const std::string& to);
  bool is_due_after_lag(const Session& session);
  bool find_changed();
  void go_on_after_lag();

  // resume.cpp: events from files
  std::unique_ptr<Resume> make_resume(const std::vector<Session*>& sessions);
  void use_present_names(std::vector<std::string>& after);
  void add_after(const std::string& entry, Resume& resume);
  void add_stream(const tail::Stream& stream, EventRange range, Resume& resume);
  bool is_new(const tail::Stream& stream, std::uint32_t id);
  void send_history(const std::vector<std::uint32_t>& streams);
  void insert_before_resume(Kind kind, std::string_view payload);
  void begin(Resume& resume);
  void finish(std::unique_ptr<Resume> resume);
  void on_missing_stream(const std::string& stream, const Resume& from);
  void on_other_history(const std::string& stream, std::string_view reason, Resume& to);
  bool push_resets(Resume& resume);
  bool add_chunk(Batch& batch, Resume& resume);
  void chunk_read(Resume& resume, Resume::Reading& reading);
  Resume* resume();

  ServerContext& context_;  // outlives all connections
  Audience audience_ = Audience::full;
  bool is_patient_ = false;
  const Filter* allowed_ = nullptr;  // null: all sessions

  State state_ = State::idle;
  std::optional<Subscription> subscription_;  // empty: idle
  std::optional<Found> found_;                // starting, behind: the scan has begun
  std::unique_ptr<Page> page_;                // paging, and until it was sent
  Position lost_from_ = 0;                    // behind: the first frame that the log evicted unsent
  std::unique_ptr<Resume> missed_;            // behind: the evicted events, if it catches up
  bool shed_ = false;                         // session frames were dropped: all sessions are sent again

  std::list<Queued> queue_;                            // an empty deque would hold 576 bytes
  std::size_t answer_bytes_ = 0, snapshot_bytes_ = 0;  // queued
  std::set<std::uint32_t> states_due_;
  Position position_ = 0;  // in the log
  std::unique_ptr<std::array<CachedMatch, cached_matches>> cached_matches_;
  Frame partial_;  // the frame that the last sent() cut
  std::vector<Mute> mutes_;
  std::set<std::string, std::less<>>
      unreadable_;                // streams that a resume could not read; at most unreadable_max
  std::uint64_t bookmarked_ = 0;  // SessionStore::changes()
  Clock::time_point bookmarked_at_ = Clock::now();
  std::shared_ptr<char> alive_ = std::make_shared<char>();  // the subscription
};

}  // namespace earshot::serve
