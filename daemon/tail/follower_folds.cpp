// Folding: a followed file is read and fed on a thread of `folds_`, in slices.
#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include "agents/transcript_file.hpp"
#include "base/work_ahead.hpp"
#include "tail/follower.hpp"

namespace earshot::tail {

namespace {

/// One read of a file, which may be done before its bytes are needed.
class ReadAhead final : public WorkAhead {
 public:
  /// `bytes_max`: behind an overlap.
  explicit ReadAhead(std::size_t bytes_max)
      : buffer_(std::make_unique_for_overwrite<char[]>(ReadPool::overlap_bytes + bytes_max + feed_padding)) {}

  void start(std::shared_ptr<TranscriptFile> file, std::size_t wanted, std::uint64_t offset) {
    file_ = std::move(file);
    wanted_ = wanted;
    offset_ = offset;
    WorkAhead::start();
  }
  bool is_started() const { return file_ != nullptr; }
  /// The bytes that were read, valid until the next start; or -errno.
  long finish() {
    WorkAhead::finish();
    file_.reset();
    return result_;
  }
  const char* bytes() const { return buffer_.get(); }

 private:
  void work() override { result_ = file_->read_fully(buffer_.get(), wanted_, offset_); }

  std::shared_ptr<TranscriptFile> file_;  // null: nothing is to be read
  std::size_t wanted_ = 0;
  std::uint64_t offset_ = 0;
  long result_ = 0;
  const ReadPool::Buffer buffer_;
};

}  // namespace

/// Reused, since a session's records need the same memory; freed when no fold is left. That of a large file,
/// which is read and parsed by two threads, is freed with its fold.
struct Follower::FoldMemory {
  static constexpr std::uint64_t large_file_bytes = 32 << 20;
  static constexpr std::size_t large_read_bytes = 4 << 20;

  explicit FoldMemory(Workspace::Post post = nullptr)
      : post(std::move(post)), read_bytes(this->post ? large_read_bytes : ReadPool::read_bytes) {
    reads.push_back(std::make_shared<ReadAhead>(read_bytes));
    if (this->post) reads.push_back(std::make_shared<ReadAhead>(read_bytes));
  }
  bool is_reusable() const { return !post; }

  const Workspace::Post post;  // null: all is done by one thread
  const std::size_t read_bytes;
  Workspace workspace;
  std::vector<std::shared_ptr<ReadAhead>> reads;  // used in turn
};

struct Follower::Fold {
  static constexpr std::size_t slice_bytes = 8 << 20;  // between slices the thread can do other work

  std::shared_ptr<FollowedFile> file;
  std::string path;         // when it was queued: the file may be renamed meanwhile
  std::uint64_t bytes = 0;  // to fold; unknown_bytes: all
  std::function<void(bool)> then;
  std::shared_ptr<FoldMemory> memory;

  // Used by the thread of `folds_`, until a slice is handed over.
  std::shared_ptr<TranscriptFile> source;
  FileStat opened;  // before its first byte was read
  /// A later change may have the same change time.
  bool is_just_written = false;
  bool is_compressed = false;
  int error = 0;  // of errno
  /// Set if the file is not the one whose first `bytes` bytes were known: the reason of the reset that
  /// follows. Clients that resume count on those bytes (Stream::published_bytes).
  const char* reset_reason = nullptr;

  /// True if the fold is complete; then the file is closed, since the result may wait.
  bool read_slice() {
    const bool is_complete = feed_slice();
    if (!is_complete) return false;
    is_compressed = source && source->is_compressed();
    if (is_compressed) opened.size = file->bytes_read();
    source.reset();
    return is_complete;
  }

 private:
  bool feed_slice() {
    if (!source && !open()) return true;
    NullSink no_delivery;
    const std::uint64_t end = std::min(bytes, file->bytes_read() + slice_bytes);
    while (file->bytes_read() < end) {
      ReadAhead& read = *memory->reads.front();
      if (!read.is_started()) start_read(read, file->bytes_read());
      const std::size_t overlap = file->overlap_bytes();
      const std::size_t wanted = next_read_bytes(*file, bytes, memory->read_bytes);
      const long got = read.finish();
      if (got < 0) {
        error = static_cast<int>(-got);
        return true;
      }
      const std::span<const char> all(read.bytes(), static_cast<std::size_t>(got));
      if (all.size() == wanted) read_ahead(file->bytes_read() + (wanted - overlap));
      if (all.size() > overlap) {
        if (!file->matches_overlap(all.first(overlap))) {
          reset_reason = "rewritten";
          return true;
        }
        file->feed(all, overlap, memory->workspace, no_delivery);
      }
      if (all.size() < wanted && bytes == unknown_bytes) {
        file->fit_memory();
        return true;
      }
      if (all.size() < wanted) {
        reset_reason = "truncated";
        return true;
      }
    }
    const bool is_complete = file->bytes_read() >= bytes;
    if (is_complete) file->fit_memory();
    return is_complete;
  }

