// Throughput from bytes to events, compared with simdjson's DOM over the same valid lines.
//
// usage: bench_fold FILE…        prints one JSON object in bytes per second, one number per round; rounds
// alternate: the fold on one thread, on two (a file each, largest first, as the daemon starts), parse_many
#include <simdjson.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "agents/agent.hpp"
#include "core/transcript.hpp"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int rounds = 7;
constexpr std::size_t piece_bytes = 1 << 20;  // as the daemon reads

struct Counter : earshot::EventSink {
  std::size_t events = 0;
  void on_event(const earshot::Event&) override { ++events; }
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string rates(std::size_t bytes, const std::vector<double>& seconds) {
  std::string text;
  for (const double one : seconds)
    text += (text.empty() ? "[" : ",") + std::to_string(static_cast<double>(bytes) / one);
  return text + "]";
}

struct File {
  std::string text;                      // and padding
  const earshot::AgentProgram* program;  // the daemon knows it by the directory
  std::size_t size() const { return text.size() - earshot::feed_padding; }
};

/// The lines that simdjson accepts, as it cannot skip broken ones.
simdjson::padded_string valid_lines(const std::vector<File>& files, std::size_t& longest) {
  simdjson::dom::parser parser;
  std::string valid;
  for (const auto& file : files) {
    std::istringstream lines(file.text.substr(0, file.size()));
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || parser.parse(line).error()) continue;
      valid += line + "\n";
      longest = std::max(longest, line.size() + 1);
    }
  }
  return simdjson::padded_string(valid);
}

std::size_t fold(const File& file, earshot::Workspace& workspace) {
  Counter counter;
  earshot::Transcript transcript({.format = &file.program->format()});
  for (std::size_t at = 0; at < file.size(); at += piece_bytes)
    transcript.feed({file.text.data() + at, std::min(piece_bytes, file.size() - at)}, workspace, counter);
  return counter.events;
}

std::size_t fold_all(const std::vector<File>& files, std::vector<earshot::Workspace>& workspaces) {
  std::atomic<std::size_t> next = 0, events = 0;
  const auto work = [&](earshot::Workspace& workspace) {
    for (std::size_t n; (n = next++) < files.size();) events += fold(files[n], workspace);
  };
  std::vector<std::thread> others;
  for (std::size_t n = 1; n < workspaces.size(); ++n) others.emplace_back(work, std::ref(workspaces[n]));
  work(workspaces[0]);
  for (std::thread& other : others) other.join();
  return events;
}

std::size_t parse(const simdjson::padded_string& lines, std::size_t batch_bytes) {
  simdjson::dom::parser parser;
#ifdef SIMDJSON_THREADS_ENABLED
  parser.threaded = false;  // compare one thread with one thread
#endif
  simdjson::dom::document_stream documents;
  if (parser.parse_many(lines, batch_bytes).get(documents)) return 0;
  std::size_t count = 0;
  for (auto document : documents) count += !document.error();
  return count;
}

}  // namespace

int main(int count, char** given) {
  std::vector<File> files;
  std::size_t bytes = 0;
  for (int n = 1; n < count; ++n) {
    std::ifstream in(given[n], std::ios::binary);
    std::ostringstream all;
    all << in.rdbuf();
    bytes += all.str().size();
    const earshot::AgentProgram* program =
        earshot::detect_program(std::string_view(all.view()).substr(0, piece_bytes));
    files.push_back({all.str() + std::string(earshot::feed_padding, '\0'),
                     program ? program : &earshot::default_program()});
  }
  if (bytes == 0) return std::fprintf(stderr, "usage: bench_fold FILE…\n"), 2;

  std::size_t longest = 1 << 20;
  const simdjson::padded_string lines = valid_lines(files, longest);
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::vector<earshot::Workspace> one(1), two(2);
  std::vector<double> fold_seconds, both_seconds, parse_seconds;
  const auto timed = [](std::vector<double>& seconds, auto&& work) {
    const auto start = Clock::now();
    const std::size_t result = work();
    seconds.push_back(seconds_since(start));
    return result;
  };
  std::size_t events = 0, documents = 0;
  for (int round = 0; round < rounds; ++round) {
    events = timed(fold_seconds, [&] { return fold_all(files, one); });
    if (timed(both_seconds, [&] { return fold_all(files, two); }) != events) return 1;
    documents = timed(parse_seconds, [&] { return parse(lines, 2 * longest); });
  }
  std::printf(
      "{\"bytes\":%zu,\"events\":%zu,\"documents\":%zu,\"fold_rounds\":%s,\"two_threads_rounds\":%s,"
      "\"dom_rounds\":%s}\n",
      bytes, events, documents, rates(bytes, fold_seconds).c_str(), rates(bytes, both_seconds).c_str(),
      rates(lines.size(), parse_seconds).c_str());
}
