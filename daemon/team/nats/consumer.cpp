// The hub's side of JetStream, over libnats: a durable pull consumer, and the last status of each session.
#include <nats/nats.h>
#include <simdjson.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "base/json_dom.hpp"
#include "base/time.hpp"
#include "core/event_json.hpp"
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

// What a new stream keeps; whoever makes it himself chooses.
constexpr std::int64_t events_age_ns = 7LL * 24 * 3600 * 1'000'000'000,
                       statuses_age_ns = 30LL * 24 * 3600 * 1'000'000'000;
constexpr std::int64_t events_bytes_max = 20LL << 30, duplicates_ns = 120LL * 1'000'000'000;
constexpr std::size_t ask_ahead = 1024;        // messages that the broker may send before it is asked again
constexpr std::size_t ask_bytes = 16 << 20;    // likewise, whatever their number
constexpr std::size_t ack_pending_max = 8192;  // sent and not acknowledged; more wait at the broker
constexpr std::int64_t ack_wait_ns = 30LL * 1'000'000'000;
constexpr std::int64_t ask_expires_ns = 30LL * 1'000'000'000;
constexpr std::int64_t heartbeat_ns = 5LL * 1'000'000'000;  // of a broker that has nothing to send
constexpr std::chrono::seconds silence_max{15};  // a consumer of which less is heard is not there any more
constexpr int looks_for_another = 3;             // whether another hub is at it
constexpr milliseconds between_looks{300};
// Names and statuses are short; what is not, nobody of ours published.
constexpr std::size_t stream_bytes_max = 16 << 10, session_bytes_max = 1 << 10, status_bytes_max = 16 << 10;

std::string json_of(std::string_view text) {
  std::string out;
  append_string(out, text);
  return out;
}

class NatsConsumer final : public Consumer {
 public:
  NatsConsumer(BrokerConfig link, std::string durable)
      : link_(std::move(link)), durable_(std::move(durable)) {}
  ~NatsConsumer() override { close(); }

  std::string open(const ConsumerStart& start, std::function<bool(HeardStatus)> on_status) override {
    close();
    lost_ = false;
    try {
      line_ = std::make_unique<NatsConnection>(link_, [this](std::string why) { lose(std::move(why)); });
      make_streams();
      const StreamFound events = find_stream(*line_, link_.stream);
      store_ = events.created;
      inbox_ = line_->inbox();
      heard_ = line_->subscribe(inbox_);
      make_consumer(start, events);
      hear_statuses(std::move(on_status));
      wanted_ = 0;
      heard_at_ = Clock::now();
      status_heard_ = Clock::now();
      return {};
    } catch (const Failure& failure) {
      return failure.what();
    }
  }

  bool next(std::vector<Delivery>& into, std::size_t count, std::size_t bytes, milliseconds wait,
            std::string& why) override {
    try {
      ask();
      for (std::size_t taken = 0; into.size() < count && taken < bytes;) {
        natsMsg* got = nullptr;
        // Behind the first one only what is there already.
        const natsStatus status =
            natsSubscription_NextMsg(&got, heard_.get(), into.empty() ? wait.count() : 0);
        if (status == NATS_TIMEOUT) break;
        check(status, "the consumer");
        const Message message(got);
        heard_at_ = Clock::now();
        const auto place = delivered(natsMsg_GetReply(got));
        if (!place) {
          status_message(got);
          continue;
        }
        if (wanted_ > 0) --wanted_;
        into.push_back(read(got, *place));
        taken += into.back().received.payload.size();
        ask();
      }
    } catch (const Failure& failure) {
      why = failure.what();
      return false;
    }
    if (Clock::now() - heard_at_ > silence_max || Clock::now() - status_heard_.load() > silence_max) {
      why = "nothing is heard of JetStream's consumers";
      return false;
    }
    if (lost_) {
      const std::lock_guard lock(why_mutex_);
      why = why_;
      return false;
    }
    return true;
  }

