#include "team/ingestor.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <future>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/json_scan.hpp"
#include "base/quantities.hpp"
#include "log/log.hpp"
#include "team/payload.hpp"

namespace earshot::team {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds retry_delay_min{200}, retry_delay_max{10'000};
constexpr milliseconds fetch_timeout{100};      // for the first message of a batch
constexpr milliseconds disk_retry_delay{1000};  // between two attempts to write
constexpr std::chrono::seconds retention_interval{60};

// Limits of the streams that the hub creates.
constexpr std::int64_t day_ns = 24LL * 3600 * 1'000'000'000;
constexpr std::int64_t events_age_ns = 7 * day_ns, statuses_age_ns = 30 * day_ns;
constexpr std::int64_t events_bytes_max = 20LL << 30, duplicates_ns = 120LL * 1'000'000'000;
constexpr std::size_t request_messages = 1024;   // requested in advance
constexpr std::size_t request_bytes = 16 << 20;  // requested in advance
constexpr std::size_t ack_pending_max =
    8192;  // delivered and not acknowledged; the broker holds further ones
constexpr std::int64_t ack_wait_ns = 30LL * 1'000'000'000;
constexpr std::int64_t request_expires_ns = 30LL * 1'000'000'000;
constexpr std::int64_t idle_heartbeat_ns = 5LL * 1'000'000'000;  // of an idle broker
constexpr std::chrono::seconds silence_max{
    15};                         // without any message; then the connection is considered lost
constexpr int owner_checks = 3;  // for another hub that uses the consumer
constexpr milliseconds owner_check_interval{300};
using Subjects = std::vector<std::string>;

/// All messages of `store` up to `sequence` were acknowledged.
struct AckFloor {
  std::string store;
  std::uint64_t sequence = 0;
};

}  // namespace

/// Used by the thread only, except take_status() and the queue of statuses.
struct Ingestor::Worker : std::enable_shared_from_this<Worker> {
  Worker(IngestorOptions given, std::function<void()> statuses_callback,
         std::function<void(IngestorMetrics)> metrics_callback)
      : options(std::move(given)),
        on_statuses(std::move(statuses_callback)),
        on_metrics(std::move(metrics_callback)),
        from_beginning(!std::filesystem::exists(ack_floor_path())),
        store(std::make_unique<EventStore>(options.directory, options.store)) {
    metrics.store = store->metrics();
    from_beginning = from_beginning || store->was_truncated();
  }

  // The thread
  void run();
  void reload();
  void process();
  void publish_metrics();
  bool is_stopping() const { return thread->is_stopping(); }

  // The connection; BrokerError is thrown when it is lost
  void open();
  void create_streams();
  void create_stream(const std::string& name, const std::function<std::string(std::int64_t bytes)>& config);
  void create_consumer(const StreamInfo& events);
  ApiResponse find_consumer();
  bool store_lost_messages(const StreamInfo& events);
  void subscribe_statuses();
  void take_status(const NatsMessage& message, std::uint64_t last_replayed);
  void request_more();
  void on_request_ended(const NatsMessage& message);
  struct Delivery {
    ReceivedMessage received;
    bool is_valid = false;  // consistent with its subject; invalid messages are counted and acknowledged only
    std::string ack;        // the subject that acknowledges it
  };
  void next(std::vector<Delivery>& into);
  Delivery parse(const NatsMessage& message, const NatsMessage::Delivery& delivery) const;
  void ack(std::vector<std::string>& acks);

  std::string ack_floor_path() const { return options.directory + "/consumer"; }
  AckFloor read_ack_floor() const;
  void store_ack_floor(const AckFloor& floor) const;

  const IngestorOptions options;
  const std::function<void()> on_statuses;
  const std::function<void(IngestorMetrics)> on_metrics;
  bool must_reload = false;  // the files' durable content is unknown after a failed sync
  bool from_beginning;       // the files are missing or incomplete
  std::unique_ptr<EventStore> store;
  IngestorMetrics metrics;
  BrokerThread* thread = nullptr;  // runs this object
  StatusQueue statuses;
  std::atomic<bool> statuses_full = false;
  std::atomic<Clock::time_point> last_status;

