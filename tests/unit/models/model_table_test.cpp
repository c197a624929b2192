#include "models/model_table.hpp"

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/text.hpp"
#include "unit/support/temporary_directory.hpp"

using namespace earshot;

namespace {

ModelTable read(std::string_view toml) {
  auto table = ModelTable::with_user_file(toml, "my.toml");
  if (const auto* error = std::get_if<std::string>(&table)) FAIL(*error);
  return std::get<ModelTable>(table);
}

std::string error_of(std::string_view toml) {
  const auto table = ModelTable::with_user_file(toml, "my.toml");
  const auto* error = std::get_if<std::string>(&table);
  return error ? *error : "";
}

Usage tokens(std::uint64_t input, std::uint64_t output, std::uint64_t cache_read, std::uint64_t cache_write,
             std::uint64_t cache_write_1h) {
  return {input, output, cache_read, cache_write, cache_write_1h};
}

}  // namespace

TEST_CASE("the built-in table is sane: every entry is dated, has a source and plausible prices") {
  const ModelTable& table = ModelTable::built_in();
  CHECK(table.models().size() > 50);
  for (const Model& model : table.models()) {
    INFO(model.pattern);
    CHECK(model.date.size() == 10);
    CHECK(model.source.starts_with("https://"));
    if (!model.price) continue;
    CHECK(model.price->input > 0);
    CHECK(model.price->input < model.price->output);
    CHECK(model.price->cache_read <= model.price->input);
    CHECK(model.price->cache_write_5m >= model.price->input);
    CHECK(model.price->cache_write_1h >= model.price->cache_write_5m);
    CHECK(model.price->output <= 100);
  }
}

