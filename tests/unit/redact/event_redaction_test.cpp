// Canaries in texts, cut texts, tool inputs, transcripts and states.
#include <catch2/catch.hpp>
#include <optional>

#include "agents/claude_code/reader.hpp"
#include "base/json_rewrite.hpp"
#include "canaries.hpp"
#include "core/event_json.hpp"
#include "core/transcript.hpp"

namespace earshot::test {
namespace {

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

/// The same string, every byte of it (they are ASCII) as \u00xx.
std::string escaped(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    char unit[8];
    std::snprintf(unit, sizeof unit, "\\u%04x", static_cast<unsigned char>(c));
    out += unit;
  }
  return out + "\"";
}

std::string as_text(std::string_view text, std::size_t max) {
  std::string out;
  TruncatedPaths truncated;
  append_text(out, text, max, &redactor(), truncated, "text");
  truncated.append_member(out);
  return out;
}

std::string as_json(std::string_view json, std::size_t max = 4096) {
  std::string out;
  TruncatedPaths truncated;
  append_json(out, json, max, &redactor(), truncated);
  return out;
}

std::string marker(const Canary& canary) { return "[redacted:" + canary.rule + "]"; }

TEST_CASE("a cut at any byte of a canary shows nothing of it") {
  constexpr std::size_t max = 4096;
  const std::string padding = prose(max);
  for (const Canary& canary : canaries()) {
    const std::string text = canary.text();
    for (std::size_t shown = 0; shown <= text.size() + 1; ++shown) {
      const std::string whole = padding.substr(0, max - shown - 1) + " " + text + "\n" + prose(3000);
      const std::string wire = as_text(whole, max);
      if (!leaks(wire, canary)) {
        const std::string end = ",\"truncated\":{\"text\":" + std::to_string(whole.size()) + "}";
        if (!wire.ends_with(end)) FAIL(wire.substr(wire.size() - 60));
        continue;
      }
      FAIL(canary.rule << ": " << text << " cut after " << shown << ": " << wire.substr(wire.size() - 200));
    }
  }
  SUCCEED();
}

TEST_CASE("a cut text is a prefix of the redacted text and within its limit") {
  const std::string text = prose(90) + canaries()[5].text() + " " + prose(500);
  for (std::size_t max = 1; max < 300; ++max) {
    std::string scratch;
    const Beginning beginning = clean_beginning(&redactor(), text, max, scratch);
    CHECK(beginning.text.size() <= max);
    CHECK(beginning.cut);
    CHECK(clean(text).starts_with(beginning.text));
  }
}

TEST_CASE("a canary in a tool's input, however it is written") {
  for (const Canary& canary : canaries()) {
    const std::string text = canary.text();
    INFO(canary.rule << ": " << text);
    const std::string shown = json_string(canary.before + marker(canary) + canary.after);
    for (const std::string& written : {json_string(text), escaped(text)}) {
      CHECK(as_json("{\"command\":" + written + "}") == "{\"command\":" + shown + "}");
      CHECK(as_json("[1, [" + written + "]]") == "[1,[" + shown + "]]");
      CHECK(as_json("{" + written + ":1.50}") == "{" + shown + ":1.50}");
      // At the cut of a string and of a whole input.
      for (const std::size_t max : {20u, 60u, 100u}) {
        CHECK_FALSE(leaks(as_json("{\"a\":" + written + "}", max), canary));
        std::string scratch;
        CHECK_FALSE(leaks(json_prefix("{\"a\":[" + written + "]}", max, &redactor(), scratch), canary));
      }
    }
    // JSON as text inside JSON: quotes of quotes.
    const std::string nested = "{\"env\":" + json_string(text) + "}";
    CHECK_FALSE(leaks(as_json("{\"body\":" + json_string(nested) + "}"), canary));
    CHECK_FALSE(leaks(as_json("{\"body\":" + escaped(nested) + "}"), canary));
    CHECK_FALSE(
        leaks(as_json("{\"body\":" + json_string("{\"body\":" + json_string(nested) + "}") + "}"), canary));
  }
}

TEST_CASE("a string under a secret key is replaced whole") {
  for (const char* key : {"password", "Password", "api_key", "apiKey", "client_secret", "clientSecret",
                          "access_token", "GITHUB_TOKEN", "db-password", "x-api-key", "private_key",
                          "Authorization", "passphrase", "token", "pass\\u0077ord"}) {
    INFO(key);
    const std::string k = std::string("{\"") + key + "\":";
    const std::string plain_key = std::string(key) == "pass\\u0077ord" ? k : k;
    CHECK(as_json(k + "\"lamp\"}") == plain_key + "\"[redacted:secret]\"}");
    CHECK(as_json(k + "\"l\\u0061mp \\\"x\\\"\"}") == plain_key + "\"[redacted:secret]\"}");
    CHECK(as_json(k + "[\"lamp\",[\"oil\"]]}") ==
          plain_key + "[\"[redacted:secret]\",[\"[redacted:secret]\"]]}");
    CHECK(as_json(k + "\"" + std::string(9, 'k') + "lamp\"}", 8) == plain_key + "\"[redacte\"}");
    // Placeholders are not secrets; a nested object has keys of its own.
    for (const char* value :
         {"\"\"", "\"***\"", "\"<password>\"", "\"${TOKEN}\"", "\"$TOKEN\"", "\"string\"", "null", "true",
          "12", "\"[redacted:jwt]\"", "\"/run/secrets/db\"", "{\"type\":\"word\"}",
          R"({"description":"At least 8 letters"})", "[15496,995]"})
      CHECK(as_json(k + value + "}") == plain_key + value + "}");
    // fault 94: numbers and objects.
    CHECK(as_json(k + "4711081599}") == plain_key + "\"[redacted:secret]\"}");
    CHECK(
        as_json(
            k +
            R"({"type":"plain","value":"w9Lr7Tn5Xc","list":["w9Lr7Tn5Xc",{"n":1234}]},"x":"w9Lr7Tn5Xc"})") ==
        plain_key +
            R"({"type":"plain","value":"[redacted:secret]","list":["[redacted:secret]",{"n":1234}]},"x":"w9Lr7Tn5Xc"})");
  }
  for (const char* key : {"max_tokens", "tokens", "page_token", "nextPageToken", "key", "secretary",
                          "passwords_file", "Which kind of token", "token_type", "public_key", "src/token"})
    CHECK(as_json(std::string("{\"") + key + "\":\"lamp\"}") == std::string("{\"") + key + "\":\"lamp\"}");
}

TEST_CASE("an input without secrets is unchanged, byte for byte") {
  for (const char* json : {R"({"a":"\u0041\n\ud83d\ude00 é","b":[1.50,1e400,null,true]})", R"("")",
                           R"({"":""})", R"({"k\u0065y":"value\/"})"}) {
    std::string with, without;
    TruncatedPaths truncated;
    append_json(with, json, 4096, &redactor(), truncated);
    append_json(without, json, 4096, nullptr, truncated);
    CHECK(with == without);
  }
}

TEST_CASE("an input too deep, too long or broken is redacted too") {
  const Canary& canary = canaries()[12];
  REQUIRE(canary.secret.size() > 20);
  const std::string deep = std::string(70, '[') + escaped(canary.text()) + std::string(70, ']');
  CHECK_FALSE(leaks(as_json(deep), canary));
  CHECK(as_json(deep).find(marker(canary)) != std::string::npos);
  const std::string torn = std::string(70, '[') + escaped(canary.text()) + ",nonsense";
  CHECK_FALSE(leaks(as_json(torn), canary));
  CHECK(as_json(torn).find("u0067") == std::string::npos);  // nor as escapes
  CHECK(as_json(std::string(70, '[') + "\"plain\"" + std::string(70, ']')).find("\\\"plain\\\"]]]") !=
        std::string::npos);
  Event event;
  const std::string input = "{ \"a\": " + escaped(canary.text()) + ", \"password\": \"lamp\", \"rest\": [" +
                            std::string(40000, '1') + "]}";
  event.body = event::ToolInvoked{"c", "Bash", {input}, {}};
  std::string wire;
  append_event(wire, event, {"h", "s", "t"}, {.input_bytes_max = 30000, .filter = &redactor()});
  CHECK_FALSE(leaks(wire, canary));
  CHECK(wire.find("lamp") == std::string::npos);
  CHECK(wire.ends_with("\"truncated\":{\"input\":" + std::to_string(input.size()) + "}}"));
}

TEST_CASE("all text but ids is redacted in both views") {
  const Canary& canary = canaries()[12];
  const std::string s = canary.text();
  const LazyText lazy{std::string_view(s)};
  const Todo todo{"1", s, s, s, s};
  const std::vector<EventBody> bodies = {event::SessionStarted{"p", "d", s, s, s, s, s, {}, s, s},
                                         event::SessionUpdated{s, s, s, s, s, s, s},
                                         event::TurnStarted{s, "human"},
                                         event::TurnFinished{"completed", false, s, {}, 0, {}},
                                         event::MessageAdded{"user", s, s, {}, s, Media{s, s, 1}},
                                         event::ToolInvoked{"c", s, {}, {}},
                                         event::ToolFinished{"c", s, "ok", lazy, {Media{s, s, 1}}, {}, {}},
                                         event::TodoUpdated{{&todo, 1}, s},
                                         event::CompactionStarted{s},
                                         event::CompactionFinished{s, {}, {}, {}, s},
                                         event::AgentStarted{"a", s, s, "c", false},
                                         event::AgentFinished{"a", s, s, "c", "completed", {}, {}, {}, false},
                                         event::TaskFinished{"t", "c", "completed", s},
                                         event::QueueChanged{s, s},
                                         event::UsageUpdated{{}, s, {}, {}, {}},
                                         event::ApiFailed{{}, s, {}, {}, {}, false},
                                         event::FilesSnapshotted{{}, {s, s}},
                                         event::LineSkipped{0, 1, 2, s, false}};
  for (const EventBody& body : bodies) {
    for (const View view : {View::full, View::meta}) {
      Event event;
      event.time = s, event.agent = s, event.body = body;
      std::string wire;
      append_event(wire, event, {s, s, s}, {.view = view, .filter = &redactor()});
      INFO(wire);
      const std::string ids = "{\"type\":\"" + std::string(type_name(body)) + "\",\"host\":\"" + s +
                              "\",\"stream\":\"" + s + "\",\"session\":\"" + s + "\",\"agent\":\"" + s +
                              "\",\"cursor\":";
      REQUIRE(wire.starts_with(ids));
      const std::size_t turn = wire.find("\",\"turn\":");
      REQUIRE(turn != std::string::npos);
      CHECK_FALSE(leaks(std::string_view(wire).substr(turn), canary));
    }
  }
}

// ---- Whole transcripts

std::string transcript_with(const Canary& canary) {
  const std::string secret = json_string(canary.text());
  const std::string head =
      R"(,"sessionId":"s","timestamp":"2026-01-01T00:00:00Z","version":"2.1.330","cwd":"/x")";
  const auto line = [&](const std::string& type, const std::string& uuid, const std::string& rest) {
    return "{\"type\":\"" + type + "\",\"uuid\":\"" + uuid + "\",\"parentUuid\":null" + head + rest + "}\n";
  };
  const std::string long_text = json_string(prose(496) + canary.text() + " " + prose(700));
  std::string all =
      line("user", "u1",
           R"(,"gitBranch":)" + secret + R"(,"message":{"role":"user","content":)" + long_text + "}");
  all += line("assistant", "a1",
              R"(,"message":{"id":"m1","role":"assistant","model":"x","content":[{"type":"text","text":)" +
                  long_text + "}]}");
  all += line(
      "assistant", "a2",
      R"(,"message":{"id":"m2","role":"assistant","model":"x","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{"command":)" +
          escaped(canary.text()) + ",\"more\":" + long_text + "," + secret + ":1,\"password\":" + secret +
          "}}]}");
  all += line("user", "u2",
              R"(,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c0","content":)" +
                  secret + "}]}");
  return all;
}

