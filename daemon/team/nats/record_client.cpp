// RecordClient over NATS requests: one at a time, on its own thread and connection.
#include "team/record_client.hpp"

#include <nats/nats.h>
#include <simdjson.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>

#include "base/json_scan.hpp"
#include "base/json_writer.hpp"
#include "team/nats/nats_connection.hpp"
#include "team/payload.hpp"
#include "team/subjects.hpp"

namespace earshot::team {
namespace nats {
namespace {

namespace asio = boost::asio;
using serve::RemoteRecord;

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds part_timeout{5};     // to the first part, and between two parts
constexpr std::chrono::seconds record_timeout{30};  // for the complete record
constexpr std::int64_t poll_ms = 100;               // interval of checks for stop
// The error codes of a host; others become `not_found`.
constexpr std::string_view codes[] = {"not_allowed", "not_found", "bad_cursor", "busy", "bad_message"};

class NatsRecordClient final : public RecordClient {
 public:
  NatsRecordClient(asio::io_context& io, BrokerConfig config) : io_(io), config_(std::move(config)) {}
  ~NatsRecordClient() override {
    stopping_ = true;
    worker_.join();
  }

  void read(const std::string& event_json, std::function<void(RemoteRecord)> done) override {
    if (waiting_ >= waiting_max) return done({{}, true, "busy", "too many records are being read", true});
    ++waiting_;
    asio::post(
        worker_, [this, event_json, done = std::move(done), alive = std::weak_ptr<char>(alive_)]() mutable {
          RemoteRecord response = stopping_ ? RemoteRecord{} : request_record(event_json);
          asio::post(io_, [this, alive, done = std::move(done), response = std::move(response)]() mutable {
            if (alive.expired()) return;
            --waiting_;
            done(std::move(response));
          });
        });
  }

 private:
  static RemoteRecord offline(const std::string& host) {
    return {{}, true, "host_offline", "host " + host + " does not respond", true};
  }

  RemoteRecord request_record(const std::string& event_json) {
    const auto event = read_frame(event_json);
    if (!event || !event->is_event() || !is_host(event->host))
      return {{}, true, "not_found", "the event has no stream and cursor", false};
    try {
      if (!connection_ || lost_) {
        lost_ = false;
        connection_ = std::make_unique<NatsConnection>(config_, [this](const std::string&) { lost_ = true; });
      }
      const std::string inbox = connection_->inbox();
      const NatsSubscription replies = connection_->subscribe(inbox);
      std::string request = R"({"type":"read","stream":)";
      append_json_string(request, event->stream);
      request += R"(,"cursor":")" + to_string(*event->cursor) + "\"}";
      connection_->publish(read_subject(event->host), inbox, request);
      return read_parts(replies, event->host);
    } catch (const BrokerError& failure) {
      connection_.reset();
      return {{}, true, "host_offline", std::string("the broker is not reachable: ") + failure.what(), true};
    }
  }

  RemoteRecord read_parts(const NatsSubscription& replies, const std::string& host) const {
    RemoteRecord record;
    simdjson::dom::parser parser;
    const auto started = Clock::now();
    for (auto last_part = started;;) {
      natsMsg* raw = nullptr;
      const natsStatus status = natsSubscription_NextMsg(&raw, replies.get(), poll_ms);
      const NatsMessage message(raw);
      const auto now = Clock::now();
      if (stopping_ || now - started > record_timeout || now - last_part > part_timeout) return offline(host);
      if (status == NATS_TIMEOUT) continue;
      if (status != NATS_OK) return offline(host);
      last_part = now;
      if (natsMsg_IsNoResponders(raw)) return offline(host);
      const std::string text(data(raw));
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
        return {{}, true, "not_found", "the record is too long to be read from another host", false};
      if (is_last_part(text)) return record;
    }
  }

  asio::io_context& io_;
  const BrokerConfig config_;
  std::unique_ptr<NatsConnection> connection_;  // used by the worker thread
  std::atomic<bool> lost_{false}, stopping_{false};
  std::size_t waiting_ = 0;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  asio::thread_pool worker_{1};
};

}  // namespace
}  // namespace nats

std::unique_ptr<RecordClient> make_record_client(boost::asio::io_context& io, BrokerConfig config) {
  return std::make_unique<nats::NatsRecordClient>(io, std::move(config));
}

}  // namespace earshot::team
