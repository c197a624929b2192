#include "notifier/delivery_queue.hpp"

#include <algorithm>
#include <set>

namespace earshot::notifier {

DeliveryQueue::DeliveryQueue(const Rules& rules, const Spool& spool, unsigned seed, std::int64_t now_ms)
    : rules_(rules), spool_(spool), random_(seed) {
  Spool::Contents found = spool_.load();
  for (QueuedNotice& queued : found.queued_notices)
    notices_.push_back({std::move(queued), now_ms, true, false});
  for (QueuedNotice& queued : found.interrupted) {
    Entry entry{std::move(queued), 0, true, false};
    add_dead_letter(entry, "the notifier was killed twice while sending it; not sent a third time");
  }
}

bool DeliveryQueue::can_retract(const QueuedNotice& queued) const {
  const Sink* const sink = rules_.sink(queued.sink);
  return sink != nullptr && sink->can_retract();
}

void DeliveryQueue::add_dead_letter(Entry& entry, std::string why) {
  spool_.remove(entry.queued);
  events_.push_back({Event::What::dead, entry.queued, std::move(why)});
}

void DeliveryQueue::add(const Notice& notice, std::int64_t now_ms) {
  for (const std::string& sink : notice.sinks) {
    Entry entry;
    entry.queued.notice = notice;
    entry.queued.sink = sink;
    entry.queued.queued_ms = now_ms;
    entry.due_ms = now_ms;
    const std::string key = entry.queued.key();
    const bool known = std::any_of(notices_.begin(), notices_.end(),
                                   [&](const Entry& each) { return each.queued.key() == key; });
    if (!known)
      notices_.push_back(std::move(entry));  // known after a crash between writing the spool and the state
  }
  while (notices_.size() > notices_max) {
    const auto oldest =
        std::find_if(notices_.begin(), notices_.end(), [](const Entry& each) { return !each.in_flight; });
    if (oldest == notices_.end()) break;
    add_dead_letter(
        *oldest, "more than " + std::to_string(notices_max) + " notices are queued: the oldest was dropped");
    notices_.erase(oldest);
  }
}

std::vector<QueuedNotice> DeliveryQueue::take_due(std::int64_t now_ms, bool can_retract_now) {
  std::set<std::string> busy;  // sinks
  for (const Entry& each : notices_) {
    if (each.in_flight && !can_retract(each.queued)) busy.insert(each.queued.sink);
  }
  std::vector<QueuedNotice> out;
  for (Entry& each : notices_) {
    if (each.in_flight || each.due_ms > now_ms || can_retract(each.queued) != can_retract_now) continue;
    if (!can_retract_now) {
      const auto paused = paused_until_.find(each.queued.sink);
      if (!each.saved || (paused != paused_until_.end() && paused->second > now_ms)) continue;
      if (!busy.insert(each.queued.sink).second) continue;
      spool_.begin(each.queued);
    }
    each.in_flight = true;
    out.push_back(each.queued);
  }
  return out;
}

std::string DeliveryQueue::save() {
  std::string error;
  for (Entry& each : notices_) {
    if (each.saved) continue;
    const std::string why = spool_.save(each.queued);
    if (!why.empty()) error = why;  // send it anyway: only a crash would lose it
    each.saved = true;
  }
  return error;
}

std::int64_t DeliveryQueue::backoff_ms(int attempts) {
  std::int64_t ms = backoff_first_ms;
  for (int i = 1; i < attempts && ms < backoff_max_ms; ++i) ms *= 2;
  ms = std::min(ms, backoff_max_ms);
  return ms / 2 + std::uniform_int_distribution<std::int64_t>(0, ms / 2)(random_);
}

void DeliveryQueue::report(const std::string& key, const Delivery& delivery, std::int64_t now_ms) {
  const auto found = std::find_if(notices_.begin(), notices_.end(), [&](const Entry& each) {
    return each.queued.key() == key && each.in_flight;
  });
  if (found == notices_.end()) return;
  QueuedNotice& queued = found->queued;
  found->in_flight = false;
  if (delivery.done) {
    spool_.remove(queued);
    events_.push_back({Event::What::sent, std::move(queued), {}});
    notices_.erase(found);
    return;
  }
  ++queued.attempts;
  queued.is_resend = false;  // the result is known
  const bool too_old = queued.queued_ms + age_ms_max <= now_ms;
  if (delivery.permanent || queued.attempts >= attempts_max || too_old) {
    add_dead_letter(
        *found,
        delivery.why +
            (delivery.permanent ? "" : "; given up after " + std::to_string(queued.attempts) + " attempts"));
    notices_.erase(found);
    return;
  }
  const std::int64_t requested_ms = std::min(delivery.retry_after_ms, retry_after_ms_max);
  if (requested_ms > 0) paused_until_[queued.sink] = now_ms + requested_ms;
  found->due_ms = now_ms + std::max(requested_ms, backoff_ms(queued.attempts));
  spool_.failed(queued);
  found->saved = true;
  events_.push_back({Event::What::failed, queued, delivery.why});
}

void DeliveryQueue::withdraw(const std::string& notice, const std::vector<std::string>& sinks) {
  std::erase_if(notices_, [&](Entry& each) {
    const bool is_target = each.queued.notice.id == notice && !each.in_flight &&
                           std::find(sinks.begin(), sinks.end(), each.queued.sink) != sinks.end();
    if (!is_target) return false;
    spool_.remove(each.queued);
    events_.push_back({Event::What::withdrawn, each.queued, "answered before it could be sent"});
    return true;
  });
}

std::optional<std::int64_t> DeliveryQueue::next_ms(std::int64_t now_ms) const {
  std::optional<std::int64_t> next;
  for (const Entry& each : notices_) {
    if (each.in_flight) continue;
    std::int64_t due_ms = each.due_ms;
    if (const auto paused = paused_until_.find(each.queued.sink); paused != paused_until_.end())
      due_ms = std::max(due_ms, paused->second);
    if (due_ms <= now_ms) continue;  // its sink is busy: the next report() starts it
    if (!next || due_ms < *next) next = due_ms;
  }
  return next;
}

}  // namespace earshot::notifier