class Sink final : public EventSink {
 public:
  explicit Sink(const TextFilter* filter) : filter_(filter) {}
  void on_event(const Event& event) override {
    append_event(wire, event, {"h", "s", "t"}, {.filter = filter_});
    wire += '\n';
  }
  std::string wire;

 private:
  const TextFilter* filter_;
};

struct Result {
  std::string wire, state;
};
Result run(const std::string& bytes, std::size_t cut, const TextFilter* filter) {
  static Workspace workspace;
  TranscriptOptions options;
  options.format = &claude_code::format();
  options.filter = filter;
  Transcript transcript(options);
  Sink sink(filter);
  std::string padded = bytes + std::string(feed_padding, '\0');
  transcript.feed({padded.data(), cut}, workspace, sink);
  transcript.feed({padded.data() + cut, bytes.size() - cut}, workspace, sink);
  const StreamState& state = transcript.state();
  std::string previews = state.turn_prompt + "\n" + state.last_text;
  for (const OpenTool& tool : state.tools) previews += "\n" + tool.input;
  return {sink.wire, previews};
}

TEST_CASE("a transcript split at every byte has the same redacted events") {
  for (const Canary& canary : canaries()) {
    const std::string bytes = transcript_with(canary);
    const Result whole = run(bytes, bytes.size(), &redactor());
    INFO(canary.rule << ": " << canary.text());
    CHECK_FALSE(leaks(whole.wire, canary));
    CHECK_FALSE(leaks(whole.state, canary));
    CHECK(whole.wire.find(marker(canary)) != std::string::npos);
    const Result open = run(bytes, bytes.size(), nullptr);  // the check detects a leak
    CHECK(leaks(open.wire, canary));
    CHECK(leaks(open.state, canary));
  }
  for (const std::size_t which : {std::size_t{0}, std::size_t{12}, canaries().size() - 1}) {
    const Canary& canary = canaries()[which];
    const std::string bytes = transcript_with(canary);
    const Result whole = run(bytes, bytes.size(), &redactor());
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
      const Result split = run(bytes, cut, &redactor());
      if (split.wire != whole.wire || split.state != whole.state) FAIL("cut at " << cut);
    }
  }
  SUCCEED();
}

