// From bytes to lines and records: line ends, broken lines, salvaged records.
#include <catch2/catch.hpp>
#include <string>

#include "unit/support/feed.hpp"
#include "unit/support/records.hpp"

namespace earshot::test {
namespace {

const std::string prompt = R"({"type":"user","uuid":"u1","message":{"role":"user","content":"hi"}})"
                           "\n";
const Lines prompted = {"turn.started 1 human hi"};

std::string user_line(std::string_view uuid, std::string_view text_as_json) {
  return R"({"type":"user","uuid":")" + std::string(uuid) + R"(","message":{"role":"user","content":)" +
         std::string(text_as_json) + "}}\n";
}

/// A prompt "deep" in a record of this many levels.
std::string nested(std::size_t depth, std::string_view innermost = "") {
  return R"({"type":"user","uuid":"d1","message":{"role":"user","content":"deep"},"x":)" +
         std::string(depth - 1, '[') + std::string(innermost) + std::string(depth - 1, ']') + "}\n";
}

// ---- line ends

TEST_CASE("a line torn across two writes is one event") {
  Feed feed;
  feed.write(R"({"type":"user","uuid":"u1","mess)");
  REQUIRE(feed.events().empty());
  CHECK(feed.transcript().pending_bytes() == 32);
  feed.write(R"(age":{"role":"user","content":"hi"}})"
             "\n");
  CHECK(feed.summary() == prompted);
  CHECK(feed.transcript().pending_bytes() == 0);
}

TEST_CASE("an unterminated line is not read, even if it is valid JSON") {
  Feed feed;
  feed.write(prompt.substr(0, prompt.size() - 1));
  CHECK(feed.events().empty());
  CHECK(feed.counts().lines == 0);
  CHECK(feed.transcript().end() == Cursor{0, 0, 0});
  CHECK(feed.transcript().bytes_read() == prompt.size() - 1);
  feed.write("\n");
  CHECK(feed.summary() == prompted);
}

TEST_CASE("a character split across writes is read") {
  const std::string line = user_line("u1", "\"gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80\"");
  Feed feed;
  feed.write_bytewise(line);
  CHECK(feed.summary() == Lines{"turn.started 1 human gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80"});
}

TEST_CASE("one CR before the LF is removed, and a lone CR does not end a line") {
  Feed feed;
  feed.write(prompt.substr(0, prompt.size() - 1) + "\r");
  REQUIRE(feed.events().empty());
  feed.write("\n");
  CHECK(feed.summary() == prompted);
  CHECK(feed.counts().skipped_lines == 0);
}

TEST_CASE("only LF ends a line, U+2028, NEL and others are content") {
  const std::string text =
      "a\xE2\x80\xA8"
      "b\xC2\x85"
      "c\x7F";
  CHECK(Feed({user_line("u1", '"' + text + '"')}).summary() == Lines{"turn.started 1 human " + text});
}

TEST_CASE("a byte order mark at the beginning is ignored") {
  Feed feed;
  feed.write_bytewise("\xEF\xBB\xBF" + prompt);
  CHECK(feed.summary() == prompted);
  CHECK(feed.counts().skipped_lines == 0);
}

TEST_CASE("a byte order mark anywhere else is not JSON") {
  const Feed feed({prompt, "\xEF\xBB\xBF" + user_line("u2", "\"no\""), user_line("u3", "\"yes\"")});
  CHECK(feed.fields("line.skipped", {"line", "lines", "reason"}).size() == 1);
  CHECK(feed.fields("turn.started", {"prompt"}).back() == "yes");
}

TEST_CASE("the cursor of a torn line is that of a whole one") {
  const std::string bytes = prompt + "torn}\n" + user_line("u2", "\"more\"");
  Feed whole;
  whole.write(bytes);
  Feed bytewise;
  bytewise.write_bytewise(bytes);
  CHECK(whole.cursors() == bytewise.cursors());
  CHECK(whole.transcript().end() == bytewise.transcript().end());
  CHECK(whole.fields("line.skipped", {"line"}) == Lines{std::to_string(prompt.size())});
}

