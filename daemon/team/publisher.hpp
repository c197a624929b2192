// Publishes what this house tells to JetStream. A subscriber of the house like any other: it has a place in
// the live log, and what it misses is read again from the files. It stores no position: after each connection
// the broker is asked what it has.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "serve/server.hpp"
#include "tail/stream.hpp"
#include "team/broker_client.hpp"
#include "team/outbox.hpp"
#include "team/payload.hpp"

namespace earshot::team {

struct PublisherOptions {
  BrokerConfig link;
  std::string host;
  std::string owner;     // stands for the state directory
  std::string instance;  // of this start
  bool full = false;     // else the meta view
  bool read = false;     // hubs may ask for whole records
  /// There is certainly no transcript of this name any more; not: it cannot be seen now.
  std::function<bool(const std::string& stream)> is_gone;
};

struct PublisherMetrics {
  bool open = false;
  std::string trouble;  // for people; empty: none
  std::uint64_t published = 0, refused = 0, opened = 0, resets = 0;
  std::size_t on_the_way = 0, waiting_bytes = 0;
};

/// All calls and callbacks on the loop's thread.
class Publisher final : private BrokerListener, private serve::InProcessListener {
 public:
  using ForEach = std::function<void(const std::function<void(const tail::Stream&)>&)>;

  /// `hub` and what `for_each` goes through (every known transcript) outlive it.
  Publisher(boost::asio::io_context& io, serve::Server& server, ForEach for_each, PublisherOptions options);
  ~Publisher() override;
  void start();
  void stop();
  PublisherMetrics figures() const;

 private:
  enum class State { closed, opening, open };
  struct Place {  // of a stream: how far it was handed to the outbox
    Cursor last = begin_cursor;
    std::string subject;  // the first one for its life: one stream, one lane
    std::string session;
    std::string history;             // of message_id()
    std::int64_t told_ms = 0;        // when the last event was, by its line; 0: not known
    bool ours = true;                // published by a daemon of our state directory
    std::uint64_t round = 0;         // of attend(): it was there
    std::uint64_t proven_bytes = 0;  // of a cold one that was compared in this life
    bool unreadable = false;         // until it is attended again, nothing of it is published
  };

  void on_open(std::vector<Published> published, std::uint64_t beat_sequence) override;
  void on_failed(const std::string& why) override;
  void on_lost(const std::string& why) override;
  void on_acked(std::uint64_t number, std::uint64_t sequence) override;
  void on_refused(std::uint64_t number, int error, const std::string& why) override;
  void on_asked(Asked asked) override;

  bool has_room() const override { return outbox_.has_room(); }
  void on_frame(std::string_view payload) override;

  void attend();
  bool is_doubtful(const Place& place, const tail::Stream& stream) const;
  void settle_cold(const std::vector<std::string>& cold);
  void remove_gone();
  void attend_again();
  void on_event(const Frame& frame, std::string_view payload);
  void on_session(const Frame& frame);
  void on_reset(const Frame& frame);
  void on_removed(const Frame& frame);
  void publish_removed(const std::string& stream, const Place& place);
  void on_record(const Frame& frame, std::string_view payload);
  void publish_status(const std::string& session, const status::Status& status);
  void flush();
  void flush_soon();
  void give_reads_up();
  void away(const std::string& why);
  void beat();
  void tick();

  boost::asio::io_context& io_;
  serve::Server& server_;
  const ForEach for_each_;
  const PublisherOptions options_;
  std::unique_ptr<BrokerClient> engine_;
  State state_ = State::closed;
  bool stopped_ = false, contested_ = false, flush_posted_ = false, attend_due_ = false;
  Outbox outbox_;
  std::map<std::string, Place, std::less<>> places_;
  std::map<std::string, std::string> statuses_;  // by session: what was published last
  std::shared_ptr<serve::InProcessClient> local_client_;
  std::set<std::string> asked_;  // where records that are being read go
  watch::Timer retry_, ticker_, unreadable_;
  std::chrono::milliseconds pause_{0};
  watch::Clock::time_point beaten_, answered_;
  PublisherMetrics figures_;
  std::uint64_t subscriptions_ = 0, rounds_ = 0, statuses_told_ = 0;
};

}  // namespace earshot::team