// ---- Whole records

TEST_CASE("a record is redacted at all depths, its numbers unchanged") {
  for (const Canary& canary : canaries()) {
    INFO(canary.rule << ": " << canary.text());
    const std::string inner = R"({ "n" : 1.50, "big": 18446744073709551616, "t": )";
    const std::string line =
        std::string(500, '[') + inner + escaped(canary.text()) + "}" + std::string(500, ']');
    bool is_json = false;
    const std::string shown = redact_record(line, &redactor(), is_json);
    CHECK(is_json);
    CHECK(shown == std::string(500, '[') + R"({"n":1.50,"big":18446744073709551616,"t":)" +
                       json_string(canary.before + marker(canary) + canary.after) + "}" +
                       std::string(500, ']'));
    // A line that is not JSON: its text, with escapes undone.
    for (const std::string& torn :
         {"{\"a\":" + json_string(canary.text()) + ",\"b", "{\"a\":" + escaped(canary.text()) + ",\"b",
          "{\"a\":" + escaped(canary.text()) + "}{\"b\":1}", "no JSON " + canary.text()}) {
      const std::string text = redact_record(torn, &redactor(), is_json);
      CHECK_FALSE(is_json);
      CHECK_FALSE(leaks(text, canary));
      CHECK(text.find("u0065\\u") == std::string::npos);
    }
  }
}

TEST_CASE("a record without secrets is unchanged") {
  bool is_json = false;
  CHECK(redact_record("\xEF\xBB\xBF{\"a\": \"x\\u0041\", \"b\":1e3}\r", &redactor(), is_json) ==
        "{\"a\":\"x\\u0041\",\"b\":1e3}");
  CHECK(is_json);
  CHECK(redact_record("{\"password\":\"lamp\"}", nullptr, is_json) == "{\"password\":\"lamp\"}");
  CHECK(redact_record("{\"password\":\"lamp\"}", &redactor(), is_json) ==
        "{\"password\":\"[redacted:secret]\"}");
  CHECK(redact_record("not \\u0041 JSON", &redactor(), is_json) == "not \\u0041 JSON");
  CHECK_FALSE(is_json);
  CHECK(redact_record("", &redactor(), is_json).empty());
  CHECK_FALSE(is_json);
  CHECK(redact_record(std::string(2000, '['), &redactor(), is_json) == std::string(2000, '['));
  CHECK_FALSE(is_json);
}

}  // namespace
}  // namespace earshot::test
