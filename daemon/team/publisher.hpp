// Publishes this daemon's events and statuses to JetStream. It is an in-process client of the server and
// reads missed events from the files. It stores no position: after each connect it reads the published
// positions from the broker.
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
#include "team/publisher_connection.hpp"

namespace earshot::team {

struct PublisherOptions {
  BrokerConfig broker;
  std::string host;
  std::string owner;     // identifies the state directory
  std::string instance;  // differs at each start
  bool full = false;     // otherwise the meta view is published
  bool read = false;     // hubs may request complete records
  /// True if the stream's transcript was deleted; false if that is unknown, as for an unmounted root.
  std::function<bool(const std::string& stream)> is_deleted;
};

struct PublisherMetrics {
  bool open = false;
  std::string problem;  // for users, or empty
  std::uint64_t published = 0, refused = 0, opened = 0, resets = 0;
  std::size_t in_flight = 0, waiting_bytes = 0;
};

/// All calls and callbacks run on the event loop's thread.
class Publisher final : private serve::InProcessListener {
 public:
  using ForEach = std::function<void(const std::function<void(const tail::Stream&)>&)>;

  /// `server`, and the streams that `for_each` visits (all known transcripts), must outlive the publisher.
  Publisher(boost::asio::io_context& io, serve::Server& server, ForEach for_each, PublisherOptions options);
  ~Publisher() override;
  void start();
  void stop();
  PublisherMetrics metrics() const;

 private:
  struct StreamProgress {
    Cursor last = begin_cursor;  // of the last event that was passed to the outbox
    std::string subject;         // constant for the stream's lifetime, so that its events stay ordered
    std::string session;
    std::string history;                   // of message_id()
    std::int64_t last_event_ms = 0;        // time of the last event; 0: unknown
    bool is_ours = true;                   // published from this state directory
    std::uint64_t subscription_round = 0;  // the last subscribe_all() that found the stream
    std::uint64_t verified_bytes = 0;      // of a cold stream, compared since the start
    bool unreadable = false;               // nothing is published until the next subscribe_all()
  };

  void on_broker_event(BrokerOpened opened);
  void on_broker_event(const BrokerFailed& failed) { disconnect(failed.reason); }
  void on_broker_event(const MessageAcked& acked);
  void on_broker_event(const MessageRefused& refused);
  void on_broker_event(const RecordRequest& request);

  bool has_room() const override { return outbox_.has_room(); }
  void on_frame(std::string_view payload) override;

  void call_after(Timer& timer, std::chrono::milliseconds delay, void (Publisher::*call)());
  void subscribe_all();
  bool must_verify(const StreamProgress& progress, const tail::Stream& stream) const;
  void mark_cold_published(const std::vector<std::string>& cold);
  void publish_deleted();
  void resubscribe();
  void on_event(const Frame& frame, std::string_view payload);
  void on_session(const Frame& frame);
  void on_reset(const Frame& frame);
  void on_renamed(const Frame& frame);
  void rename(const std::string& from, const std::string& to, const std::string& session_name);
  void find_renamed();
  void on_removed(const Frame& frame);
  void publish_removed(const std::string& stream, const StreamProgress& progress);
  void on_record(const Frame& frame, std::string_view payload);
  void publish_status(const std::string& session, const status::Status& status);
  void publish_numbers();
  void flush();
  void flush_soon();
  void cancel_reads();
  void disconnect(const std::string& reason);
  void send_heartbeat();
  void tick();

  boost::asio::io_context& io_;
  serve::Server& server_;
  const ForEach for_each_;
  const PublisherOptions options_;
  std::unique_ptr<PublisherConnection> connection_;  // null between two attempts
  bool is_open_ = false;
  bool stopped_ = false, is_contested_ = false, flush_posted_ = false, resubscribe_pending_ = false;
  Outbox outbox_;
  std::map<std::string, StreamProgress, std::less<>> streams_;
  std::map<std::string, std::string> last_statuses_;  // by session: the last published payload
  std::set<std::string> numbers_due_;                 // sessions whose numbers may have changed since then
  std::shared_ptr<serve::InProcessClient> local_client_;
  std::set<std::string> pending_reads_;  // reply subjects of the records that are being read
  Timer retry_timer_, tick_timer_, unreadable_timer_;
  std::chrono::milliseconds retry_delay_{0};
  Clock::time_point last_heartbeat_, last_ack_, last_numbers_;
  PublisherMetrics metrics_;
  std::uint64_t subscriptions_ = 0, rounds_ = 0, statuses_sent_ = 0;
};

}  // namespace earshot::team
