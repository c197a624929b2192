// This process, out of /proc/self.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "serve/http/metrics.hpp"

namespace earshot::serve {
namespace {

/// Fields of /proc/self/stat behind the name (proc(5)): the first one here is field 3.
std::vector<std::string> stat_fields() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t end_of_name = line.rfind(')');
  if (end_of_name == std::string::npos) return {};
  std::istringstream rest(line.substr(end_of_name + 1));
  std::vector<std::string> fields;
  for (std::string word; rest >> word;) fields.push_back(word);
  return fields;
}

std::optional<double> seconds_since_1970_at_boot() {
  std::ifstream file("/proc/stat");
  for (std::string key; file >> key;) {
    double value = 0;
    if (key == "btime" && file >> value) return value;
    file.ignore(1 << 20, '\n');
  }
  return {};
}

}  // namespace

ProcessMetrics process_metrics() {
  ProcessMetrics metrics;
  const auto fields = stat_fields();
  const auto number = [&](std::size_t field) { return std::stoull(fields[field - 3]); };
  if (fields.size() >= 22) {
    const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
    metrics.cpu_seconds = static_cast<double>(number(14) + number(15)) / ticks;
    metrics.threads = number(20);
    if (const auto boot = seconds_since_1970_at_boot())
      metrics.start_time_seconds = *boot + static_cast<double>(number(22)) / ticks;
    metrics.virtual_bytes = number(23);
    metrics.resident_bytes = number(24) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }
  std::error_code ec;
  std::uint64_t open = 0;
  for (auto it = std::filesystem::directory_iterator("/proc/self/fd", ec);
       !ec && it != std::filesystem::directory_iterator(); it.increment(ec))
    ++open;
  if (!ec && open > 0) metrics.open_fds = open - 1;  // one of them was this look itself
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    metrics.max_fds = limit.rlim_cur;
  return metrics;
}

}  // namespace earshot::serve
