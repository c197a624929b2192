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

constexpr milliseconds pause_first{200}, pause_last{10'000}, step{100};
constexpr milliseconds wait{100};         // for the first message of a batch
constexpr milliseconds full_pause{1000};  // a disk that takes nothing is tried again
constexpr std::chrono::seconds retire_every{60};

}  // namespace

Ingestor::Ingestor(boost::asio::io_context& io, IngestorOptions options, OnStatus on_status)
    : io_(io),
      options_(std::move(options)),
      on_status_(std::move(on_status)),
      anew_(!std::filesystem::exists(floor_path())),
      shelf_(std::make_unique<EventStore>(options_.directory, options_.shelf)),
      feed_(make_feed(options_.link, options_.durable)) {
  figures_.shelf = mine_.shelf = shelf_->figures();
  anew_ = anew_ || shelf_->lost_something();
}

Ingestor::~Ingestor() {
  stop();
  if (thread_.joinable()) thread_.join();
}

void Ingestor::start() {
  if (!feed_ || thread_.joinable()) return;
  thread_ = std::thread([this, alive = std::weak_ptr<char>(alive_)] { run(alive); });
}

void Ingestor::stop() {
  stopping_ = true;
  alive_.reset();
}

/// What the thread sees, for the loop.
void Ingestor::tell(const std::weak_ptr<char>& alive) {
  boost::asio::post(io_, [this, alive, figures = mine_] {
    if (!alive.expired()) figures_ = figures;
  });
}

void Ingestor::pause(milliseconds time) {
  for (const auto until = Clock::now() + time; Clock::now() < until && !stopping_;)
    std::this_thread::sleep_for(std::min(step, time));
}

void Ingestor::run(std::weak_ptr<char> alive) {
  milliseconds patience = pause_first;
  while (!stopping_) {
    std::string why;
    if (!doubtful_ || read_again(why))
      why = feed_->open(start_of(),
                        [this, alive](HeardStatus heard) { return hand_on(std::move(heard), alive); });
    if (why.empty()) {
      anew_ = false;
      spdlog::info("hub: {} is there", options_.link.where());
      mine_.open = true;
      ++mine_.opened;
      mine_.trouble.clear();
      tell(alive);
      patience = pause_first;
      serve(why, alive);
    }
    feed_->close();
    if (stopping_) return;
    if (mine_.trouble != why) spdlog::warn("hub: {}; it is tried again", why);
    mine_.open = false;
    mine_.trouble = why;
    tell(alive);
    pause(patience);
    patience = std::min(patience * 2, pause_last);
  }
}

/// From libnats' threads. Only the newest of a subject counts, so no more waits than there are subjects.
bool Ingestor::hand_on(HeardStatus heard, const std::weak_ptr<char>& alive) {
  const std::string subject = heard.subject;
  const auto put = statuses_.put(subject, std::move(heard));
  if (put == ConflatingQueue<HeardStatus>::Put::first)
    boost::asio::post(io_, [this, alive] {
      if (alive.expired()) return;
      for (const HeardStatus& each : statuses_.take()) on_status_(each);
    });
  return put != ConflatingQueue<HeardStatus>::Put::full;
}

ConsumerStart Ingestor::start_of() const {
  ConsumerStart start;
  start.owner = options_.owner;
  start.anew = anew_;
  std::ifstream kept(floor_path());
  std::getline(kept, start.floor.store);
  if (!(kept >> start.floor.sequence)) start.floor = {};
  start.newest = [this](const std::string& store) { return shelf_->newest(store); };
  start.keep_floor = [this](const Floor& floor) -> std::string {
    const std::string path = floor_path(), fresh = path + ".fresh";
    {
      std::ofstream file(fresh, std::ios::trunc);
      file << floor.store << '\n' << floor.sequence << '\n';
      if (!file.flush()) return fresh + " cannot be written: is the disk full?";
    }
    std::error_code failed;
    std::filesystem::rename(fresh, path, failed);
    return failed ? path + ": " + failed.message() : shelf_->sync();
  };
  return start;
}

/// What reached the disk nobody knows any more: what is there counts, and the rest comes again.
bool Ingestor::read_again(std::string& why) {
  try {
    shelf_.reset();
    shelf_ = std::make_unique<EventStore>(options_.directory, options_.shelf);
    doubtful_ = false;
    anew_ = anew_ || shelf_->lost_something();
    return true;
  } catch (const std::runtime_error& error) {
    why = error.what();
    return false;
  }
}

/// Until the connection is over.
void Ingestor::serve(std::string& why, const std::weak_ptr<char>& alive) {
  std::vector<Delivery> batch;
  std::vector<std::string> acks;  // of what is written, but not yet being made to last
  std::vector<std::string> lasting;
  std::future<std::string>
      syncing;  // `lasting` is made to last: what comes meanwhile does not wait for the disk
  auto synced = Clock::now(), retired = synced;
  const auto acknowledge = [&](bool wait_for_it) {
    if (syncing.valid()) {
      if (!wait_for_it && syncing.wait_for(milliseconds(0)) != std::future_status::ready) return;
      why = syncing.get();
      if (!why.empty()) {  // none of them is acknowledged: the system says only once that it lost something
        doubtful_ = true;
        return;
      }
      why = feed_->ack(lasting);
      lasting.clear();
      if (!why.empty()) return;
    }
    const auto now = Clock::now();
    if (acks.empty() || (!wait_for_it && now - synced < sync_every && acks.size() < batch_max * 4)) return;
    synced = now;
    std::swap(acks, lasting);
    syncing =
        std::async(std::launch::async, [this] { return options_.sync ? shelf_->sync() : std::string(); });
  };
  while (!stopping_) {
    batch.clear();
    if (!feed_->next(batch, batch_max, batch_bytes, wait, why)) return;
    std::uint64_t unsound = 0;
    for (Delivery& each : batch) {
      if (each.sound)
        shelf_->take(each.received);
      else
        ++unsound;
      acks.push_back(std::move(each.ack));
    }
    for (std::string failed = shelf_->write(); !failed.empty(); failed = shelf_->write()) {
      if (mine_.trouble != failed) spdlog::warn("hub: {}; it is tried again", failed);
      mine_.trouble = failed;
      tell(alive);
      pause(full_pause);
      if (stopping_) return;
    }
    const auto now = Clock::now();
    acknowledge(false);
    if (!why.empty()) return;
    if (now - retired >= retire_every) {
      retired = now;
      shelf_->retire(watch::wall_now_ms());
    }
    if (batch.empty()) continue;
    mine_.received += batch.size();
    mine_.unsound += unsound;
    mine_.shelf = shelf_->figures();
    mine_.trouble.clear();
    tell(alive);
  }
  for (int round = 0; round < 3 && why.empty(); ++round)
    acknowledge(true);  // what is under way, then the rest
}

}  // namespace earshot::team
