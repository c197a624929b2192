#include "notifier/delivery_queue.hpp"

#include <algorithm>
#include <set>

namespace earshot::notifier {

PostOffice::PostOffice(const Rules& rules, const Spool& spool, unsigned seed, std::int64_t now_ms)
    : rules_(rules), spool_(spool), random_(seed) {
  Spool::Found found = spool_.load();
  for (Letter& letter : found.letters) letters_.push_back({std::move(letter), now_ms, true, false});
  for (Letter& letter : found.interrupted) {
    Waiting waiting{std::move(letter), 0, true, false};
    dead(waiting, "the program ended twice while it was sent: it is not sent a third time");
  }
}

bool PostOffice::takes_back(const Letter& letter) const {
  const Sink* const sink = rules_.sink(letter.sink);
  return sink != nullptr && sink->takes_back();
}

void PostOffice::dead(Waiting& waiting, std::string why) {
  spool_.remove(waiting.letter);
  events_.push_back({Event::What::dead, waiting.letter, std::move(why)});
}

void PostOffice::take(const Notice& notice, std::int64_t now_ms) {
  for (const std::string& sink : notice.sinks) {
    Waiting waiting;
    waiting.letter.notice = notice;
    waiting.letter.sink = sink;
    waiting.letter.written_ms = now_ms;
    waiting.due_ms = now_ms;
    const std::string key = waiting.letter.key();
    const bool known = std::any_of(letters_.begin(), letters_.end(),
                                   [&](const Waiting& each) { return each.letter.key() == key; });
    if (!known) letters_.push_back(std::move(waiting));  // else a crash came between the spool and the state
  }
  while (letters_.size() > letters_max) {
    const auto oldest =
        std::find_if(letters_.begin(), letters_.end(), [](const Waiting& each) { return !each.on_its_way; });
    if (oldest == letters_.end()) break;
    dead(*oldest, "more than " + std::to_string(letters_max) + " letters wait: the oldest was given up");
    letters_.erase(oldest);
  }
}

std::vector<Letter> PostOffice::collect(std::int64_t now_ms, bool take_back) {
  std::set<std::string> busy;  // sinks
  for (const Waiting& each : letters_) {
    if (each.on_its_way && !takes_back(each.letter)) busy.insert(each.letter.sink);
  }
  std::vector<Letter> out;
  for (Waiting& each : letters_) {
    if (each.on_its_way || each.due_ms > now_ms || takes_back(each.letter) != take_back) continue;
    if (!take_back) {
      const auto paused = paused_until_.find(each.letter.sink);
      if (!each.saved || (paused != paused_until_.end() && paused->second > now_ms)) continue;
      if (!busy.insert(each.letter.sink).second) continue;
      spool_.begin(each.letter);
    }
    each.on_its_way = true;
    out.push_back(each.letter);
  }
  return out;
}

std::string PostOffice::save() {
  std::string trouble;
  for (Waiting& each : letters_) {
    if (each.saved) continue;
    const std::string why = spool_.save(each.letter);
    if (!why.empty()) trouble = why;  // it is sent all the same: only a crash would lose it
    each.saved = true;
  }
  return trouble;
}

std::int64_t PostOffice::backoff_ms(int attempts) {
  std::int64_t ms = backoff_first_ms;
  for (int i = 1; i < attempts && ms < backoff_max_ms; ++i) ms *= 2;
  ms = std::min(ms, backoff_max_ms);
  return ms / 2 + std::uniform_int_distribution<std::int64_t>(0, ms / 2)(random_);
}

void PostOffice::report(const std::string& key, const Delivery& delivery, std::int64_t now_ms) {
  const auto found = std::find_if(letters_.begin(), letters_.end(), [&](const Waiting& each) {
    return each.letter.key() == key && each.on_its_way;
  });
  if (found == letters_.end()) return;
  Letter& letter = found->letter;
  found->on_its_way = false;
  if (delivery.done) {
    spool_.remove(letter);
    events_.push_back({Event::What::sent, std::move(letter), {}});
    letters_.erase(found);
    return;
  }
  ++letter.attempts;
  letter.again = false;  // how it ended is known
  const bool too_old = letter.written_ms + age_ms_max <= now_ms;
  if (delivery.hopeless || letter.attempts >= attempts_max || too_old) {
    dead(*found,
         delivery.why +
             (delivery.hopeless ? "" : "; given up after " + std::to_string(letter.attempts) + " attempts"));
    letters_.erase(found);
    return;
  }
  const std::int64_t wish_ms = std::min(delivery.retry_after_ms, retry_after_ms_max);
  if (wish_ms > 0) paused_until_[letter.sink] = now_ms + wish_ms;
  found->due_ms = now_ms + std::max(wish_ms, backoff_ms(letter.attempts));
  spool_.failed(letter);
  found->saved = true;
  events_.push_back({Event::What::failed, letter, delivery.why});
}

void PostOffice::withdraw(const std::string& notice, const std::vector<std::string>& sinks) {
  std::erase_if(letters_, [&](Waiting& each) {
    const bool meant = each.letter.notice.id == notice && !each.on_its_way &&
                       std::find(sinks.begin(), sinks.end(), each.letter.sink) != sinks.end();
    if (!meant) return false;
    spool_.remove(each.letter);
    events_.push_back({Event::What::withdrawn, each.letter, "answered before it could be sent"});
    return true;
  });
}

std::optional<std::int64_t> PostOffice::next_ms(std::int64_t now_ms) const {
  std::optional<std::int64_t> next;
  for (const Waiting& each : letters_) {
    if (each.on_its_way) continue;
    std::int64_t due_ms = each.due_ms;
    if (const auto paused = paused_until_.find(each.letter.sink); paused != paused_until_.end())
      due_ms = std::max(due_ms, paused->second);
    if (due_ms <= now_ms) continue;  // its sink is busy: its report will come
    if (!next || due_ms < *next) next = due_ms;
  }
  return next;
}

}  // namespace earshot::notifier
