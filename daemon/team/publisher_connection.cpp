#include "team/publisher_connection.hpp"

#include <charconv>
#include <utility>

#include "agents/stream_name.hpp"
#include "base/clock.hpp"
#include "base/json_scan.hpp"

namespace earshot::team {

bool Outbox::has_subject(const std::string& subject) const {
  const auto found = queues_.find(subject);
  if (found == queues_.end()) return false;
  return found->second.sequence > 0 || found->second.is_in_flight || !found->second.pending.empty();
}

void Outbox::mark_ready(const std::string& subject, SubjectQueue& queue) {
  if (queue.is_in_flight || queue.is_ready || queue.pending.empty()) return;
  if (must_wait(queue.pending.front())) {
    following_.insert(subject);
    return;
  }
  queue.is_ready = true;
  ready_subjects_.push_back(subject);
}

bool Outbox::must_wait(const Message& message) const {
  const auto found = message.follows.empty() ? queues_.end() : queues_.find(message.follows);
  if (found == queues_.end()) return false;
  const SubjectQueue& queue = found->second;
  return (queue.is_in_flight && queue.order < message.order) ||
         (!queue.pending.empty() && queue.pending.front().order < message.order);
}

void Outbox::add(Message message) {
  message.order = ++next_order_;
  const std::string subject = message.subject;
  SubjectQueue& queue = queues_[subject];
  ++pending_;
  bytes_ += message.payload.size();
  queue.pending.push_back(std::move(message));
  mark_ready(subject, queue);
}

void Outbox::add_latest(Message message, bool is_ordered) {
  SubjectQueue& queue = queues_[message.subject];
  queue.is_ordered = is_ordered;
  if (queue.pending.empty()) return add(std::move(message));
  bytes_ += message.payload.size() - queue.pending.back().payload.size();
  queue.pending.back() = std::move(message);
}

std::vector<Outgoing> Outbox::take_ready() {
  std::vector<Outgoing> out;
  while (!ready_subjects_.empty() && in_flight_.size() < in_flight_max) {
    const std::string subject = std::move(ready_subjects_.front());
    ready_subjects_.pop_front();
    SubjectQueue& queue = queues_[subject];
    queue.is_ready = false;
    queue.is_in_flight = true;
    Outgoing message{std::move(queue.pending.front()), next_number_++, std::nullopt};
    queue.pending.pop_front();
    queue.order = message.order;
    --pending_;
    if (queue.is_ordered) message.expected = queue.sequence;
    // The payload is not kept: messages are not sent twice; after a lost connection the published positions
    // are read from the broker. Its size counts until the acknowledgement.
    in_flight_.emplace(message.number, InFlight{message.subject, message.id, message.payload.size()});
    out.push_back(std::move(message));
  }
  return out;
}

/// Removes the message in flight and returns its queue; null for an unknown number.
Outbox::SubjectQueue* Outbox::complete(std::uint64_t number, std::string& subject) {
  const auto found = in_flight_.find(number);
  if (found == in_flight_.end()) return nullptr;
  subject = std::move(found->second.subject);
  bytes_ -= found->second.bytes;
  in_flight_.erase(found);
  SubjectQueue& queue = queues_[subject];
  queue.is_in_flight = false;
  for (const std::string& waiting : std::exchange(following_, {})) mark_ready(waiting, queues_[waiting]);
  return &queue;
}

bool Outbox::on_ack(std::uint64_t number, std::uint64_t sequence) {
  std::string subject;
  SubjectQueue* queue = complete(number, subject);
  if (!queue) return false;
  queue->sequence = sequence;
  mark_ready(subject, *queue);
  return true;
}

bool Outbox::drop(std::uint64_t number) {
  std::string subject;
  SubjectQueue* queue = complete(number, subject);
  if (!queue) return false;
  mark_ready(subject, *queue);
  return true;
}

const Outbox::InFlight* Outbox::find(std::uint64_t number) const {
  const auto found = in_flight_.find(number);
  return found == in_flight_.end() ? nullptr : &found->second;
}

// --- The connection ---

namespace {

constexpr std::size_t request_bytes_max = 64 << 10;  // longer requests for records are dropped
constexpr std::size_t published_max = 1 << 20;       // subjects of one host; more are an error

std::uint64_t number_of(std::string_view digits) {
  std::uint64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

}  // namespace

/// Used by the thread only, except emit() and the handlers.
struct PublisherConnection::Worker : std::enable_shared_from_this<Worker> {
  Worker(BrokerConfig broker, Heartbeat beat, std::weak_ptr<BrokerThread> broker_thread,
         std::function<void(BrokerEvent)> callback)
      : config(std::move(broker)),
        heartbeat(std::move(beat)),
        thread(std::move(broker_thread)),
        on_event(std::move(callback)) {}