TEST_CASE("ten thousand lines in one write keep their order") {
  std::string bytes = prompt;
  Lines expected = prompted;
  for (int i = 0; i < 10'000; ++i) {
    bytes += R"({"type":"queue-operation","operation":"enqueue","content":")" + std::to_string(i) + "\"}\n";
    expected.push_back("queue.changed 1 enqueue " + std::to_string(i));
  }
  Feed feed;
  feed.write(bytes);
  CHECK(feed.summary() == expected);
}

// ---- lines without events

TEST_CASE("empty lines are counted without events") {
  const Feed feed({"\n", "\r\n", prompt, "\n"});
  CHECK(feed.summary() == prompted);
  CHECK(feed.counts().lines == 4);
  CHECK(feed.counts().empty_lines == 3);
  CHECK(feed.counts().skipped_lines == 0);
}

TEST_CASE("a line that is not an object is counted") {
  const Feed feed({prompt, "17\n", "\"text\"\n", "[1,2]\n", "null\n", "true\n", user_line("u2", "\"on\"")});
  CHECK(feed.fields("turn.started", {"prompt"}) == Lines{"hi", "on"});
  CHECK(feed.counts().lines == 7);
}

TEST_CASE("an unknown type is counted by its name") {
  const Feed feed({prompt, R"({"type":"weather","uuid":"u2","sky":"blue"})"
                           "\n"});
  CHECK(feed.summary() == prompted);
  CHECK(feed.counts().unknown_types.at("weather") == 1);
  CHECK(feed.counts().types.at("weather") == 1);
}

TEST_CASE("fault 134: records of the newest versions are known") {
  Records r;
  Feed feed({r.user("hi")});
  for (const char* type : {"agent-color", "attribution-snapshot", "content-replacement", "continued-in",
                           "dev-mods", "fork-context-ref", "task-summary", "session-owner", "ended-by-model"})
    feed.write(R"({"type":")" + std::string(type) + "\",\"sessionId\":\"t\"}\n");
  for (const char* kind : {"session_cron_carry", "fork_briefing", "sandbox_instructions"})
    feed.write(r.attachment(R"({"type":")" + std::string(kind) + "\"}"));
  CHECK(feed.summary() == prompted);
  CHECK(feed.counts().unknown_types.empty());
}

TEST_CASE("a known type without facts is not counted as unknown") {
  Records r;
  const Feed feed({r.user("hi"),
                   R"({"type":"pr-link","sessionId":"t","prNumber":1})"
                   "\n",
                   r.attachment(R"({"type":"skill_listing","content":"x"})"),
                   R"({"type":"last-prompt","lastPrompt":"hi","sessionId":"t"})"
                   "\n",
                   R"({"type":"atis-latch","atis":"","sessionId":"t"})"
                   "\n",
                   R"({"type":"tools-used","sessionId":"t"})"
                   "\n"});
  CHECK(feed.summary() == prompted);
  CHECK(feed.counts().unknown_types.empty());
}

// ---- skipped lines

TEST_CASE("a line that is not JSON is skipped and reported with the next line") {
  Feed feed({prompt});
  feed.write("what?\n");
  CHECK(feed.count("line.skipped") == 0);
  feed.write(user_line("u2", "\"on\""));
  CHECK(feed.fields("line.skipped", {"line", "lines", "bytes", "reason", "salvaged"}) ==
        Lines{std::to_string(prompt.size()) + " 1 6 not JSON false"});
  CHECK(feed.events().size() == 5);
  CHECK(feed.counts().skipped_lines == 1);
}

TEST_CASE("line.skipped is the first event of the line that ends the run") {
  const Feed feed({prompt, "what?\n", user_line("u2", "\"on\"")});
  REQUIRE(feed.count("line.skipped") == 1);
  const std::string& skipped = feed.events()[2];
  REQUIRE(field(skipped, "type") == "line.skipped");
  CHECK(feed.cursors()[2].offset == feed.bytes().size());
  CHECK(feed.cursors()[2].index == 1);
  CHECK(feed.cursors()[3].index == 2);
  CHECK(field(feed.events()[3], "type") == "turn.finished");
}

TEST_CASE("consecutive skipped lines of one reason are one event") {
  const Feed feed({prompt, "{\n", "  \"a\": 1,\n", "}\n", user_line("u2", "\"on\"")});
  CHECK(feed.fields("line.skipped", {"line", "lines", "bytes"}) ==
        Lines{std::to_string(prompt.size()) + " 3 14"});
}

