#include "serve/stream/session_pages.hpp"

#include <algorithm>
#include <utility>

#include "base/json_writer.hpp"
#include "serve/stream/session_numbers.hpp"

namespace earshot::serve {
namespace {

bool has_state(const Session& session, std::string_view state) {
  return session.status && session.status->state == state;
}

}  // namespace

PageKey page_key(const Session& session) {
  enum : std::uint32_t { waiting, unseen, working, other };
  PageKey key{other, 0, session.id};
  if (has_state(session, "waiting"))
    key.rank = waiting;
  else if (session.is_unseen())
    key.rank = unseen;
  else if (has_state(session, "working"))
    key.rank = working;
  for (const Member& member : session.members)
    if (const Transcript* transcript = member.stream->transcript())
      key.activity_ms = std::max(key.activity_ms, transcript->state().last_activity_ms);
  return key;
}

void PageRest::add(const Session& session, const ModelTable& models) {
  ++sessions_;
  if (has_state(session, "waiting")) ++waiting_;
  if (has_state(session, "working")) ++working_;
  if (session.is_unseen()) ++unseen_;
  const auto used = day_of(session, models);
  if (!used || used->day != day_) return;
  ++used_;
  usage_ += used->usage;
  if (used->is_partial) ++partial_;
  if (!used->cost) {
    ++without_cost_;
    return;
  }
  usd_ += used->cost->usd;
  has_recorded_ |= used->cost->source != "estimated";
  has_estimated_ |= used->cost->source != "recorded";
}

void PageRest::append(JsonWriter& json) const {
  json.begin_object().member("sessions", sessions_).member("waiting", waiting_);
  json.member("working", working_).member("unseen", unseen_);
  if (used_ > 0) {
    json.key("day").begin_object().member("since", format_time_if_valid(day_.begin));
    json.member("until", format_time_if_valid(day_.end)).member("sessions", used_);
    json.member("input", usage_.input).member("output", usage_.output);
    json.member("cache_read", usage_.cache_read).member("cache_write", usage_.cache_write);
    if (without_cost_ < used_) {
      json.member("cost_usd", usd_);
      json.member("cost_source", !has_estimated_ ? "recorded" : has_recorded_ ? "mixed" : "estimated");
    }
    if (without_cost_ > 0) json.member("without_cost", without_cost_);
    if (partial_ > 0) json.member("partial", partial_);
    json.end_object();
  }
  json.end_object();
}

/// Returns the session that is behind this page for certain, if there is one now.
std::optional<std::uint32_t> PageSelection::insert(const PageKey& key) {
  if (after_ && !(*after_ < key)) return {};  // sent by an earlier page
  if (keys_.size() < size_) {
    keys_.push_back(key);
    std::push_heap(keys_.begin(), keys_.end());
    return {};
  }
  if (!(key < keys_.front())) return key.id;
  std::pop_heap(keys_.begin(), keys_.end());
  const std::uint32_t displaced = std::exchange(keys_.back(), key).id;
  std::push_heap(keys_.begin(), keys_.end());
  return displaced;
}

std::vector<std::uint32_t> PageSelection::ids_reversed() {
  std::sort(keys_.begin(), keys_.end());
  if (!keys_.empty()) after_ = keys_.back();
  std::vector<std::uint32_t> ids;
  ids.reserve(keys_.size());
  for (auto key = keys_.rbegin(); key != keys_.rend(); ++key) ids.push_back(key->id);
  keys_ = {};
  return ids;
}

std::string page_frame(std::string_view id, const PageRest& rest, std::string_view next) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("type", "page").member("id", id);
  json.key("rest");
  rest.append(json);
  json.member_if_any("next", next).end_object();
  return out;
}

}  // namespace earshot::serve
