#include "tail/followed_file.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

#include "agents/stream_name.hpp"
#include "agents/transcript_file.hpp"
#include "log/log.hpp"

namespace earshot::tail {
namespace {

constexpr std::size_t chunk_bytes = 256 << 10;  // one buffer a thread, however many checks are pending
constexpr std::size_t slice_bytes = 8 << 20;    // between slices the disk thread can do other work

std::uint64_t hash_of(std::uint64_t key, std::span<const char> bytes) {
  PrefixHash hash(key);
  hash.add_line(bytes);
  return hash.value();
}

class PrefixReader {
 public:
  explicit PrefixReader(PrefixCheck check) : check_(std::move(check)), prefix_hash_(check_.hash_key) {
    tail_hash_.begin(check_.hash_key);
  }

  /// On the disk thread. True if the result is complete; then the file is closed, since the result may wait.
  bool read_slice() {
    const bool is_complete = hash_slice();
    if (!is_complete) return false;
    result_.is_compressed = file_.is_compressed();
    if (result_.is_compressed) result_.stat.size = offset_;
    file_.close();
    return true;
  }
  const PrefixCheck::Result& result() const { return result_; }

 private:
  bool hash_slice() {
    if (!file_.is_open() && !open()) return true;
    const auto buffer = std::make_unique_for_overwrite<char[]>(chunk_bytes);
    for (std::size_t spent = 0; spent < slice_bytes;) {
      const bool in_lines = offset_ < check_.end.offset;
      const std::uint64_t end = in_lines ? check_.end.offset : check_.end.offset + check_.tail_bytes;
      if (offset_ == end) {
        const bool lines_match = check_.end == begin_cursor || prefix_hash_.value() == check_.end.prefix_hash;
        result_.matches = lines_match && (check_.tail_bytes == 0 || tail_hash_.end() == check_.tail_hash);
        return true;
      }
      const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(chunk_bytes, end - offset_));
      const long got = file_.read_at(buffer.get(), wanted, offset_);
      if (got < 0) result_.error = static_cast<int>(-got);
      if (got <= 0) return true;  // the file is shorter than the prefix
      const std::span<const char> chunk(buffer.get(), static_cast<std::size_t>(got));
      if (in_lines)
        prefix_hash_.add(chunk);
      else
        tail_hash_.add(chunk);
      offset_ += chunk.size();
      spent += chunk.size();
    }
    return false;
  }
  bool open() {
    result_.error = file_.open(check_.path, check_.end.offset + check_.tail_bytes);
    if (!result_.error) result_.stat = file_.stat();
    if (result_.stat.error) result_.error = result_.stat.error;
    const bool is_open = !result_.error;
    if (result_.error == EINVAL) result_.error = 0;  // a directory matches nothing
    return is_open;
  }

  const PrefixCheck check_;
  PrefixHasher prefix_hash_;
  LineHash tail_hash_;
  TranscriptFile file_;
  std::uint64_t offset_ = 0;
  PrefixCheck::Result result_;
};

void continue_check(IoThread& disk, std::shared_ptr<PrefixReader> reader,
                    std::function<void(const PrefixCheck::Result&)> done) {
  auto work = [reader] { return reader->read_slice(); };
  disk.run(std::move(work), [&disk, reader, done = std::move(done)](bool is_complete) mutable {
    if (is_complete)
      done(reader->result());
    else
      continue_check(disk, std::move(reader), std::move(done));
  });
}

struct Advice {
  int error;
  const char* text;
};
constexpr Advice advices[] = {
    {EACCES, "let this user read it (chmod u+r); earshot tries again"},
    {EPERM, "let this user read it; earshot tries again"},
    {EIO, "check the disk; reading continues at the same position once it works"},
    {ESTALE, "check the network mount; reading continues at the same position once it works"},
    {ETIMEDOUT, "the file system does not answer: check the mount; reading continues once it does"},
    {EMFILE, "raise the limit of open files (ulimit -n)"},
    {ENFILE, "raise the system's limit of open files (sysctl fs.file-max)"},
    {EBADMSG, "restore it from a backup, or remove it"},
    {EFBIG, "unpack it: zstd -d --long=31"},
};

}  // namespace

