#include "common/frame.hpp"

namespace earshot::common {
namespace {

constexpr std::size_t safe_number_bytes = 15;  // a number this short fits a 64-bit integer

bool in_number(char c) {
  return (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.' || c == 'e' || c == 'E';
}

// simdjson's DOM rejects a document that contains a number outside of the ranges of double and 64-bit
// integers, and a tool's input may contain one: such numbers become strings.
std::string quote_large_numbers(std::string_view json) {
  std::string out;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size();) {
    const char c = json[i];
    if (in_string) {
      in_string = c != '"';
      const std::size_t size = c == '\\' && i + 1 < json.size() ? 2 : 1;
      out.append(json.substr(i, size));
      i += size;
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      std::size_t end = i;
      while (end < json.size() && in_number(json[end])) ++end;
      const std::string_view number = json.substr(i, end - i);
      const bool large = number.size() > safe_number_bytes || number.find_first_of("eE") != number.npos;
      if (large) out += '"';
      out.append(number);
      if (large) out += '"';
      i = end;
    } else {
      in_string = c == '"';
      out += c;
      ++i;
    }
  }
  return out;
}

}  // namespace

bool is_host_offline(const Fields& status) {
  return status.text("state") == "unknown" && status.text("reason") == "host_offline";
}

std::optional<Fields> FrameParser::parse(std::string_view json) {
  simdjson::dom::object object;
  if (parser_.parse(json.data(), json.size()).get(object) == simdjson::SUCCESS) return Fields(object);
  repaired_ = quote_large_numbers(json);
  if (parser_.parse(repaired_).get(object) == simdjson::SUCCESS) return Fields(object);
  return std::nullopt;
}

}  // namespace earshot::common
