// The subscriptions of one connection and the ordered queue of frames it must receive. No socket: it returns
// bytes to send and is informed how many were sent.
#pragma once
#include <sys/uio.h>

#include <array>
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
  using Mask = std::uint32_t;

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
  struct Delivered {  // a subscription of the connection sends these events of a stream anyway
    Mask by = 0;
    EventRange range;
  };
  template <class Value>
  using ByStream = std::map<std::string, Value, std::less<>>;

  std::string id;        // of the subscription; empty: the client fell behind
  Mask subscribers = 0;  // subscriptions it is for
  bool begun = false;
  ByStream<EventRange> requested;                    // before the exclusion of what others deliver
  ByStream<EventRange> missing;                      // not sent yet
  ByStream<std::vector<Delivered>> delivered;        // not to be repeated
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
    return missing.contains(stream) || requested.contains(stream) ||
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

  /// Queues `session` frames, `ready` and missed events, or an `error`. All describe one head of the log: the
  /// current one, unless the sessions are matched in several slices (SessionScans) or the queue is full.
  void subscribe(message::Subscribe asked);
  void unsubscribe(std::string_view id);
  /// Queues the next page of a subscription's snapshot, or an `error`.
  void next_page(const message::NextPage& asked);
  void read(const message::Read& asked);
  /// Ends all subscriptions; shared state is not accessed afterwards.
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
  /// Sends bookmarks of streams to filtered subscriptions from time to time.
  void tick(Clock::time_point now);

  /// Frames of the log that were not sent yet; some may not be wanted.
  Position frames_behind() const { return events_ ? context_.logs.head() - position_ : 0; }
  /// Collects what is sent next. An empty batch: nothing is ready.
  void gather(Batch& batch);
  /// `bytes` of this batch were sent. Returns the unsent rest of a partly sent frame, to be copied now and
  /// sent before anything else.
  std::span<const char> sent(const Batch& batch, std::size_t bytes);

  /// The client is not reading: drops queued session frames that the log has overtaken, to free their memory.
  void shed();
  /// Too many unsent answers or waiting requests: read no further message.
  bool is_congested() const { return answer_bytes_ + starting_bytes_ > context_.limits.own_bytes_max; }
  std::size_t subscriptions() const { return subscriptions_.size() + starting_.size(); }
  /// Unsent session frames; shared with other connections as long as the session does not change.
  std::size_t snapshot_bytes() const { return snapshot_bytes_; }

  // Called by CatchUps

  /// Calls CatchUps::consumed() when the chunk was sent; the next one of this stream follows only then.
  void on_chunk(const std::string& stream, std::shared_ptr<Chunk> chunk);
  /// The last call for this stream. After `up`, `end` is the position behind the last chunk.
  void on_caught(const std::string& stream, ReplayResult how, const Cursor& end);

 private:
  using Mask = Resume::Mask;  // one bit per subscription
  static constexpr Mask all_subscriptions = ~Mask{0};
  static constexpr std::size_t subscriptions_max = 32;        // bits of a Mask; more: error `limit`
  static constexpr std::size_t resumed_streams_max = 65'536;  // more are not recorded: see resumed_
  // While more is unsent, further subscriptions wait.
  static constexpr std::size_t snapshot_bytes_max = 4 << 20;
  static constexpr std::size_t resume_streams_max = 4096;
  static constexpr std::size_t resets_per_turn = 32;  // of the loop; with each, a session frame is encoded

  /// A snapshot that is sent by page. Sessions that changed since it began are sent at once, like all
  /// changes; the order of the others is fixed. So the last key says which were sent, and no list of them is
  /// kept.
  struct Pages {
    std::size_t size = 0;
    std::uint64_t changes = 0;    // SessionStore::changes() when it began
    std::optional<PageKey> last;  // of the last page
    std::string next;             // the continuation; empty: none is valid now
    bool is_requested = false;
  };
  struct Subscription {
    std::string id;
    Filter filter;
    bool state = false, all = false;
    bool catch_up = false;        // missed events are sent from the files
    bool from_beginning = false;  // new streams are sent from their first event
    Position since = 0;           // earlier frames are covered by its snapshot
    Mask bit = 0;
    std::unordered_set<std::uint32_t> known_streams = {};  // for from_beginning: they were mentioned before
    std::optional<Pages> pages = {};                       // absent: the snapshot is sent at once
  };
  /// Sessions that were found by a scan.
  struct Found {
    Position begun = 0;
    bool is_sliced = false;  // some may have changed since they were visited
    bool is_complete = false;
    std::vector<std::uint32_t> ids = {};
  };
  struct Starting {  // a subscription that waits for its sessions; only the first one is scanning
    Subscription subscription;
    message::Subscribe asked;
    std::size_t bytes = 0;  // of the request
    std::optional<Found> found = {};
  };
  /// A page that is being found or sent; one at a time.
  struct Page {
    Mask owner = 0;
    PageSelection selection;
    bool is_complete = false;          // all sessions were visited
    std::vector<std::uint32_t> ids{};  // to be sent, the first at the end
  };
  /// reset: followed by its session's frame; snapshot: a `session` frame, shared with other connections.
  enum class Kind { answer, reset, snapshot, resume };
  struct Queued {
    Position at;  // sent after the log frames before this position
    Kind kind;
    Frame frame;                     // null for resume
    std::unique_ptr<Resume> resume;  // null for the other kinds
    Mask owners = 0;                 // subscriptions it belongs to; 0: to the connection
  };
  struct CachedMask {  // subscriptions that match a session, until it or they change
    std::uint32_t session = 0, generation = 0;
    Mask mask = 0;
  };
  static constexpr std::size_t cached_masks = 256;  // direct-mapped; a collision is evaluated again
  struct Mute {  // log frames of this stream before this position: a snapshot has replaced them
    std::uint32_t stream;
    Position until;
  };

  AudienceLog& audience_log() { return context_.logs.of(audience_); }
  LiveLog& log() { return audience_log().log; }

  /// The bits of the subscriptions for which `is(subscription)` is true.
  template <class Predicate>
  Mask mask_where(Predicate is) const {
    Mask mask = 0;
    for (const Subscription& subscription : subscriptions_)
      if (is(subscription)) mask |= subscription.bit;
    return mask;
  }
  /// Those that receive frames at this position.
  Mask active_at(Position at) const {
    return mask_where([at](const Subscription& each) { return !each.state && each.since <= at; });
  }
  static bool is_state(const Subscription& each) { return each.state; }
  static bool is_filtered(const Subscription& each) { return !each.state && !each.filter.empty(); }
  Mask catching_up() const {
    return mask_where([](const Subscription& each) { return each.catch_up; });
  }

  // subscriber.cpp: subscriptions and the queue
  bool wants(const Subscription& subscription, const Session& session) const;
  bool wants(const Subscription& subscription, const Session& session, const tail::Stream& stream) const;
  bool is_in_snapshot(const Subscription& subscription, const Session& session) const;
  void scan(Found& found, SessionScans::Visit visit, std::function<void()> done);
  std::vector<Session*> sessions_of(const Found& found, const std::function<bool(const Session&)>& wanted);
  void start_next();
  Subscription& add_subscription(Subscription added);
  void finish_start();
  bool is_full() const;
  /// One scan at a time.
  bool is_scanning() const {
    return changed_ || (page_ && !page_->is_complete) || (!starting_.empty() && starting_.front().found);
  }
  bool may_see(const Session* session) const;
  bool may_see(const tail::Stream* stream) const;
  Mask filter_mask(std::uint32_t session);
  Mask mask_of(const Tags& tags);
  Mask mask_of(const Session& session);
  bool is_muted(std::uint32_t stream, Position at) const;
  void subscriptions_changed();
  void set_start(Subscription& subscription, Position since);
  Queued queued(Position at, Kind kind, Frame frame, Mask owners);
  void push(Kind kind, Frame frame, Mask owners = 0);
  void push_resume(Position at, std::unique_ptr<Resume> resume);
  void drop_queued(Mask bit);
  std::size_t& bytes_of(Kind kind) { return kind == Kind::snapshot ? snapshot_bytes_ : answer_bytes_; }
  void release(const Queued& queued) {
    if (queued.frame) bytes_of(queued.kind) -= queued.frame->size();
  }
  std::vector<std::string> moved_cursors(Position since);
  bool add_states();
  void add_log(Batch& batch, Position until);
  /// `next`: in queue_.
  bool add_queued(Batch& batch, std::list<Queued>::iterator& next);

  // pages.cpp: snapshots by page
  void start_pages();
  void start_page();
  void page_found();
  bool add_page();
  void finish_page();
  Subscription* find_subscription(Mask bit);

  // resume.cpp: events from files
  std::unique_ptr<Resume> make_resume(Subscription& subscription, const message::Subscribe& asked,
                                      const std::vector<Session*>& sessions);
  void use_present_names(const Subscription& subscription, std::vector<std::string>& after);
  void add_after(const Subscription& subscription, const std::string& entry, Resume& resume);
  bool add_stream(const Subscription& subscription, const tail::Stream& stream, const EventRange& range,
                  Resume& resume);
  void add_new_streams(Subscription& subscription, const Session& session, Resume& resume);
  void exclude_delivered(const Subscription& subscription, Resume& resume);
  void restore_resumes();
  void forget_resumed(Mask bit);
  void forget_unreadable(Mask bit);
  void insert_before_resume(std::string_view payload, Mask owners = 0);
  void begin(Resume& resume);
  void finish(std::unique_ptr<Resume> resume);
  void on_missing_stream(const std::string& stream, const Resume& from);
  void on_other_history(const std::string& stream, std::string_view reason, Resume& to);
  bool push_resets(Resume& resume);
  bool add_chunk(Batch& batch, Resume& resume);
  void chunk_read(Resume& resume, Resume::Reading& reading);
  bool find_changed();
  void rename_missed(const std::string& from, const std::string& to);
  bool is_due_after_lag(const Session& session) const;
  void on_lagged();
  Resume* resume();
  void on_evict(Position next) override;

  ServerContext& context_;  // outlives all connections
  Audience audience_ = Audience::full;
  Position position_ = 0;
  std::vector<Subscription> subscriptions_;
  bool events_ = false, states_ = false, catches_up_ = false, is_patient_ = false;
  bool shed_ = false;        // session frames were dropped: all sessions are sent again
  std::list<Queued> queue_;  // an empty deque would hold 576 bytes
  std::size_t answer_bytes_ = 0, snapshot_bytes_ = 0;  // queued
  std::list<Starting> starting_;
  std::size_t starting_bytes_ = 0;
  std::set<std::uint32_t> states_due_;
  std::unique_ptr<Page> page_;
  std::array<Mask, frame_types> types_{};
  std::unique_ptr<std::array<CachedMask, cached_masks>> cached_masks_;
  Frame partial_;  // the frame that the last sent() cut
  std::vector<Mute> mutes_;
  /// Which events of resumed streams the connection has received or will receive, so that a further
  /// subscription does not repeat them.
  std::map<std::string, std::vector<Resume::Delivered>, std::less<>> resumed_;
  /// Streams that a resume found unreadable, with its subscriptions; at most resumed_streams_max.
  std::map<std::string, Mask, std::less<>> unreadable_;
  std::optional<Position> lost_from_;  // the log has evicted unsent frames from here on
  std::unique_ptr<Resume> missed_;     // the evicted events, for subscriptions that catch up
  std::optional<Found> changed_;       // sessions that changed since then
  Position bookmarked_ = 0;
  Clock::time_point bookmarked_at_ = Clock::now();
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  const Filter* allowed_ = nullptr;  // null: all sessions
};

}  // namespace earshot::serve
