#include "tail/tail.hpp"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

#include "agents/stream_name.hpp"
#include "agents/transcript_file.hpp"
#include "base/clock.hpp"
#include "base/file.hpp"
#include "tail/copied_history.hpp"
#include "tail/discovery.hpp"
#include "tail/follower.hpp"
#include "tail/known_part.hpp"

namespace earshot::tail {
namespace {

using Node = Discovery::DirectoryNode;

const AgentProgram& program_of(const Node& directory) { return *directory.second.root->program; }

bool is_compressed(const FileStat& stat) { return stat.size == unknown_bytes; }

/// Records the attributes of a cold file. Returns the size that was known before.
std::uint64_t update_cold(Discovery::File& file, const FileStat& stat) {
  file.modified_ms = stat.modified_ms();
  return is_compressed(stat) ? file.size : std::exchange(file.size, stat.size);
}

/// Directory and stem of a transcript's path.
std::pair<std::string, std::string> split_path(const std::string& path) {
  const auto slash = path.rfind('/');
  const std::size_t stem_bytes = path.size() - slash - 1 - transcript_suffix.size();
  return {path.substr(0, slash), path.substr(slash + 1, stem_bytes)};
}

}  // namespace

class Tail::Impl final : private Discovery::Observer, private Follower::Owner {
 public:
  static constexpr std::size_t published_max = 65'536;  // cold streams with a cursor; more are folded
  static constexpr std::size_t renamed_max = 4096;      // former names that are known
  static constexpr std::size_t renamed_steps_max = 64;  // of one stream
  static constexpr std::size_t missing_max = 4096;  // cold files that may have another name; more are removed
  static constexpr std::size_t new_file_bytes = 64 << 10;  // read to find the first record of a new file
  static constexpr std::size_t sources_max = 8;            // transcripts that one file is a copy of
  static constexpr std::size_t compactions_max = 64;       // of unknown sessions; more are not reported
  static constexpr std::size_t compaction_bytes_max = 256 << 10;  // read of such a file to find its session

  Impl(boost::asio::io_context& io, boost::asio::any_io_executor disk, watch::WatchMux& mux, Options options,
       StreamObserver& observer)
      : options_(std::move(options)),
        observer_(observer),
        disk_(io, disk),
        folds_(io, options_.fold_executor ? options_.fold_executor : disk),
        reads_(disk_),
        timers_(io),
        follower_(disk_, folds_, reads_, timers_, problems_, options_, observer_, counters_, *this),
        discovery_(disk_, timers_, problems_, options_, *this),
        mux_(mux) {}

  void connect(std::weak_ptr<Impl> weak) {
    std::vector<std::string> prefixes;
    for (const Root& root : options_.roots) prefixes.push_back(root.path);
    auto on_change = [weak = std::move(weak)](const watch::ChangeHint& hint) {
      const auto self = weak.lock();
      if (!self || !self->is_running_) return;
      // Saves one turn of the loop between an append and the observer.
      if (hint.last) self->follower_.hold_batch();
      self->discovery_.on_change(hint);
      if (hint.last && self->is_running_) self->follower_.run_batch_now();
    };
    watcher_ = &mux_.add_client(std::move(prefixes), std::move(on_change));
  }

  void start(std::function<void()> on_ready) {
    is_running_ = true;
    on_ready_ = std::move(on_ready);
    started_ms_ = wall_now_ms();
    recent_since_ms_ =
        started_ms_ - std::chrono::duration_cast<std::chrono::milliseconds>(options_.recent).count();
    discovery_.start(*watcher_);
  }

  void stop() {
    is_running_ = false;
    on_ready_ = nullptr;
    follower_.stop();
    timers_.clear();
    disk_.close();
    folds_.close();
  }

  void for_each(const std::function<void(const Stream&)>& visit) {
    Place place;
    for_some(place, SIZE_MAX, visit);
  }

  void for_each_live(const std::function<void(const Stream&)>& visit) const {
    for (const FollowedFile* file : live_) visit(*file);
  }

  std::size_t known_files(std::string_view root) const {
    const Root* found = find_root(root);
    return found ? discovery_.files_of(*found) : 0;
  }

  bool for_some(Place& place, std::size_t count, const std::function<void(const Stream&)>& visit) {
    const auto& directories = discovery_.directories();
    for (auto directory = directories.lower_bound(place.directory); directory != directories.end();
         ++directory) {
      const auto& files = directory->second.files;
      const bool goes_on = directory->first == place.directory;
      for (auto file = goes_on ? files.upper_bound(place.stem) : files.begin(); file != files.end(); ++file) {
        if (count-- == 0) return true;
        place.directory = directory->first, place.stem = file->first;
        const auto& followed = file->second.followed;
        if (followed && followed->is_added)
          visit(*followed);
        else
          visit(cold_stream(*directory, file->first, file->second));
      }
    }
    return false;
  }

  std::vector<std::string> cold_streams_of(std::string_view session) {
    std::vector<std::string> names;
    for (const auto& [directory, file] : discovery_.files_of_session(session))
      if (!file->second.followed) names.push_back(stream_name_of(*directory, file->first));
    return names;
  }

  const Stream* find_moved(std::string_view name) {
    const Root* root = find_root(name);
    const auto path = root && name.size() > root->name.size()
                          ? parse_stream_name(*root->program, name.substr(root->name.size() + 1))
                          : std::nullopt;
    if (!path) return nullptr;
    const StreamIdentity wanted = root->program->identify(path->below);
    const Stream* moved = nullptr;
    for (const auto& [directory, file] : discovery_.files_of_session(wanted.session)) {
      if (directory->second.root != root ||
          Discovery::identify(*directory, file->first).agent != wanted.agent)
        continue;
      if (moved) return nullptr;
      moved = find(stream_name_of(*directory, file->first));
    }
    return moved;
  }

