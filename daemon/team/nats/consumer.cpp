// Consumer over libnats: a durable pull consumer for events, and a push consumer for the last status of each
// session.
#include <nats/nats.h>
#include <simdjson.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "base/json_scan.hpp"
#include "base/quantities.hpp"
#include "team/broker_client.hpp"
#include "team/consumer.hpp"
#include "team/nats/nats_connection.hpp"
#include "team/payload.hpp"
#include "team/subjects.hpp"

namespace earshot::team {
namespace nats {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Limits of the streams that the hub creates.
constexpr std::int64_t events_age_ns = 7LL * 24 * 3600 * 1'000'000'000,
                       statuses_age_ns = 30LL * 24 * 3600 * 1'000'000'000;
constexpr std::int64_t events_bytes_max = 20LL << 30, duplicates_ns = 120LL * 1'000'000'000;
constexpr std::size_t request_messages = 1024;   // requested in advance
constexpr std::size_t request_bytes = 16 << 20;  // requested in advance
constexpr std::size_t ack_pending_max =
    8192;  // delivered and not acknowledged; the broker holds further ones
constexpr std::int64_t ack_wait_ns = 30LL * 1'000'000'000;
constexpr std::int64_t request_expires_ns = 30LL * 1'000'000'000;
constexpr std::int64_t heartbeat_ns = 5LL * 1'000'000'000;  // interval of an idle broker's heartbeats
constexpr std::chrono::seconds silence_max{
    15};                         // without any message; then the connection is considered lost
constexpr int owner_checks = 3;  // for another hub that uses the consumer
constexpr milliseconds owner_check_interval{300};
// Longer names and statuses are invalid.
constexpr std::size_t stream_bytes_max = 16 << 10, session_bytes_max = 1 << 10, status_bytes_max = 16 << 10;

class NatsConsumer final : public Consumer {
 public:
  NatsConsumer(BrokerConfig config, std::string durable)
      : config_(std::move(config)), durable_(std::move(durable)) {}
  ~NatsConsumer() override { close(); }

  std::string open(const ConsumerStart& start, std::function<bool(StatusMessage)> on_status) override {
    close();
    lost_ = false;
    try {
      connection_ =
          std::make_unique<NatsConnection>(config_, [this](std::string error) { on_lost(std::move(error)); });
      create_streams();
      const StreamInfo events = find_stream(*connection_, config_.stream);
      store_ = events.created;
      inbox_ = connection_->inbox();
      messages_ = connection_->subscribe(inbox_);
      create_consumer(start, events);
      subscribe_statuses(std::move(on_status));
      requested_ = 0;
      last_message_ = Clock::now();
      last_status_ = Clock::now();
      return {};
    } catch (const BrokerError& failure) {
      return failure.what();
    }
  }

  bool next(std::vector<Delivery>& into, std::size_t count, std::size_t bytes, milliseconds wait,
            std::string& error) override {
    try {
      request_more();
      for (std::size_t taken = 0; into.size() < count && taken < bytes;) {
        natsMsg* raw = nullptr;
        // Wait for the first message only.
        const natsStatus status =
            natsSubscription_NextMsg(&raw, messages_.get(), into.empty() ? wait.count() : 0);
        if (status == NATS_TIMEOUT) break;
        check(status, "the consumer");
        const NatsMessage message(raw);
        last_message_ = Clock::now();
        const auto delivery_info = parse_ack_subject(natsMsg_GetReply(raw));
        if (!delivery_info) {
          on_status_message(raw);
          continue;
        }
        if (requested_ > 0) --requested_;
        into.push_back(parse_delivery(raw, *delivery_info));
        taken += into.back().received.payload.size();
        request_more();
      }
    } catch (const BrokerError& failure) {
      error = failure.what();
      return false;
    }
    if (Clock::now() - last_message_ > silence_max || Clock::now() - last_status_.load() > silence_max) {
      error = "JetStream's consumers sent no message and no heartbeat";
      return false;
    }
    if (lost_) {
      const std::lock_guard lock(lost_mutex_);
      error = lost_reason_;
      return false;
    }
    return true;
  }

