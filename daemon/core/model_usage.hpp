// What each model of a stream used, for estimates of its cost: in all, and in one day.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantities.hpp"
#include "core/event.hpp"

namespace earshot {

struct ModelUsage {
  struct Sum {
    Usage usage;              // all tokens
    Usage without_cost;       // the part of them that no recorded cost covers
    double recorded_usd = 0;  // of messages; a recorded total has no model
  };
  std::string model;  // empty: not recorded
  Usage usage, without_cost;
  double recorded_usd = 0;
  /// The part of these in UsageByModel::day(). A recorded total covers nothing of it: which part of the total
  /// belongs to the day is not recorded.
  Sum day = {};
};

class UsageByModel {
 public:
  static constexpr std::size_t models_max = 16;  // further ones are counted as other_models
  static constexpr std::string_view other_models = "(other)";

  /// When the following was recorded, in ms since 1970; 0, not known: with the record before.
  void set_time(std::int64_t ms) {
    if (ms != 0) time_ms_ = ms;
  }

  /// `has_cost`: a recorded cost covers these tokens.
  void add(std::string_view model, const Usage& tokens, bool has_cost) {
    const bool is_of_day = enter_day();
    ModelUsage& used = of(model);
    for (const auto count : counts) {
      used.usage.*count += tokens.*count;
      if (!has_cost) used.without_cost.*count += tokens.*count;
      if (!is_of_day) continue;
      used.day.usage.*count += tokens.*count;
      if (!has_cost) used.day.without_cost.*count += tokens.*count;
    }
  }
  /// The same, of an unknown time before.
  void add_earlier(std::string_view model, const Usage& tokens, bool has_cost) {
    ModelUsage& used = of(model);
    for (const auto count : counts) {
      used.usage.*count += tokens.*count;
      if (!has_cost) used.without_cost.*count += tokens.*count;
    }
  }
  /// Raises the model's tokens to a total that the records state.
  void raise(std::string_view model, const Usage& total) {
    Usage more;
    const ModelUsage& used = of(model);
    for (const auto count : counts)
      more.*count = std::max(total.*count, used.usage.*count) - used.usage.*count;
    if (more == Usage{}) return;
    mark_sum();
    add(model, more, false);
  }
  /// What is added next is a sum over the session: of which day its parts are is not recorded.
  void mark_sum() {
    if (enter_day() && has_earlier()) is_day_partial_ = true;
  }
  /// The cost of `tokens`, which were added without one, was recorded later.
  void cover(std::string_view model, const Usage& tokens) {
    const bool is_of_day = enter_day();
    ModelUsage& used = of(model);
    for (const auto count : counts) {
      Usage& left = used.without_cost;
      left.*count -= std::min(left.*count, tokens.*count);
      if (is_of_day) used.day.without_cost.*count -= std::min(used.day.without_cost.*count, tokens.*count);
    }
  }
  /// A recorded total covers everything so far.
  void cover_all() {
    for (ModelUsage& each : models_) each.without_cost = {};
  }
  void add_cost(std::string_view model, double usd) {
    const bool is_of_day = enter_day();
    ModelUsage& used = of(model);
    used.recorded_usd += usd;
    if (is_of_day) used.day.recorded_usd += usd;
  }

  const std::vector<ModelUsage>& models() const { return models_; }
  /// The local day of the latest time at which something was used. Records of an earlier day that follow are
  /// not part of it. `end` is 0: no time is known.
  const LocalDay& day() const { return day_; }
  /// True if a sum of an earlier day, too, was counted for the day.
  bool is_day_partial() const { return is_day_partial_; }
  /// True if something was used before the day.
  bool has_earlier() const {
    return std::any_of(models_.begin(), models_.end(), [](const ModelUsage& each) {
      return each.usage != each.day.usage || each.recorded_usd != each.day.recorded_usd;
    });
  }
  std::size_t memory_bytes() const { return models_.capacity() * (sizeof(ModelUsage) + 32); }

 private:
  static constexpr std::uint64_t Usage::*counts[] = {&Usage::input, &Usage::output, &Usage::cache_read,
                                                     &Usage::cache_write, &Usage::cache_write_1h};

  /// True if the present time is in the day, which begins anew with a later one.
  bool enter_day() {
    if (time_ms_ == 0) return false;
    if (time_ms_ >= day_.end) {
      day_ = local_day(time_ms_);
      is_day_partial_ = false;
      for (ModelUsage& each : models_) each.day = {};
    }
    return time_ms_ >= day_.begin;
  }

  // Most messages are of the model before.
  ModelUsage& of(std::string_view model) {
    if (last_ < models_.size() && models_[last_].model == model) return models_[last_];
    const auto find = [&](std::string_view name) {
      return std::find_if(models_.begin(), models_.end(),
                          [&](const ModelUsage& each) { return each.model == name; });
    };
    constexpr std::size_t name_bytes_max = 128;
    model = model.substr(0, name_bytes_max);
    auto found = find(model);
    if (found == models_.end() && models_.size() >= models_max) found = find(model = other_models);
    if (found == models_.end()) found = models_.insert(found, ModelUsage{std::string(model), {}, {}});
    last_ = static_cast<std::size_t>(found - models_.begin());
    return *found;
  }

  std::vector<ModelUsage> models_;
  std::size_t last_ = 0;
  std::int64_t time_ms_ = 0;
  LocalDay day_;
  bool is_day_partial_ = false;
};

}  // namespace earshot
