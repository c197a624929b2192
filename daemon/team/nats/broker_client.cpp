// The relay's side of JetStream, over libnats. Calls that wait run on one worker thread; what libnats' own
// threads hear is posted to the loop.
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

#include "base/conflating_queue.hpp"
#include "base/json_dom.hpp"
#include "core/event_json.hpp"
#include "tail/host_names.hpp"
#include "team/broker_client.hpp"
#include "team/nats/nats_connection.hpp"
#include "team/subjects.hpp"

namespace earshot::team {
namespace nats {
namespace {

namespace asio = boost::asio;

constexpr std::size_t asked_max = 64;           // requests that wait for the loop
constexpr int asked_bytes_max = 64 << 10;       // of one
constexpr std::size_t published_max = 1 << 20;  // subjects of one host; more: an error, not a guess

std::string json_of(std::string_view text) {
  std::string out;
  append_string(out, text);
  return out;
}

/// What the worker has while a connection stands. Touched by it alone, but for what is posted.
struct Open {
  std::unique_ptr<NatsConnection> line;
  std::string acks;  // `<acks>.<number>`
  std::unique_ptr<NatsConnection::Listening> acks_heard, asked_heard;
};

class NatsBrokerClient final : public BrokerClient {
 public:
  NatsBrokerClient(asio::io_context& io, BrokerConfig link, BrokerListener& listener)
      : io_(io), link_(std::move(link)), listener_(listener) {}
  ~NatsBrokerClient() override {
    close();
    worker_.join();
    alive_.reset();
  }

  void open(const Heartbeat& beat) override {
    const std::uint64_t life = ++*life_;
    asio::post(worker_, [this, beat, life] { connect(beat, life); });
  }

  void publish(std::vector<Outgoing> messages) override {
    asio::post(worker_, [this, life = life_->load(), messages = std::move(messages)]() mutable {
      send(messages, life);
    });
  }

  void answer(std::string reply, std::vector<std::string> parts) override {
    asio::post(worker_, [this, life = life_->load(), reply = std::move(reply), parts = std::move(parts)] {
      if (!open_ || *life_ != life) return;
      try {
        for (const std::string& part : parts) open_->line->publish(reply, {}, part);
      } catch (const Failure&) {  // whoever asked waits in vain, and says so
      }
    });
  }

  void close() override {
    ++*life_;
    { const std::lock_guard lock(sleep_mutex_); }
    sleep_.notify_all();
    asio::post(worker_, [this] { open_.reset(); });
  }

 private:
  /// Calls the listener on the loop, if this life still lasts.
  template <class Call>
  void tell(std::uint64_t life, Call call) {
    asio::post(io_, [this, life, call = std::move(call), lives = life_,
                     alive = std::weak_ptr<char>(alive_)]() mutable {
      if (!alive.expired() && *lives == life) call(listener_);
    });
  }

  void connect(const Heartbeat& beat, std::uint64_t life) {
    open_.reset();
    asked_.take();
    owner_ = beat.owner;
    if (*life_ != life) return;
    try {
      auto open = std::make_unique<Open>();
      open->line = std::make_unique<NatsConnection>(link_, [this, life](std::string why) {
        tell(life, [why = std::move(why)](BrokerListener& to) { to.on_lost(why); });
      });
      for (const std::string& name : {link_.stream, link_.status_stream()}) {
        if (!find_stream(*open->line, name).there)
          throw Failure("JetStream has no stream `" + name +
                        "`: start a hub, which makes it, or make it yourself");
      }
      const std::uint64_t beat_sequence = claim(*open->line, beat, life);
      auto published = last_messages(*open->line, beat.host);
      open->acks = open->line->inbox();
      open->acks_heard =
          open->line->listen(open->acks + ".*", [this, life](natsMsg* message) { hear_ack(message, life); });
      open->asked_heard = open->line->listen(read_subject(beat.host), [this, life](natsMsg* message) {
        const char* reply = natsMsg_GetReply(message);
        if (!reply || natsMsg_GetDataLength(message) > asked_bytes_max) return;
        // Of more than that whoever asks waits in vain, and says so.
        if (asked_.put(reply, {reply, std::string(data(message))}) != ConflatingQueue<Asked>::Put::first)
          return;
        tell(life, [this](BrokerListener& to) {
          for (const Asked& each : asked_.take()) to.on_asked(each);
        });
      });
      open_ = std::move(open);
      tell(life, [published = std::move(published), beat_sequence](BrokerListener& to) mutable {
        to.on_open(std::move(published), beat_sequence);
      });
    } catch (const Failure& failure) {
      tell(life, [why = std::string(failure.what())](BrokerListener& to) { to.on_failed(why); });
    }
  }

