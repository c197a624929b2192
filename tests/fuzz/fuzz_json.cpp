// The encoder writes one valid JSON value for any input.
#include <simdjson.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/event_json.hpp"

namespace {

// The DOM holds no number beyond a double or 64 bits: those are valid JSON all the same.
void require_json(const std::string& text) {
  static simdjson::dom::parser parser;
  const auto error = parser.parse(simdjson::padded_string(text)).error();
  if (error != simdjson::SUCCESS && error != simdjson::NUMBER_ERROR) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t text_bytes_max = data[0];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);

  std::string json;
  earshot::TruncatedPaths truncated;
  earshot::append_json(json, text, text_bytes_max, nullptr, truncated);
  require_json(json);
  std::string again;  // rewriting the output changes nothing
  earshot::append_json(again, json, 1 << 20, nullptr, truncated);
  if (again != json) std::abort();

  std::string string;
  earshot::append_json_string(string, text);
  require_json(string);
  std::string cut;
  earshot::append_text(cut, text, text_bytes_max, nullptr, truncated, "text");
  require_json(cut);
  std::string member = "{\"a\":1";
  truncated.append_member(member);
  require_json(member + "}");

  for (const earshot::View view : {earshot::View::full, earshot::View::meta}) {
    earshot::Event event;
    event.time = text;
    event.agent = text;
    event.body = earshot::event::ToolInvoked{text, text, {text}, text};
    std::string out;
    earshot::append_event(out, event, {text, text, text}, {view, text_bytes_max, 4 * text_bytes_max});
    require_json(out);
  }
  return 0;
}
