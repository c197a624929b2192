#include "relay/hosts.hpp"

#include <chrono>
#include <utility>

#include "core/time.hpp"
#include "relay/engine.hpp"
#include "relay/names.hpp"
#include "relay/payload.hpp"
#include "tail/told_names.hpp"

namespace earshot::relay {
namespace {

using watch::Clock;
constexpr std::chrono::milliseconds tick_every{1000};
constexpr std::chrono::milliseconds away_after{Engine::beat_ms * Engine::beats_missed_max};

}  // namespace

Hosts::Hosts(boost::asio::io_context& io, Show show) : show_(std::move(show)), ticker_(io) {}

void Hosts::start() {
  ticker_.expires_after(tick_every);
  ticker_.async_wait([this](boost::system::error_code ec) {
    if (!ec) tick();
  });
}

void Hosts::stop() { ticker_.cancel(); }

void Hosts::hear(const HeardStatus& heard) {
  const auto frame = read_frame(heard.payload);
  if (!frame || !is_host(frame->host)) return;
  const bool is_beat = frame->type == "host";
  if (heard.subject != (is_beat ? beat_subject(frame->host) : status_subject(frame->host, frame->session)))
    return;
  if (hosts_.size() >= hosts_max && !hosts_.contains(frame->host)) return;
  const auto [found, fresh] = hosts_.try_emplace(frame->host);
  Host& host = found->second;
  if (fresh) host.beat = Clock::now();  // its next beats will tell: their own times are another clock's
  if (is_beat) {
    host.beat = Clock::now();
    host.heard_ms = heard.time_ms;
    if (host.online) return;
    host.online = true;
    for (const auto& [session, status] : host.sessions) show_(session, status);
    return;
  }
  if (frame->type != "status" || !frame->status || frame->session.empty()) return;
  const std::string session = tail::session_at(frame->session, frame->host);
  const auto known = host.sessions.find(session);
  if (known != host.sessions.end()) {
    if (known->second == *frame->status) return;
    known->second = *frame->status;
  } else if (sessions_ < sessions_max) {
    host.sessions.emplace(session, *frame->status);
    ++sessions_;
  }
  if (host.online) show_(session, *frame->status);
}

/// Those who were there have their time again to be heard.
void Hosts::listen_again() {
  const bool was_deaf = std::exchange(deaf_, hears && !hears());
  if (!was_deaf || deaf_) return;
  for (auto& [name, host] : hosts_) host.beat = Clock::now();
}

bool Hosts::online(std::string_view name) const {
  const auto found = hosts_.find(name);
  return found != hosts_.end() && found->second.online;
}

std::vector<HostSeen> Hosts::seen() const {
  std::vector<HostSeen> all;
  for (const auto& [name, host] : hosts_)
    all.push_back({name, host.online, host.heard_ms ? format_time(host.heard_ms) : std::string()});
  return all;
}

void Hosts::tick() {
  listen_again();
  const auto now = Clock::now();
  for (auto& [name, host] : hosts_)
    if (!deaf_ && host.online && now - host.beat > away_after) away(host);
  start();
}

void Hosts::away(Host& host) {
  host.online = false;
  status::Status status;
  status.state = "unknown";
  status.reason = "host_offline";
  status.source = "clock";
  if (host.heard_ms) status.since = format_time(host.heard_ms);
  for (const auto& [session, last] : host.sessions)
    if (last.state != "ended") show_(session, status);
}

}  // namespace earshot::relay