TEST_CASE("published prices, by the names that programs record") {
  struct {
    std::string_view model;
    double input, output;
    std::optional<std::uint64_t> window;
  } const known[] = {
      {"claude-opus-4-5-20251101", 5, 25, 200'000},
      {"us.anthropic.claude-opus-4-5-20251101-v1:0", 5, 25, 200'000},
      {"claude-opus-4.5", 5, 25, 200'000},
      {"claude-opus-4-1-20250805", 15, 75, 200'000},
      {"claude-opus-4-20250514", 15, 75, 200'000},
      {"claude-3-opus-20240229", 15, 75, 200'000},
      {"claude-opus-4-6", 5, 25, 200'000},
      {"claude-opus-4-6[1m]", 5, 25, 1'000'000},
      {"claude-sonnet-4-5-20250929", 3, 15, 200'000},
      {"claude-sonnet-4-5@20250929", 3, 15, 200'000},
      {"claude-sonnet-4-5-20250929[1m]", 3, 15, 1'000'000},
      {"claude-sonnet-4-20250514", 3, 15, 200'000},
      {"claude-sonnet-4", 3, 15, 200'000},
      {"claude-3-7-sonnet-20250219", 3, 15, 200'000},
      {"claude-3-5-sonnet-20241022", 3, 15, 200'000},
      {"claude-haiku-4-5-20251001", 1, 5, 200'000},
      {"claude-3-5-haiku-20241022", 0.8, 4, 200'000},
      {"claude-3-haiku-20240307", 0.25, 1.25, 200'000},
      {"gpt-5", 1.25, 10, 400'000},
      {"gpt-5-codex", 1.25, 10, 400'000},
      {"gpt-5-mini", 0.25, 2, 400'000},
      {"gpt-5-2025-08-07", 1.25, 10, 400'000},
      {"gpt-5.1-codex-max", 1.25, 10, 400'000},
      {"gpt-5.1-codex-mini", 0.25, 2, 400'000},
      {"gpt-5.2-codex", 1.75, 14, 400'000},
      {"openai/gpt-4.1", 2, 8, 1'047'576},
      {"o3", 2, 8, 200'000},
      {"o4-mini", 1.1, 4.4, 200'000},
      {"gemini-2.5-pro", 1.25, 10, 1'048'576},
      {"google/gemini-2.5-flash", 0.3, 2.5, 1'048'576},
  };
  const ModelTable& table = ModelTable::built_in();
  for (const auto& each : known) {
    INFO(each.model);
    const Price* price = table.price(each.model);
    REQUIRE(price);
    CHECK(price->input == each.input);
    CHECK(price->output == each.output);
    CHECK(table.context_window(each.model) == each.window);
  }
}

TEST_CASE("a model that is not in the table has no estimate") {
  for (const std::string_view model :
       {"", "<synthetic>", "gpt-5.9", "claude-opus-9", "claude-opus-5-9", "stub-1", "gpt-5-search", "fo3"}) {
    INFO(model);
    CHECK_FALSE(ModelTable::built_in().find(model));
    CHECK_FALSE(ModelTable::built_in().cost_usd(model, tokens(1, 2, 3, 4, 0)));
    CHECK_FALSE(ModelTable::built_in().context_window(model));
  }
}

TEST_CASE("every kind of token has its price") {
  const ModelTable& table = ModelTable::built_in();
  const auto cost = [&](const Usage& usage) { return table.cost_usd("claude-opus-4-5", usage); };
  constexpr std::uint64_t million = 1'000'000;
  CHECK(cost(tokens(million, 0, 0, 0, 0)) == 5.0);
  CHECK(cost(tokens(0, million, 0, 0, 0)) == 25.0);
  CHECK(cost(tokens(0, 0, million, 0, 0)) == 0.5);
  CHECK(cost(tokens(0, 0, 0, million, 0)) == 6.25);
  CHECK(cost(tokens(0, 0, 0, million, million)) == 10.0);
  CHECK(cost(tokens(0, 0, 0, million, million / 2)) == 8.125);
  // A part that exceeds the whole, from a damaged record, is the whole.
  CHECK(cost(tokens(0, 0, 0, million, 5 * million)) == 10.0);
  CHECK(cost({}) == 0.0);
}

TEST_CASE("the first window that holds the context is used") {
  const ModelTable& table = ModelTable::built_in();
  CHECK(table.context_window("claude-opus-4-6", 200'000) == 200'000);
  CHECK(table.context_window("claude-opus-4-6", 200'001) == 1'000'000);
  CHECK_FALSE(table.context_window("claude-opus-4-6", 1'000'001));
  CHECK_FALSE(table.context_window("claude-haiku-4-5", 200'001));
}

TEST_CASE("the user's entries come first, and complete the built-in ones") {
  const ModelTable table = read(R"(
[[model]]
pattern = "claude-opus-4-5*"
input = 4
output = 20.5
cache_read = 0
date = 2026-01-31
source = "my contract"

[[model]]
pattern = ["local/*", "qwen?-coder"]
context_window = 32_000
input = 0
output = 0

[[model]]
pattern = "claude-haiku-4-5*"
context_window = 100_000
)");
  const Price* price = table.price("claude-opus-4-5-20251101");
  REQUIRE(price);
  CHECK(*price == Price{4, 20.5, 4, 4, 0});
  CHECK(table.find("claude-opus-4-5-20251101")->date == "2026-01-31");
  CHECK(table.find("claude-opus-4-5-20251101")->source == "my contract");
  CHECK(table.context_window("claude-opus-4-5-20251101") == 200'000);
  CHECK(table.cost_usd("local/llama", tokens(1000, 1000, 0, 0, 0)) == 0.0);
  CHECK(table.context_window("qwen3-coder") == 32'000);
  CHECK(table.context_window("claude-haiku-4-5") == 100'000);
  CHECK(table.price("claude-haiku-4-5")->input == 1);
  CHECK(table.price("claude-sonnet-4-5")->input == 3);
}

TEST_CASE("an empty file of the user changes nothing") {
  CHECK(read("").models().size() == ModelTable::built_in().models().size());
  CHECK(read("# nothing yet\n").models().size() == ModelTable::built_in().models().size());
}

TEST_CASE("bad numbers and keys of the user's file are refused, with file, line and key") {
  const std::string head = "[[model]]\npattern = \"x\"\noutput = 1\n";
  const std::string price = "`input` must be USD per million tokens, a number from 0 to 1000000, not ";
  CHECK(error_of(head + "input = -1") == "my.toml:4: " + price + "-1");
  CHECK(error_of(head + "input = -0.25") == "my.toml:4: " + price + "-0.25");
  CHECK(error_of(head + "input = nan") == "my.toml:4: " + price + "nan");
  CHECK(error_of(head + "input = inf") == "my.toml:4: " + price + "inf");
  CHECK(error_of(head + "input = -inf") == "my.toml:4: " + price + "-inf");
  CHECK(error_of(head + "input = 1e300") == "my.toml:4: " + price + "1e+300");
  CHECK(error_of(head + "input = 1_000_001") == "my.toml:4: " + price + "1000001");
  CHECK(error_of(head + "input = \"3\"") == "my.toml:4: " + price + "a value of type string");
  CHECK(error_of(head + "input = true") == "my.toml:4: " + price + "a value of type boolean");
  for (const std::string_view key : {"output", "cache_read", "cache_write_5m", "cache_write_1h"}) {
    const std::string error = error_of("[[model]]\npattern = \"x\"\n" + std::string(key) + " = -1");
    CHECK(error.starts_with("my.toml:3: `" + std::string(key) + "` must be "));
  }
  const std::string window =
      "my.toml:4: `context_window` must be a number of tokens from 1 to 1000000000, not ";
  CHECK(error_of(head + "context_window = -5") == window + "-5");
  CHECK(error_of(head + "context_window = 0") == window + "0");
  CHECK(error_of(head + "context_window = 1.5") == window + "1.5");
  CHECK(error_of(head + "context_window = 9223372036854775807") == window + "9223372036854775807");
  CHECK(error_of(head) == "my.toml:1: [[model]] needs `input` beside the other prices");
  CHECK(error_of("\n[[model]]\ninput = 1\noutput = 2") ==
        "my.toml:2: [[model]] needs `pattern`, the names of the model");
  CHECK(error_of("[[model]]\npattern = \"x\"") ==
        "my.toml:1: [[model]] needs a price (`input` and `output`) or `context_window`");
  CHECK(error_of(head + "inptu = 1") == "my.toml:4: unknown key `inptu`; did you mean `input`?");
  CHECK(error_of("[model]\npattern = \"x\"") == "my.toml:1: write [[model]], in double brackets");
  CHECK(error_of("[[models]]\npattern = \"x\"") ==
        "my.toml:1: unknown key `models`; did you mean `[[model]]`?");
  CHECK(error_of("[[model]]\npattern = []\ncontext_window = 1") == "my.toml:2: `pattern` is empty");
  CHECK(
      error_of("[[model]]\npattern = [1]\ncontext_window = 1").starts_with("my.toml:2: `pattern` must be "));
  CHECK(error_of("[[model]\n").starts_with("my.toml:1: "));
  std::string many;
  for (std::size_t i = 0; i <= ModelTable::models_max; ++i)
    many += "[[model]]\npattern = \"x" + std::to_string(i) + "\"\ncontext_window = 1\n";
  CHECK(error_of(many) == "my.toml:12289: [[model]] is one too many: at most 4096 patterns");
}

TEST_CASE("the user's file is found, and a named one must exist") {
  const test::TemporaryDirectory directory;
  const std::string home = directory.path();
  std::string xdg;
  const ModelTable::Environment environment = [&](const char* name) -> std::optional<std::string> {
    if (std::string_view(name) == "HOME") return home;
    if (std::string_view(name) == "XDG_CONFIG_HOME" && !xdg.empty()) return xdg;
    return std::nullopt;
  };
  CHECK(ModelTable::default_file(environment) == home + "/.config/earshot/models.toml");
  xdg = "relative";
  CHECK(ModelTable::default_file(environment) == home + "/.config/earshot/models.toml");
  xdg = home + "/config";
  CHECK(ModelTable::default_file(environment) == home + "/config/earshot/models.toml");
  CHECK(std::holds_alternative<ModelTable>(ModelTable::load("", environment)));
  CHECK(std::get<std::string>(ModelTable::load(home + "/none.toml", environment)) ==
        home + "/none.toml: No such file or directory");

  const std::string file = home + "/models.toml";
  std::ofstream(file) << "[[model]]\npattern = \"x\"\ninput = 1\noutput = 2\n";
  CHECK(std::get<ModelTable>(ModelTable::load(file, environment)).find("x"));
  std::ofstream(file) << std::string(ModelTable::file_bytes_max + 1, '#');
  CHECK(std::get<std::string>(ModelTable::load(file, environment)) == file + ": too long");
  CHECK(std::get<std::string>(ModelTable::load(home, environment)) == home + ": not a regular file");
}
