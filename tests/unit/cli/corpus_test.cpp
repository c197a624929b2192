// Everything that real sessions hold, on a terminal of every width.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "agents/claude_code/reader.hpp"
#include "agents/roots.hpp"
#include "agents/stream_name.hpp"
#include "cli/event_formatter.hpp"
#include "core/event_json.hpp"
#include "core/transcript.hpp"
#include "unit/places.hpp"

namespace corpus_test {

using namespace earshot;
using namespace earshot::cli;

namespace {

// Formats each event and checks the lines.
class LineChecker : public EventSink {
 public:
  explicit LineChecker(std::size_t columns)
      : columns_(columns), formatter_({Charset::utf8, Palette::none, columns}, true) {}

  void on_event(const Event& event) override {
    std::string json, lines;
    append_event(json, event, {"dev7", "claude/-p/s", "s"});
    const auto frame = parser_.parse(json);
    if (!frame) {
      unread = json;
      return;
    }
    formatter_.format(*frame, lines);
    ++shown;
    for (std::string_view rest = lines; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      if (display_width(line) > columns_ || !is_harmless(line)) bad = line;
    }
  }

  std::size_t shown = 0;
  std::string unread, bad;  // empty: none

 private:
  static bool is_harmless(std::string_view line) {
    while (!line.empty()) {
      const char32_t c = take_code_point(line);
      if (c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069))
        return false;
    }
    return true;
  }

  std::size_t columns_;
  FrameParser parser_;
  EventFormatter formatter_;
};

}  // namespace

TEST_CASE("the lines of recorded sessions fit the terminal and contain no control characters") {
  const std::filesystem::path corpus = earshot::test::corpus();
  if (!std::filesystem::is_directory(corpus)) {
    WARN("skipped: no recorded sessions at " << corpus);
    return;
  }
  Workspace workspace;
  std::size_t shown = 0;
  for (const std::string& file : transcripts_at(corpus.string()).files) {
    std::ifstream in(file, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const std::size_t size = text.size();
    text.append(feed_padding, '\0');
    Transcript transcript({.own_agent = place_of(file).agent, .format = &claude_code::format()});
    LineChecker audience(40 + shown % 100);
    transcript.feed({text.data(), size}, workspace, audience);
    shown += audience.shown;
    CAPTURE(file, audience.unread, audience.bad);
    CHECK((audience.unread.empty() && audience.bad.empty()));
  }
  CHECK(shown > 1000);
}

}  // namespace corpus_test
