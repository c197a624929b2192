// BrokerClient over libnats. Blocking calls run on one worker thread; callbacks on libnats' threads post to
// the event loop.
#include <nats/nats.h>
#include <simdjson.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/containers.hpp"
#include "base/json_scan.hpp"
#include "tail/host_names.hpp"
#include "team/broker_client.hpp"
#include "team/nats/nats_connection.hpp"
#include "team/subjects.hpp"

namespace earshot::team {
namespace nats {
namespace {

namespace asio = boost::asio;

constexpr std::size_t requests_max = 64;        // waiting for the event loop; further ones are dropped
constexpr int request_bytes_max = 64 << 10;     // longer ones are dropped
constexpr std::size_t published_max = 1 << 20;  // subjects of one host; more are an error

/// An open connection. Used by the worker thread only.
struct Session {
  std::unique_ptr<NatsConnection> connection;
  std::string ack_inbox;  // acknowledgements are sent to `<ack_inbox>.<number>`
  std::unique_ptr<NatsConnection::PushSubscription> acks_subscription, read_subscription;
};

class NatsBrokerClient final : public BrokerClient {
 public:
  NatsBrokerClient(asio::io_context& io, BrokerConfig config, BrokerListener& listener)
      : io_(io), config_(std::move(config)), listener_(listener) {}
  ~NatsBrokerClient() override {
    close();
    worker_.join();
    alive_.reset();
  }

  void open(const Heartbeat& heartbeat) override {
    const std::uint64_t generation = ++*generation_;
    asio::post(worker_, [this, heartbeat, generation] { connect(heartbeat, generation); });
  }

  void publish(std::vector<Outgoing> messages) override {
    asio::post(worker_, [this, generation = generation_->load(), messages = std::move(messages)]() mutable {
      send(messages, generation);
    });
  }

  void send_reply(std::string reply, std::vector<std::string> parts) override {
    asio::post(worker_,
               [this, generation = generation_->load(), reply = std::move(reply), parts = std::move(parts)] {
                 if (!session_ || *generation_ != generation) return;
                 try {
                   for (const std::string& part : parts) session_->connection->publish(reply, {}, part);
                 } catch (const BrokerError&) {  // the requester times out
                 }
               });
  }

  void close() override {
    ++*generation_;
    { const std::lock_guard lock(sleep_mutex_); }
    sleep_.notify_all();
    asio::post(worker_, [this] { session_.reset(); });
  }

 private:
  /// Calls the listener on the event loop, unless close() or open() was called since.
  template <class Call>
  void post_to_listener(std::uint64_t generation, Call call) {
    asio::post(io_, [this, generation, call = std::move(call), current_generation = generation_,
                     alive = std::weak_ptr<char>(alive_)]() mutable {
      if (!alive.expired() && *current_generation == generation) call(listener_);
    });
  }

  void connect(const Heartbeat& heartbeat, std::uint64_t generation) {
    session_.reset();
    requests_.take();
    owner_ = heartbeat.owner;
    if (*generation_ != generation) return;
    try {
      auto session = std::make_unique<Session>();
      session->connection = std::make_unique<NatsConnection>(config_, [this, generation](std::string reason) {
        post_to_listener(
            generation, [reason = std::move(reason)](BrokerListener& listener) { listener.on_lost(reason); });
      });
      for (const std::string& name : {config_.stream, config_.status_stream()}) {
        if (!find_stream(*session->connection, name).exists)
          throw BrokerError("JetStream has no stream `" + name +
                            "`: start a hub, which creates it, or create it yourself");
      }
      const std::uint64_t heartbeat_sequence = claim_host_name(*session->connection, heartbeat, generation);
      auto published = last_messages(*session->connection, heartbeat.host);
      session->ack_inbox = session->connection->inbox();
      session->acks_subscription = session->connection->subscribe_async(
          session->ack_inbox + ".*", [this, generation](natsMsg* message) { on_ack(message, generation); });
      session->read_subscription = session->connection->subscribe_async(
          read_subject(heartbeat.host), [this, generation](natsMsg* message) {
            const char* reply = natsMsg_GetReply(message);
            if (!reply || natsMsg_GetDataLength(message) > request_bytes_max) return;
            if (requests_.put(reply, {reply, std::string(data(message))}) !=
                ConflatingQueue<RecordRequest>::Put::first)
              return;
            post_to_listener(generation, [this](BrokerListener& listener) {
              for (const RecordRequest& each : requests_.take()) listener.on_record_request(each);
            });
          });
      session_ = std::move(session);
      post_to_listener(generation, [published = std::move(published),
                                    heartbeat_sequence](BrokerListener& listener) mutable {
        listener.on_open(std::move(published), heartbeat_sequence);
      });
    } catch (const BrokerError& error) {
      post_to_listener(generation, [reason = std::string(error.what())](BrokerListener& listener) {
        listener.on_failed(reason);
      });
    }
  }