  const Stream* find(std::string_view name) {
    const auto located = locate(name);
    if (!located.file) return nullptr;
    const auto& followed = located.file->followed;
    if (followed && followed->is_added) return followed.get();
    found_ = std::make_unique<ColdStream>(cold_stream(*located.directory, located.stem, *located.file));
    return found_.get();
  }

  void fold(std::string_view name, std::function<void(const Stream*)> then) {
    const auto located = locate(name);
    if (!located.file) return then(nullptr);
    Discovery::File& file = *located.file;
    if (file.followed && file.followed->is_added) return then(file.followed.get());
    if (!file.followed) {
      const std::string path = Discovery::transcript_path(*located.directory, located.stem);
      const FileStat stat = stat_transcript(path, file.size);
      if (stat.error || !stat.is_regular()) return then(nullptr);
      if (file.size == unknown_bytes && !is_compressed(stat)) {
        unpacked_[path].waiters.push_back([this, own = std::string(name), then](bool is_found) {
          is_found ? fold(own, then) : then(nullptr);
        });
        return find_known(*located.directory, located.stem, path, true);
      }
      const bool is_new = new_files_.contains(path) || (file.size == 0 && may_be_copy(*located.directory));
      if (is_new && !is_compressed(stat))
        return check_new(*located.directory, located.stem, file, {std::move(then)});
      // Only the known bytes are skipped: a client that resumes meanwhile receives the rest as events.
      discovery_.set_inode(located.directory->first, located.stem, stat.inode);
      const std::uint64_t known_bytes = update_cold(file, stat);
      const auto followed = follow(*located.directory, located.stem, file, stat);
      if (stat.size < known_bytes) {
        begin_new_history(*followed, "truncated");
        return then(followed.get());
      }
      fold_known(followed, known_bytes);
    }
    file.followed->waiters.push_back(std::move(then));
  }

  void release(std::string_view name) {
    const auto located = locate(name);
    const auto file = located.file ? located.file->followed : nullptr;
    if (!file || !file->is_added || !follower_.release(*file)) return;
    observer_.on_released(*file);
    discovery_.set_inode(located.directory->first, located.stem, file->stat.inode);
    update_cold(*located.file, file->stat);
    located.file->size = file->bytes_read();  // later bytes are still to be delivered
    located.file->followed = nullptr;
    live_.erase(file.get());
  }

  void request_verify(const Stream& stream) {
    // One with a transcript is a followed file: it is not looked up by its name, for each of many cursors.
    if (stream.transcript())
      follower_.request_verify(const_cast<FollowedFile&>(static_cast<const FollowedFile&>(stream)));
  }

  void mark_published(const Stream& stream, const Cursor& end) {
    const auto located = locate(stream.name());
    if (!located.file) return;
    const auto& followed = located.file->followed;
    if (followed && followed->is_added) return follower_.verify_published(*followed, end);
    if (published_.size() >= published_max) return fold(stream.name(), [](const Stream*) {});
    const std::string path = Discovery::transcript_path(*located.directory, located.stem);
    const auto [at, is_first] = published_.emplace(path, end);
    if (!is_first && at->second != end)
      at->second.prefix_hash = ~end.prefix_hash;  // two histories: matches none
  }

  std::unique_ptr<History> history(const Stream& stream) {
    const Root* root = find_root(stream.name());
    return open_history(disk_, stream.path(), stream.published_bytes(),
                        {options_.hash_key, stream.path_identity().agent, options_.line_bytes_max, nullptr,
                         root ? &root->program->format() : &default_program().format()});
  }

  void record(const Stream& stream, const Cursor& end, std::function<void(RecordText)> then) {
    read_record(disk_, stream.path(), options_.hash_key, end, options_.line_bytes_max, std::move(then));
  }

  std::vector<FileProblem> problems() const {
    std::vector<FileProblem> all = problems_.list();
    if (std::string problem = mux_.problem(); !problem.empty()) all.push_back({"", std::move(problem), ""});
    return all;
  }

  Counters counters() const {
    Counters now = counters_;
    now.open_files = follower_.open_files();
    now.active_verifications = follower_.active_verifications();
    now.directories = discovery_.directories().size();
    now.known_files = discovery_.files();
    now.streams = live_.size();
    for (const FollowedFile* file : live_) {
      now.pending_bytes += file->transcript()->pending_bytes();
      now.dropped += file->transcript()->counts().dropped;
    }
    return now;
  }

 private:
  /// Of a cold file that could not be examined or read.
  struct Retry {
    std::chrono::milliseconds delay{0};
    bool is_scheduled = false;
    bool must_fold = false;       // a fold failed
    std::int64_t changed_ns = 0;  // of a compressed copy then
  };
  using Waiters = std::vector<std::function<void(const Stream*)>>;
  struct NewFile {
    bool has_changed = false;  // since it was read
    std::uint64_t wait = 0;    // number of the wait for a change that ends it; 0: none
    std::uint64_t bytes = 0;   // when everything in it was repeated
    Waiters waiters;
  };

  /// A copy that is being unpacked: what is there, and since when it has not grown.
  struct Unpacked {
    std::uint64_t bytes = 0;
    Clock::time_point since;
    bool is_scheduled = false;  // to be examined again
    bool is_read = false;       // what in it is known is being found
    std::vector<std::function<void(bool is_found)>> waiters;
  };

  struct Located {
    Discovery::File* file = nullptr;  // null: no such stream
    Node* directory = nullptr;
    std::string stem;
  };

  const Root* find_root(std::string_view stream_name) const {
    for (const Root& root : options_.roots)
      if (root.name == stream_name.substr(0, stream_name.find('/'))) return &root;
    return nullptr;
  }

