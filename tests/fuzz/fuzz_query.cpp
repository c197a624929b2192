// Cursors, `<stream>:<cursor>` positions, patterns and request queries. The input is parsed as each of them;
// as a filter it is a pattern, an LF and a text.
#include <vector>

#include "base/text.hpp"
#include "fuzz.hpp"
#include "serve/http/event_stream.hpp"
#include "serve/http/message.hpp"
#include "serve/stream/subscription.hpp"

namespace {

using namespace earshot;
using fuzz::require;
namespace message = serve::message;

void try_cursor(std::string_view text) {
  if (const auto cursor = parse_cursor(text))
    require(to_string(*cursor) == text, "only the output of to_string is a cursor");
  if (const auto place = message::parse_stream_cursor(text)) {
    require(!place->stream.empty() && text.starts_with(place->stream), "a position names its stream");
    require(text.ends_with(":") ? place->cursor == begin_cursor
                                : place->stream + ":" + to_string(place->cursor) == text,
            "a position round-trips");
  }
}

/// The characters of text that is UTF-8; nothing when it is none.
std::vector<std::string_view> characters(std::string_view text, bool& whole) {
  std::vector<std::string_view> all;
  while (!text.empty()) {
    std::size_t bad = 0;
    const std::size_t length = utf8_length(text, bad);
    if (length == 0) {
      whole = false;
      return {};
    }
    all.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return all;
}

/// glob() as a table of all that may match: no cleverness, always rows × columns steps.
bool table(const std::vector<std::string_view>& pattern, const std::vector<std::string_view>& text) {
  std::vector<bool> row(text.size() + 1);
  row[0] = true;
  for (const std::string_view part : pattern) {
    std::vector<bool> next(text.size() + 1);
    next[0] = part == "*" && row[0];
    for (std::size_t t = 1; t <= text.size(); ++t)
      next[t] = part == "*" ? row[t] || next[t - 1] : row[t - 1] && (part == "?" || part == text[t - 1]);
    row = std::move(next);
  }
  return row.back();
}

void try_filter(std::string_view input) {
  constexpr std::size_t text_bytes_max = 1024;
  const std::size_t lf = input.find('\n');
  if (lf == input.npos) return;
  const std::string_view pattern = input.substr(0, std::min(lf, serve::Filter::pattern_bytes_max));
  const std::string_view text = input.substr(lf + 1, text_bytes_max);
  bool whole = true;
  const auto parts = characters(pattern, whole), letters = characters(text, whole);
  const bool matches = matches_glob(pattern, text);
  if (whole) require(matches == table(parts, letters), "a pattern matches as the reference does");
  serve::Filter filter;
  require(filter.empty() && filter.matches_type(text), "an empty filter asks nothing");
  filter.type = {"no such type", std::string(pattern)};
  require(filter.matches_type(text) == (matches || text == "no such type"), "patterns are ORed");
  filter.host = {std::string(pattern)}, filter.project = {"*"};
  require(filter.matches_session({text, "s", "p"}) == matches, "keys are ANDed");
  // Stars that could each try every place: pattern × text steps, or libFuzzer's -timeout ends it.
  std::string stars, row;
  while (!pattern.empty() && stars.size() + pattern.size() + 1 <= serve::Filter::pattern_bytes_max)
    stars.append("*").append(pattern);
  while (!text.empty() && row.size() < 4 * text_bytes_max) row += text;
  (void)matches_glob(stars, row);
}

void try_query(std::string_view text) {
  const serve::Query query = serve::parse_query(text);
  require(query.pairs.size() <= serve::Query::pairs_max, "pairs are bounded");
  for (const auto& [key, value] : query.pairs)
    require(query.has(key) && !query.all(key).empty() && query.one(key) == query.all(key).back(),
            "of two values the last one counts");
  serve::Query limit = query;
  const std::size_t number = limit.number("limit", 50, 1, 1000);
  require(number >= 1 && number <= 1000, "a number is within its bounds");

  const serve::HttpResponse answer = serve::events_response(text);
  if (answer.kind != serve::HttpResponse::Kind::events) {
    require(answer.status == 400 && !answer.body.empty(), "an invalid query has an error");
    return;
  }
  const message::Message said = message::parse(answer.subscription);
  require(fuzz::is_json(answer.subscription), "a query becomes JSON");
  if (const auto* asked = std::get_if<message::Subscribe>(&said)) {
    require(asked->id == "events", "its subscription has its name");
    require(asked->filter.type.size() == query.all("type").size(), "no pattern is lost");
    require((asked->after ? asked->after->size() : 0) == query.all("after").size(), "no position is lost");
  } else {
    require(std::holds_alternative<message::Invalid>(said), "a query is a subscription or an error");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_cursor(text);
  try_filter(text);
  try_query(text);
  return 0;
}