  struct LastBeat {
    std::uint64_t sequence = 0;  // 0: none
    std::string owner, instance;
  };
  LastBeat last_beat(const NatsConnection& line, const std::string& host) const {
    natsMsg* got = nullptr;
    const std::string subject = "$JS.API.DIRECT.GET." + link_.status_stream() + "." + beat_subject(host);
    check(natsConnection_RequestString(&got, line.get(), subject.c_str(), "", NatsConnection::wait_ms),
          subject);
    const Message message(got);
    LastBeat found;
    const std::string sequence = header(got, "Nats-Sequence");
    if (sequence.empty()) return found;
    std::from_chars(sequence.data(), sequence.data() + sequence.size(), found.sequence);
    simdjson::dom::parser parser;
    simdjson::dom::element json;
    const std::string text(data(got));
    if (parser.parse(text).get(json)) return found;
    found.owner = dom::text_of(json, "owner");
    found.instance = dom::text_of(json, "instance");
    return found;
  }

  /// Makes sure that nobody else lives under this name. No clock but ours is looked at: who is alive beats
  /// while we watch.
  std::uint64_t claim(const NatsConnection& line, const Heartbeat& beat, std::uint64_t life) {
    const LastBeat first = last_beat(line, beat.host);
    const bool ours = first.owner == beat.owner && !beat.contested;
    if (first.sequence == 0 || ours || first.instance == beat.instance) return first.sequence;
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(beat_ms * beats_missed_max);
    LastBeat now = first;
    while (std::chrono::steady_clock::now() < until) {
      std::unique_lock lock(sleep_mutex_);
      sleep_.wait_for(lock, std::chrono::milliseconds(beat_ms / 5), [&] { return *life_ != life; });
      lock.unlock();
      if (*life_ != life) throw Failure("stopped");
      now = last_beat(line, beat.host);
      if (now.sequence != first.sequence)
        throw Failure(
            "another daemon publishes as host `" + beat.host +
            "`: give one of the two another name, with --host; until then this one does not publish");
    }
    return now.sequence;
  }

  /// Of each of our subjects: from a consumer of the last messages' heads.
  std::vector<Published> last_messages(const NatsConnection& line, const std::string& host) const {
    const std::string inbox = line.inbox();
    const Subscription heard = line.subscribe(inbox);
    // One name a host, so that the broker can hold a host to its own.
    const std::string name = "last_" + tail::escape(host);
    line.api("CONSUMER.DELETE." + link_.stream + "." + name, "");
    const std::string subjects = events_of(host);
    const std::string request =
        R"({"stream_name":)" + json_of(link_.stream) + R"(,"config":{"name":)" + json_of(name) +
        R"(,"deliver_subject":)" + json_of(inbox) +
        R"(,"deliver_policy":"last_per_subject","ack_policy":"none","filter_subject":)" + json_of(subjects) +
        R"(,"headers_only":true,"replay_policy":"instant","mem_storage":true,"num_replicas":1,)"
        R"("inactive_threshold":10000000000}})";
    const ApiAnswer made = line.api("CONSUMER.CREATE." + link_.stream + "." + name + "." + subjects, request);
    if (made.error != 0) throw Failure("stream " + link_.stream + ": " + made.description);
    simdjson::dom::parser parser;
    simdjson::dom::element json;
    std::uint64_t pending = 0;
    // What was delivered before the answer was written is not pending any more.
    if (!parser.parse(made.text).get(json)) {
      pending = dom::count_of(json, "num_pending").value_or(0);
      if (const auto sent = dom::member(json, "delivered"))
        pending += dom::count_of(*sent, "consumer_seq").value_or(0);
    }
    if (pending > published_max) throw Failure("this host has too many streams in JetStream");
    std::vector<Published> found;
    while (pending > 0) {  // each says how many come after it
      natsMsg* got = nullptr;
      check(natsSubscription_NextMsg(&got, heard.get(), NatsConnection::wait_ms),
            "what was published so far");
      const Message message(got);
      const auto place = delivered(natsMsg_GetReply(got));
      if (!place) continue;
      found.push_back({natsMsg_GetSubject(got), header(got, "Nats-Msg-Id"), header(got, "ce-type"),
                       header(got, "ce-time"), header(got, owner_header), place->sequence});
      if (place->pending == 0) break;
    }
    line.api("CONSUMER.DELETE." + link_.stream + "." + name, "");
    return found;
  }

