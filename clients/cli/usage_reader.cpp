#include "cli/usage_reader.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>

#include "agents/stream_name.hpp"
#include "agents/transcript_file.hpp"
#include "base/system.hpp"
#include "core/transcript.hpp"

namespace earshot::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t piece_bytes = 1 << 20;  // per read
constexpr milliseconds progress_interval{200};
constexpr std::int64_t clock_tolerance_ms = 24LL * 3600 * 1000;  // of the file system's clock

class Discarded final : public EventSink {
 public:
  void on_event(const Event&) override {}
};

class FileReader {
 public:
  FileReader(RecordedUsage& usage, std::int64_t since_ms, std::atomic<std::uint64_t>& bytes_read)
      : usage_(usage),
        since_ms_(since_ms),
        bytes_read_(bytes_read),
        buffer_(new char[piece_bytes + feed_padding]()) {}

  /// Returns 0 or the error.
  int read(const UsageFile& file) {
    TranscriptFile transcript_file;
    if (const int error = transcript_file.open(file.path)) return error;
    const TranscriptPlace place = place_transcript(*file.program, file.path);
    // Warm-up agents are counted like others: their tokens were used, too.
    Transcript transcript({.own_agent = place.agent,
                           .format = &file.program->format(),
                           .reads_internal = true,
                           .split_usage_ms = since_ms_});
    for (std::uint64_t offset = 0;;) {
      const long size = transcript_file.read_at(buffer_.get(), piece_bytes, offset);
      if (size < 0) return static_cast<int>(-size);
      if (size == 0) break;
      offset += static_cast<std::uint64_t>(size);
      bytes_read_ += static_cast<std::uint64_t>(size);
      transcript.feed({buffer_.get(), static_cast<std::size_t>(size)}, workspace_, sink_);
    }
    if (transcript.pending_bytes() > 0) {  // the last line may be complete but for its line end
      buffer_[0] = '\n';
      transcript.feed({buffer_.get(), 1}, workspace_, sink_);
    }
    add(file, place, transcript);
    return 0;
  }

 private:
  void add(const UsageFile& file, const TranscriptPlace& place, Transcript& transcript) {
    const StreamState& state = transcript.state();
    const bool has_total = state.cost_total_ms != 0;
    if (state.used.size() == 0 && !has_total) return;
    const std::string& recorded = transcript.recorded_session();
    const bool is_recorded = place.session.empty() || (place.is_likely && !recorded.empty());
    const std::string& session = is_recorded ? recorded : place.session;
    usage_.add({.rank = file.rank,
                .program = std::string(file.program->program()),
                .session = session.empty() ? place.stream : session,
                .project = state.project,
                .is_subagent = !place.agent.empty() || !transcript.recorded_agent().empty(),
                .used = transcript.take_usage(),
                .total_usd = has_total ? state.cost_usd : std::nullopt,
                .total_ms = state.cost_total_ms});
  }

  RecordedUsage& usage_;
  const std::int64_t since_ms_;
  std::atomic<std::uint64_t>& bytes_read_;
  Workspace workspace_;
  Discarded sink_;
  std::unique_ptr<char[]> buffer_;
};

struct Candidate {
  UsageFile file;
  FileStat stat;
};

}  // namespace

UsageFiles find_usage_files(const std::vector<Root>& roots, std::optional<std::int64_t> since_ms) {
  UsageFiles found{.since_ms = since_ms};
  std::vector<Candidate> candidates;
  for (const Root& root : roots) {
    TranscriptSearch search = transcripts_of(root, Unfollowed::include);
    found.errors.insert(found.errors.end(), search.errors.begin(), search.errors.end());
    for (std::string& path : search.files) {
      const FileStat stat = stat_transcript(path);
      if (!stat.is_regular() || (since_ms && stat.modified_ms() < *since_ms - clock_tolerance_ms)) continue;
      const std::uint64_t bytes = stat.size == unknown_bytes ? 0 : stat.size;
      candidates.push_back({{std::move(path), root.program, bytes, 0}, stat});
    }
  }
  const auto place_of = [](const Candidate& each) { return std::pair(each.stat.device, each.stat.inode); };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const auto& a, const auto& b) { return place_of(a) < place_of(b); });
  candidates.erase(std::unique(candidates.begin(), candidates.end(),
                               [&](const auto& a, const auto& b) { return place_of(a) == place_of(b); }),
                   candidates.end());
  std::sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.stat.origin_ns(), std::string_view(a.file.path)) <
           std::tuple(b.stat.origin_ns(), std::string_view(b.file.path));
  });
  for (Candidate& each : candidates) {
    each.file.rank = static_cast<std::uint32_t>(found.files.size());
    found.bytes += each.file.bytes;
    found.files.push_back(std::move(each.file));
  }
  std::stable_sort(found.files.begin(), found.files.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return found;
}

UsageReading read_usage(const UsageFiles& files, RecordedUsage& usage,
                        const std::function<void(std::uint64_t, milliseconds)>& on_progress) {
  UsageReading result;
  std::atomic<std::uint64_t> bytes_read = 0;
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;  // of result.errors and `running`
  std::condition_variable ended;
  std::size_t running =
      std::min<std::size_t>(std::max(1u, std::thread::hardware_concurrency()), files.files.size());
  const auto work = [&] {
    FileReader reader(usage, files.since_ms.value_or(0), bytes_read);
    for (std::size_t n; (n = next++) < files.files.size();) {
      const UsageFile& file = files.files[n];
      const int error = reader.read(file);
      if (error == 0 || error == ENOENT) continue;  // it may have been deleted meanwhile
      const std::lock_guard lock(mutex);
      result.errors.push_back({file.path, error});
    }
    const std::lock_guard lock(mutex);
    --running;
    ended.notify_one();
  };
  std::vector<std::thread> threads;
  for (std::size_t n = running; n > 0; --n) threads.emplace_back(work);
  const auto start = Clock::now();
  for (std::unique_lock lock(mutex); !ended.wait_for(lock, progress_interval, [&] { return running == 0; });)
    on_progress(bytes_read, std::chrono::duration_cast<milliseconds>(Clock::now() - start));
  for (std::thread& thread : threads) thread.join();
  result.bytes = bytes_read;
  std::sort(result.errors.begin(), result.errors.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return result;
}

}  // namespace earshot::cli