  /// By the present or a former name.
  Located locate(std::string_view name) {
    std::string current(name);
    for (std::size_t steps = 0;; ++steps) {
      const Located located = locate_name(current);
      const std::string* const next = located.file ? nullptr : renamed_.find(current);
      if (!next || steps == renamed_steps_max) return located;
      current = std::string(*next);
    }
  }

  Located locate_name(std::string_view name) {
    const Root* root = find_root(name);
    if (!root || name.size() <= root->name.size()) return {};
    const auto path = parse_stream_name(*root->program, name.substr(root->name.size() + 1));
    if (!path) return {};
    Located located = locate(*root, path->directory, path->below);
    // Names without a prefix may belong to any transcript directory (stream_name_of).
    const std::size_t count = root->program->transcript_directories().size();
    for (std::size_t index = 1; index < count && !located.file; ++index)
      located = locate(*root, index, path->below);
    return located;
  }

  Located locate(const Root& root, std::size_t index, const std::string& below) {
    const std::string path = transcript_directory(root, index) + '/' + below;
    const auto slash = path.rfind('/');
    const auto at = discovery_.directories().find(std::string_view(path).substr(0, slash));
    if (at == discovery_.directories().end()) return {};
    std::string stem = path.substr(slash + 1);
    Discovery::File* file = discovery_.find(at->first, stem);
    return {file, &*at, std::move(stem)};
  }

  Located locate_path(const std::string& path) {
    const auto [directory, stem] = split_path(path);
    const auto at = discovery_.directories().find(directory);
    if (at == discovery_.directories().end()) return {};
    return {discovery_.find(directory, stem), &*at, std::string(stem)};
  }

  std::string stream_name_of(const Node& directory, std::string_view stem) {
    const Root& root = *directory.second.root;
    const std::size_t index = directory.second.transcript_directory;
    const std::string below = Discovery::path_below(directory, stem);
    if (index > 0) {
      // The name needs no prefix unless a file in the first transcript directory has it.
      std::string encoded = percent_encode(below);
      const auto meaning = parse_stream_name(*root.program, encoded);
      if (meaning && meaning->directory == 0 && !locate(root, 0, below).file)
        return root.name + '/' + encoded;
    }
    return full_name_of(directory, stem);
  }

  /// A name that does not depend on other files, for locate().
  static std::string full_name_of(const Node& directory, std::string_view stem) {
    const Root& root = *directory.second.root;
    return root.name + '/' +
           stream_name(*root.program, directory.second.transcript_directory,
                       Discovery::path_below(directory, stem));
  }

  ColdStream cold_stream(const Node& directory, const std::string& stem, const Discovery::File& file) {
    return {stream_name_of(directory, stem), Discovery::transcript_path(directory, stem),
            Discovery::identify(directory, stem), file.modified_ms,
            file.followed ? file.followed->published_bytes() : file.size};
  }

  TranscriptOptions transcript_options(const Node& directory, const std::string& stem) const {
    return {options_.hash_key, Discovery::identify(directory, stem).agent, options_.line_bytes_max,
            options_.filter, &program_of(directory).format()};
  }

  std::shared_ptr<FollowedFile> follow(Node& directory, const std::string& stem, Discovery::File& file,
                                       const FileStat& stat) {
    StreamIdentity identity = Discovery::identify(directory, stem);
    TranscriptOptions options = transcript_options(directory, stem);
    const bool is_subagent = !identity.agent.empty();
    file.followed = std::make_shared<FollowedFile>(stream_name_of(directory, stem),
                                                   Discovery::transcript_path(directory, stem),
                                                   std::move(identity), std::move(options), stat);
    file.followed->stat.changed_ns = 0;  // none of its bytes were read
    if (is_subagent) read_meta(directory, stem, file.followed);
    return file.followed;
  }

  void add(FollowedFile& file) {
    const auto published = published_.extract(file.path());
    live_.insert(&file);
    follower_.add(file);
    if (published) follower_.verify_published(file, published.mapped());
  }

  void on_file_replaced(FollowedFile& file, const FileStat& now) override {
    const auto [directory, stem] = split_path(file.path());
    discovery_.set_inode(directory, stem, now.inode);
  }

  bool is_looking() const override { return discovery_.is_listing(); }

  void on_file_removed(FollowedFile& file) override {
    published_.erase(file.path());
    live_.erase(&file);
    const auto [directory, stem] = split_path(file.path());
    const Discovery::File* known = discovery_.find(directory, stem);
    if (!known || known->followed.get() != &file) return;
    discovery_.erase(file.path());
    if (!file.is_left && is_compressed(stat_transcript(file.path())))  // of another history
      disk_.soon([this, path = file.path()] {
        discovery_.on_change({watch::ChangeHint::Where::path, path});
      });
  }

  /// Folds the first `bytes` bytes, which were known; the rest follows as events. Behind the published cursor
  /// no line was complete when a client received it: what is there now follows, too.
  void fold_known(const std::shared_ptr<FollowedFile>& file, std::uint64_t bytes) {
    const auto published = published_.find(file->path());
    if (published != published_.end()) bytes = std::min(bytes, published->second.offset);
    file->fold_bytes = bytes;
    if (published == published_.end() || published->second == begin_cursor) return fold_verified(file, bytes);
    file->state = FollowedFile::State::folding;
    check_prefix(disk_, {file->path(), options_.hash_key, published->second, 0, 0},
                 [this, file, bytes, end = published->second](const PrefixCheck::Result& result) {
                   if (file->is_removed()) return;
                   file->state = FollowedFile::State::idle;
                   file->check_pending = false;
                   if (result.matches) return fold_verified(file, bytes, end);
                   if (result.error) return on_fold_failed(*file, result.error);
                   begin_new_history(*file, "rewritten");
                   for (const auto& waiter : std::exchange(file->waiters, {})) waiter(file.get());
                 });
  }