  std::string ack(const std::vector<std::string>& acks) override {
    try {
      for (const std::string& each : acks) line_->publish(each, {}, "+ACK");
      return {};
    } catch (const Failure& failure) {
      return failure.what();
    }
  }

  void close() override {
    statuses_.reset();
    heard_.reset();
    line_.reset();
  }

 private:
  void make_streams() const {
    if (!find_stream(*line_, link_.stream).there) {
      create(link_.stream,
             R"({"name":)" + json_of(link_.stream) + R"(,"subjects":[)" + json_of(all_events()) +
                 R"(],"retention":"limits","storage":"file","discard":"old","max_age":)" +
                 std::to_string(events_age_ns) + R"(,"max_bytes":)" + std::to_string(bytes_max()) +
                 R"(,"max_msg_size":)" + std::to_string(message_bytes_max) + R"(,"duplicate_window":)" +
                 std::to_string(duplicates_ns) + R"(,"num_replicas":1,"max_consumers":-1,"max_msgs":-1})");
    }
    if (!find_stream(*line_, link_.status_stream()).there) {
      create(
          link_.status_stream(),
          R"({"name":)" + json_of(link_.status_stream()) + R"(,"subjects":[)" + json_of(all_statuses()) +
              R"(],"retention":"limits","storage":"file","discard":"old","max_msgs_per_subject":1,"max_age":)" +
              std::to_string(statuses_age_ns) +
              R"(,"max_msg_size":65536,"allow_direct":true,"num_replicas":1,"max_consumers":-1,"max_msgs":-1,"max_bytes":-1})");
    }
  }
  static std::int64_t bytes_max() { return events_bytes_max; }
  void create(const std::string& name, std::string config) const {
    ApiAnswer made = line_->api("STREAM.CREATE." + name, config);
    constexpr int no_room = 10047, no_room_here = 10023;
    if (made.error == no_room || made.error == no_room_here) {  // a server with less: as much as there is
      const std::string bound = R"("max_bytes":)" + std::to_string(bytes_max());
      if (const auto at = config.find(bound); at != config.npos)
        config.replace(at, bound.size(), R"("max_bytes":-1)");
      made = line_->api("STREAM.CREATE." + name, config);
    }
    if (made.error != 0)
      throw Failure("JetStream does not make the stream `" + name + "`: " + made.description);
  }

  /// The durable one remembers how far all was acknowledged. Each connection gets a consumer that begins
  /// right behind that: the broker would send what is new first, and only when its patience is over what was
  /// on its way when the last connection ended.
  void make_consumer(const ConsumerStart& start, const StreamFound& events) const {
    const std::string consumer = link_.stream + "." + durable_;
    std::uint64_t acknowledged = start.floor.store == store_ ? start.floor.sequence : 0;
    simdjson::dom::parser parser;
    simdjson::dom::element json;
    const std::string known = know_consumer(start.owner);
    const bool is_known = !known.empty() && !parser.parse(known).get(json);
    if (is_known) {
      acknowledged = 0;
      const auto floor = dom::member(json, "ack_floor");
      if (floor) acknowledged = dom::count_of(*floor, "stream_seq").value_or(0);
      const auto config = dom::member(json, "config");
      if (config && acknowledged == 0) {  // nothing came since it was made
        const std::uint64_t first = dom::count_of(*config, "opt_start_seq").value_or(0);
        if (first > 0) acknowledged = first - 1;
      }
    }
    if (start.anew || lost_its_end(start, events)) acknowledged = 0;
    // Should we end between the two: the next one begins here.
    if (const std::string why = start.keep_floor({store_, acknowledged}); !why.empty()) throw Failure(why);
    if (is_known) line_->api("CONSUMER.DELETE." + consumer, "");
    const std::string begin =
        acknowledged == 0 ? std::string(R"("all")")
                          : R"("by_start_sequence","opt_start_seq":)" + std::to_string(acknowledged + 1);
    const std::string request =
        R"({"stream_name":)" + json_of(link_.stream) + R"(,"config":{"durable_name":)" + json_of(durable_) +
        R"(,"name":)" + json_of(durable_) + R"(,"description":)" + json_of(start.owner) +
        R"(,"deliver_policy":)" + begin + R"(,"ack_policy":"explicit","ack_wait":)" +
        std::to_string(ack_wait_ns) + R"(,"max_deliver":-1,"max_ack_pending":)" +
        std::to_string(ack_pending_max) + R"(,"replay_policy":"instant","max_waiting":16,"num_replicas":0}})";
    const ApiAnswer made = line_->api("CONSUMER.DURABLE.CREATE." + consumer, request);
    if (made.error != 0)
      throw Failure("JetStream's consumer `" + durable_ + "` cannot be had: " + made.description);
  }