  // The bytes from `begin`, with the overlap before them.
  void start_read(ReadAhead& read, std::uint64_t begin) {
    const std::uint64_t overlap = std::min<std::uint64_t>(begin, ReadPool::overlap_bytes);
    const std::uint64_t fresh = std::min<std::uint64_t>(memory->read_bytes, bytes - begin);
    read.start(source, static_cast<std::size_t>(overlap + fresh), begin - overlap);
  }

  void read_ahead(std::uint64_t begin) {
    if (!memory->post || source->is_compressed() || begin >= bytes) return;
    std::rotate(memory->reads.begin(), memory->reads.begin() + 1, memory->reads.end());
    start_read(*memory->reads.front(), begin);
    memory->post([read = memory->reads.front()] { read->run(); });
  }

  bool open() {
    auto opened_file = std::make_shared<TranscriptFile>();
    error = opened_file->open(path, bytes);
    if (error) return false;
    source = std::move(opened_file);
    opened = source->stat();
    error = opened.error;
    is_just_written = std::chrono::nanoseconds(opened.changed_ns) > wall_now() - time_granularity;
    return error == 0;
  }
};

Follower::~Follower() = default;

void Follower::fold(FollowedFile& file, std::uint64_t bytes, std::function<void(bool)> then) {
  ++pending_folds_;
  file.state = FollowedFile::State::folding;
  auto fold = std::make_shared<Fold>();
  fold->file = file.shared_from_this();
  fold->path = file.path();
  fold->bytes = bytes;
  fold->then = std::move(then);
  fold_queue_.emplace(bytes, std::move(fold));
  start_folds();
}

void Follower::start_folds() {
  while (active_folds_ < options_.folds_max && !fold_queue_.empty()) {
    ++active_folds_;
    const auto largest = std::prev(fold_queue_.end());
    auto fold = std::move(largest->second);
    fold_queue_.erase(largest);
    if (fold->bytes == 0) {  // nothing to read; completes from the loop like the others
      disk_.soon([this, fold] { finish_fold(*fold); });
      continue;
    }
    // A relayed record is valid only until the next one is read.
    if (fold->bytes >= FoldMemory::large_file_bytes && options_.folds_max > 1 &&
        !fold->file->reads_relayed()) {
      fold->memory = std::make_shared<FoldMemory>(
          [executor = folds_.executor()](auto task) { boost::asio::post(executor, std::move(task)); });
      fold->memory->workspace.parse_ahead(fold->memory->post);
    } else if (fold_memory_.empty()) {
      fold->memory = std::make_shared<FoldMemory>();
    } else {
      fold->memory = std::move(fold_memory_.back());
      fold_memory_.pop_back();
    }
    continue_fold(std::move(fold));
  }
}

void Follower::continue_fold(std::shared_ptr<Fold> fold) {
  auto work = [fold] { return fold->read_slice(); };
  folds_.run(std::move(work), [this, fold](bool is_complete) {
    if (is_complete || fold->file->is_removed()) return finish_fold(*fold);
    continue_fold(fold);
  });
}

void Follower::finish_fold(Fold& fold) {
  --pending_folds_;
  --active_folds_;
  auto memory = std::move(fold.memory);
  if (memory && memory->is_reusable()) fold_memory_.push_back(std::move(memory));
  memory.reset();
  if (pending_folds_ == 0) fold_memory_.clear();
  const auto file = fold.file;
  counters_.bytes_read += file->bytes_read();
  const bool is_read = fold.error == 0;
  file->fold_error = fold.error;
  if (!file->is_removed()) {
    file->state = FollowedFile::State::idle;
    if (!is_read && !is_missing(fold.error)) problems_.set(file->path(), fold.error);
  }
  file->check_pending = false;
  const auto then = std::move(fold.then);
  start_folds();
  // While the change time is this one, the file contains what was read.
  if (is_read && !fold.reset_reason && fold.bytes > 0) {
    file->stat = fold.opened;
    if (fold.is_just_written) verify_after_folds(*file);
  }
  if (then) then(is_read && !file->is_removed());
  if (!file->is_removed() && is_read) {
    const bool is_other_copy = fold.reset_reason && fold.is_compressed && is_compressed(*file);
    if (fold.reset_reason && !is_other_copy) reset(*file, file->stat, fold.reset_reason);
    is_other_copy ? remove(*file) : check_soon(*file);
  }
  start_verifications();
  end_batch_soon();
}

}  // namespace earshot::tail