  /// `verified`: the published cursor that matches the file.
  void fold_verified(const std::shared_ptr<FollowedFile>& file, std::uint64_t bytes,
                     const Cursor& verified = {}) {
    follower_.fold(*file, bytes, [this, file, verified](bool is_read) {
      const auto published = published_.find(file->path());
      const bool was_published_since = published != published_.end() && published->second != verified;
      if (!is_read || was_published_since) return on_fold_failed(*file, 0);
      retries_.erase(file->path());
      add(*file);
      for (const auto& waiter : std::exchange(file->waiters, {})) waiter(file.get());
      check_ready();
    });
  }

  /// Delivers all of the file as new. A client that resumes, or received it from the file, counts on the
  /// bytes that were known (Stream::published_bytes), so it needs the reset.
  void begin_new_history(FollowedFile& file, std::string_view reason) {
    published_.erase(file.path());
    retries_.erase(file.path());
    add(file);
    observer_.on_reset(file, reason);
    follower_.check_soon(file);
  }

  void on_fold_failed(FollowedFile& file, int error) {
    const auto holder = file.shared_from_this();
    if (error) problems_.set(file.path(), error);
    if (!file.is_removed()) make_cold(file);
    for (const auto& waiter : std::exchange(file.waiters, {})) waiter(nullptr);
    check_ready();
  }

  /// The file could not be read: cold again, and folded later.
  void make_cold(FollowedFile& file) {
    const std::string path = file.path();
    const auto [directory, stem] = split_path(path);
    if (Discovery::File* known = discovery_.find(directory, stem)) {
      Node& node = *discovery_.directories().find(directory);
      known->followed = nullptr;
      known->size = std::min(known->size, file.fold_bytes);  // later bytes are still to be delivered
      file.state = FollowedFile::State::removed;
      if (node.second.is_left) return on_file_dropped(node, stem, *known);
    }
    file.state = FollowedFile::State::removed;
    Retry& retry = retries_[path];
    retry.must_fold = true;
    const FileStat stat = stat_transcript(path);
    const bool is_damaged = file.fold_error == EBADMSG || file.fold_error == EFBIG;
    if (!is_compressed(stat) || !is_damaged) return retry_later(path);
    retry.changed_ns = stat.changed_ns;  // until it changes
  }

  /// Examines a cold file again that could not be examined or read; the change it was examined for has no
  /// further notification.
  void retry_later(const std::string& path) {
    Retry& retry = retries_[path];
    if (std::exchange(retry.is_scheduled, true)) return;
    retry.delay = std::clamp(retry.delay * 2, options_.retry_first, options_.retry_last);
    timers_.after(retry.delay, [this, path] {
      const auto due = retries_.find(path);
      if (due == retries_.end()) return;
      due->second.is_scheduled = false;
      if (const Located known = locate_path(path); known.file)
        return on_file_hint(*known.directory, known.stem, *known.file, nullptr);
      retries_.erase(due);
      problems_.clear(path);
    });
  }

  // Discovery::Observer

  void on_file_found(Node& directory, const std::string& stem, Discovery::File& file,
                     const FileStat& stat) override {
    if (discovery_.is_starting()) {
      if (is_compressed(stat)) return void(unread_.insert(Discovery::transcript_path(directory, stem)));
      if (file.modified_ms < recent_since_ms_) return;
      return fold_known(follow(directory, stem, file, stat), stat.size);
    }
    if (is_compressed(stat)) return fold_known(follow(directory, stem, file, stat), stat.size);
    if (may_be_copy(directory)) return check_new(directory, stem, file);
    follow_new(directory, stem, file, stat);
  }

  /// Whether the compressed transcripts can be unpacked, one after the other.
  void check_compressed() {
    if (unread_.empty()) return;
    const std::string path = *unread_.begin();
    auto work = [path] {
      TranscriptFile file;
      char first = 0;
      const int error = file.open(path);
      return error ? error : -static_cast<int>(std::min(0L, file.read_at(&first, 1, 0)));
    };
    disk_.run(std::move(work), [this, path](int error) {
      const Located located = locate_path(path);
      if (located.file && !located.file->followed) error ? problems_.set(path, error) : problems_.clear(path);
      unread_.erase(path);
      check_compressed();
    });
  }

  /// False: no transcript of the program had a record that another one could repeat.
  bool may_be_copy(const Node& directory) {
    const std::string_view program = program_of(directory).program();
    const auto is_source = [&](const FollowedFile* each) {
      return each->transcript()->has_records() && each->transcript()->program() == program;
    };
    if (copied_programs_.contains(program)) return true;
    if (std::none_of(live_.begin(), live_.end(), is_source)) return false;
    copied_programs_.insert(program);
    return true;
  }

  /// A live file of which nothing was read: it is announced with its first record, and after the records that
  /// a transcript of another session has, which are history.
  void check_new(Node& directory, const std::string& stem, Discovery::File& file, Waiters waiters = {}) {
    file.size = 0;
    const std::string path = Discovery::transcript_path(directory, stem);
    const auto [at, is_first] = new_files_.try_emplace(path);
    std::move(waiters.begin(), waiters.end(), std::back_inserter(at->second.waiters));
    if (!is_first) {
      at->second.has_changed = true;
      if (at->second.wait && stat_file(path).size != at->second.bytes) check_again(path, at->second.wait);
      return;
    }
    look(path, transcript_options(directory, stem));
  }

