#include "team/ingest_action.hpp"

#include <algorithm>
#include <tuple>

namespace earshot::team {
namespace {

auto place_of(const Cursor& cursor) { return std::tie(cursor.offset, cursor.index); }

/// How many entries stand up to this one; nothing: it is none of them. Within a file places only grow.
std::optional<std::size_t> count_up_to(const std::vector<Entry>& entries, const Cursor& cursor) {
  if (cursor == begin_cursor) return 0;
  const auto found = std::lower_bound(
      entries.begin(), entries.end(), cursor,
      [](const Entry& entry, const Cursor& wanted) { return place_of(entry.cursor) < place_of(wanted); });
  if (found == entries.end() || found->cursor != cursor) return {};
  return static_cast<std::size_t>(found - entries.begin()) + 1;
}

}  // namespace

bool is_repeated(const Kept& kept, const Received& received) {
  return kept.store == received.store && received.sequence <= kept.sequence &&
         received.time_ns <= kept.time_ns;
}

Verdict judge(const Kept& kept, const Received& received,
              const std::function<const std::vector<Entry>&()>& entries) {
  if (kept.there && is_repeated(kept, received)) return {IngestAction::drop};
  if (received.type == "stream.removed") return {kept.there ? IngestAction::remove : IngestAction::drop};
  const bool has_events = kept.there && kept.last != begin_cursor;
  if (!received.cursor) return {has_events ? IngestAction::restart : IngestAction::drop};
  if (!has_events || received.after == kept.last) return {IngestAction::append};
  const bool newer = place_of(*received.cursor) > place_of(kept.last);
  if (!received.after && newer && !received.begins) return {IngestAction::append};

  const std::vector<Entry>& all = entries();
  if (received.after) {
    // Its place in the file is behind the one that it follows: there it is, or there another history begins.
    if (const auto before = count_up_to(all, *received.after)) {
      if (*before < all.size() && all[*before].cursor == *received.cursor) return {IngestAction::drop};
      return {IngestAction::restart, *before};
    }
  }
  // What it follows is not known: it was never received, or nobody says.
  if (newer && !received.begins) return {IngestAction::append};
  return {count_up_to(all, *received.cursor) ? IngestAction::drop : IngestAction::restart};
}

}  // namespace earshot::team
