// Throughput of redaction, and the matches: bench_redact [--show] FILE…
//
// Each line is one text. Prints MB/s of the best round and the matches per rule; --show prints each match
// with its context (including secrets).
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "redact/redactor.hpp"

namespace {

constexpr int rounds = 7;
constexpr std::size_t around_bytes = 60;

double seconds_of(const earshot::TextFilter& filter, const std::vector<std::string_view>& texts) {
  std::string scratch;
  const std::clock_t start = std::clock();  // CPU time: the machine may be busy
  for (const std::string_view text : texts) filter.clean(text, scratch);
  return double(std::clock() - start) / CLOCKS_PER_SEC;
}

// Prints each replacement with the original text around it.
void show(const earshot::TextFilter& filter, std::string_view text) {
  std::string scratch;
  const std::string_view clean = filter.clean(text, scratch);
  if (clean.data() == text.data()) return;
  std::size_t from = 0;
  while ((from = clean.find("[redacted:", from)) != std::string_view::npos) {
    const std::size_t begin = from - std::min(from, around_bytes);
    const std::string_view before = clean.substr(begin, from - begin);
    const std::size_t at = text.find(before);
    std::printf("%.*s\t%.*s\n", 40, clean.data() + from,
                static_cast<int>(std::min<std::size_t>(3 * around_bytes, text.size() - at)),
                text.data() + at);
    from += 10;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> files;
  bool shown = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--show")) {
      shown = true;
      continue;
    }
    std::ifstream in(argv[i], std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  std::vector<std::string_view> texts;
  std::size_t bytes = 0;
  for (const std::string& file : files) {
    for (std::size_t at = 0; at < file.size();) {
      const std::size_t end = std::min(file.find('\n', at), file.size());
      texts.push_back(std::string_view(file).substr(at, end - at));
      bytes += end - at;
      at = end + 1;
    }
  }
  const earshot::redact::Redactor redactor;
  if (shown) {
    for (const std::string_view text : texts) show(redactor, text);
    return 0;
  }
  std::string scratch;
  std::vector<std::string_view> clean;
  std::size_t clean_bytes = 0;
  for (const std::string_view text : texts) {
    if (redactor.clean(text, scratch).data() != text.data()) continue;
    clean.push_back(text);
    clean_bytes += text.size();
  }
  for (const auto& [name, count] : redactor.counts())
    if (count > 0)
      std::printf("%-20.*s %llu\n", static_cast<int>(name.size()), name.data(),
                  static_cast<unsigned long long>(count));
  double all = 1e9, of_clean = 1e9;
  for (int round = 0; round < rounds; ++round) {
    all = std::min(all, seconds_of(redactor, texts));
    of_clean = std::min(of_clean, seconds_of(redactor, clean));
  }
  std::printf("%zu texts, %.1f MB: %.0f MB/s; clean ones, %.1f MB: %.0f MB/s\n", texts.size(), bytes / 1e6,
              bytes / 1e6 / all, clean_bytes / 1e6, clean_bytes / 1e6 / of_clean);
}
