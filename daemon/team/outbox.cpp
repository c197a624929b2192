#include "team/outbox.hpp"

#include <utility>

namespace earshot::team {

bool Outbox::has_subject(const std::string& subject) const {
  const auto found = queues_.find(subject);
  if (found == queues_.end()) return false;
  return found->second.sequence > 0 || found->second.is_in_flight || !found->second.pending.empty();
}

void Outbox::mark_ready(const std::string& subject, SubjectQueue& queue) {
  if (queue.is_in_flight || queue.is_ready || queue.pending.empty()) return;
  queue.is_ready = true;
  ready_subjects_.push_back(subject);
}

void Outbox::add(Message message) {
  const std::string subject = message.subject;
  SubjectQueue& queue = queues_[subject];
  ++pending_;
  bytes_ += message.payload.size();
  queue.pending.push_back(std::move(message));
  mark_ready(subject, queue);
}

void Outbox::add_latest(Message message, bool is_ordered) {
  SubjectQueue& queue = queues_[message.subject];
  queue.is_ordered = is_ordered;
  if (queue.pending.empty()) return add(std::move(message));
  bytes_ += message.payload.size() - queue.pending.back().payload.size();
  queue.pending.back() = std::move(message);
}

std::vector<Outgoing> Outbox::take_ready() {
  std::vector<Outgoing> out;
  while (!ready_subjects_.empty() && in_flight_.size() < in_flight_max) {
    const std::string subject = std::move(ready_subjects_.front());
    ready_subjects_.pop_front();
    SubjectQueue& queue = queues_[subject];
    queue.is_ready = false;
    queue.is_in_flight = true;
    Outgoing message{std::move(queue.pending.front()), next_number_++, std::nullopt};
    queue.pending.pop_front();
    --pending_;
    if (queue.is_ordered) message.expected = queue.sequence;
    // The payload is not kept: messages are not sent twice; after a lost connection the published positions
    // are read from the broker. Its size counts until the acknowledgement.
    in_flight_.emplace(message.number, InFlight{message.subject, message.id, message.payload.size()});
    out.push_back(std::move(message));
  }
  return out;
}

/// Removes the message in flight and returns its queue; null for an unknown number.
Outbox::SubjectQueue* Outbox::complete(std::uint64_t number, std::string& subject) {
  const auto found = in_flight_.find(number);
  if (found == in_flight_.end()) return nullptr;
  subject = std::move(found->second.subject);
  bytes_ -= found->second.bytes;
  in_flight_.erase(found);
  SubjectQueue& queue = queues_[subject];
  queue.is_in_flight = false;
  return &queue;
}

bool Outbox::on_ack(std::uint64_t number, std::uint64_t sequence) {
  std::string subject;
  SubjectQueue* queue = complete(number, subject);
  if (!queue) return false;
  queue->sequence = sequence;
  mark_ready(subject, *queue);
  return true;
}

bool Outbox::drop(std::uint64_t number) {
  std::string subject;
  SubjectQueue* queue = complete(number, subject);
  if (!queue) return false;
  mark_ready(subject, *queue);
  return true;
}

const Outbox::InFlight* Outbox::find(std::uint64_t number) const {
  const auto found = in_flight_.find(number);
  return found == in_flight_.end() ? nullptr : &found->second;
}

}  // namespace earshot::team
