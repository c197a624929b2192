#include "models/model_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "base/file.hpp"
#include "base/text.hpp"
#include "base/toml.hpp"

namespace earshot {

extern const std::string_view built_in_models_toml;  // generated

namespace {

constexpr std::size_t pattern_bytes_max = 256, text_bytes_max = 1024;
const std::vector<std::string_view> keys = {"pattern",        "context_window", "input",
                                            "output",         "cache_read",     "cache_write_5m",
                                            "cache_write_1h", "date",           "source"};

struct TableError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string place_of(std::string_view file, const toml::source_region& at) {
  return std::string(file) + ":" + std::to_string(at.begin.line) + ": ";
}

/// One value of the file. Every function throws TableError for another value.
struct ModelValue {
  std::string_view file, key;
  const toml::node& node;

  [[noreturn]] void fail(const std::string& expected) const {
    std::ostringstream found;
    if (const auto number = node.value_exact<double>())
      found << *number;
    else if (const auto integer = node.value_exact<std::int64_t>())
      found << *integer;
    else
      found << "a value of type " << node.type();
    throw TableError(place_of(file, node.source()) + "`" + std::string(key) + "` must be " + expected +
                     ", not " + found.str());
  }
  double price() const {
    const auto value = node.is_number() ? node.value<double>() : std::nullopt;
    if (!value || !std::isfinite(*value) || *value < 0 || *value > ModelTable::price_max)
      fail("USD per million tokens, a number from 0 to 1000000");
    return *value;
  }
  std::uint64_t context_window() const {
    const auto value = node.value_exact<std::int64_t>();
    if (!value || *value < 1 || static_cast<std::uint64_t>(*value) > ModelTable::context_window_max)
      fail("a number of tokens from 1 to 1000000000");
    return static_cast<std::uint64_t>(*value);
  }
  std::string text(std::size_t bytes_max, const std::string& expected) const {
    const auto value = node.value_exact<std::string>();
    if (!value || value->empty() || value->size() > bytes_max) fail(expected);
    return *value;
  }
  std::vector<std::string> patterns() const {
    const std::string expected =
        "a pattern for names of models, such as \"claude-opus-4-5*\", or a list of them";
    const toml::array* array = node.as_array();
    if (!array) return {text(pattern_bytes_max, expected)};
    if (array->empty()) throw TableError(place_of(file, node.source()) + "`pattern` is empty");
    std::vector<std::string> all;
    for (const toml::node& item : *array)
      all.push_back(ModelValue{file, key, item}.text(pattern_bytes_max, expected));
    return all;
  }
};

void read_model(const toml::table& table, std::string_view file, std::vector<Model>& models) {
  std::vector<std::string> patterns;
  Model model;
  std::optional<double> input, output, cache_read, cache_write_5m, cache_write_1h;
  const std::pair<std::string_view, std::optional<double>&> prices[] = {{"input", input},
                                                                        {"output", output},
                                                                        {"cache_read", cache_read},
                                                                        {"cache_write_5m", cache_write_5m},
                                                                        {"cache_write_1h", cache_write_1h}};
  bool has_price = false;
  for (const auto& [name, node] : table) {
    const ModelValue value{file, name.str(), node};
    const auto price = std::find_if(std::begin(prices), std::end(prices), [&](const auto& each) {
      return each.first == std::string_view(name.str());
    });
    if (price != std::end(prices)) {
      price->second = value.price();
      has_price = true;
    } else if (name.str() == "pattern") {
      patterns = value.patterns();
    } else if (name.str() == "context_window") {
      model.context_window = value.context_window();
    } else if (name.str() == "date") {
      if (const auto date = node.value_exact<toml::date>()) {
        char text[16];
        std::snprintf(text, sizeof text, "%04u-%02u-%02u", date->year, date->month, date->day);
        model.date = text;
      } else {
        model.date = value.text(text_bytes_max, "a date, such as \"2025-11-24\"");
      }
    } else if (name.str() == "source") {
      model.source = value.text(text_bytes_max, "a text, such as the address of the price list");
    } else {
      throw TableError(place_of(file, name.source()) + "unknown key `" + std::string(name.str()) +
                       "`; did you mean `" + std::string(nearest_word(name.str(), keys)) + "`?");
    }
  }
  const auto fail = [&](const std::string& what) {
    throw TableError(place_of(file, table.source()) + "[[model]] " + what);
  };
  if (patterns.empty()) fail("needs `pattern`, the names of the model");
  if (!has_price && !model.context_window) fail("needs a price (`input` and `output`) or `context_window`");
  if (has_price) {
    if (!input) fail("needs `input` beside the other prices");
    if (!output) fail("needs `output` beside the other prices");
    model.price =
        Price{*input, *output, cache_write_5m.value_or(*input),
              cache_write_1h.value_or(cache_write_5m.value_or(*input)), cache_read.value_or(*input)};
  }
  for (std::string& pattern : patterns) {
    if (models.size() >= ModelTable::models_max)
      fail("is one too many: at most " + std::to_string(ModelTable::models_max) + " patterns");
    models.push_back(model);
    models.back().pattern = std::move(pattern);
  }
}

std::vector<Model> read_models(std::string_view text, std::string_view file) {
  toml::table table;
  try {
    table = toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    throw TableError(place_of(file, error.source()) + std::string(error.description()));
  }
  std::vector<Model> models;
  for (const auto& [name, node] : table) {
    if (name.str() != "model")
      throw TableError(place_of(file, name.source()) + "unknown key `" + std::string(name.str()) +
                       "`; did you mean `[[model]]`?");
    const toml::array* array = node.as_array();
    if (!array || !(array->empty() || array->is_array_of_tables()))
      throw TableError(place_of(file, node.source()) + "write [[model]], in double brackets");
    for (const toml::node& each : *array) read_model(*each.as_table(), file, models);
  }
  return models;
}

}  // namespace

const ModelTable& ModelTable::built_in() {
  static const ModelTable table = [] {
    ModelTable read;
    read.models_ = read_models(built_in_models_toml, "models.toml");
    return read;
  }();
  return table;
}

std::variant<ModelTable, std::string> ModelTable::with_user_file(std::string_view toml,
                                                                 std::string_view file_name) {
  try {
    ModelTable table;
    table.models_ = read_models(toml, file_name);
    const std::vector<Model>& others = built_in().models_;
    table.models_.insert(table.models_.end(), others.begin(), others.end());
    return table;
  } catch (const TableError& error) {
    return error.what();
  }
}

std::variant<ModelTable, std::string> ModelTable::load(const std::string& file,
                                                       const Environment& environment) {
  const std::string path = file.empty() ? default_file(environment) : file;
  if (path.empty()) return built_in();
  const SmallFile read = read_small_file(path, file_bytes_max, Symlinks::follow);
  if (read.is_missing() && file.empty()) return built_in();
  if (!read.ok()) return path + ": " + read.error_text();
  return with_user_file(read.text, path);
}

std::string ModelTable::default_file(const Environment& environment) {
  if (const auto directory = environment("XDG_CONFIG_HOME"); directory && directory->starts_with('/'))
    return *directory + "/earshot/models.toml";
  if (const auto home = environment("HOME"); home && !home->empty())
    return *home + "/.config/earshot/models.toml";
  return {};
}

const Model* ModelTable::find(std::string_view model) const {
  const auto found = std::find_if(models_.begin(), models_.end(),
                                  [&](const Model& each) { return matches_glob(each.pattern, model); });
  return found == models_.end() ? nullptr : &*found;
}

const Price* ModelTable::price(std::string_view model) const {
  for (const Model& each : models_)
    if (each.price && matches_glob(each.pattern, model)) return &*each.price;
  return nullptr;
}

std::optional<std::uint64_t> ModelTable::context_window(std::string_view model,
                                                        std::uint64_t context_tokens) const {
  for (const Model& each : models_)
    if (each.context_window && *each.context_window >= context_tokens && matches_glob(each.pattern, model))
      return each.context_window;
  return std::nullopt;
}

std::optional<double> ModelTable::cost_usd(std::string_view model, const Usage& usage) const {
  const Price* known = price(model);
  if (!known) return std::nullopt;
  return earshot::cost_usd(*known, usage);
}

double cost_usd(const Price& price, const Usage& usage) {
  const std::uint64_t hour = std::min(usage.cache_write_1h, usage.cache_write);
  const auto part = [](std::uint64_t tokens, double usd) { return static_cast<double>(tokens) * usd; };
  return (part(usage.input, price.input) + part(usage.output, price.output) +
          part(usage.cache_read, price.cache_read) + part(usage.cache_write - hour, price.cache_write_5m) +
          part(hour, price.cache_write_1h)) /
         1e6;
}

}  // namespace earshot
