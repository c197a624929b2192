#include "search/indexer.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <new>
#include <utility>

#include "agents/transcript_file.hpp"
#include "base/clock.hpp"
#include "log/log.hpp"

namespace earshot::search {
namespace {

using std::chrono::nanoseconds;
using Steady = std::chrono::steady_clock;

constexpr std::size_t piece_bytes = 128 << 10;  // read and folded without a rest
constexpr nanoseconds rest_max = std::chrono::milliseconds(50);

/// Equal stamps are the same content. Empty if the file changed so recently that a later change may have the
/// same times.
std::string stamp_of(const FileStat& stat) {
  constexpr std::int64_t tick_ns = 1'000'000'000;
  if (wall_now().count() - std::max(stat.changed_ns, stat.modified_ns) < tick_ns) return {};
  std::string stamp;
  for (const auto number : {stat.device, stat.inode, stat.size, static_cast<std::uint64_t>(stat.modified_ns),
                            static_cast<std::uint64_t>(stat.changed_ns)})
    stamp += std::to_string(number) + '.';
  return stamp;
}

}  // namespace

/// A transcript that is read by this thread.
struct Indexer::Fold {
  Fold(const IndexJob& job, const TextFilter& filter)
      : name(job.name), transcript(job.options), documents(filter) {}
  const std::string name;
  Transcript transcript;
  DocumentMaker documents;
  TranscriptFile file;
  std::uint64_t device = 0, inode = 0;
  std::uint64_t offset = 0;  // of the next byte to read
  std::size_t bytes = 0;     // of memory, while it is kept
};

/// What the thread does next.
struct Indexer::Work {
  enum class What { stop, check, dropped, flush, finish, listed, job, merge } what = What::stop;
  bool is_corrupt = false;
  std::string name;
  IndexJob job;
  std::shared_ptr<StreamList> listed;  // of the indexer's thread, until jobs are requested
};

Indexer::Indexer(IndexerOptions options, Callbacks callbacks)
    : options_(std::move(options)), callbacks_(std::move(callbacks)) {}

Indexer::~Indexer() { stop(); }

void Indexer::start() {
  thread_ = std::thread([this] { run(); });
}

void Indexer::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (store_) store_->interrupt();
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Indexer::scan(StreamList streams) {
  auto listed = std::make_shared<StreamList>(std::move(streams));
  const std::lock_guard lock(mutex_);
  listed_ = std::move(listed);
  listed_left_ = listed_->size();
  listed_pending_ = scanning_ = true;
  jobs_requested_ = false;
  jobs_.clear();
  state_.building = true;
  wake_.notify_all();
}

void Indexer::add_jobs(std::vector<IndexJob> jobs) {
  const std::lock_guard lock(mutex_);
  if (!jobs_requested_) return;  // of an earlier scan
  jobs_requested_ = false;
  std::move(jobs.begin(), jobs.end(), std::back_inserter(jobs_));
  wake_.notify_all();
}

void Indexer::changed(IndexJob job) {
  const std::lock_guard lock(mutex_);
  std::string name = job.name;
  IndexJob& waiting = changed_[std::move(name)];
  if (waiting.growth) {
    growth_bytes_ -= waiting.growth->bytes;
    if (job.growth) job.growth->prepend(std::move(*waiting.growth));
  }
  waiting = std::move(job);
  if (Growth* const growth = waiting.growth.get()) {
    if (growth_bytes_ + growth->bytes > growth_bytes_max) growth->forget_events();
    growth_bytes_ += growth->bytes;
  }
  wake_.notify_all();
}

/// Takes one of the waiting jobs of streams that changed.
IndexJob Indexer::take_changed(std::map<std::string, IndexJob>::iterator which) {
  IndexJob job = std::move(which->second);
  changed_.erase(which);
  if (job.growth) growth_bytes_ -= job.growth->bytes;
  return job;
}

void Indexer::dropped(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (const auto waiting = changed_.find(name); waiting != changed_.end()) take_changed(waiting);
  dropped_.insert(name);
  wake_.notify_all();
}

void Indexer::check_file(bool is_corrupt) {
  const std::lock_guard lock(mutex_);
  check_pending_ = true;
  corrupt_pending_ |= is_corrupt;
  wake_.notify_all();
}

Indexer::State Indexer::state() const {
  const std::lock_guard lock(mutex_);
  State state = state_;
  state.waiting += listed_left_ + jobs_.size() + changed_.size();
  return state;
}

// --- The thread ---

void Indexer::run() {
  lower_thread_priority();
  workspace_ = std::make_unique<Workspace>();
  buffer_ = std::make_unique<char[]>(piece_bytes + feed_padding);
  while (true) {
    try {
      if (!store_ && !open_store()) return;
      std::unique_lock lock(mutex_);
      Work work = take_work(lock);
      if (work.what == Work::What::stop) return;
      lock.unlock();
      const auto began = Steady::now();
      if (!do_work(work)) return;
      rest(Steady::now() - began);
    } catch (const DatabaseError& error) {
      fail(error);
    } catch (const std::bad_alloc&) {
      fail(DatabaseError(SQLITE_NOMEM, "out of memory"));
    }
  }
}

/// Retries until there is a store. False: stopped.
bool Indexer::open_store() {
  bool was_removed = false;
  while (true) {
    std::string problem;
    try {
      auto store = std::make_unique<Store>(options_.path, options_.identity);
      const bool is_new = store->was_created();
      const std::uint64_t documents = store->documents(), bytes = store->bytes();
      std::unique_lock lock(mutex_);
      if (stopped_) return false;
      store_ = std::move(store);
      state_.problem.clear();
      state_.documents = documents, state_.bytes = bytes;
      const bool is_again = is_new && std::exchange(retry_at_, {}) != Steady::time_point();
      if (is_again) ++state_.rebuilt;
      lock.unlock();
      if (is_again) callbacks_.need_scan();
      return true;
    } catch (const DatabaseError& error) {
      problem = error.what();
      if (error.is_corrupt() && !was_removed) {
        remove_database(options_.path);
        was_removed = true;
        retry_at_ = Steady::now();
        continue;
      }
    }
    log_warn("search: {}: {}; retrying", options_.path, problem);
    std::unique_lock lock(mutex_);
    state_.problem = problem;
    retry_at_ = Steady::now() + options_.retry;
    if (wake_.wait_for(lock, options_.retry, [this] { return stopped_; })) return false;
  }
}

/// Discards uncommitted changes and reopens the store.
void Indexer::reopen(bool is_corrupt) {
  batch_.clear(), batch_bytes_ = 0;
  folds_.clear();
  merge_began_.reset();
  std::unique_ptr<Store> closed;  // not under the mutex: the event loop takes it, and closing writes
  {
    const std::lock_guard lock(mutex_);
    closed = std::move(store_);
  }
  closed.reset();
  if (is_corrupt) remove_database(options_.path);
  retry_at_ = Steady::now();  // a new file is scanned into
}

void Indexer::fail(const DatabaseError& error) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
  }
  if (error.is_corrupt()) {
    log_warn("search: {}: {}; building the index again", options_.path, error.what());
    return reopen(true);
  }
  log_warn("search: {}: {}; retrying", options_.path, error.what());
  reopen(false);
  std::unique_lock lock(mutex_);
  state_.problem = error.what();
  wake_.wait_for(lock, options_.retry, [this] { return stopped_; });
  if (stopped_) return;
  lock.unlock();
  callbacks_.need_scan();  // what the failed transaction had
}

