#include "team/nats/nats_connection.hpp"

#include <simdjson.h>

#include <array>
#include <charconv>
#include <map>
#include <mutex>

#include "base/json_scan.hpp"
#include "base/json_writer.hpp"

namespace earshot::team::nats {
namespace {

constexpr std::int64_t ping_ms = 5000;  // the connection fails after pings_out_max pings without a response
constexpr int pings_out_max = 2;

/// Callbacks for libnats' threads, which may still be running one while its owner is destroyed. They hold a
/// number instead of a pointer; after remove() the callback is not called. Callbacks must not block.
class CallbackRegistry {
 public:
  using Callback = std::function<void(natsConnection*, natsMsg*)>;

  std::uint64_t add(Callback callback) {
    const std::lock_guard lock(mutex_);
    callbacks_[++last_number_] = std::move(callback);
    return last_number_;
  }
  void remove(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    callbacks_.erase(number);
  }
  void call(void* closure, natsConnection* connection, natsMsg* message) {
    const std::lock_guard lock(mutex_);
    const auto found = callbacks_.find(reinterpret_cast<std::uintptr_t>(closure));
    if (found != callbacks_.end()) found->second(connection, message);
  }
  static void* closure(std::uint64_t number) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
  }

 private:
  std::mutex mutex_;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Callback> callbacks_;
};

CallbackRegistry& callbacks() {
  static CallbackRegistry* const all = new CallbackRegistry;  // libnats' threads may outlive main()
  return *all;
}

void on_closed(natsConnection* connection, void* closure) { callbacks().call(closure, connection, nullptr); }

std::string last_error_text() {
  natsStatus status = NATS_OK;
  const char* text = nats_GetLastError(&status);
  return text && *text ? std::string(" (") + text + ")" : std::string();
}

}  // namespace

void check(natsStatus status, const std::string& what) {
  if (status == NATS_OK) return;
  throw BrokerError(what + ": " + natsStatus_GetText(status) + last_error_text());
}

NatsConnection::NatsConnection(const BrokerConfig& config, std::function<void(std::string reason)> on_lost)
    : lost_callback_(callbacks().add([on_lost = std::move(on_lost)](natsConnection* connection, natsMsg*) {
        const char* error = nullptr;
        natsConnection_GetLastError(connection, &error);
        on_lost(error && *error ? error : "the connection was closed");
      })),
      inbox_(config.inbox) {
  try {
    connect(config);
  } catch (...) {
    callbacks().remove(lost_callback_);
    throw;
  }
}

void NatsConnection::connect(const BrokerConfig& config) {
  natsOptions* handle = nullptr;
  check(natsOptions_Create(&handle), "NATS");
  const NatsOptions options(handle);
  std::vector<const char*> urls;
  for (const std::string& url : config.urls) urls.push_back(url.c_str());
  const std::string where = config.where();
  check(natsOptions_SetServers(handle, urls.data(), static_cast<int>(urls.size())), where);
  check(natsOptions_SetNoRandomize(handle, true), where);
  check(natsOptions_SetName(handle, "earshot"), where);
  check(natsOptions_SetCustomInboxPrefix(handle, inbox_.c_str()), where);
  check(natsOptions_SetTimeout(handle, wait_ms), where);
  check(natsOptions_SetAllowReconnect(handle, false), where);  // the positions are read again after a connect
  check(natsOptions_SetPingInterval(handle, ping_ms), where);
  check(natsOptions_SetMaxPingsOut(handle, pings_out_max), where);
  check(natsOptions_SetWriteDeadline(handle, wait_ms), where);
  check(natsOptions_SetClosedCB(handle, on_closed, CallbackRegistry::closure(lost_callback_)), where);
  if (!config.credentials.empty())
    check(natsOptions_SetUserCredentialsFromFiles(handle, config.credentials.c_str(), nullptr),
          config.credentials);
  if (!config.nkey.empty())
    check(natsOptions_SetNKeyFromSeed(handle, config.nkey.c_str(), config.nkey_seed.c_str()),
          config.nkey_seed);
  if (!config.tls_ca.empty() || !config.tls_cert.empty()) check(natsOptions_SetSecure(handle, true), where);
  if (!config.tls_ca.empty())
    check(natsOptions_LoadCATrustedCertificates(handle, config.tls_ca.c_str()), config.tls_ca);
  if (!config.tls_cert.empty())
    check(natsOptions_LoadCertificatesChain(handle, config.tls_cert.c_str(), config.tls_key.c_str()),
          config.tls_cert);
  check(natsConnection_Connect(&connection_, handle), where);
}

NatsConnection::~NatsConnection() {
  callbacks().remove(lost_callback_);
  natsConnection_Close(connection_);
  natsConnection_Destroy(connection_);
}

