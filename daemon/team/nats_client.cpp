#include "team/nats_client.hpp"

#ifdef EARSHOT_NATS
#include <nats/nats.h>
#endif

#include <algorithm>
#include <boost/asio/post.hpp>
#include <map>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/json_scan.hpp"
#include "base/json_writer.hpp"
#include "serve/server_context.hpp"

namespace earshot::team {
namespace {

using std::chrono::milliseconds;

struct LiveThreads {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::thread::id, std::thread> running;
  std::vector<std::thread> ended;  // returned; thread-specific data of OpenSSL is still being released

  void join_ended() {
    std::unique_lock lock(mutex);
    std::vector<std::thread> joined = std::move(ended);
    ended.clear();
    lock.unlock();
    for (std::thread& thread : joined) thread.join();
  }
};
LiveThreads& live_threads() {
  static LiveThreads* const all = new LiveThreads;  // a thread may outlive main()
  return *all;
}

}  // namespace

std::string BrokerConfig::where() const {
  if (urls.empty()) return "NATS";
  const std::string& url = urls.front();
  const auto begin = url.find("://"), at = url.rfind('@');
  if (at == std::string::npos) return url;
  return (begin == std::string::npos ? std::string() : url.substr(0, begin + 3)) + url.substr(at + 1);
}

std::string consumer_request(const std::string& stream, std::initializer_list<JsonMember> config) {
  std::string out;
  JsonWriter(out)
      .begin_object()
      .member("stream_name", stream)
      .raw_member("config", json_object(config))
      .end_object();
  return out;
}

// --- The thread ---

std::shared_ptr<BrokerThread> BrokerThread::start(boost::asio::io_context& io) {
  std::shared_ptr<BrokerThread> self(new BrokerThread(io));
  LiveThreads& live = live_threads();
  const std::lock_guard lock(live.mutex);
  std::thread thread([self, &live]() mutable {
    self->run();
    self.reset();
    live.join_ended();  // earlier ones
    const std::lock_guard own_lock(live.mutex);
    live.ended.push_back(std::move(live.running.extract(std::this_thread::get_id()).mapped()));
    live.changed.notify_all();
  });
  live.running.emplace(thread.get_id(), std::move(thread));
  return self;
}

void BrokerThread::run() {
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (stopping_) break;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
  // Released without the lock: they may own a connection.
  std::deque<std::function<void()>> dropped;
  std::shared_ptr<void> state;
  const std::lock_guard lock(mutex_);
  dropped.swap(tasks_);
  state.swap(state_);
}

void BrokerThread::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

void BrokerThread::post_to_loop(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  boost::asio::post(io_, [self = shared_from_this(), call = std::move(call)] {
    if (!self->is_stopping()) call();
  });
}

void BrokerThread::stop(std::shared_ptr<void> state) {
  const std::lock_guard lock(mutex_);
  state_ = std::move(state);
  stopping_ = true;
  changed_.notify_all();
}

bool BrokerThread::is_stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

bool BrokerThread::pause(milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return stopping_; });
}

void BrokerThread::wait_for_all() {
  LiveThreads& live = live_threads();
  std::unique_lock lock(live.mutex);
  live.changed.wait_for(lock, exit_wait, [&] { return live.running.empty(); });
  lock.unlock();
  // At the exit of the process OpenSSL must not be cleaned up under a thread that uses it.
  live.join_ended();
}

#ifdef EARSHOT_NATS

namespace {

constexpr std::int64_t ping_ms = 5000;  // the connection fails after pings_out_max pings without a response
constexpr int pings_out_max = 2;
constexpr milliseconds stop_poll{50};  // interval of checks whether the thread is to stop
constexpr milliseconds close_wait{5000};
constexpr std::string_view replies = ".reply.";  // between the inbox and the token of a reply's subject

void check(natsStatus status, const std::string& what) {
  if (status == NATS_OK) return;
  natsStatus last = NATS_OK;
  const char* text = nats_GetLastError(&last);
  throw BrokerError(what + ": " + natsStatus_GetText(status) +
                    (text && *text ? std::string(" (") + text + ")" : std::string()));
}

natsMsg* raw(const NatsMessage::Handle& handle) { return static_cast<natsMsg*>(handle.get()); }
NatsMessage::Handle own(natsMsg* message) {
  return {message, [](void* handle) { natsMsg_Destroy(static_cast<natsMsg*>(handle)); }};
}
std::string_view view(const char* text) { return text ? std::string_view(text) : std::string_view(); }

}  // namespace