  struct LastHeartbeat {
    std::uint64_t sequence = 0;  // 0: none
    std::string owner, instance;
  };
  LastHeartbeat read_last_heartbeat(const NatsConnection& connection, const std::string& host) const {
    natsMsg* raw = nullptr;
    const std::string subject =
        "$JS.API.DIRECT.GET." + config_.status_stream() + "." + heartbeat_subject(host);
    check(natsConnection_RequestString(&raw, connection.get(), subject.c_str(), "", NatsConnection::wait_ms),
          subject);
    const NatsMessage message(raw);
    LastHeartbeat found;
    const std::string sequence = header(raw, "Nats-Sequence");
    if (sequence.empty()) return found;
    std::from_chars(sequence.data(), sequence.data() + sequence.size(), found.sequence);
    simdjson::dom::parser parser;
    simdjson::dom::element json;
    const std::string text(data(raw));
    if (parser.parse(text).get(json)) return found;
    found.owner = dom::text_of(json, "owner");
    found.instance = dom::text_of(json, "instance");
    return found;
  }

  /// Throws if another daemon uses the host name: it sends a heartbeat while we wait. Clocks of other
  /// machines are not used.
  std::uint64_t claim_host_name(const NatsConnection& connection, const Heartbeat& heartbeat,
                                std::uint64_t generation) {
    const LastHeartbeat first = read_last_heartbeat(connection, heartbeat.host);
    const bool is_ours = first.owner == heartbeat.owner && !heartbeat.is_contested;
    if (first.sequence == 0 || is_ours || first.instance == heartbeat.instance) return first.sequence;
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(heartbeat_ms * heartbeats_missed_max);
    LastHeartbeat now = first;
    while (std::chrono::steady_clock::now() < until) {
      std::unique_lock lock(sleep_mutex_);
      sleep_.wait_for(lock, std::chrono::milliseconds(heartbeat_ms / 5),
                      [&] { return *generation_ != generation; });
      lock.unlock();
      if (*generation_ != generation) throw BrokerError("stopped");
      now = read_last_heartbeat(connection, heartbeat.host);
      if (now.sequence != first.sequence)
        throw BrokerError(
            "another daemon publishes as host `" + heartbeat.host +
            "`: give one of the two another name, with --host; until then this one does not publish");
    }
    return now.sequence;
  }

  /// The last message of each of the host's event subjects, read with a temporary consumer of headers.
  std::vector<LastMessage> last_messages(const NatsConnection& connection, const std::string& host) const {
    const std::string inbox = connection.inbox();
    const NatsSubscription messages = connection.subscribe(inbox);
    // The name contains the host, so that permissions can restrict a host to its own consumer.
    const std::string name = "last_" + tail::escape(host);
    connection.api("CONSUMER.DELETE." + config_.stream + "." + name, "");
    const std::string subjects = events_of(host);
    const std::string request =
        R"({"stream_name":)" + json_string(config_.stream) + R"(,"config":{"name":)" + json_string(name) +
        R"(,"deliver_subject":)" + json_string(inbox) +
        R"(,"deliver_policy":"last_per_subject","ack_policy":"none","filter_subject":)" +
        json_string(subjects) +
        R"(,"headers_only":true,"replay_policy":"instant","mem_storage":true,"num_replicas":1,)"
        R"("inactive_threshold":10000000000}})";
    const ApiResponse created =
        connection.api("CONSUMER.CREATE." + config_.stream + "." + name + "." + subjects, request);
    if (created.error != 0) throw BrokerError("stream " + config_.stream + ": " + created.description);
    simdjson::dom::parser parser;
    simdjson::dom::element json;
    std::uint64_t pending = 0;
    // `num_pending` does not include messages that were delivered before the response.
    if (!parser.parse(created.text).get(json)) {
      pending = dom::count_of(json, "num_pending").value_or(0);
      if (const auto sent = dom::member(json, "delivered"))
        pending += dom::count_of(*sent, "consumer_seq").value_or(0);
    }
    if (pending > published_max) throw BrokerError("this host has too many streams in JetStream");
    std::vector<LastMessage> found;
    while (pending > 0) {  // each message has the number of the remaining ones
      natsMsg* raw = nullptr;
      check(natsSubscription_NextMsg(&raw, messages.get(), NatsConnection::wait_ms), "published positions");
      const NatsMessage message(raw);
      const auto delivery = parse_ack_subject(natsMsg_GetReply(raw));
      if (!delivery) continue;
      found.push_back({natsMsg_GetSubject(raw), header(raw, "Nats-Msg-Id"), header(raw, "ce-type"),
                       header(raw, "ce-time"), header(raw, owner_header), delivery->sequence});
      if (delivery->pending == 0) break;
    }
    connection.api("CONSUMER.DELETE." + config_.stream + "." + name, "");
    return found;
  }

