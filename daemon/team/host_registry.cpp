#include "team/host_registry.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/time.hpp"
#include "tail/host_names.hpp"
#include "team/broker_client.hpp"
#include "team/payload.hpp"
#include "team/subjects.hpp"

namespace earshot::team {
namespace {

using watch::Clock;
constexpr std::chrono::milliseconds tick_every{1000};
constexpr std::chrono::milliseconds away_after{BrokerClient::beat_ms * BrokerClient::beats_missed_max};

}  // namespace

HostRegistry::HostRegistry(boost::asio::io_context& io, Show show, ShowHosts show_hosts)
    : show_(std::move(show)), show_hosts_(std::move(show_hosts)), ticker_(io) {}

void HostRegistry::start() {
  ticker_.expires_after(tick_every);
  ticker_.async_wait([this](boost::system::error_code ec) {
    if (!ec) tick();
  });
}

void HostRegistry::stop() { ticker_.cancel(); }

void HostRegistry::hear(const HeardStatus& heard) {
  const auto frame = read_frame(heard.payload);
  if (!frame || !is_host(frame->host)) return;
  const bool is_beat = frame->type == "host";
  if (heard.subject != (is_beat ? beat_subject(frame->host) : status_subject(frame->host, frame->session)))
    return;
  if (hosts_.size() >= hosts_max && !hosts_.contains(frame->host)) return;
  const auto [found, fresh] = hosts_.try_emplace(frame->host);
  Host& host = found->second;
  if (fresh) host.beat = Clock::now();
  if (is_beat) return beat(found->first, host, heard);
  if (frame->type != "status" || !frame->status || frame->session.empty()) return;
  const std::string session = tail::session_on_host(frame->session, frame->host);
  const auto known = host.sessions.find(session);
  if (known != host.sessions.end() && known->second.status == *frame->status) return;
  remember(host, session, *frame->status);
  if (host.is == Host::Is::online) show_(session, *frame->status);
}

/// A beat from before we listened says when the host was heard, but not that it is there.
void HostRegistry::beat(const std::string& name, Host& host, const HeardStatus& heard) {
  const bool is_news = heard.time_ms > host.heard_ms;
  host.heard_ms = std::max(host.heard_ms, heard.time_ms);
  if (heard.old || !is_news) return;
  host.beat = Clock::now();
  if (host.is == Host::Is::online) return;
  host.is = Host::Is::online;
  for (const auto& [session, last] : host.sessions) show_(session, last.status);
  changed_[name] = {};
}

void HostRegistry::remember(Host& host, const std::string& session, const status::Status& status) {
  if (status.state == "ended") return void(host.sessions.erase(session));
  if (host.sessions.size() >= sessions_max && !host.sessions.contains(session)) {
    const auto older = [](const auto& a, const auto& b) { return a.second.number < b.second.number; };
    host.sessions.erase(std::min_element(host.sessions.begin(), host.sessions.end(), older));
  }
  host.sessions[session] = {status, ++host.told};
}

/// Those who were there have their time again to be heard.
void HostRegistry::listen_again() {
  const bool was_deaf = std::exchange(deaf_, hears && !hears());
  if (!was_deaf || deaf_) return;
  for (auto& [name, host] : hosts_) host.beat = Clock::now();
}

bool HostRegistry::online(std::string_view name) const {
  const auto found = hosts_.find(name);
  return found != hosts_.end() && found->second.is == Host::Is::online;
}

std::vector<HostSeen> HostRegistry::seen() const {
  std::vector<HostSeen> all;
  for (const auto& [name, host] : hosts_)
    all.push_back(
        {name, host.is == Host::Is::online, host.heard_ms ? format_time(host.heard_ms) : std::string()});
  return all;
}

void HostRegistry::tick() {
  listen_again();
  const auto now = Clock::now();
  for (auto& [name, host] : hosts_)
    if (!deaf_ && host.is != Host::Is::away && now - host.beat > away_after) away(name, host);
  if (!changed_.empty()) show_hosts_(std::exchange(changed_, {}));
  start();
}

void HostRegistry::away(const std::string& name, Host& host) {
  host.is = Host::Is::away;
  const status::Status status =
      status::host_offline_status(host.heard_ms ? format_time(host.heard_ms) : std::string());
  for (const auto& [session, last] : host.sessions) show_(session, status);
  changed_[name] = status;
}

}  // namespace earshot::team