std::string missing_library() { return {}; }

std::string_view NatsMessage::subject() const { return view(natsMsg_GetSubject(raw(handle_))); }
std::string_view NatsMessage::reply() const { return view(natsMsg_GetReply(raw(handle_))); }
std::string_view NatsMessage::data() const {
  return {natsMsg_GetData(raw(handle_)), static_cast<std::size_t>(natsMsg_GetDataLength(raw(handle_)))};
}
std::string NatsMessage::header(const char* key) const {
  const char* value = nullptr;
  return natsMsgHeader_Get(raw(handle_), key, &value) == NATS_OK ? std::string(view(value)) : std::string();
}
bool NatsMessage::is_no_responders() const { return natsMsg_IsNoResponders(raw(handle_)); }

std::optional<NatsMessage::Delivery> NatsMessage::delivery() const {
  jsMsgMetaData* data = nullptr;
  if (!reply().starts_with("$JS.ACK.") || natsMsg_GetMetaData(&data, raw(handle_)) != NATS_OK) return {};
  const Delivery delivery{data->Sequence.Stream, data->NumPending, data->Timestamp};
  jsMsgMetaData_Destroy(data);
  return delivery;
}

struct NatsClient::Impl {
  struct Subscription {
    Impl& impl;
    Handler handler;
    natsSubscription* handle = nullptr;
  };

  /// The existing connections: libnats may report the end of one after its owner is gone.
  struct Registry {
    std::mutex mutex;
    std::map<std::uintptr_t, Impl*> all;  // by the closure of the callback
    std::uintptr_t last = 0;
  };
  static Registry& registry();

  const std::shared_ptr<BrokerThread> thread;
  const std::function<void(std::string)> on_lost;
  natsConnection* connection = nullptr;
  std::uintptr_t number = 0;                                 // in the registry
  std::string inbox;                                         // unique prefix of the subjects to receive
  std::vector<std::unique_ptr<Subscription>> subscriptions;  // used by the thread only
  std::mutex mutex;                                          // of the following members
  std::condition_variable changed;
  std::map<std::string, Handler, std::less<>> handlers;  // of replies, by the token after the inbox
  std::uint64_t last_token = 0;
  std::size_t deliveries = 0;  // subscriptions whose thread has not ended
  bool is_closing = false, is_closed = false;
  std::string lost_reason;

  static void on_closed(natsConnection* connection, void* closure);
  static void on_message(natsConnection*, natsSubscription*, natsMsg* message, void* closure) {
    static_cast<Subscription*>(closure)->handler(NatsMessage(own(message)));
  }
  static void on_complete(void* closure) {
    Impl& impl = *static_cast<Impl*>(closure);
    const std::lock_guard lock(impl.mutex);
    --impl.deliveries;
    impl.changed.notify_all();
  }

  void connect(const BrokerConfig& config);
  void dispatch(std::string_view token, NatsMessage message) {
    const std::lock_guard lock(mutex);
    const auto found = handlers.find(token);
    if (found != handlers.end()) found->second(std::move(message));
  }
  void dispatch_reply(NatsMessage message) {
    const std::string token(message.subject().substr(inbox.size() + replies.size()));
    dispatch(std::string_view(token).substr(0, token.find('.')), std::move(message));
  }
};

NatsClient::Impl::Registry& NatsClient::Impl::registry() {
  static Registry* const all = new Registry;  // libnats' threads may outlive main()
  return *all;
}

void NatsClient::Impl::on_closed(natsConnection* connection, void* closure) {
  const std::lock_guard registry_lock(registry().mutex);
  const auto found = registry().all.find(reinterpret_cast<std::uintptr_t>(closure));
  if (found == registry().all.end()) return;
  Impl& impl = *found->second;
  const char* error = nullptr;
  natsConnection_GetLastError(connection, &error);
  const std::lock_guard lock(impl.mutex);
  impl.lost_reason = view(error).empty() ? "the connection was closed" : error;
  if (!impl.is_closing && impl.on_lost) impl.on_lost(impl.lost_reason);
  impl.is_closed = true;
  impl.changed.notify_all();
}