  /// At what is in memory: other files must not wait for a disk that hangs.
  void look(const std::string& path, TranscriptOptions options) {
    auto reader = std::make_shared<NewFileReader>(path, std::move(options));
    if (auto first = reader->read_first(new_file_bytes)) return on_read(path, reader, std::move(*first));
    find_first(path, reader);
  }

  void find_first(const std::string& path, std::shared_ptr<NewFileReader> reader) {
    disk_.run(
        [reader] { return reader->read(new_file_bytes); },
        [this, path, reader](std::vector<RecordPlace> first) { on_read(path, reader, std::move(first)); });
  }

  void on_read(const std::string& path, std::shared_ptr<NewFileReader> reader,
               std::vector<RecordPlace> first) {
    const bool is_found = !first.empty() || reader->has_content();
    if (!is_found && !reader->is_at_end() && !reader->error()) return find_first(path, reader);
    on_first_found(path, reader, std::move(first), is_found);
  }

  void on_first_found(const std::string& path, std::shared_ptr<NewFileReader> reader,
                      std::vector<RecordPlace> first, bool is_found) {
    std::vector<std::weak_ptr<const FollowedFile>> sources;
    const Located located = locate_path(path);
    // A fork has its own name; a mere copy of a file does not.
    const bool may_repeat =
        !first.empty() && located.file && !reader->session().empty() &&
        Discovery::identify(*located.directory, located.stem).session == percent_encode(reader->session());
    for (const FollowedFile* each : live_)
      if (may_repeat && sources.size() < sources_max && each->transcript()->has_record(first.front()) &&
          each->transcript()->recorded_session() != reader->session())
        sources.push_back(each->weak_from_this());
    // Nothing of it can be found elsewhere yet.
    if (first.empty() && (is_found || reader->is_fork()) && waits_for_more(path, *reader)) return;
    if (sources.empty() || reader->error())
      return end_check(path, *reader,
                       [&](Node& node, const std::string& stem, Discovery::File& file, const FileStat& stat,
                           NewFile checked) {
                         if (is_found || reader->is_fork()) {
                           follow_new(node, stem, file, stat);
                           answer(checked.waiters, file.followed.get());
                         } else if (checked.has_changed) {
                           check_new(node, stem, file, std::move(checked.waiters));
                         } else {
                           answer(checked.waiters, nullptr);
                         }
                       });
    const auto is_known = [sources = std::move(sources)](const RecordPlace& record) {
      return std::any_of(sources.begin(), sources.end(), [&](const auto& each) {
        const auto source = each.lock();
        return source && source->is_added && source->transcript()->has_record(record);
      });
    };
    const auto done = [this, path, reader](std::uint64_t end, bool is_all) {
      if (is_all && waits_for_more(path, *reader)) return;
      end_check(path, *reader,
                [&](Node& node, const std::string& stem, Discovery::File& file, const FileStat& stat,
                    NewFile ended) {
                  file.modified_ms = stat.modified_ms();
                  file.size = end;
                  const auto followed = follow(node, stem, file, stat);
                  followed->waiters = std::move(ended.waiters);
                  fold_known(followed, end);
                });
    };
    find_copied_end(disk_, reader, std::move(first), is_known, done);
  }

  /// True: the file has grown, and may be written just now, with more that is repeated.
  bool waits_for_more(const std::string& path, const NewFileReader& reader) {
    NewFile& checked = new_files_.at(path);
    if (reader.error() || checked.bytes == reader.bytes_read()) return false;
    checked.bytes = reader.bytes_read();
    checked.wait = ++waits_;
    timers_.after(options_.linger, [this, path, wait = checked.wait] { check_again(path, wait); });
    return true;
  }

  void check_again(const std::string& path, std::uint64_t wait) {
    const auto checked = new_files_.find(path);
    if (checked == new_files_.end() || checked->second.wait != wait) return;
    checked->second.wait = 0;
    const Located located = locate_path(path);
    if (located.file && !located.file->followed)
      return look(path, transcript_options(*located.directory, located.stem));
    const Waiters waiters = std::move(new_files_.extract(path).mapped().waiters);
    answer(waiters, nullptr);
  }

  /// Calls `then` for the file that the reader has read, if it is still there.
  template <class Then>
  void end_check(const std::string& path, const NewFileReader& reader, Then then) {
    NewFile checked = std::move(new_files_.extract(path).mapped());
    const auto [file, node, stem] = locate_path(path);
    if (!file) return answer(checked.waiters, nullptr);
    if (file->followed) {
      if (file->followed->is_added) return answer(checked.waiters, file->followed.get());
      std::move(checked.waiters.begin(), checked.waiters.end(), std::back_inserter(file->followed->waiters));
      return;
    }
    const FileStat stat = stat_transcript(path);
    if (stat.error || !stat.is_regular()) {
      check_cold(*node, stem, *file, nullptr);
      return answer(checked.waiters, nullptr);
    }
    discovery_.set_inode(node->first, stem, stat.inode);
    if (is_compressed(stat)) {
      file->size = unknown_bytes;
      const auto followed = follow(*node, stem, *file, stat);
      followed->waiters = std::move(checked.waiters);
      return fold_known(followed, unknown_bytes);
    }
    const bool is_other = reader.error() == ENOENT || reader.error() == ESTALE ||
                          (!reader.error() && !stat.is_same_file(reader.stat()));
    if (is_other || stat.size < reader.bytes_read())
      return check_new(*node, stem, *file, std::move(checked.waiters));
    if (!reader.error()) return then(*node, stem, *file, stat, std::move(checked));
    follow_new(*node, stem, *file, stat);  // and read when that is possible
    answer(checked.waiters, file->followed.get());
  }

  static void answer(const Waiters& waiters, const FollowedFile* file) {
    for (const auto& waiter : waiters) waiter(file);
  }

