#include "team/nats/nats_connection.hpp"

#include <simdjson.h>

#include <array>
#include <charconv>
#include <map>
#include <mutex>

#include "base/json_dom.hpp"

namespace earshot::team::nats {
namespace {

constexpr std::int64_t ping_ms = 5000;  // a server that does not answer two of these is gone
constexpr int pings_out_max = 2;

/// What libnats' threads call. They may be at it when whoever listens goes: so they know a number, and
/// nothing is called once it is forgotten. Calls hand on and return.
class Calls {
 public:
  using Heard = std::function<void(natsConnection*, natsMsg*)>;

  std::uint64_t add(Heard call) {
    const std::lock_guard lock(mutex_);
    calls_[++last_] = std::move(call);
    return last_;
  }
  void forget(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    calls_.erase(number);
  }
  void call(void* closure, natsConnection* connection, natsMsg* message) {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(reinterpret_cast<std::uintptr_t>(closure));
    if (found != calls_.end()) found->second(connection, message);
  }
  static void* closure(std::uint64_t number) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
  }

 private:
  std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Heard> calls_;
};

Calls& calls() {
  static Calls* const all = new Calls;  // libnats' threads may outlive main()
  return *all;
}

void on_closed(natsConnection* connection, void* closure) { calls().call(closure, connection, nullptr); }

std::string last_words() {
  natsStatus status = NATS_OK;
  const char* text = nats_GetLastError(&status);
  return text && *text ? std::string(" (") + text + ")" : std::string();
}

}  // namespace

void check(natsStatus status, const std::string& what) {
  if (status == NATS_OK) return;
  throw Failure(what + ": " + natsStatus_GetText(status) + last_words());
}

NatsConnection::NatsConnection(const BrokerConfig& link, std::function<void(std::string why)> lost)
    : lost_(calls().add([lost = std::move(lost)](natsConnection* connection, natsMsg*) {
        const char* error = nullptr;
        natsConnection_GetLastError(connection, &error);
        lost(error && *error ? error : "the connection was closed");
      })),
      inbox_(link.inbox) {
  try {
    connect(link);
  } catch (...) {
    calls().forget(lost_);
    throw;
  }
}

void NatsConnection::connect(const BrokerConfig& link) {
  natsOptions* made = nullptr;
  check(natsOptions_Create(&made), "NATS");
  const Options options(made);
  std::vector<const char*> urls;
  for (const std::string& url : link.urls) urls.push_back(url.c_str());
  const std::string where = link.where();
  check(natsOptions_SetServers(made, urls.data(), static_cast<int>(urls.size())), where);
  check(natsOptions_SetNoRandomize(made, true), where);
  check(natsOptions_SetName(made, "earshot"), where);
  check(natsOptions_SetCustomInboxPrefix(made, inbox_.c_str()), where);
  check(natsOptions_SetTimeout(made, wait_ms), where);
  check(natsOptions_SetAllowReconnect(made, false), where);  // whoever comes back asks anew what is there
  check(natsOptions_SetPingInterval(made, ping_ms), where);
  check(natsOptions_SetMaxPingsOut(made, pings_out_max), where);
  check(natsOptions_SetWriteDeadline(made, wait_ms), where);
  check(natsOptions_SetClosedCB(made, on_closed, Calls::closure(lost_)), where);
  if (!link.credentials.empty())
    check(natsOptions_SetUserCredentialsFromFiles(made, link.credentials.c_str(), nullptr), link.credentials);
  if (!link.nkey.empty())
    check(natsOptions_SetNKeyFromSeed(made, link.nkey.c_str(), link.nkey_seed.c_str()), link.nkey_seed);
  if (!link.tls_ca.empty() || !link.tls_cert.empty()) check(natsOptions_SetSecure(made, true), where);
  if (!link.tls_ca.empty())
    check(natsOptions_LoadCATrustedCertificates(made, link.tls_ca.c_str()), link.tls_ca);
  if (!link.tls_cert.empty())
    check(natsOptions_LoadCertificatesChain(made, link.tls_cert.c_str(), link.tls_key.c_str()),
          link.tls_cert);
  check(natsConnection_Connect(&connection_, made), where);
}

NatsConnection::~NatsConnection() {
  calls().forget(lost_);
  natsConnection_Close(connection_);
  natsConnection_Destroy(connection_);
}