/// Requests the jobs of the next listed streams before the last ones are done.
void Indexer::request_jobs(std::unique_lock<std::mutex>& lock) {
  if (listed_left_ == 0 || jobs_requested_ || jobs_.size() > jobs_per_request / 2) return;
  std::vector<std::string> names;
  while (listed_left_ > 0 && names.size() < jobs_per_request)
    names.emplace_back(listed_->name(--listed_left_));
  if (listed_left_ == 0) listed_.reset();
  jobs_requested_ = true;
  lock.unlock();
  callbacks_.need_jobs(std::move(names));
  lock.lock();
}

Indexer::Work Indexer::take_work(std::unique_lock<std::mutex>& lock) {
  Work work;
  while (true) {
    const bool is_batch_due = !batch_.empty() && Steady::now() - batch_began_ >= options_.batch_time;
    if (!listed_pending_) request_jobs(lock);
    if (stopped_) {
      work.what = Work::What::stop;
    } else if (std::exchange(check_pending_, false)) {
      work.what = Work::What::check;
      work.is_corrupt = std::exchange(corrupt_pending_, false);
    } else if (!dropped_.empty()) {
      work.what = Work::What::dropped;
      work.name = *dropped_.begin();
      dropped_.erase(dropped_.begin());
    } else if (std::exchange(listed_pending_, false)) {
      // Before those that changed: the list lacks streams that appeared after it.
      work.what = Work::What::listed;
      work.listed = listed_;
    } else if (is_batch_due) {
      work.what = Work::What::flush;
    } else if (!changed_.empty()) {
      work.what = Work::What::job;
      work.job = take_changed(changed_.begin());
    } else if (!jobs_.empty()) {
      work.what = Work::What::job;
      work.job = std::move(jobs_.front());
      jobs_.pop_front();
    } else if (!batch_.empty()) {
      work.what = Work::What::flush;
    } else {
      if (scanning_ && !jobs_requested_) {
        scanning_ = false;
        work.what = Work::What::finish;
        return work;
      }
      if (!store_->has_stale_words()) {
        wake_.wait(lock);
        continue;
      }
      if (merge_at_ > Steady::now()) {
        wake_.wait_until(lock, merge_at_);
        continue;
      }
      work.what = Work::What::merge;
    }
    state_.waiting = work.what == Work::What::job ? 1 : state_.waiting;
    return work;
  }
}