void NatsClient::Impl::connect(const BrokerConfig& config) {
  natsOptions* options = nullptr;
  check(natsOptions_Create(&options), "NATS");
  const std::unique_ptr<natsOptions, void (*)(natsOptions*)> owner(options, natsOptions_Destroy);
  std::vector<const char*> urls;
  for (const std::string& url : config.urls) urls.push_back(url.c_str());
  const std::string where = config.where();
  check(natsOptions_SetServers(options, urls.data(), static_cast<int>(urls.size())), where);
  check(natsOptions_SetNoRandomize(options, true), where);
  check(natsOptions_SetName(options, "earshot"), where);
  check(natsOptions_SetTimeout(options, request_timeout.count()), where);
  check(natsOptions_SetAllowReconnect(options, false), where);  // positions are read again after a connect
  check(natsOptions_SetPingInterval(options, ping_ms), where);
  check(natsOptions_SetMaxPingsOut(options, pings_out_max), where);
  check(natsOptions_SetWriteDeadline(options, request_timeout.count()), where);
  {
    const std::lock_guard lock(registry().mutex);
    number = ++registry().last;
    registry().all[number] = this;
  }
  check(natsOptions_SetClosedCB(options, on_closed, reinterpret_cast<void*>(number)), where);
  if (!config.credentials.empty())
    check(natsOptions_SetUserCredentialsFromFiles(options, config.credentials.c_str(), nullptr),
          config.credentials);
  if (!config.nkey.empty())
    check(natsOptions_SetNKeyFromSeed(options, config.nkey.c_str(), config.nkey_seed.c_str()),
          config.nkey_seed);
  if (!config.tls_ca.empty() || !config.tls_cert.empty()) check(natsOptions_SetSecure(options, true), where);
  if (!config.tls_ca.empty())
    check(natsOptions_LoadCATrustedCertificates(options, config.tls_ca.c_str()), config.tls_ca);
  if (!config.tls_cert.empty())
    check(natsOptions_LoadCertificatesChain(options, config.tls_cert.c_str(), config.tls_key.c_str()),
          config.tls_cert);
  check(natsConnection_Connect(&connection, options), where);
}

NatsClient::NatsClient(const BrokerConfig& config, std::shared_ptr<BrokerThread> thread,
                       std::function<void(std::string reason)> on_lost)
    : NatsClient(std::unique_ptr<Impl>(new Impl{std::move(thread), std::move(on_lost)})) {
  natsInbox* unique = nullptr;
  check(natsInbox_Create(&unique), "NATS");
  const std::string_view name(unique);  // _INBOX.<unique>
  impl_->inbox = config.inbox + std::string(name.substr(name.find('.')));
  natsInbox_Destroy(unique);
  impl_->connect(config);
  subscribe(impl_->inbox + std::string(replies) + ">",
            [impl = impl_.get()](NatsMessage message) { impl->dispatch_reply(std::move(message)); });
}

NatsClient::NatsClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

NatsClient::~NatsClient() {
  bool is_unused = true;  // by the threads of libnats
  if (impl_->connection) {
    std::unique_lock lock(impl_->mutex);
    impl_->is_closing = true;
    lock.unlock();
    natsConnection_Close(impl_->connection);
    lock.lock();
    is_unused =
        impl_->changed.wait_for(lock, close_wait, [&] { return impl_->is_closed && impl_->deliveries == 0; });
  }
  {
    const std::lock_guard lock(Impl::registry().mutex);
    Impl::registry().all.erase(impl_->number);
  }
  if (!is_unused) {
    [[maybe_unused]] const Impl* leaked = impl_.release();
    return;
  }
  for (const auto& each : impl_->subscriptions) natsSubscription_Destroy(each->handle);
  natsConnection_Destroy(impl_->connection);
}

bool NatsClient::is_lost() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->is_closed;
}

void NatsClient::subscribe(const std::string& subject, Handler handler) {
  impl_->subscriptions.push_back(
      std::make_unique<Impl::Subscription>(Impl::Subscription{*impl_, std::move(handler)}));
  Impl::Subscription& added = *impl_->subscriptions.back();
  check(natsConnection_Subscribe(&added.handle, impl_->connection, subject.c_str(), Impl::on_message, &added),
        subject);
  {
    const std::lock_guard lock(impl_->mutex);
    ++impl_->deliveries;
  }
  check(natsSubscription_SetOnCompleteCB(added.handle, Impl::on_complete, impl_.get()), subject);
  // The callers limit the number of messages in flight.
  check(natsSubscription_SetPendingLimits(added.handle, -1, -1), subject);
}