TEST_CASE("empty lines neither end a run nor count in it") {
  const Feed feed({prompt, "a\n", "\n", "\r\n", "b\n", user_line("u2", "\"on\"")});
  const Lines told = feed.fields("line.skipped", {"line", "lines", "reason"});
  CHECK(told == Lines{std::to_string(prompt.size()) + " 2 not JSON"});
}

TEST_CASE("another reason is another run") {
  TranscriptOptions options;
  options.line_bytes_max = 2000;
  const Feed feed({prompt, "a\n", std::string(3000, 'x') + "\n", "b\n", user_line("u2", "\"on\"")}, options);
  CHECK(feed.fields("line.skipped", {"lines", "bytes", "reason"}) ==
        Lines{"1 2 not JSON", "1 3001 too long", "1 2 not JSON"});
}

TEST_CASE("a run at the end of the file is not reported yet") {
  const Feed feed({prompt, "a\n", "b\n", "\n"});
  CHECK(feed.count("line.skipped") == 0);
  CHECK(feed.counts().skipped_lines == 2);
}

TEST_CASE("a line without events ends a run as well") {
  const Feed feed({prompt, "a\n",
                   R"({"type":"last-prompt","sessionId":"t"})"
                   "\n"});
  CHECK(feed.fields("line.skipped", {"lines"}) == Lines{"1"});
}

TEST_CASE("a run of NULs is one skipped line, and the next line is read") {
  const Feed feed({prompt, std::string(5000, '\0') + "\n", user_line("u2", "\"on\"")});
  CHECK(feed.fields("line.skipped", {"lines", "bytes", "reason"}) == Lines{"1 5001 not JSON"});
  CHECK(feed.fields("turn.started", {"prompt"}).back() == "on");
}

TEST_CASE("a record followed by NULs is kept") {
  const Feed feed({prompt,
                   user_line("u2", "\"on\"").substr(0, user_line("u2", "\"on\"").size() - 1) +
                       std::string(64, '\0') + "\n",
                   user_line("u3", "\"and on\"")});
  CHECK(feed.fields("turn.started", {"prompt"}) == Lines{"hi", "on", "and on"});
  CHECK(feed.count("line.skipped") == 1);
}

TEST_CASE("NULs before a record: the record is salvaged") {
  const Feed feed({prompt, std::string(64, '\0') + user_line("u2", "\"on\"")});
  CHECK(feed.fields("turn.started", {"prompt"}) == Lines{"hi", "on"});
  CHECK(feed.fields("line.skipped", {"salvaged"}) == Lines{"true"});
}

TEST_CASE("a line of just the allowed length is read, one byte more is too long") {
  const std::string line = user_line("u2", "\"" + std::string(500, 'y') + "\"");
  TranscriptOptions options;
  options.line_bytes_max = line.size();
  SECTION("at the limit or just below it") {
    const Feed feed({prompt, line}, options);
    CHECK(feed.count("turn.started") == 2);
  }
  SECTION("above") {
    options.line_bytes_max = line.size() - 2;
    Feed feed({prompt}, options);
    feed.write_cut(line, 7, 50);
    feed.write(user_line("u3", "\"on\""));
    CHECK(feed.fields("line.skipped", {"lines", "bytes", "reason"}) ==
          Lines{"1 " + std::to_string(line.size()) + " too long"});
    CHECK(feed.fields("turn.started", {"prompt"}) == Lines{"hi", "on"});
  }
}

TEST_CASE("a line that is too long is not kept in memory") {
  TranscriptOptions options;
  options.line_bytes_max = 4096;
  Feed feed({prompt}, options);
  const std::string piece(64 << 10, 'z');
  for (int i = 0; i < 64; ++i) feed.write(piece);
  CHECK(feed.transcript().memory_bytes() < (256 << 10));
  CHECK(feed.transcript().pending_bytes() == 64 * piece.size());
  feed.write("\n");
  feed.write(user_line("u3", "\"on\""));
  CHECK(feed.fields("line.skipped", {"bytes"}) == Lines{std::to_string(64 * piece.size() + 1)});
}

// ---- several records, or parts of them, on one line

std::string glue(std::initializer_list<std::string> lines) {
  std::string text;
  for (const std::string& line : lines) text += line.substr(0, line.size() - 1);
  return text + "\n";
}