/// False: stopped.
bool Indexer::do_work(Work& work) {
  switch (work.what) {
    case Work::What::stop:
      return false;
    case Work::What::flush:
      flush();
      break;
    case Work::What::check:
      if (work.is_corrupt || !store_->is_in_place()) reopen(work.is_corrupt);
      return true;
    case Work::What::finish: {
      store_->checkpoint();
      release_memory();
      callbacks_.built();
      const std::lock_guard lock(mutex_);
      state_.building = scanning_;
      break;
    }
    case Work::What::listed:
      work.listed->sort();
      remove_unlisted(*work.listed);
      break;
    case Work::What::dropped:
      flush();
      take_fold(work.name);
      store_->remove(work.name);
      if (!has_dropped()) store_->checkpoint();  // their text is in the log until then
      break;
    case Work::What::job:
      index(work.job);
      break;
    case Work::What::merge:
      merge_words();
      break;
  }
  publish();
  return true;
}

void Indexer::publish() {
  const std::uint64_t bytes = store_->bytes();
  const std::lock_guard lock(mutex_);
  state_.waiting = batch_.size();  // not stored yet
  state_.documents = store_->documents();
  state_.bytes = bytes;
}

/// A slice. The rest of the time is for others: an index of 1 GiB is written anew for each removal.
void Indexer::merge_words() {
  const auto now = Steady::now();
  if (!merge_began_) merge_began_ = now;
  try {
    if (store_->merge_words()) return;
  } catch (const DatabaseError& error) {
    if (!error.is_full()) throw;
    log_warn("search: words of removed transcripts remain in the index: {}", error.what());
    merge_at_ = now + std::chrono::hours(1);
    return;
  }
  store_->checkpoint();  // the pages that had the words are in the log until then
  merge_at_ = now + merge_rests * (now - *merge_began_);
  merge_began_.reset();
}

bool Indexer::has_dropped() const {
  const std::lock_guard lock(mutex_);
  return !dropped_.empty();
}

/// The first pass needs more than the changes that follow.
void Indexer::release_memory() {
  batch_.shrink_to_fit();  // empty
  store_->release_memory();
}

void Indexer::remove_unlisted(const StreamList& listed) {
  std::vector<std::string_view> names;
  names.reserve(listed.size());
  for (std::size_t n = 0; n < listed.size(); ++n) names.push_back(listed.name(n));
  std::sort(names.begin(), names.end());
  flush();
  for (const std::string& name : store_->names())
    if (!std::binary_search(names.begin(), names.end(), std::string_view(name))) store_->remove(name);
}