  void send(const std::vector<Outgoing>& messages, std::uint64_t generation) {
    if (!session_ || *generation_ != generation) return;
    try {
      for (const Outgoing& each : messages) {
        natsMsg* created = nullptr;
        const std::string reply = session_->ack_inbox + "." + std::to_string(each.number);
        check(natsMsg_Create(&created, each.subject.c_str(), reply.c_str(), each.payload.data(),
                             static_cast<int>(each.payload.size())),
              each.subject);
        const NatsMessage message(created);
        const auto set = [&](const char* key, const std::string& value) {
          if (!value.empty()) check(natsMsgHeader_Set(created, key, value.c_str()), each.subject);
        };
        set("Nats-Msg-Id", each.id);
        if (each.expected) set("Nats-Expected-Last-Subject-Sequence", std::to_string(*each.expected));
        set("ce-specversion", "1.0");
        set("ce-id", each.id);
        set("ce-source", "earshot");
        set("ce-type", each.type);
        set("ce-time", each.time);
        set(after_header, each.after);
        if (each.target == team::Outgoing::Target::events) set(owner_header, owner_);
        const natsStatus sent = natsConnection_PublishMsg(session_->connection->get(), created);
        if (sent == NATS_MAX_PAYLOAD)
          post_to_listener(generation, [number = each.number](BrokerListener& listener) {
            listener.on_refused(number, message_too_long, "exceeds the broker's message size limit");
          });
        else
          check(sent, each.subject);
      }
    } catch (const BrokerError& error) {
      post_to_listener(generation, [reason = std::string(error.what())](BrokerListener& listener) {
        listener.on_lost(reason);
      });
    }
  }

  /// Called on libnats' thread.
  void on_ack(natsMsg* message, std::uint64_t generation) {
    const std::string_view subject = natsMsg_GetSubject(message);
    const std::string_view digits = subject.substr(subject.rfind('.') + 1);
    std::uint64_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (natsMsg_IsNoResponders(message)) {
      post_to_listener(generation, [number](BrokerListener& listener) {
        listener.on_refused(number, 503, "no stream has this subject");
      });
      return;
    }
    post_to_listener(generation, [number, text = std::string(data(message))](BrokerListener& listener) {
      simdjson::dom::parser parser;
      simdjson::dom::element json;
      if (parser.parse(text).get(json)) return listener.on_refused(number, 1, "the response is not JSON");
      if (const auto error = dom::member(json, "error"))
        return listener.on_refused(number, static_cast<int>(dom::int_of(*error, "err_code").value_or(1)),
                                   std::string(dom::text_of(*error, "description")));
      listener.on_acked(number, dom::count_of(json, "seq").value_or(0));
    });
  }

  asio::io_context& io_;
  const BrokerConfig config_;
  BrokerListener& listener_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  std::shared_ptr<std::atomic<std::uint64_t>> generation_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::mutex sleep_mutex_;
  std::condition_variable sleep_;
  ConflatingQueue<RecordRequest> requests_{requests_max};
  std::unique_ptr<Session> session_;  // used by the worker thread
  std::string owner_;                 // used by the worker thread
  asio::thread_pool worker_{1};
};

}  // namespace
}  // namespace nats

std::unique_ptr<BrokerClient> make_broker_client(boost::asio::io_context& io, BrokerConfig config,
                                                 BrokerListener& listener) {
  return std::make_unique<nats::NatsBrokerClient>(io, std::move(config), listener);
}

std::string missing_library() { return {}; }

}  // namespace earshot::team