TEST_CASE("two records on one line are both read, without line.skipped") {
  const Feed feed({glue({prompt, user_line("u2", "\"on\"")})});
  CHECK(feed.summary() ==
        Lines{"turn.started 1 human hi", "turn.finished 1 superseded", "turn.started 2 human on"});
  CHECK(feed.count("line.skipped") == 0);
  CHECK(feed.counts().lines == 1);
  CHECK(feed.counts().records == 2);
}

TEST_CASE("the events of records on one line are numbered consecutively") {
  const Feed feed({glue({prompt, user_line("u2", "\"on\""), user_line("u3", "\"and on\"")})});
  REQUIRE(feed.cursors().size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(feed.cursors()[i].index == i + 1);
    CHECK(feed.cursors()[i].offset == feed.bytes().size());
  }
}

TEST_CASE("blanks may separate records on one line") {
  CHECK(Feed({prompt.substr(0, prompt.size() - 1) + "  \t" + user_line("u2", "\"on\"")})
            .count("turn.started") == 2);
}

TEST_CASE("complete records before a broken part are kept") {
  const Feed feed({glue({prompt, user_line("u2", "\"on\""), "{\"type\":\"user\",\"mess\n"}),
                   user_line("u3", "\"and on\"")});
  CHECK(feed.fields("turn.started", {"prompt"}) == Lines{"hi", "on", "and on"});
  CHECK(feed.fields("line.skipped", {"line", "lines", "salvaged"}) == Lines{"0 1 false"});
}

TEST_CASE("a complete record after a torn one on the same line is salvaged at once") {
  const std::string cut = R"({"type":"user","uuid":"u9","message":{"role":"user","content":"lo)";
  Feed feed({prompt});
  feed.write(cut + user_line("u2", "\"on\""));
  CHECK(feed.fields("turn.started", {"prompt"}) == Lines{"hi", "on"});
  CHECK(feed.fields("line.skipped", {"line", "lines", "reason", "salvaged"}) ==
        Lines{std::to_string(prompt.size()) + " 1 not JSON true"});
  CHECK(field(feed.events()[2], "type") == "line.skipped");
}

TEST_CASE("the longest suffix of complete records is salvaged") {
  const std::string cut = R"({"type":"user","uuid":"u9","message":{"ro)";
  const Feed feed({prompt, cut + glue({user_line("u2", "\"two\""), user_line("u3", "\"three\"")})});
  CHECK(feed.fields("turn.started", {"prompt"}) == Lines{"hi", "two", "three"});
}

TEST_CASE("an inner object without a type is not salvaged from a cut record") {
  const Feed feed({prompt,
                   R"({"type":"assistant","uuid":"u9","message":{"usage":{"input_tokens":1}})"
                   "\n",
                   user_line("u2", "\"on\"")});
  CHECK(feed.fields("line.skipped", {"salvaged"}) == Lines{"false"});
  CHECK(feed.fields("turn.started", {"prompt"}) == Lines{"hi", "on"});
}

TEST_CASE("a salvaged line is an event of its own and ends a run") {
  const std::string cut = R"({"type":"user","uuid":"u9","message":{"ro)";
  const Feed feed({prompt, "a\n", cut + user_line("u2", "\"two\""), "b\n", user_line("u3", "\"three\"")});
  CHECK(feed.fields("line.skipped", {"lines", "salvaged"}) == Lines{"1 false", "1 true", "1 false"});
}

TEST_CASE("interleaved writers lose only their torn lines") {
  const std::string a = user_line("u2", "\"first writer\"");
  const std::string b = user_line("u3", "\"second writer\"");
  const Feed feed({prompt, a.substr(0, 30) + b, a.substr(30), user_line("u4", "\"on\"")});
  CHECK(feed.fields("turn.started", {"prompt"}) == Lines{"hi", "second writer", "on"});
}

// ---- JSON edge cases

TEST_CASE("1,024 levels are read, 1,025 are skipped") {
  for (const char* innermost : {"", "1", "\"x\""}) {
    const Feed at_the_limit({nested(1024, innermost), prompt});
    CHECK(at_the_limit.fields("turn.started", {"prompt"}) == Lines{"deep", "hi"});
    CHECK(at_the_limit.count("line.skipped") == 0);
    const Feed beyond({nested(1025, innermost), prompt});
    CHECK(beyond.fields("turn.started", {"prompt"}) == Lines{"hi"});
    CHECK(beyond.fields("line.skipped", {"line", "lines", "bytes", "reason"}) ==
          Lines{"0 1 " + std::to_string(nested(1025, innermost).size()) + " nested too deeply"});
  }
}