  std::string ack(const std::vector<std::string>& acks) override {
    try {
      for (const std::string& each : acks) connection_->publish(each, {}, "+ACK");
      return {};
    } catch (const BrokerError& failure) {
      return failure.what();
    }
  }

  void close() override {
    statuses_.reset();
    messages_.reset();
    connection_.reset();
  }

 private:
  void create_streams() const {
    if (!find_stream(*connection_, config_.stream).exists) {
      create_stream(
          config_.stream,
          R"({"name":)" + json_string(config_.stream) + R"(,"subjects":[)" + json_string(all_events()) +
              R"(],"retention":"limits","storage":"file","discard":"old","max_age":)" +
              std::to_string(events_age_ns) + R"(,"max_bytes":)" + std::to_string(bytes_max()) +
              R"(,"max_msg_size":)" + std::to_string(message_bytes_max) + R"(,"duplicate_window":)" +
              std::to_string(duplicates_ns) + R"(,"num_replicas":1,"max_consumers":-1,"max_msgs":-1})");
    }
    if (!find_stream(*connection_, config_.status_stream()).exists) {
      create_stream(
          config_.status_stream(),
          R"({"name":)" + json_string(config_.status_stream()) + R"(,"subjects":[)" +
              json_string(all_statuses()) +
              R"(],"retention":"limits","storage":"file","discard":"old","max_msgs_per_subject":1,"max_age":)" +
              std::to_string(statuses_age_ns) +
              R"(,"max_msg_size":65536,"allow_direct":true,"num_replicas":1,"max_consumers":-1,"max_msgs":-1,"max_bytes":-1})");
    }
  }
  static std::int64_t bytes_max() { return events_bytes_max; }
  void create_stream(const std::string& name, std::string config) const {
    ApiResponse created = connection_->api("STREAM.CREATE." + name, config);
    constexpr int no_room = 10047, no_room_here = 10023;
    if (created.error == no_room ||
        created.error == no_room_here) {  // less storage: without a limit of our own
      const std::string bound = R"("max_bytes":)" + std::to_string(bytes_max());
      if (const auto at = config.find(bound); at != config.npos)
        config.replace(at, bound.size(), R"("max_bytes":-1)");
      created = connection_->api("STREAM.CREATE." + name, config);
    }
    if (created.error != 0)
      throw BrokerError("JetStream cannot create the stream `" + name + "`: " + created.description);
  }

  /// Recreates the durable consumer behind its acknowledged messages. An existing one would deliver new
  /// messages first, and unacknowledged ones of the last connection after their timeout only.
  void create_consumer(const ConsumerStart& start, const StreamInfo& events) const {
    const std::string consumer = config_.stream + "." + durable_;
    std::uint64_t acknowledged = start.ack_floor.store == store_ ? start.ack_floor.sequence : 0;
    simdjson::dom::parser parser;
    simdjson::dom::element json;
    const std::string known = find_consumer(start.owner);
    const bool is_known = !known.empty() && !parser.parse(known).get(json);
    if (is_known) {
      acknowledged = 0;
      const auto ack_floor = dom::member(json, "ack_floor");
      if (ack_floor) acknowledged = dom::count_of(*ack_floor, "stream_seq").value_or(0);
      const auto config = dom::member(json, "config");
      if (config && acknowledged == 0) {  // nothing was acknowledged
        const std::uint64_t first = dom::count_of(*config, "opt_start_seq").value_or(0);
        if (first > 0) acknowledged = first - 1;
      }
    }
    if (start.from_beginning || store_lost_messages(start, events)) acknowledged = 0;
    // If the hub stops between the two requests, it continues here.
    if (const std::string error = start.store_ack_floor({store_, acknowledged}); !error.empty())
      throw BrokerError(error);
    if (is_known) connection_->api("CONSUMER.DELETE." + consumer, "");
    const std::string begin =
        acknowledged == 0 ? std::string(R"("all")")
                          : R"("by_start_sequence","opt_start_seq":)" + std::to_string(acknowledged + 1);
    const std::string request = R"({"stream_name":)" + json_string(config_.stream) +
                                R"(,"config":{"durable_name":)" + json_string(durable_) + R"(,"name":)" +
                                json_string(durable_) + R"(,"description":)" + json_string(start.owner) +
                                R"(,"deliver_policy":)" + begin + R"(,"ack_policy":"explicit","ack_wait":)" +
                                std::to_string(ack_wait_ns) + R"(,"max_deliver":-1,"max_ack_pending":)" +
                                std::to_string(ack_pending_max) +
                                R"(,"replay_policy":"instant","max_waiting":16,"num_replicas":0}})";
    const ApiResponse created = connection_->api("CONSUMER.DURABLE.CREATE." + consumer, request);
    if (created.error != 0)
      throw BrokerError("JetStream's consumer `" + durable_ + "` cannot be created: " + created.description);
  }

