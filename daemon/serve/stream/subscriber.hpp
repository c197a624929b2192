// What one connection has asked for and what it is owed, in order. No socket: it hands out bytes and hears
// how many went.
#pragma once
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "serve/server_context.hpp"
#include "serve/stream/catch_up.hpp"
#include "serve/stream/filter.hpp"
#include "serve/stream/message.hpp"
#include "serve/stream/records.hpp"
#include "serve/stream/resume.hpp"
#include "serve/stream/types.hpp"

namespace earshot::serve {

/// Bytes for one gathered write, straight from where they lie. Valid until anything is appended to the log or
/// told.
class Batch {
 public:
  static constexpr std::size_t pieces_max = 64;  // more wait for the next write
  std::span<const iovec> iovecs() const { return {iovecs_.data(), count_}; }
  std::size_t bytes() const { return bytes_; }
  bool empty() const { return count_ == 0; }
  bool full = false;  // there is more

 private:
  friend class Subscriber;
  enum class From : std::uint8_t { own, log, chunk };
  void add(std::span<const char> bytes, From from, const LiveLog::Run& run, std::size_t bytes_max);

  std::array<iovec, pieces_max> iovecs_;
  std::array<LiveLog::Run, pieces_max> runs_;
  std::array<From, pieces_max> from_;
  std::size_t count_ = 0, bytes_ = 0;
  Position scanned = 0;  // everything before it is in the batch, was sent or is not wanted
};

class Subscriber final : private CatchUpReader, private RecordReader {
 public:
  using Clock = watch::Clock;

  explicit Subscriber(ServerContext& context) : context_(context) {}
  ~Subscriber() { close(); }
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  /// How much it is shown. Before the first subscription.
  void show(Audience audience) { audience_ = audience; }
  /// To which sessions it may listen at all; null: to all. Before the first subscription; outlives it. What
  /// it may not see is for it as if it were not there, and so is a stream that nobody has read yet
  /// (Client::look_up).
  void restrict_to(const Filter* allowed) { allowed_ = allowed && !allowed->empty() ? allowed : nullptr; }
  Audience audience() const override { return audience_; }
  /// Called when something may be there to send that the log's growth does not tell of: ring it, but not
  /// during the call.
  std::function<void()> on_more;

  /// A frame for this connection alone, behind all that the log holds now, but before what comes from files.
  void tell(std::string_view payload);

  /// Queues the snapshot and `ready`, then what `after` missed, or an `error`. All belong to this very point
  /// of the log.
  void subscribe(message::Subscribe asked);
  void unsubscribe(std::string_view id);
  void read(const message::Read& asked);
  /// Wants nothing any more; what is shared is not touched after this.
  void close();

  /// For `deliver: state`: this session is another than it was. The newest wins, whenever the client reads.
  void session_changed(const Session& session);
  /// Tells filtered subscriptions, now and then, how far streams have come.
  void tick(Clock::time_point now);

  /// What goes out next, in order. An empty batch: nothing is owed now.
  void gather(Batch& batch);
  /// Of this batch `bytes` went out. Returns the rest of the frame that was cut: to be copied now, and sent
  /// before all else.
  std::span<const char> sent(const Batch& batch, std::size_t bytes);

  /// The client is not reading: let go of snapshots that the log has outrun, so that it pins no memory.
  void shed();
  /// Frames before `next` are about to leave the log: what this client has not had of them is noted, to be
  /// read from the files. Only of those in Channel::keepers.
  void on_evict(Position next);
  /// More answers wait than a client may leave unread.
  bool congested() const { return own_bytes_ > context_.limits.own_bytes_max; }
  std::size_t subscriptions() const { return subscriptions_.size(); }

 private:
  using Mask = Resume::Mask;  // one bit a subscription
  static constexpr Mask all_subscriptions = ~Mask{0};
  static constexpr std::size_t masked_max = 32;  // more subscriptions than bits: error `limit`

