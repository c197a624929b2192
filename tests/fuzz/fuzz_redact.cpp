// Redaction and truncation: a secret hidden in a text is hidden in each prefix of it, as text, in JSON and in
// a record, in any escaping. Input: an invented secret (255: none), its position, the cut, then the text
// around it.
#include <algorithm>

#include "base/json_rewrite.hpp"
#include "core/event_json.hpp"
#include "fuzz.hpp"
#include "unit/redact/canaries.hpp"

namespace {

using namespace earshot;
using fuzz::require;

const redact::Redactor& redactor() { return test::redactor(); }

/// The text as a JSON string with random escapes.
std::string escaped(std::string_view text, fuzz::Dice& dice) {
  static constexpr char hex[] = "0123456789ABCDEF";
  std::string plain, out;
  append_json_string(plain, text);
  for (std::size_t at = 0; at < plain.size(); ++at) {
    const auto byte = static_cast<unsigned char>(plain[at]);
    if (byte == '\\') {
      const std::size_t escape = plain[at + 1] == 'u' ? 6 : 2;
      out.append(plain, at, escape);
      at += escape - 1;
    } else if (byte == '"' || byte >= 0x80 || dice.below(4) != 0) {
      out += plain[at];
    } else {
      out += "\\u00";
      out += hex[byte >> 4];
      out += hex[byte & 15];
    }
  }
  return out;
}

/// The text of a JSON string, cut or not.
std::string decoded(const std::string& json) {
  simdjson::dom::parser parser;
  simdjson::dom::element element;
  const simdjson::padded_string padded(json);
  require(!parser.parse(padded).get(element), "the output is JSON");
  std::string_view text;
  if (element.get(text)) (void)element["text"].get(text);
  return std::string(text);
}

/// Calls `each` with every key and text.
void each_text(const simdjson::dom::element& element, auto&& take) {
  simdjson::dom::object object;
  simdjson::dom::array array;
  std::string_view text;
  if (!element.get(text)) return take(text);
  if (!element.get(array))
    for (const auto each : array) each_text(each, take);
  if (element.get(object)) return;
  for (const auto& [key, value] : object) {
    take(key);
    each_text(value, take);
  }
}

void try_whole(const std::string& text) {
  std::string scratch;
  const std::string whole(redactor().clean(text, scratch));
  std::string again;
  require(redactor().clean(whole, again) == whole, "redaction is idempotent");
}

void try_cuts(const std::string& text, std::size_t cut) {
  std::string scratch, other;
  const std::string whole(redactor().clean(text, scratch));
  const Beginning shown = clean_beginning(&redactor(), text, cut, other);
  require(shown.text.size() <= cut, "a beginning is no longer than it may be");
  // A prefix shows no eight bytes that the complete redacted text does not show.
  constexpr std::size_t telling = 8;
  for (std::size_t at = 0; at + telling <= shown.text.size(); ++at) {
    const std::string_view piece = shown.text.substr(at, telling);
    if (whole.find(piece) == whole.npos)
      require(text.find(piece) == text.npos, "a cut shows no more than the whole");
  }
}

void try_canary(const test::Canary& canary, const std::string& text, std::size_t cut, fuzz::Dice& dice) {
  std::string scratch;
  const std::string whole(redactor().clean(text, scratch));
  if (test::leaks(whole, canary)) return;  // what stands around it made it something else
  const auto hidden = [&](std::string_view shown) { return !test::leaks(shown, canary); };
  const auto hidden_in = [&](const std::string& shown) {
    simdjson::dom::parser parser;
    simdjson::dom::element element;
    require(!parser.parse(simdjson::padded_string(shown)).get(element), "the output is JSON");
    bool all = true;
    each_text(element, [&](std::string_view each) { all = all && hidden(each); });
    return all;
  };

  require(hidden(clean_beginning(&redactor(), text, cut, scratch).text), "a beginning shows no secret");
  std::string json;
  TruncatedPaths truncated;
  append_text(json, text, cut, &redactor(), truncated, "text");
  require(hidden(decoded(json)), "cut text shows no secret");
  const std::string quoted = escaped(text, dice);
  json.clear();
  append_json(json, quoted, cut, &redactor(), truncated);
  require(hidden(decoded(json)), "a cut string of JSON shows no secret");
  json.clear();
  append_json(json, R"({"a":[)" + quoted + R"(,1],"b":{)" + quoted + ":null}}", cut, &redactor(), truncated);
  require(hidden_in(json), "JSON shows no secret, however it is escaped");
  bool is_json = false;
  const std::string record = redact_record(R"({"a": )" + quoted + "}", &redactor(), is_json);
  require(is_json && hidden_in(record), "a record shows no secret");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::size_t which = input.byte(), place = input.byte(), cut = input.byte();
  const std::string around(input.rest());
  const auto& canaries = test::canaries();
  const std::size_t at = std::min(place, around.size());
  std::string text = around;
  const test::Canary* canary = which == 255 ? nullptr : &canaries[which % canaries.size()];
  if (canary) text.insert(at, "\n" + canary->text() + "\n");
  try_whole(text);
  // `cut` is relative to a position shortly before the secret, where cuts matter.
  const std::size_t from = canary && at > 16 ? at - 16 : 0;
  try_cuts(text, from + cut);
  fuzz::Dice dice(cut);
  if (canary && !test::leaks(around, *canary)) try_canary(*canary, text, from + cut, dice);
  return 0;
}