ApiResponse NatsConnection::api(const std::string& what, const std::string& request) const {
  natsMsg* raw = nullptr;
  const natsStatus status =
      natsConnection_RequestString(&raw, connection_, ("$JS.API." + what).c_str(), request.c_str(), wait_ms);
  if (status == NATS_NO_RESPONDERS)
    throw BrokerError("JetStream is not enabled on this server, or for this account");
  check(status, "JetStream's " + what + " (is it permitted?)");
  const NatsMessage message(raw);
  ApiResponse response;
  response.text = data(raw);
  simdjson::dom::parser parser;
  simdjson::dom::element json;
  if (parser.parse(response.text).get(json))
    throw BrokerError("JetStream's " + what + ": the response is not JSON");
  if (const auto error = dom::member(json, "error")) {
    response.error = static_cast<int>(dom::int_of(*error, "err_code").value_or(1));
    response.description = dom::text_of(*error, "description");
  }
  return response;
}

std::string NatsConnection::inbox() const {
  natsInbox* handle = nullptr;
  check(natsInbox_Create(&handle), "NATS");
  const std::string_view name(handle);  // _INBOX.<unique>
  const std::string inbox = inbox_ + std::string(name.substr(name.find('.')));
  natsInbox_Destroy(handle);
  return inbox;
}

std::unique_ptr<NatsConnection::PushSubscription> NatsConnection::subscribe_async(
    const std::string& subject, std::function<void(natsMsg*)> callback) const {
  auto subscription = std::make_unique<PushSubscription>();
  subscription->callback = callbacks().add(
      [callback = std::move(callback)](natsConnection*, natsMsg* message) { callback(message); });
  natsSubscription* handle = nullptr;
  const auto forward = [](natsConnection* connection, natsSubscription*, natsMsg* message, void* closure) {
    const NatsMessage owned(message);
    callbacks().call(closure, connection, message);
  };
  check(natsConnection_Subscribe(&handle, connection_, subject.c_str(), forward,
                                 CallbackRegistry::closure(subscription->callback)),
        subject);
  subscription->subscription.reset(handle);
  // The callers limit the number of messages in flight.
  check(natsSubscription_SetPendingLimits(handle, -1, -1), subject);
  return subscription;
}

NatsConnection::PushSubscription::~PushSubscription() { callbacks().remove(callback); }

NatsSubscription NatsConnection::subscribe(const std::string& subject) const {
  natsSubscription* handle = nullptr;
  check(natsConnection_SubscribeSync(&handle, connection_, subject.c_str()), subject);
  NatsSubscription subscription(handle);
  check(natsSubscription_SetPendingLimits(handle, -1, -1), subject);
  return subscription;
}

void NatsConnection::publish(const std::string& subject, const std::string& reply,
                             std::string_view text) const {
  const auto bytes = static_cast<int>(text.size());
  check(reply.empty()
            ? natsConnection_Publish(connection_, subject.c_str(), text.data(), bytes)
            : natsConnection_PublishRequest(connection_, subject.c_str(), reply.c_str(), text.data(), bytes),
        subject);
}

std::optional<DeliveryInfo> parse_ack_subject(const char* reply) {
  if (!reply) return {};
  std::array<std::string_view, 12> tokens;
  std::size_t count = 0;
  std::string_view rest(reply);
  while (count < tokens.size()) {
    const auto dot = rest.find('.');
    tokens[count++] = rest.substr(0, dot);
    if (dot == rest.npos) break;
    rest.remove_prefix(dot + 1);
  }
  // Two more tokens, the domain and a hash of the account, may follow $JS.ACK, and a random one may be last.
  const std::size_t first = count == 9 ? 2 : 4;
  if (count < 9 || tokens[0] != "$JS" || tokens[1] != "ACK") return {};
  DeliveryInfo info;
  const auto number = [](std::string_view text, auto& into) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
    return error == std::errc() && end == text.data() + text.size();
  };
  if (!number(tokens[first + 3], info.sequence) || !number(tokens[first + 5], info.time_ns) ||
      !number(tokens[first + 6], info.pending))
    return {};
  return info;
}

std::string header(natsMsg* message, const char* key) {
  const char* value = nullptr;
  if (natsMsgHeader_Get(message, key, &value) != NATS_OK || !value) return {};
  return value;
}

std::string_view data(natsMsg* message) {
  return {natsMsg_GetData(message), static_cast<std::size_t>(natsMsg_GetDataLength(message))};
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

StreamInfo find_stream(const NatsConnection& connection, const std::string& name) {
  constexpr int not_found = 10059;
  const ApiResponse response = connection.api("STREAM.INFO." + name, "");
  if (response.error == not_found) return {};
  if (response.error != 0) throw BrokerError("stream " + name + ": " + response.description);
  simdjson::dom::parser parser;
  simdjson::dom::element json;
  if (parser.parse(response.text).get(json)) return {};
  StreamInfo info{true, std::string(dom::text_of(json, "created")), 0, 0};
  if (const auto state = dom::member(json, "state")) {
    info.first = dom::count_of(*state, "first_seq").value_or(0);
    info.last = dom::count_of(*state, "last_seq").value_or(0);
  }
  return info;
}

}  // namespace earshot::team::nats
