#include "core/stream_usage.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <limits>
#include <utility>

namespace earshot {

StreamUsage::Grown StreamUsage::add(std::uint64_t id, std::string_view model, const Usage& used,
                                    std::optional<double> usd) {
  const bool is_sum = id == 0, in_day = enter_day();
  const std::uint8_t number = number_of(model);
  if (is_sum) id = id_of_sum(number, time_ms_, usd.has_value());
  bool is_new = false;
  Row& row = rows_.insert(id, {}, is_new);
  if (is_new) {
    row.model = number;
    row.flags = is_sum ? no_id : 0;
    if (time_ms_ > 0) row.time_s = static_cast<std::uint32_t>(time_ms_ / 1000);
  }
  if (is_new || (is_sum && row.count < std::numeric_limits<std::uint16_t>::max())) ++row.count;

  const Usage before = tokens(id, row);
  Grown grown{row.flags & no_id ? 0 : id, row.model, false, used, used, 0};
  if (!is_sum) {
    for (const auto count : usage_counts) grown.now.*count = std::max(before.*count, used.*count);
    grown.more = grown.now;
    grown.more -= before;
  }
  if (Usage now = before; grown.more != Usage{}) set_tokens(id, row, now += grown.more);

  ModelUsage& sums = models_[row.model];
  if (usd) {
    double& known = costs_.change().insert(id, 0, is_new);
    grown.more_usd = std::max(0.0, is_sum ? *usd : *usd - known);
    known += grown.more_usd;
    if (!(row.flags & has_cost)) {
      sums.all.without_cost -= before;
      if (in_day) sums.day.without_cost -= before;
    }
    row.flags |= has_cost;
  }
  const auto grow = [&](ModelUsage::Sum& sum) {
    sum.usage += grown.more;
    if (!(row.flags & has_cost)) sum.without_cost += grown.more;
    sum.recorded_usd += grown.more_usd;
  };
  grow(sums.all);
  if (in_day) grow(sums.day);
  grown.has_cost = (row.flags & has_cost) != 0;
  grown_.push_back(grown);
  return grown;
}

void StreamUsage::add_earlier(std::string_view model, const Usage& used, bool has_cost) {
  const std::int64_t time_ms = std::exchange(time_ms_, 0);
  add(0, model, used, has_cost ? std::optional(0.0) : std::nullopt);
  time_ms_ = time_ms;
}

Usage StreamUsage::raise(std::uint64_t id, std::string_view model, const Usage& total, const Usage& most) {
  Usage more = total;
  more -= models_[number_of(model)].all.usage;
  for (const auto count : usage_counts) more.*count = std::min(more.*count, most.*count);
  if (more == Usage{}) return more;
  mark_sum();
  return add(id, model, more).more;
}

void StreamUsage::cover_all() {
  ++totals_;
  for (ModelUsage& each : models_) each.all.without_cost = {};
  rows_.for_each([](std::uint64_t, Row& row) { row.flags |= covered; });
}

void StreamUsage::forget_ids() {
  StreamUsage sums;
  sums.split_s_ = split_s_;
  for (const ModelUsage& each : models_) sums.number_of(each.model);
  for_each([&](std::uint64_t, const Request& each) {
    sums.time_ms_ = each.time_ms;
    sums.totals_ = each.is_covered;
    sums.add(0, models_[each.model].model, each.tokens,
             each.has_cost ? std::optional(each.recorded_usd) : std::nullopt);
    Row& row = *sums.rows_.find(sums.id_of_sum(each.model, each.time_ms, each.has_cost));
    if (each.is_covered) row.flags |= covered;
    constexpr std::uint32_t count_max = std::numeric_limits<std::uint16_t>::max();
    row.count = static_cast<std::uint16_t>(std::min<std::uint32_t>(row.count + each.count - 1, count_max));
  });
  rows_ = std::move(sums.rows_);
  large_ = std::move(sums.large_);
  costs_ = std::move(sums.costs_);
}

std::optional<StreamUsage::Request> StreamUsage::find(std::uint64_t id) const {
  const Row* const row = rows_.find(id);
  if (!row) return std::nullopt;
  return request(id, *row);
}

StreamUsage::Request StreamUsage::request(std::uint64_t id, const Row& row) const {
  return {.tokens = tokens(id, row),
          .recorded_usd = row.flags & has_cost ? *costs_->find(id) : 0,
          .time_ms = std::int64_t{row.time_s} * 1000,
          .count = row.count,
          .model = row.model,
          .has_id = !(row.flags & no_id),
          .has_cost = (row.flags & has_cost) != 0,
          .is_covered = (row.flags & covered) != 0};
}

Usage StreamUsage::tokens(std::uint64_t id, const Row& row) const {
  if (row.flags & is_large) return *large_->find(id);
  return {row.input, row.output, row.cache_read, row.cache_write, row.flags & kept_1h ? row.cache_write : 0};
}

void StreamUsage::set_tokens(std::uint64_t id, Row& row, const Usage& tokens) {
  constexpr std::uint64_t small_max = std::numeric_limits<std::uint32_t>::max();
  const bool is_part = tokens.cache_write_1h != 0 && tokens.cache_write_1h != tokens.cache_write;
  if (is_part || (row.flags & is_large) ||
      std::max({tokens.input, tokens.output, tokens.cache_read, tokens.cache_write}) > small_max) {
    bool is_new = false;
    large_.change().insert(id, tokens, is_new) = tokens;
    row.flags |= is_large;
    return;
  }
  row.input = static_cast<std::uint32_t>(tokens.input);
  row.output = static_cast<std::uint32_t>(tokens.output);
  row.cache_read = static_cast<std::uint32_t>(tokens.cache_read);
  row.cache_write = static_cast<std::uint32_t>(tokens.cache_write);
  if (tokens.cache_write_1h != 0) row.flags |= kept_1h;
}

// A recorded total covers what it covers as a whole, and a time zone's day begins with a quarter of an hour.
std::uint64_t StreamUsage::id_of_sum(std::uint8_t model, std::int64_t time_ms, bool has_usd) const {
  constexpr std::int64_t quarter_hour_ms = 15 * 60 * 1000;
  const std::uint64_t parts[] = {static_cast<std::uint64_t>(time_ms / quarter_hour_ms), totals_, model,
                                 has_usd, time_ms / 1000 >= split_s_};
  return XXH3_64bits(parts, sizeof parts);
}

void StreamUsage::add_to_sums(ModelUsage& sums, Request request) const {
  add_to(sums.all, request);
  request.is_covered = false;
  if (request.time_ms >= day_.begin && request.time_ms < day_.end) add_to(sums.day, request);
}

bool StreamUsage::enter_day() {
  if (time_ms_ == 0) return false;
  if (time_ms_ >= day_.end) {
    day_ = local_day(time_ms_);
    is_day_partial_ = false;
    for (ModelUsage& each : models_) each.day = {};
  }
  return time_ms_ >= day_.begin;
}

// Most requests are of the model before.
std::uint8_t StreamUsage::number_of(std::string_view model) {
  constexpr std::size_t name_bytes_max = 128;
  model = model.substr(0, name_bytes_max);
  if (last_model_ < models_.size() && models_[last_model_].model == model) return last_model_;
  const auto find = [&](std::string_view name) {
    return std::find_if(models_.begin(), models_.end(),
                        [&](const ModelUsage& each) { return each.model == name; });
  };
  auto found = find(model);
  if (found == models_.end() && models_.size() >= models_max) found = find(model = other_models);
  if (found == models_.end()) found = models_.insert(found, {std::string(model)});
  return last_model_ = static_cast<std::uint8_t>(found - models_.begin());
}

}  // namespace earshot
