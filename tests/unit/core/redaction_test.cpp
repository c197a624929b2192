// Redaction in the core: of decoded text, before it is cut.
#include <catch2/catch.hpp>

#include "base/json_rewrite.hpp"
#include "core/event_json.hpp"
#include "unit/support/fake_filter.hpp"
#include "unit/support/feed.hpp"
#include "unit/support/records.hpp"

namespace earshot::test {
namespace {

const FakeFilter fake_filter;

std::string text(std::string_view raw, std::size_t max) {
  std::string out;
  TruncatedPaths truncated;
  append_text(out, raw, max, &fake_filter, truncated, "text");
  truncated.append_member(out);
  return out;
}
std::string json(std::string_view raw, std::size_t max = 4096) {
  std::string out;
  TruncatedPaths truncated;
  const TruncatedPaths::Scope scope(truncated, "json");
  append_json(out, raw, max, &fake_filter, truncated);
  truncated.append_member(out);
  return out;
}

TEST_CASE("text is redacted, then cut, and the size is the original's") {
  CHECK(text("a lamp b", 100) == "\"a ****** b\"");
  CHECK(text("a lamp b", 8) == R"("a ******","truncated":{"text":8})");  // redaction made it longer
  CHECK(text("a lamp", 8) == "\"a ******\"");
  // A word across the cut is replaced, then cut.
  CHECK(text("abc lamp and more", 6) == R"("abc **","truncated":{"text":17})");
  CHECK(text("abc lamp and more", 4) == R"("abc ","truncated":{"text":17})");
  // A character across the cut is left out.
  CHECK(text("é lamp and more", 1) == R"("","truncated":{"text":16})");
}

TEST_CASE("JSON is redacted decoded and rewritten only where something was replaced") {
  CHECK(json(R"({"a":"l\u0061mp\n","b":"\u0061\/"})") == R"({"a":"******\n","b":"\u0061\/"})");
  CHECK(json(R"(["\ud83d\ude00lamp\ud83d", "\ud83d"])") ==
        "[\"\xF0\x9F\x98\x80******\xEF\xBF\xBD\",\"\xEF\xBF\xBD\"]");
  CHECK(json(R"({"lamp":1,"x":{"l\u0061mps":[2]}})") == R"({"******":1,"x":{"******s":[2]}})");
  CHECK(json(R"({"oil":"x","\u006fil":["y",{"z":"y"}],"oil2":"x","oil":"","oil":7})") ==
        R"({"oil":"******","\u006fil":["******",{"z":"******"}],"oil2":"x","oil":"","oil":"******"})");
  CHECK(json(R"("abcd l\u0061mp and more")", 7) == R"("abcd **","truncated":{"json":18})");
  CHECK(json("\"abcdef\xFFlamp\"", 7) == R"("abcdef","truncated":{"json":13})");
  CHECK(json(R"({"a":"lamp)") == "null");
}

TEST_CASE("the previews of a state are redacted before they are cut") {
  TranscriptOptions options;
  options.filter = &fake_filter;
  const std::string long_text = std::string(StreamState::input_preview_bytes - 2, 'x') + "lamp and more";
  const std::string cut = std::string(StreamState::input_preview_bytes - 2, 'x') + "**";
  Records records;
  Feed feed(options);
  feed.write(records.user(long_text));
  feed.write(records.text(long_text));
  feed.write(records.call("c1", "Bash", "{\"command\":\"" + long_text + "\",\"oil\":\"x\"}"));
  CHECK(feed.state().turn_prompt == cut);
  CHECK(feed.state().last_text == cut);
  REQUIRE(feed.state().tools.size() == 1);
  CHECK(feed.state().tools[0].input == "{\"command\":\"" + cut + "\",\"oil\":\"******\"}");
  CHECK(feed.state().tools[0].truncated == std::vector<TruncatedPath>{{"input/command", long_text.size()}});
  CHECK(feed.state().turn_prompt_truncated == long_text.size());
  CHECK(feed.state().last_text_truncated == long_text.size());
}

TEST_CASE("a record is redacted whole, and a line that is not JSON as text") {
  bool is_json = false;
  CHECK(redact_record(R"({"a": ["l\u0061mp", 1.0]})", &fake_filter, is_json) == R"({"a":["******",1.0]})");
  CHECK(is_json);
  CHECK(redact_record(R"({"a": ["l\u0061mp", )", &fake_filter, is_json) == R"({"a": ["******", )");
  CHECK_FALSE(is_json);
}

}  // namespace
}  // namespace earshot::test