  struct Subscription {
    std::string id;
    Filter filter;
    bool state = false, all = false;
    bool keeps = false;  // what it falls behind of comes from the files
    Position since = 0;  // earlier frames are in its snapshot
    Mask bit = 0;
  };
  enum class Kind { answer, reset, snapshot, resume };  // reset: its session is shown behind it
  struct OwnAddress {
    Position at;  // goes out behind every frame before this one
    Kind kind;
    Frame frame;                     // of resume: none
    std::unique_ptr<Resume> resume;  // of the other kinds: none
  };
  struct Verdict {  // what the filters say about a session, until it or they change
    std::uint32_t session = 0, generation = 0;
    Mask mask = 0;
  };
  static constexpr std::size_t verdicts = 256;  // direct-mapped; a collision is evaluated again
  struct Mute {  // of a stream that was told by a snapshot meanwhile: the log's frames before this one
    std::uint32_t stream;
    Position until;
  };

  AudienceLog& audience_log() { return context_.audience_log(audience_); }
  LiveLog& log() { return audience_log().log; }

  // subscriber.cpp: what is asked for.
  bool wants(const Subscription& subscription, const Session& session) const;
  bool matches(const Subscription& subscription, std::string_view session, std::string_view project) const;
  bool may_see(const Session* session) const;
  bool may_see(const tail::Stream* stream) const;
  Mask sessions_mask(std::uint32_t session);
  Mask active_at(Position at) const;
  bool muted(std::uint32_t stream, Position at) const;
  void subscriptions_changed();
  void push(Kind kind, Frame frame);
  void snapshot(const Subscription& subscription);
  void own_gone(OwnAddress& own);
  std::vector<std::string> moved_places(Position since);

  // resume.cpp: what comes from files.
  std::unique_ptr<Resume> resume_of(const Subscription& subscription, const std::vector<std::string>& after);
  void told_before(const Subscription& fresh, Resume& resume);
  void insert_before_resume(std::string_view payload);
  void begin(Resume& resume);
  void finish(std::unique_ptr<Resume> resume);
  void gone(const std::string& stream, const Resume& from);
  void differs(const std::string& stream, std::string_view reason, Resume& to);
  void tell_others(const Resume& resume);
  bool add_chunk(Batch& batch, Resume& resume);
  void chunk_read(Resume& resume, Resume::Reading& reading);
  void on_lagged();
  Resume* resume();
  void on_chunk(const std::string& stream, std::shared_ptr<Chunk> chunk) override;
  void on_caught(const std::string& stream, ReplayResult how, const Cursor& end) override;
  void on_record(std::string_view payload) override { tell(payload); }
  void on_record_there() override {
    if (on_more) on_more();
  }

  // delivery.cpp: what goes out.
  bool add_states();
  void add_log(Batch& batch, Position until);
  bool add_own(Batch& batch, std::size_t& next_own);

  ServerContext& context_;  // outlives all connections
  Audience audience_ = Audience::full;
  Position position_ = 0;
  std::vector<Subscription> subscriptions_;
  bool events_ = false, states_ = false, keeps_ = false;
  bool shed_ = false;  // snapshots were let go: all sessions are told again
  std::deque<OwnAddress> own_;
  std::size_t own_bytes_ = 0;  // of answers; snapshots are shared
  std::set<std::uint32_t> states_due_;
  std::array<Mask, frame_types> types_{};
  std::unique_ptr<std::array<Verdict, verdicts>> verdicts_;
  Frame torn_;  // the one that the last sent() cut
  std::vector<Mute> mutes_;
  std::optional<Position> lost_from_;  // the log has gone on from here without this client
  std::unique_ptr<Resume> missed_;     // of what has left the log since, for those who keep
  Position bookmarked_ = 0;
  Clock::time_point bookmarked_at_ = Clock::now();
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  const Filter* allowed_ = nullptr;  // null: to all
};

}  // namespace earshot::serve
