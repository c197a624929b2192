#include "notifier/subscription.hpp"

#include <algorithm>

namespace earshot::notifier {
namespace {

constexpr std::size_t streams_max = 4096;  // beyond this the oldest are not kept for a restart

}  // namespace

Subscription::Subscription(RuleEngine& engine, std::vector<std::string> types, const Cursors& cursors,
                           std::int64_t since_ms)
    : engine_(engine),
      since_ms_(since_ms),
      resumer_({.id = "notify", .filters = {.type = std::move(types)}, .since_ms = since_ms}) {
  for (const auto& [stream, cursor] : cursors) {
    resumer_.cursors().set(stream, cursor);
    advanced(stream);
  }
}

void Subscription::advanced(std::string_view stream) {
  advanced_at_.insert_or_assign(std::string(stream), ++advance_count_);
  if (advanced_at_.size() <= streams_max) return;
  const std::uint64_t oldest = advance_count_ - streams_max / 2;
  std::erase_if(advanced_at_, [&](const auto& each) { return each.second < oldest; });
}

Subscription::Cursors Subscription::cursors(std::size_t count_max) const {
  std::vector<std::pair<std::uint64_t, std::string_view>> order;
  for (const auto& [stream, move] : advanced_at_) order.emplace_back(move, stream);
  std::sort(order.begin(), order.end());
  if (order.size() > count_max)
    order.erase(order.begin(), order.end() - static_cast<std::ptrdiff_t>(count_max));
  Cursors cursors;
  for (const auto& [move, stream] : order) {
    if (const std::string* const cursor = resumer_.cursors().find(stream))
      cursors.emplace_back(stream, *cursor);
  }
  return cursors;
}

std::string Subscription::begin(std::int64_t now_ms, std::int64_t max_age_ms) {
  resumer_.set_since(std::max(now_ms - max_age_ms, since_ms_));
  engine_.begin();
  return resumer_.begin();
}

void Subscription::receive(std::string_view json, std::int64_t now_ms) {
  using Phase = common::StreamResumer::Phase;
  const auto frame = parser_.parse(json);
  if (!frame) {
    diagnostics_.emplace_back("ignored a frame of the daemon that is not a JSON object");
    return;
  }
  const std::string_view type = frame->text("type"), stream = frame->text("stream");
  const Phase before = resumer_.phase();
  resumer_.receive(*frame);
  if (type == "session" || type == "status" || type == "welcome") {
    engine_.handle(*frame, json, now_ms);
  } else if (type == "stream.removed") {
    if (const auto found = advanced_at_.find(stream); found != advanced_at_.end()) advanced_at_.erase(found);
  } else if (type == "error") {
    diagnostics_.push_back("the daemon reported an error: " + std::string(frame->text("message")) + " (" +
                           std::string(frame->text("code")) + ")");
  } else if (!frame->text("cursor").empty()) {
    advanced(stream);
    engine_.handle(*frame, json, now_ms);
  }
  resumer_.handled(*frame);
  if (before != Phase::live && resumer_.phase() == Phase::live) engine_.caught_up(now_ms);
}

}  // namespace earshot::notifier