void Indexer::index(const IndexJob& job) {
  const bool is_in_batch = std::any_of(batch_.begin(), batch_.end(),
                                       [&](const Store::Change& each) { return each.row.name == job.name; });
  if (is_in_batch) flush();
  const auto known = store_->find(job.name);
  const FileStat stat = stat_transcript(job.path, known ? known->cursor.offset : 0);
  if (!stat.ok() || !stat.is_regular()) return;  // the tail reports a removal
  const std::string stamp = stamp_of(stat);
  if (known && !stamp.empty() && known->stamp == stamp) return;

  StreamRow row = known.value_or(StreamRow{});
  row.name = job.name;
  const Growth* const growth = job.growth.get();
  const bool has_all =
      growth && (row.cursor == growth->to || (growth->is_complete && row.cursor == growth->from));
  if (!has_all) return index_file(job, row, stat);
  const std::string indexed_stamp = stat.size == growth->to.offset ? stamp : std::string();
  const bool is_unchanged = known && row.cursor == growth->to && row.stamp == indexed_stamp;
  if (!is_unchanged) index_growth(job, row, indexed_stamp);
}

/// Adds what the loop has received; nothing is read.
void Indexer::index_growth(const IndexJob& job, StreamRow& row, std::string stamp) {
  const Growth& growth = *job.growth;
  DocumentMaker documents(*options_.filter);
  const std::int64_t first_ms = row.first_ms > 0 ? row.first_ms : growth.first_ms;
  documents.resume({first_ms, row.last_ms, row.prompts, row.tools, row.title});
  if (row.cursor != growth.to) {
    for (const KeptEvent& kept : growth.events) {
      documents.add_time(kept.earlier_ms);
      documents.on_event(kept.event());
    }
    documents.add_time(growth.last_ms);
  }
  row.cursor = growth.to;
  row.stamp = std::move(stamp);
  collect(growth.facts, documents, job, row);
  if (batch_bytes_ >= options_.batch_bytes_max) flush();
}

/// Folds the file, from where a kept fold of it ends.
void Indexer::index_file(const IndexJob& job, StreamRow& row, const FileStat& stat) {
  const std::uint64_t proof = row.cursor.offset;
  auto fold = take_fold(job.name);
  const auto begin = [&] {
    fold = std::make_unique<Fold>(job, *options_.filter);
    if (fold->file.open(job.path, proof) != 0) return false;
    const FileStat opened = fold->file.stat();
    fold->device = opened.device, fold->inode = opened.inode;
    return opened.ok();
  };
  const bool goes_on = fold && fold->device == stat.device && fold->inode == stat.inode &&
                       fold->offset <= stat.size && fold->offset <= proof;
  if (goes_on ? fold->file.open(job.path, proof) != 0 : !begin()) return;
  fold->documents.skip_to(proof);
  if (proof > 0) {
    if (!read_to(*fold, proof, job, row)) return;
    const Cursor end = fold->transcript.end();
    if (fold->offset != proof || end.offset != proof || end.prefix_hash != row.cursor.prefix_hash) {
      flush();
      store_->remove(job.name);  // another history
      row = StreamRow{};
      row.name = job.name;
      if (!begin()) return;
    }
  }
  if (!read_to(*fold, job.growth ? job.growth->to.offset : UINT64_MAX, job, row)) return;
  FileStat after = fold->file.stat();
  const bool is_at_end = after.size == fold->offset;
  if (fold->file.is_compressed()) after.size = unknown_bytes;  // as before it is read
  row.stamp = is_at_end ? stamp_of(after) : std::string();
  collect(*fold, job, row);
  fold->file.close();
  if (batch_bytes_ >= options_.batch_bytes_max) flush();
  if (job.growth && !job.growth->is_complete) keep_fold(std::move(fold));
}

/// Reads up to `end`, or the end of the file. False: stopped, or an error of the disk.
bool Indexer::read_to(Fold& fold, std::uint64_t end, const IndexJob& job, StreamRow& row) {
  while (fold.offset < end) {
    const auto began = Steady::now();
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, end - fold.offset));
    const long got = fold.file.read_at(buffer_.get(), wanted, fold.offset);
    if (got < 0) return false;
    if (got == 0) return true;
    fold.offset += static_cast<std::uint64_t>(got);
    std::fill_n(buffer_.get() + got, feed_padding, '\0');
    fold.transcript.feed({buffer_.get(), static_cast<std::size_t>(got)}, *workspace_, fold.documents);
    if (batch_bytes_ + fold.documents.bytes() >= options_.batch_bytes_max) {
      row.stamp.clear();  // bytes follow
      collect(fold, job, row);
      flush();
      row = store_->find(job.name).value_or(row);
    }
    {
      const std::lock_guard lock(mutex_);
      state_.read_bytes += static_cast<std::uint64_t>(got);
      if (stopped_) return false;
    }
    rest(Steady::now() - began);
  }
  return true;
}