  void follow_new(Node& directory, const std::string& stem, Discovery::File& file, const FileStat& stat) {
    const auto followed = follow(directory, stem, file, stat);
    add(*followed);
    follower_.check_soon(*followed);
  }

  bool on_file_moved(Node& from, const std::string& from_stem, Node& to, const std::string& to_stem,
                     const FileStat& stat, bool is_copy) override {
    const auto followed = discovery_.find(from.first, from_stem)->followed;
    if (followed && !is_copy && !followed->stat.is_same_file(stat)) return false;  // of a reused number
    StreamIdentity identity = Discovery::identify(to, to_stem);
    const StreamIdentity before = Discovery::identify(from, from_stem);
    if (identity.session != before.session || identity.agent != before.agent) return false;
    const std::string from_path = Discovery::transcript_path(from, from_stem);
    const std::string from_name = stream_name_of(from, from_stem);
    Discovery::File& file = discovery_.move(from, from_stem, to, to_stem, stat.inode);
    const std::string path = Discovery::transcript_path(to, to_stem);
    if (auto published = published_.extract(from_path)) {
      published.key() = path;
      published_.insert(std::move(published));
    }
    forget_unpacked(from_path);
    const auto retry = retries_.extract(from_path);
    if (retry && retry.mapped().must_fold) retries_[path].must_fold = true;
    problems_.clear(from_path);
    const std::string name = stream_name_of(to, to_stem);
    renamed_.erase(name);
    renamed_[from_name] = name;
    const std::string announced = followed ? followed->name() : from_name;
    if (followed) follower_.rename(*followed, name, path, std::move(identity));
    if (followed && followed->is_added)
      observer_.on_renamed(*followed, announced);
    else
      observer_.on_renamed(cold_stream(to, to_stem, file), announced);
    if (!followed) check_cold(to, to_stem, file, nullptr);
    follower_.end_batch_soon();
    return true;
  }

  void on_file_hint(Node& directory, const std::string& stem, Discovery::File& file,
                    const FileStat* listed) override {
    if (listed) discovery_.set_inode(directory.first, stem, listed->inode);
    if (!file.followed) return check_cold(directory, stem, file, listed);
    file.followed->is_left = false;  // its directory is there
    const FileStat& last = file.followed->stat;
    const bool is_unchanged = listed && file.followed->is_added && listed->is_same_file(last) &&
                              listed->size == file.followed->bytes_read() &&
                              listed->changed_ns == last.changed_ns;
    if (!is_unchanged) follower_.check_soon(*file.followed);
  }

  void check_cold(Node& directory, const std::string& stem, Discovery::File& file, const FileStat* listed) {
    const std::string path = Discovery::transcript_path(directory, stem);
    const FileStat stat = listed ? *listed : stat_transcript(path);
    if (stat.is_missing() && wait_for_new_name(path)) return;
    if (stat.is_missing() || (!stat.error && !stat.is_regular())) {
      remove_cold(directory, stem, file);
      if (!stat.error) problems_.set_irregular(path);
      return;
    }
    if (stat.error) {
      problems_.set(path, stat.error);
      return retry_later(path);
    }
    const auto retry = retries_.find(path);
    const bool must_fold = retry != retries_.end() && retry->second.must_fold;
    if (retry != retries_.end() && !must_fold) {
      retries_.erase(retry);
      problems_.clear(path);
    }
    discovery_.set_inode(directory.first, stem, stat.inode);
    if (stat.size < file.size && is_being_unpacked(directory, stem, file, stat)) return;
    forget_unpacked(path);
    const std::uint64_t known_bytes = update_cold(file, stat);
    if (is_compressed(stat)) return on_compressed(directory, stem, file, stat);
    if (known_bytes == 0 && !must_fold && !published_.contains(path)) return check_new(directory, stem, file);
    if (stat.size < known_bytes)
      begin_new_history(*follow(directory, stem, file, stat), "truncated");
    else if (stat.size > known_bytes || must_fold || published_.contains(path))
      fold_known(follow(directory, stem, file, stat), known_bytes);
  }

  /// One that could not be read is read again when it has changed.
  void on_compressed(Node& directory, const std::string& stem, Discovery::File& file, const FileStat& stat) {
    const std::string path = Discovery::transcript_path(directory, stem);
    const auto retry = retries_.find(path);
    if (retry != retries_.end() && retry->second.must_fold) {
      if (retry->second.changed_ns != stat.changed_ns)
        fold_known(follow(directory, stem, file, stat), file.size);
    } else if (problems_.contains(path) && unread_.insert(path).second && unread_.size() == 1) {
      check_compressed();
    }
  }

  /// The file has less than is known. True: a copy is being unpacked, until it is gone or, where it stays,
  /// the file has not grown for a while; or what in it is known is being found.
  bool is_being_unpacked(Node& directory, const std::string& stem, const Discovery::File& file,
                         const FileStat& stat) {
    const std::string path = Discovery::transcript_path(directory, stem);
    const auto now = Clock::now();
    const auto [at, is_first] = unpacked_.try_emplace(path);
    Unpacked& unpacked = at->second;
    if (unpacked.is_read) return true;
    if (is_first || unpacked.bytes != stat.size) unpacked.bytes = stat.size, unpacked.since = now;
    const bool has_copy = stat_compressed(path).ok();
    const bool is_whole = !has_copy || now >= unpacked.since + options_.linger * Follower::unpacking_lingers;
    if (!has_copy && stat_file(path).size != stat.size) {  // it was unpacked since the look
      disk_.soon([this, path] { check_path(path); });
      return true;
    }
    if (!is_whole && unpacked.is_scheduled) return true;
    if (file.size == unknown_bytes)
      find_known(directory, stem, path, is_whole);
    else if (!is_whole)
      check_unpacked_later(path);
    return file.size == unknown_bytes || !is_whole;
  }

