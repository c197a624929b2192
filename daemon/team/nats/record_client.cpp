// Records over NATS' request and reply: one at a time, on a thread and a connection of its own.
#include "team/record_client.hpp"

#include <nats/nats.h>
#include <simdjson.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>

#include "base/json_dom.hpp"
#include "core/event_json.hpp"
#include "team/nats/nats_connection.hpp"
#include "team/payload.hpp"
#include "team/subjects.hpp"

namespace earshot::team {
namespace nats {
namespace {

namespace asio = boost::asio;
using serve::RemoteRecord;

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds patience{5};          // for the first part, and between two
constexpr std::chrono::seconds record_patience{30};  // for all of it
constexpr std::int64_t look_ms = 100;                // then somebody may have said stop
// What a host may answer; any other code is not handed on.
constexpr std::string_view codes[] = {"not_allowed", "not_found", "bad_cursor", "busy", "bad_message"};

class NatsRecordClient final : public RecordClient {
 public:
  NatsRecordClient(asio::io_context& io, BrokerConfig link) : io_(io), link_(std::move(link)) {}
  ~NatsRecordClient() override {
    stopping_ = true;
    worker_.join();
  }

  void read(const std::string& line, std::function<void(RemoteRecord)> done) override {
    if (waiting_ >= waiting_max) return done({{}, true, "busy", "too many records are being read", true});
    ++waiting_;
    asio::post(worker_, [this, line, done = std::move(done), alive = std::weak_ptr<char>(alive_)]() mutable {
      RemoteRecord answer = stopping_ ? RemoteRecord{} : ask(line);
      asio::post(io_, [this, alive, done = std::move(done), answer = std::move(answer)]() mutable {
        if (alive.expired()) return;
        --waiting_;
        done(std::move(answer));
      });
    });
  }

 private:
  static RemoteRecord offline(const std::string& host) {
    return {{}, true, "host_offline", "host " + host + " does not answer", true};
  }

  RemoteRecord ask(const std::string& line) {
    const auto event = read_frame(line);
    if (!event || !event->is_event() || !is_host(event->host))
      return {{}, true, "not_found", "the line says no place", false};
    try {
      if (!line_ || lost_) {
        lost_ = false;
        line_ = std::make_unique<NatsConnection>(link_, [this](const std::string&) { lost_ = true; });
      }
      const std::string inbox = line_->inbox();
      const Subscription answers = line_->subscribe(inbox);
      std::string request = R"({"type":"read","stream":)";
      append_string(request, event->stream);
      request += R"(,"cursor":")" + to_string(*event->cursor) + "\"}";
      line_->publish(read_subject(event->host), inbox, request);
      return gather(answers, event->host);
    } catch (const Failure& failure) {
      line_.reset();
      return {{}, true, "host_offline", std::string("the broker is away: ") + failure.what(), true};
    }
  }

  RemoteRecord gather(const Subscription& answers, const std::string& host) const {
    RemoteRecord record;
    simdjson::dom::parser parser;
    const auto begun = Clock::now();
    for (auto heard = begun;;) {
      natsMsg* got = nullptr;
      const natsStatus status = natsSubscription_NextMsg(&got, answers.get(), look_ms);
      const Message message(got);
      const auto now = Clock::now();
      if (stopping_ || now - begun > record_patience || now - heard > patience) return offline(host);
      if (status == NATS_TIMEOUT) continue;
      if (status != NATS_OK) return offline(host);
      heard = now;
      if (natsMsg_IsNoResponders(got)) return offline(host);
      const std::string text(data(got));
      simdjson::dom::element json;
      if (parser.parse(text).get(json)) return offline(host);
      if (dom::text_of(json, "type") == "error") {
        const std::string_view code = dom::text_of(json, "code");
        const bool known = std::find(std::begin(codes), std::end(codes), code) != std::end(codes);
        return {{},
                true,
                std::string(known ? code : "not_found"),
                std::string(dom::text_of(json, "message")),
                dom::bool_of(json, "retry")};
      }
      if (dom::member(json, "json")) record.is_json = dom::bool_of(json, "json");
      record.text += dom::text_of(json, "data");
      if (record.text.size() > record_bytes_max)
        return {{}, true, "not_found", "the record is too long to be asked for from here", false};
      if (is_last_part(text)) return record;
    }
  }

  asio::io_context& io_;
  const BrokerConfig link_;
  std::unique_ptr<NatsConnection> line_;  // the worker's
  std::atomic<bool> lost_{false}, stopping_{false};
  std::size_t waiting_ = 0;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  asio::thread_pool worker_{1};
};

}  // namespace
}  // namespace nats

std::unique_ptr<RecordClient> make_reader(boost::asio::io_context& io, BrokerConfig link) {
  return std::make_unique<nats::NatsRecordClient>(io, std::move(link));
}

}  // namespace earshot::team
