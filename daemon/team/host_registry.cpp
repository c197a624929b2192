#include "team/host_registry.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "agents/stream_name.hpp"
#include "base/quantities.hpp"
#include "team/payload.hpp"

namespace earshot::team {
namespace {

constexpr std::chrono::milliseconds tick_interval{1000};
constexpr std::chrono::milliseconds offline_after{heartbeat_ms * heartbeats_missed_max};

}  // namespace

StatusQueue::Put StatusQueue::put(StatusMessage message) {
  const std::string& subject = message.subject;
  const std::size_t begin = std::min(all_statuses().size() - 1, subject.size());
  const std::string host = subject.substr(begin, subject.find('.', begin) - begin);
  const std::lock_guard lock(mutex_);
  auto& messages = hosts_[host];
  if (!messages.contains(subject)) {
    if (messages.size() >= host_max) return Put::host_full;
    if (size_ >= total_max) return Put::full;
    ++size_;
  }
  std::string key = subject;
  messages.insert_or_assign(std::move(key), std::move(message));
  return std::exchange(is_notified_, true) ? Put::more : Put::first;
}

StatusQueue::Messages StatusQueue::take() {
  const std::lock_guard lock(mutex_);
  if (size_ == 0) is_notified_ = false;
  size_ = 0;
  return std::exchange(hosts_, {});
}

HostRegistry::HostRegistry(boost::asio::io_context& io, OnStatus on_status, OnHosts on_hosts)
    : on_status_(std::move(on_status)), on_hosts_(std::move(on_hosts)), tick_timer_(io), slices_(io) {}

void HostRegistry::start() {
  tick_timer_.expires_after(tick_interval);
  tick_timer_.async_wait([this](boost::system::error_code ec) {
    if (!ec) tick();
  });
}

void HostRegistry::stop() {
  tick_timer_.cancel();
  for (const auto& [name, host] : hosts_) slices_.cancel(&host);
}

void HostRegistry::on_message(const StatusMessage& message) {
  const auto frame = read_frame(message.payload);
  if (!frame || !is_host(frame->host)) return;
  const bool is_heartbeat = frame->type == "host";
  if (message.subject !=
      (is_heartbeat ? heartbeat_subject(frame->host) : status_subject(frame->host, frame->session)))
    return;
  if (hosts_.size() >= hosts_max && !hosts_.contains(frame->host)) return;
  const auto [found, is_new] = hosts_.try_emplace(frame->host);
  Host& host = found->second;
  if (is_new) host.last_heartbeat = Clock::now();
  if (is_heartbeat) return on_heartbeat(found->first, host, message, frame->time);
  if (frame->type != "status" || !frame->status || frame->session.empty()) return;
  if (frame->session.size() > session_bytes_max) return;
  const std::string session = session_on_host(frame->session, frame->host);
  const auto known = host.sessions.find(session);
  const bool is_known = known != host.sessions.end();
  const bool is_same = is_known && known->second.status == *frame->status;
  const bool has_numbers =
      is_known ? known->second.numbers != frame->numbers : frame->numbers != serve::ReportedNumbers{};
  if (is_same && !has_numbers) return;
  status::Status status = *frame->status;
  std::optional<status::Done> told;
  if (is_known) told = known->second.told;
  if (!store_status(host, session, status, frame->numbers)) return;
  const auto stored = host.sessions.find(session);
  if (stored != host.sessions.end()) {
    // What a new session, or a replayed message, states as done is history: it is not news.
    const bool is_history = !is_known || message.is_replayed;
    stored->second.told = is_history && status.done ? status.done : told;
  }
  if (has_numbers && on_numbers) on_numbers(session, frame->numbers);
  if (is_same || host.state != Host::State::online) return;
  if (host.passed_on && session > *host.passed_on && stored != host.sessions.end()) return;  // soon
  status.tells_done =
      is_known && !message.is_replayed && status.done && !status::is_same_prompt(told, *status.done);
  if (stored != host.sessions.end() && status.done) stored->second.told = status.done;
  on_status_(session, status);
}

/// A replayed heartbeat sets the time, but not the state. Each other one proves life, whatever its time is:
/// the broker's clock may be set back.
void HostRegistry::on_heartbeat(const std::string& name, Host& host, const StatusMessage& message,
                                std::string_view host_time) {
  host.last_seen_ms = message.time_ms;
  if (message.is_replayed) return;
  host.last_heartbeat = Clock::now();
  update_clock(name, host, host_time);
  if (host.state == Host::State::online) return;
  host.state = Host::State::online;
  pass_on(name, host);
}

/// The host's state has changed: passes the present statuses of all its sessions on, in slices.
void HostRegistry::pass_on(const std::string& name, Host& host) {
  const status::Status offline =
      status::host_offline_status(host.last_seen_ms ? format_time(host.last_seen_ms) : std::string());
  const bool is_online = host.state == Host::State::online;
  const auto work = [this, &host, is_online, offline](serve::Slice& slice) {
    for (auto at = host.sessions.upper_bound(*host.passed_on); at != host.sessions.end();) {
      auto& [session, last] = *at++;
      host.passed_on = session;
      status::Status status = is_online ? last.status : offline;
      if (is_online && status.done) {
        status.tells_done = !status::is_same_prompt(last.told, *status.done);
        last.told = status.done;
      }
      on_status_(session, status);
      if (slice.is_over()) return at == host.sessions.end();
    }
    return true;
  };
  slices_.cancel(&host);
  host.passed_on = std::string();
  slices_.begin(&host, work, [this, name, &host, is_online, offline] {
    host.passed_on.reset();
    changed_[name] = is_online ? status::Status() : offline;
  });
}

void HostRegistry::update_clock(const std::string& name, Host& host, std::string_view host_time) {
  constexpr std::int64_t noticeable_ms = 1000;
  const auto time_ms = parse_time(host_time);
  if (!time_ms) return;
  host.offsets_ms.push_back(wall_now_ms() - *time_ms);
  if (host.offsets_ms.size() > offsets_max) host.offsets_ms.pop_front();
  std::int64_t offset = *std::min_element(host.offsets_ms.begin(), host.offsets_ms.end());
  if (std::abs(offset) <= clock_tolerance_ms) offset = 0;
  const bool is_same =
      (offset == 0) == (host.offset_ms == 0) && std::abs(offset - host.offset_ms) < noticeable_ms;
  if (is_same) return;
  host.offset_ms = offset;
  if (on_clock) on_clock(name, offset);
}

/// Returns false if the status is ignored because of a limit.
bool HostRegistry::store_status(Host& host, const std::string& session, const status::Status& status,
                                const serve::ReportedNumbers& numbers) {
  const auto known = host.sessions.find(session);
  if (known != host.sessions.end()) host.order.erase(known->second.number);
  if (status.state == "ended") {
    if (known != host.sessions.end()) host.sessions.erase(known);
    return true;
  }
  if (known == host.sessions.end() && host.sessions.size() >= sessions_max) {
    if (!host.evictions.take(Clock::now())) return false;
    const auto oldest = host.order.begin();
    // The server keeps a session as long as its process lives.
    if (host.state == Host::State::online) on_status_(oldest->second, {"unknown", "", "", "clock", ""});
    host.sessions.erase(oldest->second);
    host.order.erase(oldest);
  }
  host.order[++host.status_count] = session;
  host.sessions[session] = {status, std::nullopt, numbers, host.status_count};
  return true;
}

/// After a reconnect each host has the full time for its next heartbeat.
void HostRegistry::update_connection() {
  const bool was_disconnected = std::exchange(is_disconnected_, is_connected && !is_connected());
  if (!was_disconnected || is_disconnected_) return;
  for (auto& [name, host] : hosts_) host.last_heartbeat = Clock::now();
}

bool HostRegistry::online(std::string_view name) const {
  const auto found = hosts_.find(name);
  return found != hosts_.end() && found->second.state == Host::State::online;
}

std::vector<HostInfo> HostRegistry::hosts() const {
  std::vector<HostInfo> all;
  for (const auto& [name, host] : hosts_)
    all.push_back({name, host.state == Host::State::online,
                   host.last_seen_ms ? format_time(host.last_seen_ms) : std::string()});
  return all;
}

void HostRegistry::tick() {
  update_connection();
  const auto now = Clock::now();
  for (auto& [name, host] : hosts_)
    if (!is_disconnected_ && host.state != Host::State::offline &&
        now - host.last_heartbeat > offline_after) {
      host.state = Host::State::offline;
      pass_on(name, host);
    }
  if (!changed_.empty()) on_hosts_(std::exchange(changed_, {}));
  start();
}

}  // namespace earshot::team
