#include "cli/backfill.hpp"

#include <algorithm>

#include "common/format.hpp"

namespace earshot::cli {

void Backfill::add(const Fields& event, std::string_view json, std::optional<std::int64_t> cut_ms) {
  Stream& stream = streams_[std::string(event.text("stream"))];
  if (const auto ms = parse_time(event.text("time"))) {
    if (!stream.first_ms) stream.first_ms = ms;
    stream.last_ms = stream.last_ms ? std::max(*stream.last_ms, *ms) : *ms;
    // Not by the running maximum: one wild time must not let all that follow pass.
    if (cut_ms && *ms < *cut_ms) return;
  } else if (cut_ms && stream.last_ms && *stream.last_ms < *cut_ms) {
    return;
  }
  kept_.push_back({stream.last_ms.value_or(untimed), cut_ms, &stream, text_.size(), json.size()});
  text_ += json;
  bytes_ = text_.size() + kept_.size() * sizeof(Kept);
}

void Backfill::drain(const std::function<void(std::string_view json)>& take) {
  // What stood before a stream's first time is as old as that.
  for (Kept& each : kept_) {
    if (each.ms == untimed) each.ms = each.stream->first_ms.value_or(each.cut_ms.value_or(untimed));
  }
  std::stable_sort(kept_.begin(), kept_.end(), [](const Kept& a, const Kept& b) { return a.ms < b.ms; });
  for (const Kept& each : kept_) {
    if (each.cut_ms && each.ms < *each.cut_ms) continue;
    take(std::string_view(text_).substr(each.offset, each.size));
  }
  kept_.clear();
  text_.clear();
  bytes_ = 0;
}

}  // namespace earshot::cli
