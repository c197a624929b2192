// The line parser against simdjson's DOM: what it accepts, and every value that it reads, with each kernel.
// Input: lines.
#include <cstdio>
#include <string>
#include <vector>

#include "fuzz.hpp"
#include "unit/support/line_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace earshot;
  static std::vector<test::LineCheck> checks = [] {
    std::vector<test::LineCheck> all;
    for (const LineScanner::Kernel kernel : LineScanner::kernels()) all.emplace_back(kernel);
    return all;
  }();
  std::string lines(reinterpret_cast<const char*>(data), size);
  if (!lines.ends_with('\n')) lines += '\n';
  if (lines.size() > LineParser::chunk_bytes_max) return 0;
  for (test::LineCheck& check : checks) {
    const std::string found = check.compare(lines);
    if (!found.empty()) std::fprintf(stderr, "%s\n", found.c_str());
    fuzz::require(found.empty(), "the line parser agrees with the DOM");
  }
  return 0;
}