  /// What the broker has of our consumer; empty: nothing. Throws when another hub is at it.
  std::string know_consumer(const std::string& owner) const {
    for (int look = 1;; ++look) {
      const ApiAnswer answer = line_->api("CONSUMER.INFO." + link_.stream + "." + durable_, "");
      simdjson::dom::parser parser;
      simdjson::dom::element json;
      if (answer.error != 0 || parser.parse(answer.text).get(json)) return {};
      const auto config = dom::member(json, "config");
      const std::string_view of = config ? dom::text_of(*config, "description") : std::string_view();
      if (of.empty() || of == owner || look > looks_for_another) return answer.text;
      if (dom::count_of(json, "num_waiting").value_or(0) > 0)
        throw Failure("another hub fetches as `" + durable_ +
                      "`: give one of the two another name, with `durable` in [hub]");
      std::this_thread::sleep_for(between_looks);
    }
  }

  /// The store is the one that we took from, and has not all of that any more: what it gives these numbers to
  /// now is something else (a power cut).
  bool lost_its_end(const ConsumerStart& start, const StreamFound& events) const {
    const Kept newest = start.newest(store_);
    if (newest.sequence == 0 || newest.sequence < events.first) return false;
    if (newest.sequence > events.last) return true;
    const ApiAnswer answer =
        line_->api("STREAM.MSG.GET." + link_.stream, R"({"seq":)" + std::to_string(newest.sequence) + "}");
    simdjson::dom::parser parser;
    simdjson::dom::element json;
    if (answer.error != 0 || parser.parse(answer.text).get(json)) return false;  // it was let go
    const auto message = dom::member(json, "message");
    const auto time_ms = message ? parse_time(dom::text_of(*message, "time")) : std::nullopt;
    return time_ms && *time_ms != newest.time_ns / 1'000'000;
  }

  void hear_statuses(std::function<bool(HeardStatus)> on_status) {
    const std::uint64_t last_old = find_stream(*line_, link_.status_stream()).last;
    const std::string inbox = line_->inbox();
    statuses_ = line_->listen(inbox, [this, last_old, on_status = std::move(on_status)](natsMsg* message) {
      status_heard_ = Clock::now();
      const std::string_view text = data(message);
      const auto place = delivered(natsMsg_GetReply(message));
      if (text.empty() || !place || text.size() > status_bytes_max) return;  // a heartbeat, or none of ours
      if (!on_status({natsMsg_GetSubject(message), std::string(text), place->time_ns / 1'000'000,
                      place->sequence <= last_old}))
        lose("more statuses come than can be looked at");
    });
    const std::string name = "status_" + inbox.substr(inbox.rfind('.') + 1);
    const ApiAnswer made = line_->api(
        "CONSUMER.CREATE." + link_.status_stream() + "." + name + "." + all_statuses(),
        R"({"stream_name":)" + json_of(link_.status_stream()) + R"(,"config":{"name":)" + json_of(name) +
            R"(,"deliver_subject":)" + json_of(inbox) + R"(,"filter_subject":)" + json_of(all_statuses()) +
            R"(,"deliver_policy":"last_per_subject","ack_policy":"none","replay_policy":"instant","mem_storage":true,)"
            R"("idle_heartbeat":5000000000,)"
            R"("num_replicas":1,"inactive_threshold":30000000000}})");
    if (made.error != 0) throw Failure("JetStream's statuses cannot be had: " + made.description);
  }