void FileProblems::set(const std::string& path, std::string reason, std::string advice) {
  const auto at = entries_.find(path);
  if (at != entries_.end() && at->second.reason == reason) return;
  if (at == entries_.end() && entries_.size() >= entries_max) return;
  log_warn("{}: {}{}{}", percent_encode(path), reason, advice.empty() ? "" : "; ", advice);
  entries_[path] = {path, std::move(reason), std::move(advice)};
}

void FileProblems::set(const std::string& path, int error) {
  const char* advice = "";
  for (const Advice& each : advices)
    if (each.error == error) advice = each.text;
  set(path, describe_read_error(error), advice);
}

void FileProblems::set_irregular(const std::string& path) {
  set(path, "not a regular file", "transcripts must be regular files; this one is ignored");
}

void FileProblems::clear(std::string_view path) {
  if (entries_.empty()) return;
  if (const auto at = entries_.find(path); at != entries_.end()) entries_.erase(at);
}

void FileProblems::clear_below(const std::string& directory) {
  clear(directory);
  const std::string below = directory + '/';
  for (auto at = entries_.lower_bound(below); at != entries_.end() && at->first.starts_with(below);)
    at = entries_.erase(at);
}

std::vector<FileProblem> FileProblems::list() const {
  std::vector<FileProblem> all;
  for (const auto& [path, each] : entries_) all.push_back(each);
  return all;
}

void check_prefix(IoThread& disk, PrefixCheck check, std::function<void(const PrefixCheck::Result&)> done) {
  continue_check(disk, std::make_shared<PrefixReader>(std::move(check)), std::move(done));
}

FollowedFile::FollowedFile(std::string name, std::string path, StreamIdentity identity,
                           TranscriptOptions options, const FileStat& now)
    : stat(now),
      name_(std::move(name)),
      path_(std::move(path)),
      identity_(std::move(identity)),
      options_(std::move(options)),
      transcript_(options_) {}

const std::string& FollowedFile::session() const {
  static const std::string none;
  if (!is_added || (!identity_.session.empty() && !identity_.is_likely)) return identity_.session;
  if (const std::string& recorded = transcript_.recorded_session(); !recorded.empty()) return recorded;
  return transcript_.last_event() != begin_cursor ? identity_.session : none;
}

const std::string& FollowedFile::agent() const {
  return identity_.agent.empty() && is_added ? transcript_.recorded_agent() : identity_.agent;
}

std::size_t FollowedFile::overlap_bytes() const {
  return static_cast<std::size_t>(std::min<std::uint64_t>(bytes_read(), ReadPool::overlap_bytes));
}

bool FollowedFile::matches_overlap(std::span<const char> overlap) const {
  return overlap.size() == overlap_bytes() &&
         (overlap.empty() || hash_of(options_.hash_key, overlap) == overlap_hash_);
}

bool FollowedFile::feed(std::span<const char> bytes, std::size_t overlap, Workspace& workspace,
                        EventSink& sink) {
  const std::uint64_t lines_end = transcript_.end().offset;
  const auto fresh = bytes.subspan(overlap);
  transcript_.feed(fresh, workspace, sink);
  overlap_hash_ = hash_of(options_.hash_key, bytes.last(overlap_bytes()));
  if (overlap == 0) verified_bytes = bytes_read();

  // The prefix hash covers complete lines only: the unterminated line has a hash of its own.
  const std::uint64_t unterminated = bytes_read() - transcript_.end().offset;
  if (unterminated == 0) {
    tail_.reset();
  } else if (unterminated <= fresh.size()) {
    tail_.emplace();
    tail_->begin(options_.hash_key);
    tail_->add(fresh.last(static_cast<std::size_t>(unterminated)));
  } else {
    assert(tail_);
    tail_->add(fresh);
  }
  return transcript_.end().offset != lines_end;
}

void FollowedFile::rename(std::string name, std::string path, StreamIdentity identity) {
  name_ = std::move(name);
  path_ = std::move(path);
  identity_ = std::move(identity);
}

void FollowedFile::restart() {
  ++history;
  transcript_ = Transcript(options_);
  tail_.reset();
  overlap_hash_ = 0;
  short_reads = 0;
  verified_bytes = 0;
}

PrefixCheck FollowedFile::prefix() const {
  const Cursor end = transcript_.end();
  return {path_, options_.hash_key, end, bytes_read() - end.offset, tail_ ? tail_->end() : 0};
}

}  // namespace earshot::tail
