// What each model of a stream used, for estimates of its cost.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/event.hpp"

namespace earshot {

struct ModelUsage {
  std::string model;        // empty: not recorded
  Usage usage;              // all its tokens
  Usage without_cost;       // the part of them that no recorded cost covers
  double recorded_usd = 0;  // of its messages; a recorded total has no model
};

class UsageByModel {
 public:
  static constexpr std::size_t models_max = 16;  // further ones are counted as other_models
  static constexpr std::string_view other_models = "(other)";

  /// `has_cost`: a recorded cost covers these tokens.
  void add(std::string_view model, const Usage& tokens, bool has_cost) {
    ModelUsage& used = of(model);
    for (const auto count : counts) {
      used.usage.*count += tokens.*count;
      if (!has_cost) used.without_cost.*count += tokens.*count;
    }
  }
  /// Raises the model's tokens to a total that the records state.
  void raise(std::string_view model, const Usage& total) {
    ModelUsage& used = of(model);
    for (const auto count : counts) {
      const std::uint64_t more = std::max(total.*count, used.usage.*count) - used.usage.*count;
      used.usage.*count += more;
      used.without_cost.*count += more;
    }
  }
  /// The cost of `tokens`, which were added without one, was recorded later.
  void cover(std::string_view model, const Usage& tokens) {
    Usage& left = of(model).without_cost;
    for (const auto count : counts) left.*count -= std::min(left.*count, tokens.*count);
  }
  /// A recorded total covers everything so far.
  void cover_all() {
    for (ModelUsage& each : models_) each.without_cost = {};
  }
  void add_cost(std::string_view model, double usd) { of(model).recorded_usd += usd; }

  const std::vector<ModelUsage>& models() const { return models_; }
  std::size_t memory_bytes() const { return models_.capacity() * (sizeof(ModelUsage) + 32); }

 private:
  static constexpr std::uint64_t Usage::*counts[] = {&Usage::input, &Usage::output, &Usage::cache_read,
                                                     &Usage::cache_write, &Usage::cache_write_1h};

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
};

}  // namespace earshot