  struct LastHeartbeat {
    std::uint64_t sequence = 0;  // 0: none
    std::string owner, instance;
  };
  void emit(BrokerEvent event);
  void connect();
  LastHeartbeat read_last_heartbeat();
  std::uint64_t claim_host_name();
  std::vector<LastMessage> last_messages();
  void send(const Outgoing& message);
  void on_ack(const NatsMessage& message);
  void on_record_request(const NatsMessage& message);

  const BrokerConfig config;
  const Heartbeat heartbeat;
  const std::weak_ptr<BrokerThread> thread;
  const std::function<void(BrokerEvent)> on_event;
  std::unique_ptr<NatsClient> client;
  std::string ack_inbox;                  // acknowledgements are sent to `<ack_inbox>.<number>`
  std::atomic<std::size_t> requests = 0;  // waiting for the event loop
};

void PublisherConnection::Worker::emit(BrokerEvent event) {
  if (const auto running = thread.lock())
    running->post_to_loop(
        [callback = on_event, event = std::move(event)]() mutable { callback(std::move(event)); });
}

void PublisherConnection::Worker::connect() {
  try {
    client = std::make_unique<NatsClient>(
        config, thread.lock(), [this](std::string reason) { emit(BrokerFailed{std::move(reason)}); });
    for (const std::string& name : {config.stream, config.status_stream()}) {
      if (!client->find_stream(name).exists)
        throw BrokerError("JetStream has no stream `" + name +
                          "`: start a hub, which creates it, or create it yourself");
    }
    const std::uint64_t heartbeat_sequence = claim_host_name();
    auto published = last_messages();
    ack_inbox =
        client->receive(NatsClient::Source::replies, [this](const NatsMessage& message) { on_ack(message); });
    client->subscribe(read_subject(heartbeat.host),
                      [this](const NatsMessage& message) { on_record_request(message); });
    emit(BrokerOpened{std::move(published), heartbeat_sequence});
  } catch (const BrokerError& error) {
    client.reset();
    emit(BrokerFailed{error.what()});
  }
}

PublisherConnection::Worker::LastHeartbeat PublisherConnection::Worker::read_last_heartbeat() {
  const NatsMessage message = client->request(
      "$JS.API.DIRECT.GET." + config.status_stream() + "." + heartbeat_subject(heartbeat.host), "");
  const std::string sequence = message.header("Nats-Sequence");
  if (sequence.empty()) return {};
  LastHeartbeat found{number_of(sequence), {}, {}};
  if (const auto frame = read_frame(message.data())) {
    found.owner = frame->owner;
    found.instance = frame->instance;
  }
  return found;
}

/// Throws if another daemon uses the host name: it sends a heartbeat while we wait. Clocks of other machines
/// are not used.
std::uint64_t PublisherConnection::Worker::claim_host_name() {
  const LastHeartbeat first = read_last_heartbeat();
  const bool is_ours = first.owner == heartbeat.owner && !heartbeat.is_contested;
  if (first.sequence == 0 || is_ours || first.instance == heartbeat.instance) return first.sequence;
  const auto until = Clock::now() + std::chrono::milliseconds(heartbeat_ms * heartbeats_missed_max);
  while (Clock::now() < until) {
    const auto running = thread.lock();
    if (!running || !running->pause(std::chrono::milliseconds(heartbeat_ms / 5)))
      throw BrokerError("stopped");
    if (read_last_heartbeat().sequence != first.sequence)
      throw BrokerError(
          "another daemon publishes as host `" + heartbeat.host +
          "`: give one of the two another name, with --host; until then this one does not publish");
  }
  return first.sequence;
}

/// The last message of each of the host's event subjects, read with a temporary consumer of headers.
std::vector<LastMessage> PublisherConnection::Worker::last_messages() {
  NatsClient::Inbox messages(*client, NatsClient::Source::consumer);
  // The name contains the host, so that permissions can restrict a host to its own consumer.
  const std::string name = "last_" + escape_token(heartbeat.host);
  const std::string subjects = events_of(heartbeat.host);
  client->api("CONSUMER.DELETE." + config.stream + "." + name, "");
  const std::string request = consumer_request(config.stream, {{"name", name},
                                                               {"deliver_subject", messages.subject()},
                                                               {"deliver_policy", "last_per_subject"},
                                                               {"ack_policy", "none"},
                                                               {"filter_subject", subjects},
                                                               {"headers_only", true},
                                                               {"mem_storage", true},
                                                               {"num_replicas", 1},
                                                               {"inactive_threshold", 10'000'000'000}});
  const ApiResponse created =
      client->api("CONSUMER.CREATE." + config.stream + "." + name + "." + subjects, request);
  if (created.error != 0) throw BrokerError("stream " + config.stream + ": " + created.description);
  // `num_pending` does not include messages that were delivered before the response.
  std::uint64_t pending = dom::count_of(created.json, "num_pending").value_or(0);
  if (const auto sent = dom::member(created.json, "delivered"))
    pending += dom::count_of(*sent, "consumer_seq").value_or(0);
  if (pending > published_max) throw BrokerError("this host has too many streams in JetStream");
  std::vector<LastMessage> found;
  while (pending > 0) {  // each message has the number of the remaining ones
    const auto message = messages.next(NatsClient::request_timeout);
    if (!message) throw BrokerError("JetStream does not send the published positions");
    const auto delivery = message->delivery();
    if (!delivery) continue;
    found.push_back({std::string(message->subject()), message->header("Nats-Msg-Id"),
                     message->header("ce-type"), message->header("ce-time"), message->header(owner_header),
                     delivery->sequence});
    pending = delivery->pending;
  }
  client->api("CONSUMER.DELETE." + config.stream + "." + name, "");
  return found;
}

void PublisherConnection::Worker::send(const Outgoing& message) {
  NatsClient::Headers headers = {{"Nats-Msg-Id", message.id},
                                 {"ce-specversion", "1.0"},
                                 {"ce-id", message.id},
                                 {"ce-source", message.source},
                                 {"ce-type", message.type}};
  if (message.expected)
    headers.emplace_back("Nats-Expected-Last-Subject-Sequence", std::to_string(*message.expected));
  if (!message.time.empty()) headers.emplace_back("ce-time", message.time);
  if (!message.after.empty()) headers.emplace_back(after_header, message.after);
  if (message.target == Message::Target::events) headers.emplace_back(owner_header, heartbeat.owner);
  if (!client->publish(message.subject, ack_inbox + "." + std::to_string(message.number), message.payload,
                       headers))
    emit(MessageRefused{message.number, message_too_long, "exceeds the broker's message size limit"});
}

/// Called on a thread of libnats.
void PublisherConnection::Worker::on_ack(const NatsMessage& message) {
  const std::uint64_t number = number_of(message.subject().substr(message.subject().rfind('.') + 1));
  if (message.is_no_responders()) return emit(MessageRefused{number, 503, "no stream has this subject"});
  simdjson::dom::parser parser;
  simdjson::dom::element json;
  if (parser.parse(message.data().data(), message.data().size()).get(json))
    return emit(MessageRefused{number, 1, "the response is not JSON"});
  if (const auto error = dom::member(json, "error"))
    return emit(MessageRefused{number, static_cast<int>(dom::int_of(*error, "err_code").value_or(1)),
                               std::string(dom::text_of(*error, "description"))});
  emit(MessageAcked{number, dom::count_of(json, "seq").value_or(0)});
}

/// Called on a thread of libnats.
void PublisherConnection::Worker::on_record_request(const NatsMessage& message) {
  if (message.reply().empty() || message.data().size() > request_bytes_max || requests >= requests_max)
    return;
  const auto running = thread.lock();
  if (!running) return;
  ++requests;
  RecordRequest request{std::string(message.reply()), std::string(message.data())};
  running->post_to_loop([weak = weak_from_this(), request = std::move(request)] {
    const auto self = weak.lock();
    if (!self) return;
    --self->requests;
    self->on_event(request);
  });
}

PublisherConnection::PublisherConnection(boost::asio::io_context& io, BrokerConfig config,
                                         Heartbeat heartbeat, std::function<void(BrokerEvent)> on_event)
    : thread_(BrokerThread::start(io)),
      worker_(
          std::make_shared<Worker>(std::move(config), std::move(heartbeat), thread_, std::move(on_event))) {
  thread_->post([worker = worker_] { worker->connect(); });
}

PublisherConnection::~PublisherConnection() { thread_->stop(std::move(worker_)); }

void PublisherConnection::publish(std::vector<Outgoing> messages) {
  thread_->post([worker = worker_, messages = std::move(messages)] {
    try {
      for (const Outgoing& each : messages)
        if (worker->client) worker->send(each);
    } catch (const BrokerError& error) {
      worker->emit(BrokerFailed{error.what()});
    }
  });
}

void PublisherConnection::send_reply(std::string reply, std::string text) {
  thread_->post([worker = worker_, reply = std::move(reply), text = std::move(text)] {
    try {
      if (worker->client) worker->client->publish(reply, {}, text);
    } catch (const BrokerError&) {  // the requester times out
    }
  });
}

}  // namespace earshot::team