  /// Asks for more before all that was asked for has come.
  void ask() {
    if (wanted_ > ask_ahead / 2) return;
    const std::size_t more = ask_ahead - wanted_;
    line_->publish("$JS.API.CONSUMER.MSG.NEXT." + link_.stream + "." + durable_, inbox_,
                   R"({"batch":)" + std::to_string(more) + R"(,"expires":)" + std::to_string(ask_expires_ns) +
                       R"(,"max_bytes":)" + std::to_string(ask_bytes) + R"(,"idle_heartbeat":)" +
                       std::to_string(heartbeat_ns) + "}");
    wanted_ += more;
  }

  /// What the broker says instead of a message: a request is over.
  void status_message(natsMsg* message) {
    const std::string status = header(message, "Status");
    if (status == "503") throw Failure("JetStream's consumer is not there");
    if (status == "409" && header(message, "Description").find("Deleted") != std::string::npos)
      throw Failure("JetStream's consumer was deleted");
    if (status == "404" || status == "408" || status == "409") {
      std::size_t left = 0;
      const std::string text = header(message, "Nats-Pending-Messages");
      for (const char c : text)
        if (c >= '0' && c <= '9') left = left * 10 + static_cast<std::size_t>(c - '0');
      wanted_ -= std::min(wanted_, text.empty() ? wanted_ : left);
    }
  }

  /// From libnats' threads.
  void lose(std::string why) {
    const std::lock_guard lock(why_mutex_);
    why_ = std::move(why);
    lost_ = true;
  }

  Delivery read(natsMsg* message, const Delivered& place) const {
    Delivery delivery;
    delivery.ack = natsMsg_GetReply(message);
    Received& received = delivery.received;
    received.store = store_;
    received.sequence = place.sequence;
    received.time_ns = place.time_ns;
    received.after = parse_cursor(header(message, after_header));
    received.begins = header(message, "Nats-Expected-Last-Subject-Sequence") == "0";
    received.payload = data(message);
    const auto frame = read_frame(received.payload);
    if (!frame) return delivery;
    received.host = frame->host, received.stream = frame->stream, received.session = frame->session;
    received.type = frame->type, received.cursor = frame->cursor;
    const bool known = received.cursor || received.type == "reset" || received.type == "stream.removed";
    // A host speaks for itself alone: its subjects are what the broker lets it publish to.
    delivery.sound = known && is_host(received.host) && !received.stream.empty() &&
                     received.stream.size() <= stream_bytes_max &&
                     received.session.size() <= session_bytes_max && received.payload.starts_with('{') &&
                     is_subject_of(natsMsg_GetSubject(message), received.host, received.stream);
    return delivery;
  }

  const BrokerConfig link_;
  const std::string durable_;
  std::string store_, inbox_;
  std::unique_ptr<NatsConnection> line_;
  Subscription heard_;
  std::unique_ptr<NatsConnection::Listening> statuses_;
  Clock::time_point heard_at_;
  std::atomic<Clock::time_point> status_heard_;
  std::size_t wanted_ = 0;  // asked for and not come
  std::atomic<bool> lost_{false};
  std::mutex why_mutex_;
  std::string why_;
};

}  // namespace
}  // namespace nats

std::unique_ptr<Consumer> make_feed(BrokerConfig link, std::string durable) {
  return std::make_unique<nats::NatsConsumer>(std::move(link), std::move(durable));
}

}  // namespace earshot::team