void Indexer::collect(Fold& fold, const IndexJob& job, StreamRow& row) {
  row.cursor = fold.transcript.end();
  collect(facts_of(fold.transcript), fold.documents, job, row);
}

/// Adds the documents to the batch, and the state after them to the row.
void Indexer::collect(const StreamFacts& facts, DocumentMaker& documents, const IndexJob& job,
                      StreamRow& row) {
  const auto label = [&](const std::string& text) { return clean_text(text, 1024, *options_.filter); };
  const DocumentMaker::Totals& totals = documents.totals();
  const bool is_named = !job.session.empty() && !job.is_session_likely;
  row.session = is_named || facts.session.empty() ? job.session : facts.session;
  row.agent = job.agent.empty() ? facts.agent : job.agent;
  row.directory = job.directory;
  row.program = facts.program;
  row.project = label(facts.project);
  row.model = label(facts.model);
  row.title = label(facts.title);
  if (row.title.empty()) row.title = totals.last_prompt;
  row.first_ms = totals.first_ms;
  row.last_ms = std::max(totals.last_ms, facts.last_activity_ms);
  row.prompts = totals.prompts;
  row.tools = totals.tools;
  row.input = facts.usage.input, row.output = facts.usage.output;
  row.cache_read = facts.usage.cache_read, row.cache_write = facts.usage.cache_write;
  row.cost_usd = facts.cost_usd, row.cost_total_ms = facts.cost_total_ms;
  row.turn = facts.turn, row.turn_started_ms = facts.turn_started_ms;
  std::vector<ModelUsage> models = facts.models;
  for (ModelUsage& each : models) {
    each.model = label(each.model);
    std::replace(each.model.begin(), each.model.end(), '\n', ' ');
  }
  row.models = encode_models(models);
  if (batch_.empty()) batch_began_ = Steady::now();
  batch_bytes_ += documents.bytes() + sizeof(StreamRow);
  batch_.push_back({row, documents.take()});
}

void Indexer::flush() {
  if (batch_.empty()) return;
  if (!store_->is_in_place()) throw DatabaseError(SQLITE_CORRUPT, "the file was deleted");
  while (true) {
    try {
      store_->apply(batch_);
      break;
    } catch (const DatabaseError& error) {
      if (!error.is_full() || !store_->evict_oldest()) throw;
    }
    const std::lock_guard lock(mutex_);
    ++state_.evicted;
    if (stopped_) return;
  }
  batch_.clear(), batch_bytes_ = 0;
  limit_size();
}

void Indexer::limit_size() {
  while (store_->bytes() > options_.bytes_max && store_->evict_oldest()) {
    const std::lock_guard lock(mutex_);
    ++state_.evicted;
    if (stopped_) return;
  }
}

std::unique_ptr<Indexer::Fold> Indexer::take_fold(const std::string& name) {
  const auto found =
      std::find_if(folds_.begin(), folds_.end(), [&](const auto& each) { return each->name == name; });
  if (found == folds_.end()) return nullptr;
  auto fold = std::move(*found);
  folds_.erase(found);
  return fold;
}

void Indexer::keep_fold(std::unique_ptr<Fold> fold) {
  fold->bytes = fold->transcript.memory_bytes();
  folds_.push_back(std::move(fold));
  std::size_t bytes = 0;
  for (const auto& each : folds_) bytes += each->bytes;
  while (folds_.size() > 1 && (folds_.size() > folds_max || bytes > folds_bytes_max)) {
    bytes -= folds_.front()->bytes;
    folds_.pop_front();
  }
}

void Indexer::rest(nanoseconds worked) {
  const auto time = std::min(
      rest_max,
      nanoseconds(static_cast<std::int64_t>(static_cast<double>(worked.count()) * options_.rest_per_work)));
  if (time < std::chrono::microseconds(100)) return;
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, time, [this] { return stopped_; });
}

}  // namespace earshot::search