  /// The broker's JSON of the durable consumer; empty: none. Throws if another hub uses it.
  std::string find_consumer(const std::string& owner) const {
    for (int attempt = 1;; ++attempt) {
      const ApiResponse response = connection_->api("CONSUMER.INFO." + config_.stream + "." + durable_, "");
      simdjson::dom::parser parser;
      simdjson::dom::element json;
      if (response.error != 0 || parser.parse(response.text).get(json)) return {};
      const auto config = dom::member(json, "config");
      const std::string_view owner_found = config ? dom::text_of(*config, "description") : std::string_view();
      if (owner_found.empty() || owner_found == owner || attempt > owner_checks) return response.text;
      if (dom::count_of(json, "num_waiting").value_or(0) > 0)
        throw BrokerError("another hub fetches as `" + durable_ +
                          "`: give one of the two another name, with `durable` in [hub]");
      std::this_thread::sleep_for(owner_check_interval);
    }
  }

  /// True if the store lost messages that were received from it (a power failure): it reuses their sequences
  /// for other messages.
  bool store_lost_messages(const ConsumerStart& start, const StreamInfo& events) const {
    const StoredPosition last_received = start.last_received(store_);
    if (last_received.sequence == 0 || last_received.sequence < events.first) return false;
    if (last_received.sequence > events.last) return true;
    const ApiResponse response = connection_->api(
        "STREAM.MSG.GET." + config_.stream, R"({"seq":)" + std::to_string(last_received.sequence) + "}");
    simdjson::dom::parser parser;
    simdjson::dom::element json;
    if (response.error != 0 || parser.parse(response.text).get(json)) return false;  // it expired
    const auto message = dom::member(json, "message");
    const auto time_ms = message ? parse_time(dom::text_of(*message, "time")) : std::nullopt;
    return time_ms && *time_ms != last_received.time_ns / 1'000'000;
  }

  void subscribe_statuses(std::function<bool(StatusMessage)> on_status) {
    const std::uint64_t last_replayed = find_stream(*connection_, config_.status_stream()).last;
    const std::string inbox = connection_->inbox();
    statuses_ = connection_->subscribe_async(
        inbox, [this, last_replayed, on_status = std::move(on_status)](natsMsg* message) {
          last_status_ = Clock::now();
          const std::string_view text = data(message);
          const auto delivery_info = parse_ack_subject(natsMsg_GetReply(message));
          if (text.empty() || !delivery_info || text.size() > status_bytes_max)
            return;  // an idle heartbeat, or invalid
          if (!on_status({natsMsg_GetSubject(message), std::string(text), delivery_info->time_ns / 1'000'000,
                          delivery_info->sequence <= last_replayed}))
            on_lost("statuses arrive faster than they are processed");
        });
    const std::string name = "status_" + inbox.substr(inbox.rfind('.') + 1);
    const ApiResponse created = connection_->api(
        "CONSUMER.CREATE." + config_.status_stream() + "." + name + "." + all_statuses(),
        R"({"stream_name":)" + json_string(config_.status_stream()) + R"(,"config":{"name":)" +
            json_string(name) + R"(,"deliver_subject":)" + json_string(inbox) + R"(,"filter_subject":)" +
            json_string(all_statuses()) +
            R"(,"deliver_policy":"last_per_subject","ack_policy":"none","replay_policy":"instant","mem_storage":true,)"
            R"("idle_heartbeat":5000000000,)"
            R"("num_replicas":1,"inactive_threshold":30000000000}})");
    if (created.error != 0)
      throw BrokerError("JetStream's consumer of statuses cannot be created: " + created.description);
  }

