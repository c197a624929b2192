// Reads the usage in all transcripts of some roots, on one thread per processor.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agents/roots.hpp"
#include "cli/recorded_usage.hpp"

namespace earshot::cli {

struct UsageFile {
  std::string path;
  const AgentProgram* program = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t rank = 0;  // 0: the oldest
};

struct UsageFiles {
  std::optional<std::int64_t> since_ms;
  std::vector<UsageFile> files;  // the largest first; each file once
  std::uint64_t bytes = 0;
  std::vector<TranscriptSearch::Error> errors;
};

/// Opens no file. Files that were last written a day before `since_ms` or earlier are left out.
UsageFiles find_usage_files(const std::vector<Root>& roots, std::optional<std::int64_t> since_ms);

struct UsageReading {
  std::uint64_t bytes = 0;
  std::vector<TranscriptSearch::Error> errors;  // by path
};

/// Each thread keeps one piece of one file and that file's requests. `on_progress` is called on this thread,
/// some times a second.
UsageReading read_usage(
    const UsageFiles& files, RecordedUsage& usage,
    const std::function<void(std::uint64_t bytes_read, std::chrono::milliseconds elapsed)>& on_progress);

}  // namespace earshot::cli
