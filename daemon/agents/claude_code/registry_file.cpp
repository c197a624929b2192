#include "agents/claude_code/registry_file.hpp"

#include <simdjson.h>

#include <charconv>
#include <cmath>

namespace earshot::status {

namespace {

using simdjson::dom::element;
using simdjson::dom::object;

std::string text_of(const object& from, std::string_view key) {
  std::string_view text;
  if (from[key].get(text) != simdjson::SUCCESS) return {};
  return std::string(text);
}

std::int64_t number_of(const object& from, std::string_view key) {
  element value;
  if (from[key].get(value) != simdjson::SUCCESS) return 0;
  if (std::int64_t whole = 0; value.get(whole) == simdjson::SUCCESS) return whole;
  double real = 0;  // some writers keep fractions of a millisecond
  if (value.get(real) == simdjson::SUCCESS && std::abs(real) < 9e15) return static_cast<std::int64_t>(real);
  return 0;
}

/// Written as a string by some versions, as a number by others.
std::string digits_of(const object& from, std::string_view key) {
  std::string text = text_of(from, key);
  if (!text.empty()) return text;
  const std::int64_t number = number_of(from, key);
  return number > 0 ? std::to_string(number) : std::string();
}

}  // namespace

std::optional<RegistryEntry> parse_entry(std::string_view json) {
  if (json.size() > entry_bytes_max) return std::nullopt;
  simdjson::dom::parser parser;
  object from;
  if (parser.parse(json.data(), json.size()).get(from) != simdjson::SUCCESS) return std::nullopt;
  RegistryEntry entry;
  entry.pid = number_of(from, "pid");
  entry.session = text_of(from, "sessionId");
  entry.cwd = text_of(from, "cwd");
  entry.name = text_of(from, "name");
  entry.version = text_of(from, "version");
  entry.proc_start = digits_of(from, "procStart");
  entry.pid_domain = text_of(from, "pidDomain");
  entry.status = text_of(from, "status");
  entry.waiting_for = text_of(from, "waitingFor");
  entry.started_ms = number_of(from, "startedAt");
  entry.updated_ms = number_of(from, "updatedAt");
  entry.status_updated_ms = number_of(from, "statusUpdatedAt");
  return entry;
}

std::optional<std::int64_t> pid_of_name(std::string_view file_name) {
  constexpr std::string_view ending = ".json";
  if (!file_name.ends_with(ending)) return std::nullopt;
  file_name.remove_suffix(ending.size());
  std::int64_t pid = 0;
  const auto [end, error] = std::from_chars(file_name.data(), file_name.data() + file_name.size(), pid);
  if (error != std::errc() || end != file_name.data() + file_name.size() || pid <= 0) return std::nullopt;
  return pid;
}

}  // namespace earshot::status