  /// Requests more messages once half of the requested ones arrived.
  void request_more() {
    if (requested_ > request_messages / 2) return;
    const std::size_t more = request_messages - requested_;
    connection_->publish("$JS.API.CONSUMER.MSG.NEXT." + config_.stream + "." + durable_, inbox_,
                         R"({"batch":)" + std::to_string(more) + R"(,"expires":)" +
                             std::to_string(request_expires_ns) + R"(,"max_bytes":)" +
                             std::to_string(request_bytes) + R"(,"idle_heartbeat":)" +
                             std::to_string(heartbeat_ns) + "}");
    requested_ += more;
  }

  /// A status of the broker instead of a message: a request ended.
  void on_status_message(natsMsg* message) {
    const std::string status = header(message, "Status");
    if (status == "503") throw BrokerError("JetStream's consumer does not exist");
    if (status == "409" && header(message, "Description").find("Deleted") != std::string::npos)
      throw BrokerError("JetStream's consumer was deleted");
    if (status == "404" || status == "408" || status == "409") {
      std::size_t left = 0;
      const std::string text = header(message, "Nats-Pending-Messages");
      for (const char c : text)
        if (c >= '0' && c <= '9') left = left * 10 + static_cast<std::size_t>(c - '0');
      requested_ -= std::min(requested_, text.empty() ? requested_ : left);
    }
  }

  /// Called on libnats' threads.
  void on_lost(std::string error) {
    const std::lock_guard lock(lost_mutex_);
    lost_reason_ = std::move(error);
    lost_ = true;
  }

  Delivery parse_delivery(natsMsg* raw, const DeliveryInfo& delivery_info) const {
    Delivery delivery;
    delivery.ack = natsMsg_GetReply(raw);
    ReceivedMessage& message = delivery.received;
    message.store = store_;
    message.sequence = delivery_info.sequence;
    message.time_ns = delivery_info.time_ns;
    message.after = parse_cursor(header(raw, after_header));
    message.is_first = header(raw, "Nats-Expected-Last-Subject-Sequence") == "0";
    message.payload = data(raw);
    const auto frame = read_frame(message.payload);
    if (!frame) return delivery;
    message.host = frame->host, message.stream = frame->stream, message.session = frame->session;
    message.type = frame->type, message.cursor = frame->cursor;
    const bool known = message.cursor || message.type == "reset" || message.type == "stream.removed";
    // The broker restricts a host to its own subjects: the event must belong to the subject.
    delivery.is_valid = known && is_host(message.host) && !message.stream.empty() &&
                        message.stream.size() <= stream_bytes_max &&
                        message.session.size() <= session_bytes_max && message.payload.starts_with('{') &&
                        is_subject_of(natsMsg_GetSubject(raw), message.host, message.stream);
    return delivery;
  }

  const BrokerConfig config_;
  const std::string durable_;
  std::string store_, inbox_;
  std::unique_ptr<NatsConnection> connection_;
  NatsSubscription messages_;
  std::unique_ptr<NatsConnection::PushSubscription> statuses_;
  Clock::time_point last_message_;
  std::atomic<Clock::time_point> last_status_;
  std::size_t requested_ = 0;  // not yet delivered
  std::atomic<bool> lost_{false};
  std::mutex lost_mutex_;
  std::string lost_reason_;
};

}  // namespace
}  // namespace nats

std::unique_ptr<Consumer> make_consumer(BrokerConfig config, std::string durable) {
  return std::make_unique<nats::NatsConsumer>(std::move(config), std::move(durable));
}

}  // namespace earshot::team
