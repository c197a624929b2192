// Lines that arrive in pieces, merged or in bulk have the events and cursors of a single fold.
#include <sys/uio.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "unit/tail/tail_fixture.hpp"

namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::test;
using watch::Mode;

namespace {

struct Fresh {
  explicit Fresh(Mode mode = Mode::both)
      : fixture((fs::create_directories(root / "projects/p"), root.path()), mode) {
    fixture.start();
  }
  void same() { fixture.same(name, file); }
  const Lines& events() { return fixture.observer.streams[name].events; }

  TemporaryDirectory root;
  const std::string file = root / "projects/p/s.jsonl";
  const std::string name = "r/p/s";
  TailFixture fixture;
};

}  // namespace

TEST_CASE("fault 1: a line written byte by byte, also inside a character, with a check after each") {
  Fresh session(GENERATE(Mode::inotify, Mode::both));
  const std::string line =
      R"({"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"ein Grüße 👋 漢"}})"
      "\n";
  for (const char byte : line) {
    append(session.file, std::string_view(&byte, 1));
    session.fixture.read(session.name);
    if (byte != '\n') REQUIRE(session.events().empty());
  }
  session.same();
  REQUIRE_FALSE(session.events().empty());
}

TEST_CASE("fault 2: an unterminated line yields no event and counts as pending") {
  Fresh session;
  append(session.file, prompt(0) + R"({"type":"user","mess)");
  session.same();
  const auto received = session.events();
  REQUIRE(received == fold_of(prompt(0)));
  REQUIRE(session.fixture.tail->find(session.name)->transcript()->pending_bytes() == 20);
  fs::remove(session.file);
  session.fixture.until([&] { return !session.fixture.observer.has(session.name); });
  REQUIRE(session.events() == received);
}

TEST_CASE("fault 3: CR and LF in two writes end one line") {
  Fresh session;
  std::string line = prompt(0);
  line.insert(line.size() - 1, "\r");
  append(session.file, line.substr(0, line.size() - 1));
  session.fixture.read(session.name);
  REQUIRE(session.events().empty());
  append(session.file, "\n");
  session.same();
  REQUIRE_FALSE(session.events().empty());
}

TEST_CASE("fault 4: a line in two writes has the offset of its first byte") {
  Fresh session;
  const std::string text = prompt(0) + "not json\n" + prompt(1);
  for (std::size_t at = 0; at < text.size(); at += 7) {
    append(session.file, std::string_view(text).substr(at, 7));
    session.fixture.read(session.name);
  }
  session.same();
  REQUIRE_FALSE(session.events().empty());
}

TEST_CASE("fault 5: ten thousand lines in one write are all delivered, in order") {
  Fresh session(GENERATE(Mode::inotify, Mode::sweep, Mode::both));
  const std::string text = prompts(0, 10'000);
  append(session.file, text);
  session.same();
  REQUIRE(session.events().size() >= 10'000);
}

TEST_CASE("fault 6: a thousand appends are delivered, whatever the number of notifications") {
  Fresh session(GENERATE(Mode::inotify, Mode::sweep, Mode::both));
  for (int n = 0; n < 1000; ++n) {
    append(session.file, prompt(n));
    if (n % 100 == 0) session.fixture.read(session.name);
  }
  session.same();
}

TEST_CASE("fault 9: a run of NULs, then valid lines") {
  Fresh session;
  append(session.file, prompt(0));
  const int fd = ::open(session.file.c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  const std::string text = "\n" + prompts(1, 3);
  REQUIRE(::pwrite(fd, text.data(), text.size(), 5000) == static_cast<ssize_t>(text.size()));
  ::close(fd);
  session.same();
  REQUIRE(session.fixture.tail->find(session.name)->transcript()->counts().skipped_lines == 1);
}

TEST_CASE("fault 13: a byte order mark is accepted at the beginning only") {
  Fresh session;
  append(session.file, "\xEF\xBB\xBF");
  session.fixture.read(session.name);
  append(session.file, prompt(0) + "\xEF\xBB\xBF" + prompt(1) + prompt(2));
  session.same();
  // The first line is valid; a line with a mark in its middle is malformed.
  const auto is_skip = [](const std::string& event) {
    return event.find("line.skipped") != std::string::npos;
  };
  REQUIRE(std::count_if(session.events().begin(), session.events().end(), is_skip) == 1);
  REQUIRE_FALSE(is_skip(session.events().front()));
}

TEST_CASE("fault 67: lines of a quiet file are delivered before a busy file is read completely") {
  Fresh session;
  append(session.file, "");
  append(session.root / "projects/p/loud.jsonl", "");
  session.fixture.until(
      [&] { return session.fixture.observer.has("r/p/loud") && session.fixture.observer.has(session.name); });
  std::string bulk;
  for (int n = 0; bulk.size() < (8u << 20); ++n) bulk += prompt(n);
  append(session.root / "projects/p/loud.jsonl", bulk);
  append(session.file, prompt(0));
  session.fixture.until([&] { return !session.events().empty(); });
  const auto* loud = session.fixture.tail->find("r/p/loud");
  REQUIRE(loud->transcript()->bytes_read() < bulk.size());
  session.fixture.same("r/p/loud", session.root / "projects/p/loud.jsonl");
}
