// Throughput from bytes to events, compared with simdjson's DOM over the same valid lines.
//
// usage: bench_fold FILE…        prints one JSON object in bytes per second, one number per round; rounds
// alternate
#include <simdjson.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "agents/claude_code/reader.hpp"
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

/// The lines that simdjson accepts, as it cannot skip broken ones.
simdjson::padded_string valid_lines(const std::vector<std::string>& files, std::size_t& longest) {
  simdjson::dom::parser parser;
  std::string valid;
  for (const auto& file : files) {
    std::istringstream lines(file);
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || parser.parse(line).error()) continue;
      valid += line + "\n";
      longest = std::max(longest, line.size() + 1);
    }
  }
  return simdjson::padded_string(valid);
}

std::size_t fold(const std::vector<std::string>& files, earshot::Workspace& workspace) {
  Counter counter;
  for (const auto& file : files) {
    earshot::Transcript transcript({.reader = &earshot::claude_code::reader()});
    const std::size_t size = file.size() - earshot::feed_padding;
    for (std::size_t at = 0; at < size; at += piece_bytes)
      transcript.feed({file.data() + at, std::min(piece_bytes, size - at)}, workspace, counter);
  }
  return counter.events;
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
  std::vector<std::string> files;
  std::size_t bytes = 0;
  for (int n = 1; n < count; ++n) {
    std::ifstream in(given[n], std::ios::binary);
    std::ostringstream all;
    all << in.rdbuf();
    bytes += all.str().size();
    files.push_back(all.str() + std::string(earshot::feed_padding, '\0'));
  }
  if (bytes == 0) return std::fprintf(stderr, "usage: bench_fold FILE…\n"), 2;

  std::size_t longest = 1 << 20;
  const simdjson::padded_string lines = valid_lines(files, longest);
  earshot::Workspace workspace;
  std::vector<double> fold_seconds, parse_seconds;
  std::size_t events = 0, documents = 0;
  for (int round = 0; round < rounds; ++round) {
    auto start = Clock::now();
    events = fold(files, workspace);
    fold_seconds.push_back(seconds_since(start));
    start = Clock::now();
    documents = parse(lines, 2 * longest);
    parse_seconds.push_back(seconds_since(start));
  }
  std::printf("{\"bytes\":%zu,\"events\":%zu,\"documents\":%zu,\"fold_rounds\":%s,\"dom_rounds\":%s}\n",
              bytes, events, documents, rates(bytes, fold_seconds).c_str(),
              rates(lines.size(), parse_seconds).c_str());
}
