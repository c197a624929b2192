#include "team/outbox.hpp"

#include <utility>

namespace earshot::team {

bool Outbox::knows(const std::string& subject) const {
  const auto found = lanes_.find(subject);
  if (found == lanes_.end()) return false;
  return found->second.sequence > 0 || found->second.busy || !found->second.waiting.empty();
}

void Outbox::ready(const std::string& subject, Lane& lane) {
  if (lane.busy || lane.queued || lane.waiting.empty()) return;
  lane.queued = true;
  ready_.push_back(subject);
}

void Outbox::add(Message message) {
  const std::string subject = message.subject;
  Lane& lane = lanes_[subject];
  ++waiting_;
  bytes_ += message.payload.size();
  lane.waiting.push_back(std::move(message));
  ready(subject, lane);
}

void Outbox::add_newest(Message message, bool chained) {
  Lane& lane = lanes_[message.subject];
  lane.chained = chained;
  if (lane.waiting.empty()) return add(std::move(message));
  bytes_ += message.payload.size() - lane.waiting.back().payload.size();
  lane.waiting.back() = std::move(message);
}

std::vector<Outgoing> Outbox::take() {
  std::vector<Outgoing> out;
  while (!ready_.empty() && on_the_way_.size() < on_the_way_max) {
    const std::string subject = std::move(ready_.front());
    ready_.pop_front();
    Lane& lane = lanes_[subject];
    lane.queued = false;
    lane.busy = true;
    Outgoing going{std::move(lane.waiting.front()), next_++, std::nullopt};
    lane.waiting.pop_front();
    --waiting_;
    if (lane.chained) going.expected = lane.sequence;
    // Nothing is sent twice, so its text is not kept: whose answer does not come is found out by asking the
    // broker what it has. Until then it counts.
    on_the_way_.emplace(going.number, OnTheWay{going.subject, going.id, going.payload.size()});
    out.push_back(std::move(going));
  }
  return out;
}

/// Whose lane is free again; null: nobody waits for this number.
Outbox::Lane* Outbox::answered(std::uint64_t number, std::string& subject) {
  const auto found = on_the_way_.find(number);
  if (found == on_the_way_.end()) return nullptr;
  subject = std::move(found->second.subject);
  bytes_ -= found->second.bytes;
  on_the_way_.erase(found);
  Lane& lane = lanes_[subject];
  lane.busy = false;
  return &lane;
}

bool Outbox::acked(std::uint64_t number, std::uint64_t sequence) {
  std::string subject;
  Lane* lane = answered(number, subject);
  if (!lane) return false;
  lane->sequence = sequence;
  ready(subject, *lane);
  return true;
}

bool Outbox::given_up(std::uint64_t number) {
  std::string subject;
  Lane* lane = answered(number, subject);
  if (!lane) return false;
  ready(subject, *lane);
  return true;
}

const Outbox::OnTheWay* Outbox::find(std::uint64_t number) const {
  const auto found = on_the_way_.find(number);
  return found == on_the_way_.end() ? nullptr : &found->second;
}

}  // namespace earshot::team