TEST_CASE("a line of a hundred thousand levels is skipped") {
  const Feed feed({prompt, nested(100'000), user_line("u2", "\"on\"")});
  CHECK(feed.fields("line.skipped", {"reason"}) == Lines{"nested too deeply"});
  CHECK(feed.fields("turn.started", {"prompt"}) == Lines{"hi", "on"});
}

TEST_CASE("a line nested too deeply is skipped whole, with any records glued to it") {
  const Feed feed({prompt, glue({nested(1025), user_line("u2", "\"glued\"")}), user_line("u3", "\"on\"")});
  CHECK(feed.fields("turn.started", {"prompt"}) == Lines{"hi", "on"});
  CHECK(feed.fields("line.skipped", {"reason", "salvaged"}) == Lines{"nested too deeply false"});
}

TEST_CASE("brackets inside strings do not nest") {
  CHECK(Feed({user_line("u1", '"' + std::string(3000, '[') + '"')}).count("turn.started") == 1);
}

TEST_CASE("of duplicate keys the last one wins") {
  const Feed feed(
      {R"({"type":"system","uuid":"u0","type":"user","uuid":"u1","message":{"role":"user","content":"no","content":"yes"}})"
       "\n"});
  CHECK(feed.summary() == Lines{"turn.started 1 human yes"});
}

TEST_CASE("of duplicate keys the last wins, for any types") {
  const Feed feed(
      {R"({"type":"user","uuid":"u1","message":"flat","message":{"role":"user","content":["x"],"content":"yes"}})"
       "\n"});
  CHECK(feed.fields("session.started", {"dialect"}) == Lines{"claude-code"});
  CHECK(feed.summary() == Lines{"turn.started 1 human yes"});
}

TEST_CASE("a key may be escaped") {
  CHECK(Feed({R"({"\u0074ype":"user","uuid":"u1","message":{"role":"user","content":"yes"}})"
              "\n"})
            .summary() == Lines{"turn.started 1 human yes"});
}

TEST_CASE("a raw control character in a string is not JSON") {
  for (const char c : {'\t', '\x01', '\x1B', '\0'}) {
    const std::string text = std::string("\"a") + c + "b\"";
    const Feed feed({prompt, user_line("u2", text), user_line("u3", "\"on\"")});
    CHECK(feed.fields("turn.started", {"prompt"}) == Lines{"hi", "on"});
    CHECK(feed.fields("line.skipped", {"reason"}) == Lines{"not JSON"});
  }
}

TEST_CASE("an escaped control character is text") {
  CHECK(Feed({user_line("u1", R"("a\u0000\u001bb\tc")")}).fields("turn.started", {"prompt"}) ==
        Lines{std::string("a\0\x1B"
                          "b\tc",
                          6)});
}

TEST_CASE("a lone surrogate is U+FFFD and the record is kept") {
  for (const char* text : {R"("a\ud83db")", R"("a\udc00b")", R"("a\uD800\u0062")"}) {
    const Feed feed({user_line("u1", text)});
    CHECK(feed.fields("turn.started", {"prompt"}) == Lines{"a\xEF\xBF\xBD"
                                                           "b"});
    CHECK(feed.counts().repaired_lines == 1);
    CHECK(feed.count("line.skipped") == 0);
  }
}

TEST_CASE("a surrogate pair is one character") {
  CHECK(Feed({user_line("u1", R"("\ud83d\ude00")")}).fields("turn.started", {"prompt"}) ==
        Lines{"\xF0\x9F\x98\x80"});
}

TEST_CASE("bytes that are not UTF-8 are U+FFFD and the record is kept") {
  for (const char* bytes : {"\xC0\x80", "\xFF", "\xE2\x82", "\xED\xA0\x80", "\xF5\x80\x80\x80"}) {
    const Feed feed({user_line("u1", std::string("\"a") + bytes + "b\""), user_line("u2", "\"on\"")});
    const Lines told = feed.fields("turn.started", {"prompt"});
    REQUIRE(told.size() == 2);
    CHECK(told[0].starts_with("a\xEF\xBF\xBD"));
    CHECK(told[0].ends_with("b"));
    CHECK(feed.counts().repaired_lines == 1);
    CHECK(feed.count("line.skipped") == 0);
  }
}

TEST_CASE("a number too large for a double is null, never inf") {
  const std::string digits(400, '9');
  for (const std::string& number :
       {std::string("1e400"), std::string("-1e400"), std::string("18446744073709551616"), digits,
        std::string("9007199254740993")}) {
    Records r;
    const Feed feed({r.user("hi"), r.call("c1", "Bash", "{\"n\":" + number + ",\"m\":[" + number + "]}")});
    // simdjson's DOM refuses such a number: compare the text.
    REQUIRE(feed.events().size() == 3);
    CHECK(feed.events().back().find("\"input\":{\"n\":" + number + ",\"m\":[" + number + "]}") !=
          std::string::npos);
    CHECK(feed.counts().skipped_lines == 0);
  }
}

TEST_CASE("a number too large in an unread value is harmless") {
  const Feed feed({R"({"x":1e999,"type":"user","uuid":"u1","message":{"role":"user","content":"hi"}})"
                   "\n"});
  CHECK(feed.summary() == prompted);
}

TEST_CASE("garbage in an unread value is still not JSON") {
  const Feed feed(
      {prompt,
       R"({"type":"user","uuid":"u2","skip":{"a":tru,"b":[1,,2]},"message":{"role":"user","content":"no"}})"
       "\n",
       user_line("u3", "\"on\"")});
  CHECK(feed.fields("turn.started", {"prompt"}) == Lines{"hi", "on"});
  CHECK(feed.count("line.skipped") == 1);
}

TEST_CASE("garbage in a record without facts is still not JSON") {
  const Feed feed({prompt,
                   R"({"type":"last-prompt","x":[1,,2]})"
                   "\n",
                   R"({"type":"last-prompt","x":[1 2]})"
                   "\n",
                   R"({"type":"last-prompt","x":01})"
                   "\n",
                   R"({"type":"last-prompt","x":"\q"})"
                   "\n",
                   user_line("u3", "\"on\"")});
  CHECK(feed.fields("line.skipped", {"lines"}) == Lines{"4"});
}

TEST_CASE("a record without facts does not hide another on its line") {
  const Feed feed({prompt, glue({R"({"type":"last-prompt","lastPrompt":"x"})"
                                 "\n",
                                 user_line("u2", "\"glued\"")})});
  CHECK(feed.fields("turn.started", {"prompt"}) == Lines{"hi", "glued"});
}

// ---- uuids

TEST_CASE("a repeated uuid emits no second event") {
  Records r;
  const std::string first = r.user("hi");
  const std::string second = r.text("hello", "\"end_turn\"");
  const Feed feed({first, second, first, second});
  CHECK(feed.count("turn.started") == 1);
  CHECK(feed.count("turn.finished") == 1);
  CHECK(feed.counts().duplicates == 2);
}

TEST_CASE("the same uuids in another stream are other records") {
  Records r;
  const std::string line = r.user("hi");
  CHECK(Feed({line}).summary() == prompted);
  CHECK(Feed({line}).summary() == prompted);
}

TEST_CASE("a record glued on and then written again is read once") {
  const Feed feed({glue({R"({"type":"last-prompt","lastPrompt":"x"})"
                         "\n",
                         prompt}),
                   prompt});
  CHECK(feed.summary() == prompted);
  CHECK(feed.counts().duplicates == 1);
}

TEST_CASE("circular and self parents are roots") {
  Records r;
  const Feed feed({r.record("user", R"("message":{"role":"user","content":"a"})",
                            R"("uuid":"a","parentUuid":"b","isSidechain":true)"),
                   r.record("user", R"("message":{"role":"user","content":"b"})",
                            R"("uuid":"b","parentUuid":"a","isSidechain":true)"),
                   r.record("user", R"("message":{"role":"user","content":"c"})",
                            R"("uuid":"c","parentUuid":"c","isSidechain":true)")});
  CHECK(feed.count("message.added") == 3);
}

}  // namespace
}  // namespace earshot::test