  void check_unpacked_later(const std::string& path) {
    if (std::exchange(unpacked_[path].is_scheduled, true)) return;
    timers_.after(options_.linger, [this, path] {
      if (const auto scheduled = unpacked_.find(path); scheduled != unpacked_.end())
        scheduled->second.is_scheduled = false;
      check_path(path);
    });
  }

  void check_path(const std::string& path) {
    const Located located = locate_path(path);
    if (!located.file || located.file->followed) return forget_unpacked(path);
    check_cold(*located.directory, located.stem, *located.file, nullptr);
  }

  void forget_unpacked(const std::string& path) {
    const auto unpacked = unpacked_.find(path);
    if (unpacked == unpacked_.end() || unpacked->second.is_read) return;
    const auto waiters = std::move(unpacked->second.waiters);
    unpacked_.erase(unpacked);
    for (const auto& waiter : waiters) waiter(false);
  }

  /// Of one that was compressed before it was found: what is older than that was in the copy. `is_whole`:
  /// else something later shows that all of the copy was unpacked.
  void find_known(const Node& directory, const std::string& stem, const std::string& path, bool is_whole) {
    if (std::exchange(unpacked_[path].is_read, true)) return;
    find_more_known(path, std::make_shared<KnownPart>(path, transcript_options(directory, stem), started_ms_),
                    is_whole);
  }

  void find_more_known(const std::string& path, std::shared_ptr<KnownPart> part, bool is_whole) {
    auto work = [part] { return part->read_slice(); };
    disk_.run(std::move(work), [this, path, part, is_whole](bool is_complete) {
      if (!is_complete) return find_more_known(path, part, is_whole);
      Unpacked& unpacked = unpacked_[path];
      unpacked.is_read = false;
      if (!is_whole && !part->is_over() && !part->error()) return check_unpacked_later(path);
      const auto waiters = std::exchange(unpacked.waiters, {});
      forget_unpacked(path);
      const int error = part->error();
      if (const Located known = locate_path(path);
          !error && known.file && !known.file->followed && known.file->size == unknown_bytes)
        known.file->size = part->bytes();
      for (const auto& waiter : waiters) waiter(!error);
      const Located located = locate_path(path);
      if (!located.file || located.file->followed) return;
      if (!error || error == ENOENT)
        return check_cold(*located.directory, located.stem, *located.file, nullptr);
      problems_.set(path, error);
      retry_later(path);
    });
  }

  /// True: a cold file that is missing may be found under another name in a moment.
  bool wait_for_new_name(const std::string& path) {
    if (missing_paths_.contains(path)) return true;
    if (missing_.size() >= missing_max) return false;
    missing_paths_.insert(path);
    missing_.push_back({Clock::now() + options_.linger, path});
    if (missing_.size() == 1) check_missing_after(options_.linger);
    return true;
  }

  void check_missing_after(std::chrono::milliseconds delay) {
    timers_.after(delay, [this] { check_missing(); });
  }

  /// Removes the cold files that were not found under another name, a part in each turn.
  void check_missing() {
    const auto now = Clock::now();
    const auto looking = options_.linger * (is_looking() ? Follower::looking_lingers_max : 0);
    for (std::size_t files = options_.files_per_turn;
         files > 0 && !missing_.empty() && missing_.front().until + looking <= now; --files) {
      const std::string path = std::move(missing_.front().path);
      missing_.pop_front();
      missing_paths_.erase(path);
      const auto [directory, stem] = split_path(path);
      Discovery::File* const file = discovery_.find(directory, stem);
      if (!file || file->followed) continue;
      Node& node = *discovery_.directories().find(directory);
      const FileStat stat = stat_transcript(path, file->size);
      node.second.is_left || stat.is_missing() ? remove_cold(node, stem, *file)
                                               : check_cold(node, stem, *file, &stat);
    }
    if (missing_.empty()) return;
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(missing_.front().until - now);
    check_missing_after(looking.count() > 0 ? options_.linger / 10
                                            : std::max(wait, std::chrono::milliseconds(0)));
  }

  void on_file_dropped(Node& directory, const std::string& stem, Discovery::File& file) override {
    if (file.followed)
      follower_.leave(*file.followed);
    else if (!wait_for_new_name(Discovery::transcript_path(directory, stem)))
      remove_cold(directory, stem, file);
  }

  void remove_cold(Node& directory, const std::string& stem, Discovery::File& file) {
    const std::string path = Discovery::transcript_path(directory, stem);
    retries_.erase(path);
    problems_.clear(path);
    published_.erase(path);
    forget_unpacked(path);
    observer_.on_removed(cold_stream(directory, stem, file));
    follower_.end_batch_soon();
    discovery_.erase(path);
  }

  void on_meta_hint(Node& directory, std::string_view stem) override {
    if (const Discovery::File* file = discovery_.find(directory.first, stem); file && file->followed)
      read_meta(directory, stem, file->followed);
  }

  void read_meta(const Node& directory, std::string_view stem, const std::shared_ptr<FollowedFile>& file) {
    const SubagentFiles* const files = program_of(directory).subagent_files();
    std::string path = files ? files->meta_file(directory.first + '/' + std::string(stem)) : std::string();
    if (path.empty()) return;
    ++pending_metas_;
    auto work = [path = std::move(path)] { return read_small_file(path, SubagentFiles::meta_bytes_max); };
    disk_.run(std::move(work), [this, file, files](const SmallFile& read) {
      --pending_metas_;
      if (read.ok() && !file->is_removed()) update_meta(*file, files->parse_subagent_meta(read.text));
      check_ready();
    });
  }