std::string NatsClient::receive(Source source, Handler handler) {
  std::string token;
  {
    const std::lock_guard lock(impl_->mutex);
    token = std::to_string(++impl_->last_token);
    impl_->handlers[token] = std::move(handler);
  }
  if (source == Source::replies) return impl_->inbox + std::string(replies) + token;
  const std::string subject = impl_->inbox + ".consumer." + token;
  subscribe(subject,
            [impl = impl_.get(), token](NatsMessage message) { impl->dispatch(token, std::move(message)); });
  return subject;
}

NatsClient::Inbox::Inbox(NatsClient& client, Source source) : client_(client) {
  subject_ = client.receive(source, [this](NatsMessage message) {
    messages_.push_back(std::move(message));
    client_.impl_->changed.notify_all();
  });
}

NatsClient::Inbox::~Inbox() {
  const std::lock_guard lock(client_.impl_->mutex);
  client_.impl_->handlers.erase(subject_.substr(subject_.rfind('.') + 1));
}

std::optional<NatsMessage> NatsClient::Inbox::next(milliseconds timeout) {
  Impl& impl = *client_.impl_;
  const auto until = Clock::now() + timeout;
  std::unique_lock lock(impl.mutex);
  while (true) {
    if (impl.thread->is_stopping()) return {};
    if (!messages_.empty()) {
      NatsMessage message = std::move(messages_.front());
      messages_.pop_front();
      return message;
    }
    if (impl.is_closed) throw BrokerError(impl.lost_reason);
    const auto now = Clock::now();
    if (now >= until) return {};
    impl.changed.wait_until(lock, std::min(until, now + stop_poll));
  }
}

bool NatsClient::publish(const std::string& subject, const std::string& reply, std::string_view text,
                         const Headers& headers) {
  natsMsg* message = nullptr;
  check(natsMsg_Create(&message, subject.c_str(), reply.empty() ? nullptr : reply.c_str(), text.data(),
                       static_cast<int>(text.size())),
        subject);
  const NatsMessage::Handle owner = own(message);
  for (const auto& [key, value] : headers) check(natsMsgHeader_Set(message, key, value.c_str()), subject);
  const natsStatus sent = natsConnection_PublishMsg(impl_->connection, message);
  if (sent != NATS_MAX_PAYLOAD) check(sent, subject);
  return sent == NATS_OK;
}

NatsMessage NatsClient::request(const std::string& subject, std::string_view text) {
  Inbox inbox(*this);
  publish(subject, inbox.subject(), text);
  auto response = inbox.next(request_timeout);
  if (!response) throw BrokerError(subject + ": no response (is it permitted?)");
  return std::move(*response);
}

ApiResponse NatsClient::api(const std::string& what, std::string_view request) {
  const NatsMessage message = this->request("$JS.API." + what, request);
  if (message.is_no_responders())
    throw BrokerError("JetStream is not enabled on this server, or for this account");
  ApiResponse response;
  if (response.parser->parse(message.data().data(), message.data().size()).get(response.json))
    throw BrokerError("JetStream's " + what + ": the response is not JSON");
  if (const auto error = dom::member(response.json, "error")) {
    response.error = static_cast<int>(dom::int_of(*error, "err_code").value_or(1));
    response.description = dom::text_of(*error, "description");
  }
  return response;
}

StreamInfo NatsClient::find_stream(const std::string& name) {
  constexpr int not_found = 10059;
  const ApiResponse response = api("STREAM.INFO." + name, "");
  if (response.error == not_found) return {};
  if (response.error != 0) throw BrokerError("stream " + name + ": " + response.description);
  StreamInfo info{true, std::string(dom::text_of(response.json, "created")), 0, 0};
  if (const auto state = dom::member(response.json, "state")) {
    info.first = dom::count_of(*state, "first_seq").value_or(0);
    info.last = dom::count_of(*state, "last_seq").value_or(0);
  }
  return info;
}

#else  // without libnats no connection is made, and there are no messages

std::string missing_library() {
  return "this earshotd was built without libnats, which [relay] and [hub] need: install libnats-dev (brew: "
         "cnats) and rebuild";
}

