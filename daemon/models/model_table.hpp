// Context windows and prices of models: the built-in table (models.toml), and the user's before it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/event.hpp"

namespace earshot {

/// USD per million tokens.
struct Price {
  double input = 0, output = 0, cache_write_5m = 0, cache_write_1h = 0, cache_read = 0;
  friend bool operator==(const Price&, const Price&) = default;
};

/// One pattern of the table. `pattern` is a glob (base/text.hpp) for the whole name of a model.
struct Model {
  std::string pattern;
  std::optional<std::uint64_t> context_window;  // tokens
  std::optional<Price> price;
  std::string date, source;  // when and where it was published; empty: not stated
};

class ModelTable {
 public:
  static constexpr std::size_t file_bytes_max = 1 << 20, models_max = 4096;
  static constexpr double price_max = 1e6;  // USD per million tokens
  static constexpr std::uint64_t context_window_max = 1'000'000'000;

  using Environment = std::function<std::optional<std::string>(const char* name)>;

  static const ModelTable& built_in();
  /// The user's entries, before the built-in ones. The error names file, line, key and reason: numbers that
  /// are negative, not finite or beyond the limits above are refused, and so are unknown keys.
  static std::variant<ModelTable, std::string> with_user_file(std::string_view toml,
                                                              std::string_view file_name);
  /// Reads `file`. Empty: default_file(), which may be missing; then the result is the built-in table.
  static std::variant<ModelTable, std::string> load(const std::string& file, const Environment& environment);
  /// `$XDG_CONFIG_HOME/earshot/models.toml`, else below ~/.config; empty without a home.
  static std::string default_file(const Environment& environment);

  /// The first entry that matches; null: none. Compares with every pattern: callers with many messages ask
  /// once per model.
  const Model* find(std::string_view model) const;
  /// Returns that of the first match with a price; null: the cost of this model cannot be estimated.
  const Price* price(std::string_view model) const;
  /// Returns that of the first match with a window that holds `context_tokens`: a model may have a longer one
  /// by plan or option.
  std::optional<std::uint64_t> context_window(std::string_view model, std::uint64_t context_tokens = 0) const;
  /// Absent: the model has no price.
  std::optional<double> cost_usd(std::string_view model, const Usage& usage) const;

  const std::vector<Model>& models() const { return models_; }

 private:
  std::vector<Model> models_;
};

/// What `usage` costs at `price`, in USD.
double cost_usd(const Price& price, const Usage& usage);

}  // namespace earshot
