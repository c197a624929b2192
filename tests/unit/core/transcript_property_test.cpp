// Split invariance, and invariants of the events of any file.
#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/cursor.hpp"
#include "session_generator.hpp"
#include "unit/places.hpp"
#include "unit/support/feed.hpp"
#include "unit/support/transcript_summary.hpp"

namespace earshot::test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t line_bytes_max = 4096;  // generated lines exceed it
constexpr std::uint64_t key = 0x5eed;

TranscriptOptions options(std::size_t line_max = line_bytes_max) {
  TranscriptOptions made;
  made.hash_key = key;
  made.line_bytes_max = line_max;
  return made;
}

/// Two feeds of the same bytes must agree on this. Reported only on a difference: a Catch
/// assertion costs more than a feed.
void require_same(const Feed& a, const Feed& b) {
  if (a.events() == b.events() && summary_of(a.transcript()) == summary_of(b.transcript())) return;
  CHECK(a.events() == b.events());
  REQUIRE(summary_of(a.transcript()) == summary_of(b.transcript()));
}

/// A field of an encoded event; short strings and numbers at the top level, which is all that is
/// asked for here.
std::string_view raw(std::string_view event, std::string_view name) {
  const std::string quoted = ",\"" + std::string(name) + "\":";
  const std::size_t at = event.find(quoted);
  if (at == std::string_view::npos) return {};
  std::size_t begin = at + quoted.size();
  const bool string = event[begin] == '"';
  begin += string;
  return event.substr(begin, event.find_first_of(string ? "\"" : ",}", begin) - begin);
}

/// Invariants of the events of any file.
void require_sound(const Feed& feed) {
  std::set<std::string, std::less<>> invoked;
  std::set<std::string, std::less<>> finished;
  std::set<std::string, std::less<>> open;
  std::string open_turn;
  Cursor last;
  std::size_t marked = 0;
  PrefixHasher prefix(key);
  REQUIRE(feed.events().size() == feed.cursors().size());
  REQUIRE(feed.counts().events == feed.events().size());
  for (std::size_t i = 0; i < feed.events().size(); ++i) {
    const std::string& event = feed.events()[i];
    const Cursor& cursor = feed.cursors()[i];
    const std::string_view type = std::string_view(event).substr(9, event.find('"', 9) - 9);
    INFO("event " << i << ": " << event);
    // Indices grow by one within a line, from 1; the hash is that of the bytes before.
    if (cursor.offset == last.offset ? cursor.index != last.index + 1
                                     : cursor.offset < last.offset || cursor.index != 1)
      FAIL("the cursor does not follow " << to_string(last));
    if (cursor.offset > feed.bytes().size() || feed.bytes()[cursor.offset - 1] != '\n')
      FAIL("the cursor is at no line's end");
    prefix.add(std::string_view(feed.bytes()).substr(marked, cursor.offset - marked));
    marked = cursor.offset;
    if (cursor.prefix_hash != prefix.value()) FAIL("the mark is not that of the prefix");
    last = cursor;
    // Turns 1, 2, …, each finished at most once and before the next one starts.
    const std::string turn(raw(event, "turn"));
    if (type == "turn.started") {
      if (!open_turn.empty()) FAIL("turn " << open_turn << " was not finished");
      open_turn = turn;
    } else if (type == "turn.finished") {
      if (open_turn != turn) FAIL("finished without having been started");
      open_turn.clear();
    } else if (type == "tool.invoked") {
      const auto [at, fresh] = invoked.emplace(raw(event, "call"));
      if (!fresh) FAIL("invoked twice");
      if (!finished.contains(*at)) open.insert(*at);
    } else if (type == "tool.finished") {
      const auto [at, fresh] = finished.emplace(raw(event, "call"));
      if (!fresh) FAIL("finished twice");
      open.erase(*at);
    }
    if (type == "turn.started" && !open.empty()) FAIL("the call " << *open.begin() << " is still open");
  }
  const RecordCounts& counts = feed.counts();
  REQUIRE(counts.lines == std::uint64_t(std::count(feed.bytes().begin(), feed.bytes().end(), '\n')));
  REQUIRE(counts.empty_lines + counts.skipped_lines <= counts.lines);
  // Every line is empty, skipped, or counted by the type of its records.
  std::uint64_t typed = 0;
  for (const auto& [type, count] : counts.types) typed += count;
  REQUIRE(counts.lines <= counts.empty_lines + counts.skipped_lines + typed);
  REQUIRE(counts.records <= typed);
}

TEST_CASE("small sessions, split at every byte") {
  constexpr std::size_t small_bytes_max = 2500;
  int small = 0;
  for (std::uint64_t seed = 1; seed <= 60 && small < 20; ++seed) {
    INFO("seed " << seed);
    const std::string bytes = generated_session(seed, 8);
    if (bytes.size() > small_bytes_max) continue;
    ++small;
    Feed whole(options());
    whole.write(bytes);
    require_sound(whole);
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
      Feed split(options());
      split.write(std::string_view(bytes).substr(0, cut));
      split.write(std::string_view(bytes).substr(cut));
      require_same(whole, split);
    }
  }
  CHECK(small == 20);
}