struct NatsClient::Impl {};
NatsClient::NatsClient(const BrokerConfig&, std::shared_ptr<BrokerThread>, std::function<void(std::string)>) {
  throw BrokerError(missing_library());
}
NatsClient::~NatsClient() = default;
bool NatsClient::is_lost() const { return true; }
bool NatsClient::publish(const std::string&, const std::string&, std::string_view, const Headers&) {
  return false;
}
NatsMessage NatsClient::request(const std::string&, std::string_view) {
  throw BrokerError(missing_library());
}
ApiResponse NatsClient::api(const std::string&, std::string_view) { return {}; }
StreamInfo NatsClient::find_stream(const std::string&) { return {}; }
void NatsClient::subscribe(const std::string&, Handler) {}
std::string NatsClient::receive(Source, Handler) { return {}; }
NatsClient::Inbox::Inbox(NatsClient& client, Source) : client_(client) {}
NatsClient::Inbox::~Inbox() = default;
std::optional<NatsMessage> NatsClient::Inbox::next(milliseconds) { return {}; }
std::string_view NatsMessage::subject() const { return {}; }
std::string_view NatsMessage::reply() const { return {}; }
std::string_view NatsMessage::data() const { return {}; }
std::string NatsMessage::header(const char*) const { return {}; }
bool NatsMessage::is_no_responders() const { return true; }
std::optional<NatsMessage::Delivery> NatsMessage::delivery() const { return {}; }

#endif

// --- Records ---

namespace {

using serve::RemoteRecord;

constexpr std::chrono::seconds part_timeout{5};     // to the first part, and between two parts
constexpr std::chrono::seconds record_timeout{30};  // for the complete record
// The error codes of a host; others become `not_found`.
constexpr std::string_view codes[] = {"not_allowed", "not_found", "bad_cursor", "busy", "bad_message"};

RemoteRecord host_offline(const std::string& host) {
  return {{}, true, "host_offline", "host " + host + " does not respond", true};
}

RemoteRecord read_parts(NatsClient::Inbox& replies, const std::string& host) {
  RemoteRecord record;
  const auto until = Clock::now() + record_timeout;
  simdjson::dom::parser parser;
  while (Clock::now() < until) {
    const auto message = replies.next(part_timeout);
    if (!message || message->is_no_responders()) break;
    const std::string_view text = message->data();
    simdjson::dom::element json;
    if (parser.parse(text.data(), text.size()).get(json)) break;
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
    if (record.text.size() > RecordClient::record_bytes_max)
      return {{}, true, "not_found", "the record is too long to be read from another host", false};
    if (is_last_part(text)) return record;
  }
  return host_offline(host);
}

}  // namespace

/// Used by the thread only.
struct RecordClient::Worker {
  const BrokerConfig config;
  const std::weak_ptr<BrokerThread> thread;
  std::unique_ptr<NatsClient> client;

  RemoteRecord read(const std::string& event_json) {
    const auto event = read_frame(event_json);
    if (!event || !event->is_event() || !is_host(event->host))
      return {{}, true, "not_found", "the event has no stream and cursor", false};
    try {
      if (!client || client->is_lost()) client = std::make_unique<NatsClient>(config, thread.lock());
      NatsClient::Inbox replies(*client);
      const std::string request =
          json_object({{"type", "read"}, {"stream", event->stream}, {"cursor", to_string(*event->cursor)}});
      client->publish(read_subject(event->host), replies.subject(), request);
      return read_parts(replies, event->host);
    } catch (const BrokerError& failure) {
      client.reset();
      return {{}, true, "host_offline", std::string("the broker is not reachable: ") + failure.what(), true};
    }
  }
};

RecordClient::RecordClient(boost::asio::io_context& io, BrokerConfig config)
    : thread_(BrokerThread::start(io)),
      worker_(std::make_shared<Worker>(Worker{std::move(config), thread_, nullptr})) {}

RecordClient::~RecordClient() { thread_->stop(std::move(worker_)); }

void RecordClient::read(const std::string& event_json, std::function<void(RemoteRecord)> done) {
  if (waiting_ >= waiting_max) return done({{}, true, "busy", "too many records are being read", true});
  ++waiting_;
  thread_->post([this, thread = thread_, worker = worker_, event_json, done = std::move(done)] {
    thread->post_to_loop([this, done, record = worker->read(event_json)]() mutable {
      --waiting_;
      done(std::move(record));
    });
  });
}

}  // namespace earshot::team
