#include "team/ingest_action.hpp"

#include <algorithm>
#include <tuple>

namespace earshot::team {
namespace {

auto order_of(const Cursor& cursor) { return std::tie(cursor.offset, cursor.index); }

/// The number of entries up to and including `cursor`; nullopt: it is not among them. Entries are sorted.
std::optional<std::size_t> count_up_to(const std::vector<StoredEvent>& entries, const Cursor& cursor) {
  if (cursor == begin_cursor) return 0;
  const auto found = std::lower_bound(entries.begin(), entries.end(), cursor,
                                      [](const StoredEvent& entry, const Cursor& wanted) {
                                        return order_of(entry.cursor) < order_of(wanted);
                                      });
  if (found == entries.end() || found->cursor != cursor) return {};
  return static_cast<std::size_t>(found - entries.begin()) + 1;
}

}  // namespace

bool is_redelivered(const StoredPosition& position, const ReceivedMessage& message) {
  return position.store == message.store && message.sequence <= position.sequence &&
         message.time_ns <= position.time_ns;
}

IngestDecision decide(const StoredPosition& position, const ReceivedMessage& message,
                      const std::function<const std::vector<StoredEvent>&()>& entries) {
  if (position.exists && is_redelivered(position, message)) return {IngestAction::drop};
  if (message.type == "stream.removed") return {position.exists ? IngestAction::remove : IngestAction::drop};
  const bool has_events = position.exists && position.last != begin_cursor;
  if (!message.cursor) return {has_events ? IngestAction::restart : IngestAction::drop};
  if (!has_events || message.after == position.last) return {IngestAction::append};
  const bool newer = order_of(*message.cursor) > order_of(position.last);
  if (!message.after && newer && !message.is_first) return {IngestAction::append};

  const std::vector<StoredEvent>& all = entries();
  if (message.after) {
    // Either it is the entry after its predecessor, or another history starts there.
    if (const auto before = count_up_to(all, *message.after)) {
      if (*before < all.size() && all[*before].cursor == *message.cursor) return {IngestAction::drop};
      return {IngestAction::restart, *before};
    }
  }
  // Its predecessor was not received or is not specified.
  if (newer && !message.is_first) return {IngestAction::append};
  return {count_up_to(all, *message.cursor) ? IngestAction::drop : IngestAction::restart};
}

}  // namespace earshot::team