  std::unique_ptr<NatsClient> client;
  std::unique_ptr<NatsClient::Inbox> messages;
  std::string store_name;
  Clock::time_point last_message;
  std::size_t requested = 0;  // not yet delivered
};

// --- The thread ---

Ingestor::Ingestor(boost::asio::io_context& io, IngestorOptions options, OnStatus on_status)
    : on_status_(std::move(on_status)), slices_(io), thread_(BrokerThread::start(io)) {
  try {
    worker_ = std::make_shared<Worker>(
        std::move(options), [this] { take_statuses(); },
        [this](IngestorMetrics metrics) { metrics_ = std::move(metrics); });
  } catch (...) {
    thread_->stop();
    throw;
  }
  metrics_ = worker_->metrics;
}

Ingestor::~Ingestor() { stop(); }

void Ingestor::start() {
  thread_->post([worker = worker_, thread = thread_.get()] {
    worker->thread = thread;
    worker->run();
  });
}

void Ingestor::stop() {
  slices_.cancel(this);
  thread_->stop(std::move(worker_));
}

/// Passes the waiting statuses on, in slices: a broker may have stored those of 30 days.
void Ingestor::take_statuses() {
  const auto work = [this, worker = worker_, taken = StatusQueue::Messages()](serve::Slice& slice) mutable {
    do {
      if (taken.empty()) taken = worker->statuses.take();
      if (taken.empty()) return true;
      auto& messages = taken.begin()->second;
      on_status_(messages.begin()->second);
      messages.erase(messages.begin());
      if (messages.empty()) taken.erase(taken.begin());
    } while (!slice.is_over());
    return false;
  };
  slices_.begin(this, work, [] {});
}

/// Copies the metrics to the event loop.
void Ingestor::Worker::publish_metrics() {
  thread->post_to_loop([call = on_metrics, copy = metrics] { call(copy); });
}

void Ingestor::Worker::run() {
  milliseconds retry_delay = retry_delay_min;
  while (!is_stopping()) {
    std::string error;
    try {
      if (must_reload) reload();
      open();
      from_beginning = false;
      log_info("hub: connected to {}", options.broker.where());
      metrics.open = true;
      ++metrics.opened;
      metrics.problem.clear();
      publish_metrics();
      retry_delay = retry_delay_min;
      process();
    } catch (const std::runtime_error& failure) {
      error = failure.what();
    }
    messages.reset();
    client.reset();
    if (is_stopping()) return;
    if (metrics.problem != error) log_warn("hub: {}; retrying", error);
    metrics.open = false;
    metrics.problem = error;
    publish_metrics();
    thread->pause(retry_delay);
    retry_delay = std::min(retry_delay * 2, retry_delay_max);
  }
}

/// Reloads the files after a failed sync. Messages that they lack are delivered again.
void Ingestor::Worker::reload() {
  store.reset();
  store = std::make_unique<EventStore>(options.directory, options.store);
  must_reload = false;
  from_beginning = from_beginning || store->was_truncated();
}

/// Fetches, writes and acknowledges until the connection is lost.
void Ingestor::Worker::process() {
  std::vector<Delivery> batch;
  std::vector<std::string> acks;  // of written messages that are not being synced yet
  std::vector<std::string> syncing_acks;
  std::future<std::string> syncing;  // fetching continues during a sync
  auto last_sync = Clock::now(), last_retention = last_sync;
  const auto acknowledge = [&](bool is_final) {
    if (syncing.valid()) {
      if (!is_final && syncing.wait_for(milliseconds(0)) != std::future_status::ready) return;
      if (const std::string error = syncing.get(); !error.empty()) {
        must_reload = true;  // acknowledge none of them: the kernel reports lost writes only once
        throw BrokerError(error);
      }
      ack(syncing_acks);
    }
    const auto now = Clock::now();
    if (acks.empty() || (!is_final && now - last_sync < sync_every && acks.size() < batch_max * 4)) return;
    last_sync = now;
    std::swap(acks, syncing_acks);
    syncing = std::async(std::launch::async, [this] { return options.sync ? store->sync() : std::string(); });
  };
  while (!is_stopping()) {
    batch.clear();
    next(batch);
    std::uint64_t invalid = 0;
    for (Delivery& each : batch) {
      if (each.is_valid)
        store->add(each.received);
      else
        ++invalid;
      acks.push_back(std::move(each.ack));
    }
    for (std::string failed = store->write(); !failed.empty(); failed = store->write()) {
      if (metrics.problem != failed) log_warn("hub: {}; retrying", failed);
      metrics.problem = failed;
      publish_metrics();
      if (!thread->pause(disk_retry_delay)) return;
    }
    const auto now = Clock::now();
    acknowledge(false);
    if (now - last_retention >= retention_interval) {
      last_retention = now;
      store->apply_retention(wall_now_ms());
    }
    if (batch.empty()) continue;
    metrics.received += batch.size();
    metrics.invalid += invalid;
    metrics.store = store->metrics();
    metrics.problem.clear();
    publish_metrics();
  }
  for (int round = 0; round < 3; ++round) acknowledge(true);  // the sync in progress, then the remaining ones
}

AckFloor Ingestor::Worker::read_ack_floor() const {
  AckFloor floor;
  std::ifstream file(ack_floor_path());
  std::getline(file, floor.store);
  if (!(file >> floor.sequence)) return {};
  return floor;
}

void Ingestor::Worker::store_ack_floor(const AckFloor& floor) const {
  const std::string text = floor.store + "\n" + std::to_string(floor.sequence) + "\n";
  std::string error = write_private_file(ack_floor_path(), text);
  if (error.empty()) error = store->sync();
  if (!error.empty()) throw BrokerError(error);
}

// --- The connection ---

void Ingestor::Worker::open() {
  client = std::make_unique<NatsClient>(options.broker, thread->shared_from_this());
  create_streams();
  const StreamInfo events = client->find_stream(options.broker.stream);
  store_name = events.created;
  messages = std::make_unique<NatsClient::Inbox>(*client, NatsClient::Source::consumer);
  create_consumer(events);
  statuses_full = false;
  last_status = Clock::now();
  subscribe_statuses();
  requested = 0;
  last_message = Clock::now();
}

void Ingestor::Worker::create_streams() {
  const auto events = [&](std::int64_t bytes) {
    return json_object({{"name", options.broker.stream},
                        {"subjects", Subjects{all_events()}},
                        {"storage", "file"},
                        {"max_age", events_age_ns},
                        {"max_bytes", bytes},
                        {"max_msg_size", message_bytes_max},
                        {"duplicate_window", duplicates_ns}});
  };
  const auto statuses = [&](std::int64_t) {
    return json_object({{"name", options.broker.status_stream()},
                        {"subjects", Subjects{all_statuses()}},
                        {"storage", "file"},
                        {"max_msgs_per_subject", 1},
                        {"max_age", statuses_age_ns},
                        {"max_msg_size", 65536},
                        {"allow_direct", true}});
  };
  create_stream(options.broker.stream, events);
  create_stream(options.broker.status_stream(), statuses);
}

/// Does nothing if the stream exists.
void Ingestor::Worker::create_stream(const std::string& name,
                                     const std::function<std::string(std::int64_t bytes)>& config) {
  if (client->find_stream(name).exists) return;
  constexpr int no_room = 10047, no_room_here = 10023;
  ApiResponse created = client->api("STREAM.CREATE." + name, config(events_bytes_max));
  if (created.error == no_room || created.error == no_room_here)  // less storage: without a limit of our own
    created = client->api("STREAM.CREATE." + name, config(-1));
  if (created.error != 0)
    throw BrokerError("JetStream cannot create the stream `" + name + "`: " + created.description);
}

/// Recreates the durable consumer behind its acknowledged messages. An existing one would deliver new
/// messages first, and unacknowledged ones of the last connection after their timeout only.
void Ingestor::Worker::create_consumer(const StreamInfo& events) {
  const std::string name = options.broker.stream + "." + options.durable;
  const AckFloor stored = read_ack_floor();
  std::uint64_t acknowledged = stored.store == store_name ? stored.sequence : 0;
  const ApiResponse known = find_consumer();
  if (known.error == 0) {
    acknowledged = 0;
    if (const auto floor = dom::member(known.json, "ack_floor"))
      acknowledged = dom::count_of(*floor, "stream_seq").value_or(0);
    const auto config = dom::member(known.json, "config");
    if (config && acknowledged == 0) {  // nothing was acknowledged
      const std::uint64_t first = dom::count_of(*config, "opt_start_seq").value_or(0);
      if (first > 0) acknowledged = first - 1;
    }
  }
  if (from_beginning || store_lost_messages(events)) acknowledged = 0;
  // If the hub stops between the two requests, it continues here.
  store_ack_floor({store_name, acknowledged});
  if (known.error == 0) client->api("CONSUMER.DELETE." + name, "");
  const bool is_all = acknowledged == 0;
  const std::string request =
      consumer_request(options.broker.stream, {{"durable_name", options.durable},
                                               {"name", options.durable},
                                               {"description", options.owner},
                                               {"deliver_policy", is_all ? "all" : "by_start_sequence"},
                                               {"opt_start_seq", is_all ? 0 : acknowledged + 1},
                                               {"ack_policy", "explicit"},
                                               {"ack_wait", ack_wait_ns},
                                               {"max_ack_pending", ack_pending_max},
                                               {"max_waiting", 16}});
  const ApiResponse created = client->api("CONSUMER.DURABLE.CREATE." + name, request);
  if (created.error != 0)
    throw BrokerError("JetStream's consumer `" + options.durable +
                      "` cannot be created: " + created.description);
}

/// The durable consumer; an error if there is none. Throws if another hub uses it.
ApiResponse Ingestor::Worker::find_consumer() {
  for (int attempt = 1;; ++attempt) {
    ApiResponse response = client->api("CONSUMER.INFO." + options.broker.stream + "." + options.durable, "");
    if (response.error != 0) return response;
    const auto config = dom::member(response.json, "config");
    const std::string_view owner = config ? dom::text_of(*config, "description") : std::string_view();
    if (owner.empty() || owner == options.owner || attempt > owner_checks) return response;
    if (dom::count_of(response.json, "num_waiting").value_or(0) > 0)
      throw BrokerError("another hub fetches as `" + options.durable +
                        "`: give one of the two another name, with `durable` in [hub]");
    thread->pause(owner_check_interval);
  }
}

/// True if the store lost messages that were received from it (a power failure): it reuses their sequences
/// for other messages.
bool Ingestor::Worker::store_lost_messages(const StreamInfo& events) {
  const StoredPosition last = store->last_received(store_name);
  if (last.sequence == 0 || last.sequence < events.first) return false;
  if (last.sequence > events.last) return true;
  const ApiResponse response = client->api("STREAM.MSG.GET." + options.broker.stream,
                                           R"({"seq":)" + std::to_string(last.sequence) + "}");
  if (response.error != 0) return false;  // it expired
  const auto message = dom::member(response.json, "message");
  const auto time_ms = message ? parse_time(dom::text_of(*message, "time")) : std::nullopt;
  return time_ms && *time_ms != last.time_ns / 1'000'000;
}

/// Subscribes to the last status of each session and host, and to all later ones.
void Ingestor::Worker::subscribe_statuses() {
  const std::string stream = options.broker.status_stream();
  const std::uint64_t last_replayed = client->find_stream(stream).last;
  const std::string inbox = client->receive(
      NatsClient::Source::consumer,
      [this, last_replayed](const NatsMessage& message) { take_status(message, last_replayed); });
  const std::string name = "status_" + inbox.substr(inbox.find('.') + 1, 22);
  const std::string request = consumer_request(stream, {{"name", name},
                                                        {"deliver_subject", inbox},
                                                        {"filter_subject", all_statuses()},
                                                        {"deliver_policy", "last_per_subject"},
                                                        {"ack_policy", "none"},
                                                        {"mem_storage", true},
                                                        {"idle_heartbeat", idle_heartbeat_ns},
                                                        {"num_replicas", 1},
                                                        {"inactive_threshold", 30'000'000'000}});
  const ApiResponse created =
      client->api("CONSUMER.CREATE." + stream + "." + name + "." + all_statuses(), request);
  if (created.error != 0)
    throw BrokerError("JetStream's consumer of statuses cannot be created: " + created.description);
}

/// Called on a thread of libnats. Only the latest message of a subject waits for the event loop.
void Ingestor::Worker::take_status(const NatsMessage& message, std::uint64_t last_replayed) {
  last_status = Clock::now();
  const std::string_view text = message.data();
  const auto delivery = message.delivery();
  if (text.empty() || !delivery || text.size() > status_bytes_max) return;  // an idle heartbeat, or invalid
  const std::string subject(message.subject());
  const auto put = statuses.put(
      {subject, std::string(text), delivery->time_ns / 1'000'000, delivery->sequence <= last_replayed});
  if (put == StatusQueue::Put::full) statuses_full = true;
  if (put != StatusQueue::Put::first) return;
  thread->post_to_loop(on_statuses);
}

/// Requests more messages once half of the requested ones arrived.
void Ingestor::Worker::request_more() {
  if (requested > request_messages / 2) return;
  const std::size_t more = request_messages - requested;
  const std::string request = json_object({{"batch", more},
                                           {"expires", request_expires_ns},
                                           {"max_bytes", request_bytes},
                                           {"idle_heartbeat", idle_heartbeat_ns}});
  client->publish("$JS.API.CONSUMER.MSG.NEXT." + options.broker.stream + "." + options.durable,
                  messages->subject(), request);
  requested += more;
}

/// A status of the broker instead of a message.
void Ingestor::Worker::on_request_ended(const NatsMessage& message) {
  const std::string status = message.header("Status");
  if (status == "503") throw BrokerError("JetStream's consumer does not exist");
  if (status == "409" && message.header("Description").find("Deleted") != std::string::npos)
    throw BrokerError("JetStream's consumer was deleted");
  if (status != "404" && status != "408" && status != "409") return;
  std::size_t left = requested;
  const std::string text = message.header("Nats-Pending-Messages");
  std::from_chars(text.data(), text.data() + text.size(), left);
  requested -= std::min(requested, left);
}

/// Appends a batch of messages; waits for the first one.
void Ingestor::Worker::next(std::vector<Delivery>& into) {
  request_more();
  for (std::size_t bytes = 0; into.size() < batch_max && bytes < batch_bytes;) {
    const auto message = messages->next(into.empty() ? fetch_timeout : milliseconds(0));
    if (!message) break;
    last_message = Clock::now();
    const auto delivery = message->delivery();
    if (!delivery) {
      on_request_ended(*message);
      continue;
    }
    if (requested > 0) --requested;
    into.push_back(parse(*message, *delivery));
    bytes += into.back().received.payload.size();
    request_more();
  }
  if (statuses_full) throw BrokerError("statuses arrive faster than they are processed");
  if (Clock::now() - last_message > silence_max || Clock::now() - last_status.load() > silence_max)
    throw BrokerError("JetStream's consumers sent no message and no heartbeat");
}

Ingestor::Worker::Delivery Ingestor::Worker::parse(const NatsMessage& raw,
                                                   const NatsMessage::Delivery& info) const {
  Delivery delivery;
  delivery.ack = raw.reply();
  ReceivedMessage& message = delivery.received;
  message.store = store_name;
  message.sequence = info.sequence;
  message.time_ns = info.time_ns;
  message.after = parse_cursor(raw.header(after_header));
  message.is_first = raw.header("Nats-Expected-Last-Subject-Sequence") == "0";
  message.payload = raw.data();
  const auto frame = read_frame(message.payload);
  if (!frame) return delivery;
  message.host = frame->host, message.stream = frame->stream, message.session = frame->session;
  message.type = frame->type, message.cursor = frame->cursor, message.from = frame->from;
  const bool is_renamed =
      message.type == "stream.renamed" && !message.from.empty() && message.from.size() <= stream_bytes_max;
  const bool is_known =
      message.cursor || message.type == "reset" || message.type == "stream.removed" || is_renamed;
  // The broker restricts a host to its own subjects: the event must belong to the subject.
  delivery.is_valid = is_known && is_host(message.host) && !message.stream.empty() &&
                      message.stream.size() <= stream_bytes_max &&
                      message.session.size() <= session_bytes_max && message.payload.starts_with('{') &&
                      is_subject_of(raw.subject(), message.host, message.stream);
  return delivery;
}

void Ingestor::Worker::ack(std::vector<std::string>& acks) {
  for (const std::string& each : acks) client->publish(each, {}, "+ACK");
  acks.clear();
}

}  // namespace earshot::team
