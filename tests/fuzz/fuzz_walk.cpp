// The line parser against simdjson's DOM: what it accepts, and every value that it reads. Input: a byte that
// selects a kernel, then lines.
#include <simdjson.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "fuzz.hpp"
#include "unit/support/line_check.hpp"

namespace {

using namespace earshot;

struct Kernel {
  const simdjson::implementation* implementation;
  std::unique_ptr<test::LineCheck> check;
};

std::vector<Kernel> supported_kernels() {
  std::vector<Kernel> kernels;
  for (const simdjson::implementation* each : simdjson::get_available_implementations())
    if (each->supported_by_runtime_system()) kernels.push_back({each, std::make_unique<test::LineCheck>()});
  return kernels;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<Kernel> kernels = supported_kernels();
  fuzz::Input input(data, size);
  const Kernel& kernel = kernels[input.below(kernels.size())];
  std::string lines(input.rest());
  if (!lines.ends_with('\n')) lines += '\n';
  if (lines.size() > LineParser::chunk_bytes_max) return 0;
  simdjson::get_active_implementation() = kernel.implementation;
  const std::string found = kernel.check->compare(lines);
  if (!found.empty()) std::fprintf(stderr, "%s\n", found.c_str());
  fuzz::require(found.empty(), "the line parser agrees with the DOM");
  return 0;
}