ApiAnswer NatsConnection::api(const std::string& what, const std::string& request) const {
  natsMsg* got = nullptr;
  const natsStatus status =
      natsConnection_RequestString(&got, connection_, ("$JS.API." + what).c_str(), request.c_str(), wait_ms);
  if (status == NATS_NO_RESPONDERS)
    throw Failure("JetStream is not enabled on this server, or for this account");
  check(status, "JetStream's " + what + " (is it permitted?)");
  const Message message(got);
  ApiAnswer answer;
  answer.text = data(got);
  simdjson::dom::parser parser;
  simdjson::dom::element json;
  if (parser.parse(answer.text).get(json)) throw Failure("JetStream's " + what + " answered no JSON");
  if (const auto error = dom::member(json, "error")) {
    answer.error = static_cast<int>(dom::int_of(*error, "err_code").value_or(1));
    answer.description = dom::text_of(*error, "description");
  }
  return answer;
}

std::string NatsConnection::inbox() const {
  natsInbox* made = nullptr;
  check(natsInbox_Create(&made), "NATS");
  const std::string_view name(made);  // _INBOX.<unique>
  const std::string ours = inbox_ + std::string(name.substr(name.find('.')));
  natsInbox_Destroy(made);
  return ours;
}

std::unique_ptr<NatsConnection::Listening> NatsConnection::listen(const std::string& subject,
                                                                  std::function<void(natsMsg*)> call) const {
  auto listening = std::make_unique<Listening>();
  listening->call =
      calls().add([call = std::move(call)](natsConnection*, natsMsg* message) { call(message); });
  natsSubscription* made = nullptr;
  const auto hand_on = [](natsConnection* connection, natsSubscription*, natsMsg* message, void* closure) {
    const Message owned(message);
    calls().call(closure, connection, message);
  };
  check(
      natsConnection_Subscribe(&made, connection_, subject.c_str(), hand_on, Calls::closure(listening->call)),
      subject);
  listening->subscription.reset(made);
  check(natsSubscription_SetPendingLimits(made, -1, -1),
        subject);  // whoever asks bounds what may be on the way
  return listening;
}

NatsConnection::Listening::~Listening() { calls().forget(call); }

Subscription NatsConnection::subscribe(const std::string& subject) const {
  natsSubscription* made = nullptr;
  check(natsConnection_SubscribeSync(&made, connection_, subject.c_str()), subject);
  Subscription subscription(made);
  check(natsSubscription_SetPendingLimits(made, -1, -1), subject);
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

std::optional<Delivered> delivered(const char* reply) {
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
  // With a domain and an account's hash there are two more behind $JS.ACK, and perhaps a random one at the
  // end.
  const std::size_t first = count == 9 ? 2 : 4;
  if (count < 9 || tokens[0] != "$JS" || tokens[1] != "ACK") return {};
  Delivered found;
  const auto number = [](std::string_view text, auto& into) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
    return error == std::errc() && end == text.data() + text.size();
  };
  if (!number(tokens[first + 3], found.sequence) || !number(tokens[first + 5], found.time_ns) ||
      !number(tokens[first + 6], found.pending))
    return {};
  return found;
}

std::string header(natsMsg* message, const char* key) {
  const char* value = nullptr;
  if (natsMsgHeader_Get(message, key, &value) != NATS_OK || !value) return {};
  return value;
}

std::string_view data(natsMsg* message) {
  return {natsMsg_GetData(message), static_cast<std::size_t>(natsMsg_GetDataLength(message))};
}

StreamFound find_stream(const NatsConnection& line, const std::string& name) {
  constexpr int not_found = 10059;
  const ApiAnswer answer = line.api("STREAM.INFO." + name, "");
  if (answer.error == not_found) return {};
  if (answer.error != 0) throw Failure("stream " + name + ": " + answer.description);
  simdjson::dom::parser parser;
  simdjson::dom::element json;
  if (parser.parse(answer.text).get(json)) return {};
  StreamFound found{true, std::string(dom::text_of(json, "created")), 0, 0};
  if (const auto state = dom::member(json, "state")) {
    found.first = dom::count_of(*state, "first_seq").value_or(0);
    found.last = dom::count_of(*state, "last_seq").value_or(0);
  }
  return found;
}

}  // namespace earshot::team::nats
