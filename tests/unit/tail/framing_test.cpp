// How lines arrive: torn, glued, in bulk. The events, cursors included, are those of a one-shot fold.
#include <sys/uio.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "rig.hpp"

namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::test;
using watch::Mode;

namespace {

struct Fresh {
  explicit Fresh(Mode mode = Mode::both)
      : rig((fs::create_directories(root / "projects/p"), root.path()), mode) {
    rig.start();
  }
  void same() { rig.same(name, file); }
  const Lines& events() { return rig.heard.streams[name].events; }

  Scratch root;
  const std::string file = root / "projects/p/s.jsonl";
  const std::string name = "r/p/s";
  Rig rig;
};

}  // namespace

TEST_CASE("fault 1: torn inside a character, one byte a write with a look between") {
  Fresh session(GENERATE(Mode::inotify, Mode::both));
  const std::string line =
      R"({"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"ein Grüße 👋 漢"}})"
      "\n";
  for (const char byte : line) {
    append(session.file, std::string_view(&byte, 1));
    session.rig.read(session.name);
    if (byte != '\n') REQUIRE(session.events().empty());
  }
  session.same();
  REQUIRE_FALSE(session.events().empty());
}

TEST_CASE("fault 2: an unterminated line is no event, and shows as pending") {
  Fresh session;
  append(session.file, prompt(0) + R"({"type":"user","mess)");
  session.same();
  const auto told = session.events();
  REQUIRE(told == fold_of(prompt(0)));
  REQUIRE(session.rig.tail->find(session.name)->transcript()->pending_bytes() == 20);
  fs::remove(session.file);
  session.rig.until([&] { return !session.rig.heard.has(session.name); });
  REQUIRE(session.events() == told);
}

TEST_CASE("fault 3: CR and LF in two writes end one line") {
  Fresh session;
  std::string line = prompt(0);
  line.insert(line.size() - 1, "\r");
  append(session.file, line.substr(0, line.size() - 1));
  session.rig.read(session.name);
  REQUIRE(session.events().empty());
  append(session.file, "\n");
  session.same();
  REQUIRE_FALSE(session.events().empty());
}

TEST_CASE("fault 4: a torn line has the offset of its first byte") {
  Fresh session;
  const std::string text = prompt(0) + "not json\n" + prompt(1);
  for (std::size_t at = 0; at < text.size(); at += 7) {
    append(session.file, std::string_view(text).substr(at, 7));
    session.rig.read(session.name);
  }
  session.same();
  REQUIRE_FALSE(session.events().empty());
}

TEST_CASE("fault 5: ten thousand lines in one write are all told, in order") {
  Fresh session(GENERATE(Mode::inotify, Mode::sweep, Mode::both));
  const std::string text = prompts(0, 10'000);
  append(session.file, text);
  session.same();
  REQUIRE(session.events().size() >= 10'000);
}

TEST_CASE("fault 6: a thousand appends, however many notifications they make") {
  Fresh session(GENERATE(Mode::inotify, Mode::sweep, Mode::both));
  for (int n = 0; n < 1000; ++n) {
    append(session.file, prompt(n));
    if (n % 100 == 0) session.rig.read(session.name);
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
  REQUIRE(session.rig.tail->find(session.name)->transcript()->counts().skipped_lines == 1);
}

TEST_CASE("fault 13: a byte order mark counts at the beginning only") {
  Fresh session;
  append(session.file, "\xEF\xBB\xBF");
  session.rig.read(session.name);
  append(session.file, prompt(0) + "\xEF\xBB\xBF" + prompt(1) + prompt(2));
  session.same();
  // The first line is whole; the one with a mark in its middle is a broken line, salvaged or not.
  const auto is_skip = [](const std::string& event) {
    return event.find("line.skipped") != std::string::npos;
  };
  REQUIRE(std::count_if(session.events().begin(), session.events().end(), is_skip) == 1);
  REQUIRE_FALSE(is_skip(session.events().front()));
}

TEST_CASE("fault 67: beside a firehose a quiet file is heard before the firehose is read") {
  Fresh session;
  append(session.file, "");
  append(session.root / "projects/p/loud.jsonl", "");
  session.rig.until([&] { return session.rig.heard.has("r/p/loud") && session.rig.heard.has(session.name); });
  std::string bulk;
  for (int n = 0; bulk.size() < (8u << 20); ++n) bulk += prompt(n);
  append(session.root / "projects/p/loud.jsonl", bulk);
  append(session.file, prompt(0));
  session.rig.until([&] { return !session.events().empty(); });
  const auto* loud = session.rig.tail->find("r/p/loud");
  REQUIRE(loud->transcript()->bytes_read() < bulk.size());
  session.rig.same("r/p/loud", session.root / "projects/p/loud.jsonl");
}
