#include "team/ingestor.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <fstream>
#include <future>

#include "base/clock.hpp"

namespace earshot::team {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds retry_delay_min{200}, retry_delay_max{10'000}, poll_interval{100};
constexpr milliseconds fetch_timeout{100};      // for the first message of a batch
constexpr milliseconds disk_retry_delay{1000};  // between two attempts to write
constexpr std::chrono::seconds retention_interval{60};

}  // namespace

Ingestor::Ingestor(boost::asio::io_context& io, IngestorOptions options, OnStatus on_status)
    : io_(io),
      options_(std::move(options)),
      on_status_(std::move(on_status)),
      from_beginning_(!std::filesystem::exists(ack_floor_path())),
      store_(std::make_unique<EventStore>(options_.directory, options_.store)),
      consumer_(make_consumer(options_.broker, options_.durable)) {
  metrics_.store = thread_metrics_.store = store_->metrics();
  from_beginning_ = from_beginning_ || store_->was_truncated();
}

Ingestor::~Ingestor() {
  stop();
  if (thread_.joinable()) thread_.join();
}

void Ingestor::start() {
  if (!consumer_ || thread_.joinable()) return;
  thread_ = std::thread([this, alive = std::weak_ptr<char>(alive_)] { run(alive); });
}

void Ingestor::stop() {
  stopping_ = true;
  alive_.reset();
}

/// Copies the thread's metrics to the event loop.
void Ingestor::publish_metrics(const std::weak_ptr<char>& alive) {
  boost::asio::post(io_, [this, alive, metrics = thread_metrics_] {
    if (!alive.expired()) metrics_ = metrics;
  });
}

void Ingestor::pause(milliseconds time) {
  for (const auto until = Clock::now() + time; Clock::now() < until && !stopping_;)
    std::this_thread::sleep_for(std::min(poll_interval, time));
}

void Ingestor::run(std::weak_ptr<char> alive) {
  milliseconds retry_delay = retry_delay_min;
  while (!stopping_) {
    std::string error;
    if (!must_reload_ || reload(error))
      error = consumer_->open(consumer_start(), [this, alive](StatusMessage message) {
        return enqueue_status(std::move(message), alive);
      });
    if (error.empty()) {
      from_beginning_ = false;
      spdlog::info("hub: connected to {}", options_.broker.where());
      thread_metrics_.open = true;
      ++thread_metrics_.opened;
      thread_metrics_.problem.clear();
      publish_metrics(alive);
      retry_delay = retry_delay_min;
      process(error, alive);
    }
    consumer_->close();
    if (stopping_) return;
    if (thread_metrics_.problem != error) spdlog::warn("hub: {}; retrying", error);
    thread_metrics_.open = false;
    thread_metrics_.problem = error;
    publish_metrics(alive);
    pause(retry_delay);
    retry_delay = std::min(retry_delay * 2, retry_delay_max);
  }
}

/// Called on libnats' threads. Only the latest message of a subject waits.
bool Ingestor::enqueue_status(StatusMessage message, const std::weak_ptr<char>& alive) {
  const std::string subject = message.subject;
  const auto put = statuses_.put(subject, std::move(message));
  if (put == ConflatingQueue<StatusMessage>::Put::first)
    boost::asio::post(io_, [this, alive] {
      if (alive.expired()) return;
      for (const StatusMessage& each : statuses_.take()) on_status_(each);
    });
  return put != ConflatingQueue<StatusMessage>::Put::full;
}

ConsumerStart Ingestor::consumer_start() const {
  ConsumerStart start;
  start.owner = options_.owner;
  start.from_beginning = from_beginning_;
  std::ifstream position(ack_floor_path());
  std::getline(position, start.ack_floor.store);
  if (!(position >> start.ack_floor.sequence)) start.ack_floor = {};
  start.last_received = [this](const std::string& store) { return store_->last_received(store); };
  start.store_ack_floor = [this](const AckFloor& ack_floor) -> std::string {
    const std::string path = ack_floor_path(), temporary = path + ".fresh";
    {
      std::ofstream file(temporary, std::ios::trunc);
      file << ack_floor.store << '\n' << ack_floor.sequence << '\n';
      if (!file.flush()) return temporary + " cannot be written: is the disk full?";
    }
    std::error_code failed;
    std::filesystem::rename(temporary, path, failed);
    return failed ? path + ": " + failed.message() : store_->sync();
  };
  return start;
}

/// Reloads the files after a failed sync. Messages that they lack are delivered again.
bool Ingestor::reload(std::string& error) {
  try {
    store_.reset();
    store_ = std::make_unique<EventStore>(options_.directory, options_.store);
    must_reload_ = false;
    from_beginning_ = from_beginning_ || store_->was_truncated();
    return true;
  } catch (const std::runtime_error& failure) {
    error = failure.what();
    return false;
  }
}

/// Fetches, writes and acknowledges until the connection is lost.
void Ingestor::process(std::string& error, const std::weak_ptr<char>& alive) {
  std::vector<Delivery> batch;
  std::vector<std::string> acks;  // of written messages that are not being synced yet
  std::vector<std::string> syncing_acks;
  std::future<std::string> syncing;  // fetching continues during a sync
  auto last_sync = Clock::now(), last_retention = last_sync;
  const auto acknowledge = [&](bool is_final) {
    if (syncing.valid()) {
      if (!is_final && syncing.wait_for(milliseconds(0)) != std::future_status::ready) return;
      error = syncing.get();
      if (!error.empty()) {  // acknowledge none of them: the kernel reports lost writes only once
        must_reload_ = true;
        return;
      }
      error = consumer_->ack(syncing_acks);
      syncing_acks.clear();
      if (!error.empty()) return;
    }
    const auto now = Clock::now();
    if (acks.empty() || (!is_final && now - last_sync < sync_every && acks.size() < batch_max * 4)) return;
    last_sync = now;
    std::swap(acks, syncing_acks);
    syncing =
        std::async(std::launch::async, [this] { return options_.sync ? store_->sync() : std::string(); });
  };
  while (!stopping_) {
    batch.clear();
    if (!consumer_->next(batch, batch_max, batch_bytes, fetch_timeout, error)) return;
    std::uint64_t invalid = 0;
    for (Delivery& each : batch) {
      if (each.is_valid)
        store_->add(each.received);
      else
        ++invalid;
      acks.push_back(std::move(each.ack));
    }
    for (std::string failed = store_->write(); !failed.empty(); failed = store_->write()) {
      if (thread_metrics_.problem != failed) spdlog::warn("hub: {}; retrying", failed);
      thread_metrics_.problem = failed;
      publish_metrics(alive);
      pause(disk_retry_delay);
      if (stopping_) return;
    }
    const auto now = Clock::now();
    acknowledge(false);
    if (!error.empty()) return;
    if (now - last_retention >= retention_interval) {
      last_retention = now;
      store_->apply_retention(wall_now_ms());
    }
    if (batch.empty()) continue;
    thread_metrics_.received += batch.size();
    thread_metrics_.invalid += invalid;
    thread_metrics_.store = store_->metrics();
    thread_metrics_.problem.clear();
    publish_metrics(alive);
  }
  for (int round = 0; round < 3 && error.empty(); ++round)
    acknowledge(true);  // the sync in progress, then the remaining messages
}

}  // namespace earshot::team