  /// An empty result is ignored: the file may have been read while it was written.
  void update_meta(FollowedFile& file, SubagentMeta meta) {
    if (meta == file.meta() || meta == SubagentMeta{}) return;
    file.set_meta(std::move(meta));
    if (!file.is_added) return;
    observer_.on_changed(file);
    follower_.end_batch_soon();
  }

  void on_compaction_hint(Node& directory, const std::string& name, bool is_new) override {
    const std::string path = directory.first + '/' + name;
    if (is_new && compactions_.size() < compactions_max) compactions_.insert(path);
    if (!compactions_.contains(path)) return;
    const StreamIdentity identity = Discovery::identify(directory, program_of(directory).stem_of(name));
    if (!identity.session.empty()) return report_compaction(path, identity.session);
    auto work = [path] {
      std::string text(compaction_bytes_max, '\0');
      const Fd fd = open_for_reading(path);
      const long got = fd ? read_at(fd.get(), text.data(), text.size() - feed_padding, 0) : 0;
      return std::pair(std::move(text), static_cast<std::size_t>(std::max(got, 0L)));
    };
    const RecordFormat* format = &program_of(directory).format();
    disk_.run(std::move(work), [this, path, format](const std::pair<std::string, std::size_t>& read) {
      Transcript transcript({options_.hash_key, "acompact", options_.line_bytes_max, nullptr, format});
      NullSink no_events;
      transcript.feed(std::span(read.first).first(read.second), workspace_, no_events);
      if (const std::string session = transcript.recorded_session(); !session.empty())
        report_compaction(path, session);
    });
  }

  void report_compaction(const std::string& path, const std::string& session) {
    if (compactions_.erase(path) == 0) return;
    observer_.on_compacting(session);
    follower_.end_batch_soon();
  }

  void on_scanned() override {
    check_ready();
    check_compressed();
  }

  void check_ready() {
    if (!on_ready_ || discovery_.is_starting() || follower_.pending_folds() > 0 || pending_metas_ > 0) return;
    std::exchange(on_ready_, nullptr)();
  }

  const Options options_;
  StreamObserver& observer_;
  IoThread disk_, folds_;
  ReadPool reads_;
  TimerQueue timers_;
  FileProblems problems_;
  Counters counters_;
  std::unordered_map<std::string, NewFile> new_files_;  // by path, while they are examined
  std::uint64_t waits_ = 0;                             // of these, so far
  std::set<std::string_view> copied_programs_;          // which have records with ids
  Workspace workspace_;                                 // for compaction markers
  Follower follower_;
  Discovery discovery_;
  watch::WatchMux& mux_;
  watch::Watcher* watcher_ = nullptr;  // of mux_
  std::function<void()> on_ready_;
  std::int64_t started_ms_ = 0, recent_since_ms_ = 0;
  std::unordered_set<const FollowedFile*> live_;  // added and not removed
  std::size_t pending_metas_ = 0;
  std::unique_ptr<ColdStream> found_;        // the last result of find()
  std::map<std::string, Cursor> published_;  // of cold files, by path
  std::set<std::string> compactions_;        // paths of markers that are not reported yet
  std::map<std::string, Retry> retries_;     // by path
  struct Missing {
    Clock::time_point until;
    std::string path;
  };
  std::deque<Missing> missing_;                   // cold files, in the order of time
  std::set<std::string> unread_;                  // paths of compressed files to check
  std::map<std::string, Unpacked> unpacked_;      // cold files, by path
  std::set<std::string> missing_paths_;           // of these
  BoundedMap<std::string, renamed_max> renamed_;  // by the former name
  bool is_running_ = false;
};

Tail::Tail(boost::asio::io_context& io, boost::asio::any_io_executor disk, watch::WatchMux& mux,
           Options options, StreamObserver& observer)
    : impl_(std::make_shared<Impl>(io, std::move(disk), mux, std::move(options), observer)) {
  impl_->connect(impl_);
}

Tail::~Tail() { impl_->stop(); }

void Tail::start(std::function<void()> on_ready) { impl_->start(std::move(on_ready)); }
void Tail::stop() { impl_->stop(); }
void Tail::for_each(const std::function<void(const Stream&)>& visit) const { impl_->for_each(visit); }
void Tail::for_each_live(const std::function<void(const Stream&)>& visit) const {
  impl_->for_each_live(visit);
}
std::size_t Tail::known_files(std::string_view root) const { return impl_->known_files(root); }
bool Tail::for_some(Place& place, std::size_t count, const std::function<void(const Stream&)>& visit) const {
  return impl_->for_some(place, count, visit);
}
std::vector<std::string> Tail::cold_streams_of(std::string_view session) const {
  return impl_->cold_streams_of(session);
}
const Stream* Tail::find(std::string_view name) const { return impl_->find(name); }
const Stream* Tail::find_moved(std::string_view name) const { return impl_->find_moved(name); }
void Tail::fold(std::string_view name, std::function<void(const Stream*)> then) {
  impl_->fold(name, std::move(then));
}
void Tail::request_verify(const Stream& stream) { impl_->request_verify(stream); }
void Tail::release(std::string_view name) { impl_->release(name); }
void Tail::mark_published(const Stream& stream, const Cursor& end) { impl_->mark_published(stream, end); }
std::unique_ptr<History> Tail::history(const Stream& stream) { return impl_->history(stream); }
void Tail::record(const Stream& stream, const Cursor& end, std::function<void(RecordText)> then) {
  impl_->record(stream, end, std::move(then));
}
std::vector<FileProblem> Tail::problems() const { return impl_->problems(); }
Counters Tail::counters() const { return impl_->counters(); }

}  // namespace earshot::tail