  void send(const std::vector<Outgoing>& messages, std::uint64_t life) {
    if (!open_ || *life_ != life) return;
    try {
      for (const Outgoing& each : messages) {
        natsMsg* made = nullptr;
        const std::string reply = open_->acks + "." + std::to_string(each.number);
        check(natsMsg_Create(&made, each.subject.c_str(), reply.c_str(), each.payload.data(),
                             static_cast<int>(each.payload.size())),
              each.subject);
        const Message message(made);
        const auto set = [&](const char* key, const std::string& value) {
          if (!value.empty()) check(natsMsgHeader_Set(made, key, value.c_str()), each.subject);
        };
        set("Nats-Msg-Id", each.id);
        if (each.expected) set("Nats-Expected-Last-Subject-Sequence", std::to_string(*each.expected));
        set("ce-specversion", "1.0");
        set("ce-id", each.id);
        set("ce-source", "earshot");
        set("ce-type", each.type);
        set("ce-time", each.time);
        set(after_header, each.after);
        if (each.to == team::Message::To::events) set(owner_header, owner_);
        const natsStatus sent = natsConnection_PublishMsg(open_->line->get(), made);
        if (sent == NATS_MAX_PAYLOAD)
          tell(life, [number = each.number](BrokerListener& to) {
            to.on_refused(number, message_too_long, "longer than the broker takes");
          });
        else
          check(sent, each.subject);
      }
    } catch (const Failure& failure) {
      tell(life, [why = std::string(failure.what())](BrokerListener& to) { to.on_lost(why); });
    }
  }

  /// On libnats' thread.
  void hear_ack(natsMsg* message, std::uint64_t life) {
    const std::string_view subject = natsMsg_GetSubject(message);
    const std::string_view digits = subject.substr(subject.rfind('.') + 1);
    std::uint64_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (natsMsg_IsNoResponders(message)) {
      tell(life,
           [number](BrokerListener& to) { to.on_refused(number, 503, "no stream takes this subject"); });
      return;
    }
    tell(life, [number, text = std::string(data(message))](BrokerListener& to) {
      simdjson::dom::parser parser;
      simdjson::dom::element json;
      if (parser.parse(text).get(json)) return to.on_refused(number, 1, "no JSON was answered");
      if (const auto error = dom::member(json, "error"))
        return to.on_refused(number, static_cast<int>(dom::int_of(*error, "err_code").value_or(1)),
                             std::string(dom::text_of(*error, "description")));
      to.on_acked(number, dom::count_of(json, "seq").value_or(0));
    });
  }

  asio::io_context& io_;
  const BrokerConfig link_;
  BrokerListener& listener_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  std::shared_ptr<std::atomic<std::uint64_t>> life_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::mutex sleep_mutex_;
  std::condition_variable sleep_;
  ConflatingQueue<Asked> asked_{asked_max};
  std::unique_ptr<Open> open_;  // the worker's
  std::string owner_;           // likewise
  asio::thread_pool worker_{1};
};

}  // namespace
}  // namespace nats

std::unique_ptr<BrokerClient> make_engine(boost::asio::io_context& io, BrokerConfig link,
                                          BrokerListener& listener) {
  return std::make_unique<nats::NatsBrokerClient>(io, std::move(link), listener);
}

std::string missing_library() { return {}; }

}  // namespace earshot::team
