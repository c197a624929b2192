// The thread that writes the index. It stores only redacted text.
//
// A stream is indexed up to a cursor. The event loop delivers what a live stream has grown by since then
// (growth.hpp). Where that is missing, or too much to be kept, the file is read: folded as the tail does
// (core Transcript over the file's bytes), up to the cursor that the loop has reached, so that the next
// growth continues there. The fold must prove the cursor on its way: if its prefix hash differs, the stream
// is indexed anew. A file whose attributes are those of the last turn is not read.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/system.hpp"
#include "base/text_filter.hpp"
#include "core/transcript.hpp"
#include "search/growth.hpp"
#include "search/store.hpp"
#include "search/stream_list.hpp"

namespace earshot::search {

/// A stream to index.
struct IndexJob {
  std::string name, path;
  TranscriptOptions options;       // for cursors that are the stream's
  std::string session;             // by the path; empty: the records name it
  bool is_session_likely = false;  // the records may name another session, and the agent
  std::string agent, directory;    // by the path; empty: none, or the records name it
  std::unique_ptr<Growth> growth;  // null: the stream is not live, and its whole file is read
};

struct IndexerOptions {
  std::string path, identity;
  const TextFilter* filter = nullptr;                // outlives the indexer
  std::uint64_t bytes_max = std::uint64_t{1} << 30;  // above: the documents of the oldest streams are removed
  std::size_t batch_bytes_max = 4 << 20;             // of documents in one transaction
  std::chrono::milliseconds batch_time{1000};        // a transaction is not delayed longer
  std::chrono::milliseconds retry{60'000};           // after an error of the disk
  /// The part of the time that the thread rests while it has work, so that a busy machine stays responsive.
  double rest_per_work = 1;
};

/// Calls are made on one thread, from which the indexer's thread takes over work. The callbacks run on the
/// indexer's thread and must not block.
class Indexer {
 public:
  struct Callbacks {
    /// Answered by add_jobs() with the jobs of those that still exist.
    std::function<void(std::vector<std::string> names)> need_jobs;
    /// The index is new: answered by scan().
    std::function<void()> need_scan;
    /// A pass over all streams is finished, and what it needed is freed.
    std::function<void()> built = [] {};
  };
  static constexpr std::size_t jobs_per_request = 64;
  // Folds kept of streams that grew by more than is kept of their events, so that only new bytes are read
  // when that happens again: of those that did last. The last one is kept whatever its size.
  static constexpr std::size_t folds_max = 16, folds_bytes_max = 8 << 20;
  // A removal is followed by a merge of the whole index; after it the next one waits so many times as long.
  static constexpr int merge_rests = 20;
  // Of waiting streams: beyond, the events of the next one are dropped, and its file is read.
  static constexpr std::size_t growth_bytes_max = 4 << 20;

  Indexer(IndexerOptions options, Callbacks callbacks);
  ~Indexer();
  void start();
  /// Interrupts the work; nothing is called afterwards.
  void stop();

  /// All streams: those that are indexed and not listed are removed.
  void scan(StreamList streams);
  void add_jobs(std::vector<IndexJob> jobs);
  /// The stream grew, or is new.
  void changed(IndexJob job);
  /// The stream was removed or has another history.
  void dropped(const std::string& name);
  /// Another thread found that the file is missing or corrupt.
  void check_file(bool is_corrupt);

  struct State {
    bool building = true;
    std::uint64_t waiting = 0;  // streams
    std::uint64_t documents = 0, bytes = 0, evicted = 0, rebuilt = 0;
    std::uint64_t read_bytes = 0;  // of transcripts, since the start
    std::string problem;           // for users; empty: none
  };
  State state() const;

 private:
  struct Fold;
  struct Work;

  void run();
  bool open_store();
  void reopen(bool is_corrupt);
  void fail(const DatabaseError& error);
  IndexJob take_changed(std::map<std::string, IndexJob>::iterator which);
  void request_jobs(std::unique_lock<std::mutex>& lock);
  Work take_work(std::unique_lock<std::mutex>& lock);
  bool do_work(Work& work);
  void merge_words();
  void remove_unlisted(const StreamList& listed);
  void release_memory();
  void index(const IndexJob& job);
  void index_growth(const IndexJob& job, StreamRow& row, std::string stamp);
  void index_file(const IndexJob& job, StreamRow& row, const FileStat& stat);
  bool read_to(Fold& fold, std::uint64_t end, const IndexJob& job, StreamRow& row);
  void collect(Fold& fold, const IndexJob& job, StreamRow& row);
  void collect(const StreamFacts& facts, DocumentMaker& documents, const IndexJob& job, StreamRow& row);
  void flush();
  void limit_size();
  std::unique_ptr<Fold> take_fold(const std::string& name);
  void keep_fold(std::unique_ptr<Fold> fold);
  void rest(std::chrono::nanoseconds worked);
  void publish();
  bool has_dropped() const;

  const IndexerOptions options_;
  const Callbacks callbacks_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false, check_pending_ = false, corrupt_pending_ = false;
  bool scanning_ = false, listed_pending_ = false;
  std::shared_ptr<StreamList> listed_;  // null: all are taken
  std::size_t listed_left_ = 0;         // the newest are taken first
  bool jobs_requested_ = false;
  std::deque<IndexJob> jobs_;  // of listed streams
  std::map<std::string, IndexJob> changed_;
  std::size_t growth_bytes_ = 0;  // of changed_
  std::set<std::string> dropped_;
  State state_;
  std::unique_ptr<Store> store_;  // replaced under the mutex, by the indexer's thread; null: unusable

  // Of the indexer's thread.
  std::vector<Store::Change> batch_;
  std::size_t batch_bytes_ = 0;
  std::chrono::steady_clock::time_point batch_began_, retry_at_;
  std::chrono::steady_clock::time_point merge_at_;  // not before
  std::optional<std::chrono::steady_clock::time_point> merge_began_;
  std::list<std::unique_ptr<Fold>> folds_;  // the first ones are discarded first
  std::unique_ptr<Workspace> workspace_;
  std::unique_ptr<char[]> buffer_;
  std::thread thread_;
};

/// The calling thread gives way to all others, for the processor and the disk, where the system permits it.
void lower_thread_priority();

}  // namespace earshot::search