TEST_CASE("sessions, fed byte by byte") {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    const std::string bytes = generated_session(seed, 40);
    Feed whole(options());
    whole.write(bytes);
    require_sound(whole);
    Feed bytewise(options());
    bytewise.write_bytewise(bytes);
    require_same(whole, bytewise);
  }
}

TEST_CASE("larger sessions, split at random") {
  for (std::uint64_t seed = 1000; seed < 1100; ++seed) {
    INFO("seed " << seed);
    const std::string bytes = generated_session(seed, 400);
    Feed whole(options());
    whole.write(bytes);
    require_sound(whole);
    for (const std::size_t piece_max : {7u, 100u, 5000u}) {
      Feed cut(options());
      cut.write_cut(bytes, seed, piece_max);
      require_same(whole, cut);
    }
  }
}

TEST_CASE("an undamaged session skips no line") {
  for (std::uint64_t seed = 2000; seed < 2060; ++seed) {
    INFO("seed " << seed);
    Feed feed(options());
    feed.write(generated_session(seed, 200, {.any = false}));
    require_sound(feed);
    CHECK(feed.counts().skipped_lines == 0);
    CHECK(feed.counts().dropped == 0);
    CHECK(feed.counts().lines == feed.counts().records);
    CHECK(feed.count("turn.started") > 0);
  }
}

TEST_CASE("an agent's own file can be split as any other") {
  for (std::uint64_t seed = 3000; seed < 3040; ++seed) {
    INFO("seed " << seed);
    TranscriptOptions agents = options();
    agents.own_agent = "abc";
    const std::string bytes = generated_session(seed, 100);
    Feed whole(agents);
    whole.write(bytes);
    require_sound(whole);
    Feed cut(agents);
    cut.write_cut(bytes, seed, 50);
    require_same(whole, cut);
  }
}

TEST_CASE("a large session, parsed ahead by another thread or by none") {
  boost::asio::thread_pool other(1);
  std::vector<std::function<void()>> late;
  const std::map<std::string, Workspace::Post> posts = {
      {"never", [](auto) {}},
      {"at once", [](auto task) { task(); }},
      {"late", [&](auto task) { late.push_back(std::move(task)); }},
      {"another thread", [&](auto task) { boost::asio::post(other, std::move(task)); }},
  };
  std::map<std::string, std::unique_ptr<Workspace>> workspaces;  // used for all sessions, as in the daemon
  for (const auto& [name, post] : posts) {
    workspaces[name] = std::make_unique<Workspace>();
    workspaces[name]->parse_ahead(post);
  }
  for (std::uint64_t seed = 4000; seed < 4008; ++seed) {
    const std::string bytes = generated_session(seed, 8000, {.any = seed % 2 == 0}) +
                              std::string(300'000, ' ') + '\n' + std::string(9000, '\n') +
                              generated_session(seed + 100, 3000, {.any = seed % 3 == 0});
    REQUIRE(bytes.size() > 2'000'000);
    Feed whole(options());
    whole.write(bytes);
    require_sound(whole);
    for (const auto& [name, workspace] : workspaces) {
      INFO("seed " << seed << ", " << name);
      Feed ahead(options());
      const std::size_t cut = bytes.size() / 2 + seed;  // in the middle of a line
      ahead.write(std::string_view(bytes).substr(0, cut), *workspace);
      ahead.write(std::string_view(bytes).substr(cut), *workspace);
      require_same(whole, ahead);
      for (const auto& task : std::exchange(late, {})) task();
    }
  }
  other.join();
}

TEST_CASE("recorded sessions: split or not, the same events", "[corpus]") {
  const fs::path corpus = test::corpus();
  if (!fs::is_directory(corpus)) {
    WARN("SKIPPED: no recorded sessions at " << corpus);
    return;
  }
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(corpus)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".jsonl" && path.filename() != "timeline.jsonl" &&
        path.filename() != "history.jsonl")
      paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  REQUIRE(paths.size() > 100);
  std::uint64_t seed = 1;
  for (const fs::path& path : paths) {
    INFO(path);
    std::ifstream in(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    TranscriptOptions made = options(16 << 20);
    const std::string stem = path.stem().string();
    if (stem.starts_with("agent-")) made.own_agent = stem.substr(6);
    Feed whole(made);
    whole.write(bytes);
    require_sound(whole);
    CHECK(whole.counts().dropped == 0);
    Feed cut(made);
    cut.write_cut(bytes, ++seed, 30'000);
    require_same(whole, cut);
  }
}

}  // namespace
}  // namespace earshot::test
