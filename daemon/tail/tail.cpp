#include "tail/tail.hpp"

#include <algorithm>
#include <ctime>
#include <unordered_map>
#include <utility>

#include "agents/claude_code/layout.hpp"
#include "agents/agent.hpp"
#include "agents/claude_code/reader.hpp"
#include "agents/claude_code/subagent_meta.hpp"
#include "base/clock.hpp"
#include "tail/discovery.hpp"
#include "tail/follower.hpp"
#include "tail/history.hpp"
#include "tail/host_names.hpp"
#include "tail/io_thread.hpp"
#include "tail/prefix_check.hpp"

namespace earshot::tail {
namespace {

std::string path_of(const Discovery::Place& place, std::string_view stem) {
  return place.first + '/' + std::string(stem) + ".jsonl";
}

/// A known file that nobody needs: made when someone asks, kept nowhere.
class Cold final : public Stream {
 public:
  Cold(std::string name, std::string path, Identity identity, std::int64_t modified, std::uint64_t bytes)
      : name_(std::move(name)),
        path_(std::move(path)),
        identity_(std::move(identity)),
        modified_ms_(modified),
        bytes_(bytes) {}
  const std::string& name() const override { return name_; }
  const std::string& session() const override { return identity_.session; }
  const std::string& agent() const override { return identity_.agent; }
  const std::string& directory() const override { return identity_.directory; }
  const std::string& path() const override { return path_; }
  const AgentMeta& meta() const override { return meta_; }
  const Transcript* transcript() const override { return nullptr; }
  std::int64_t modified_ms() const override { return modified_ms_; }
  std::uint64_t bytes() const override { return bytes_; }

 private:
  std::string name_, path_;
  Identity identity_;
  AgentMeta meta_;
  std::int64_t modified_ms_;
  std::uint64_t bytes_;
};

}  // namespace

class Tail::Impl final : private Discovery::Observer {
 public:
  static constexpr std::size_t told_max = 65'536;  // cold ones that somebody was told of; more are made live
  static constexpr std::size_t compactions_max = 64;  // whose session is not known yet; more are not told
  static constexpr std::size_t compaction_bytes_max = 256 << 10;  // of such a file, to find its session

  Impl(boost::asio::io_context& io, boost::asio::any_io_executor disk, watch::WatchMux& switchboard,
       Options options, Listener& listener)
      : options_(std::move(options)),
        listener_(listener),
        disk_(io, std::move(disk)),
        reads_(disk_),
        later_(io),
        looks_(disk_, reads_, later_, health_, options_, listener_, counters_,
               [this](FollowedFile& live) { removed(live); }),
        tree_(disk_, later_, health_, options_, *this),
        switchboard_(switchboard) {}

  void start(std::weak_ptr<Impl> self, std::function<void()> on_ready) {
    on_ready_ = std::move(on_ready);
    recent_since_ms_ =
        watch::wall_now_ms() - std::chrono::duration_cast<std::chrono::milliseconds>(options_.recent).count();
    std::vector<std::string> prefixes;
    for (const Root& root : options_.roots) prefixes.push_back(root.path);
    tree_.start(
        switchboard_.connect(std::move(prefixes), [self = std::move(self)](const watch::ChangeHint& ring) {
          const auto house = self.lock();
          if (!house || house->stopped_) return;
          house->tree_.ring(ring);
          // One way round the loop less between an append and whoever listens.
          if (ring.last && !house->stopped_) house->looks_.pump_now();
        }));
  }

  void stop() {
    stopped_ = true;
    on_ready_ = nullptr;
    looks_.stop();
    later_.clear();
    disk_.close();
  }

  void for_each(const std::function<void(const Stream&)>& visit) {
    for (const auto& place : tree_.directories())
      for (const auto& [stem, file] : place.second.files) {
        if (file.live && file.live->appeared)
          visit(*file.live);
        else
          visit(cold(place, stem, file));
      }
  }

  const Stream* find(std::string_view name) {
    Discovery::Place* place = nullptr;
    std::string stem;
    const Discovery::File* file = locate(name, place, stem);
    if (!file) return nullptr;
    if (file->live && file->live->appeared) return file->live.get();
    found_ = std::make_unique<Cold>(cold(*place, stem, *file));
    return found_.get();
  }

  void fold(std::string_view name, std::function<void(const Stream*)> then) {
    Discovery::Place* place = nullptr;
    std::string stem;
    Discovery::File* file = locate(name, place, stem);
    if (!file) return then(nullptr);
    if (file->live && file->live->appeared) return then(file->live.get());
    if (!file->live) {
      const Facts facts = facts_of(path_of(*place, stem));
      if (facts.error || facts.kind != Facts::Kind::regular) return then(nullptr);
      // Only what it was known to hold is passed over: who resumes meanwhile counts on hearing the rest.
      const std::uint64_t had = known_now(*file, facts);
      const auto live = make(*place, stem, *file, facts);
      if (facts.size < had) {
        begin_anew(*live, "truncated");
        return then(live.get());
      }
      fold_silently(live, had);
    }
    file->live->waiters.push_back(std::move(then));
  }

  void doubt(const Stream& stream) {
    Discovery::Place* place = nullptr;
    std::string stem;
    const Discovery::File* file = locate(stream.name(), place, stem);
    if (file && file->live && file->live->appeared) looks_.doubt(*file->live);
  }

  void told(const Stream& stream, const Cursor& end) {
    Discovery::Place* place = nullptr;
    std::string stem;
    const Discovery::File* file = locate(stream.name(), place, stem);
    if (!file || end == begin_cursor) return;
    if (file->live && file->live->appeared) return looks_.prove(*file->live, end);
    if (told_.size() >= told_max)
      return fold(stream.name(), [](const Stream*) {});  // a live one remembers for itself
    const auto [at, is_first] = told_.emplace(path_of(*place, stem), end);
    if (!is_first && at->second != end)
      at->second.prefix_hash = ~end.prefix_hash;  // two histories: none of them is taken for it
  }

  std::unique_ptr<History> history(const Stream& stream) {
    const std::string_view name = stream.name();
    const auto root = std::find_if(options_.roots.begin(), options_.roots.end(), [&](const Root& each) {
      return each.name == name.substr(0, name.find('/'));
    });
    return read_again(disk_, stream.path(),
                      {options_.hash_key, stream.agent(), options_.line_bytes_max, nullptr,
                       root == options_.roots.end() ? &claude_code::reader() : reader_of(*root)});
  }

  void record(const Stream& stream, const Cursor& end, std::function<void(RecordText)> then) {
    read_record(disk_, stream.path(), options_.hash_key, end, options_.line_bytes_max, std::move(then));
  }

  std::vector<Health> health() const {
    std::vector<Health> all = health_.list();
    if (std::string trouble = switchboard_.trouble(); !trouble.empty())
      all.push_back({"", std::move(trouble), ""});
    return all;
  }

  Counters counters() const {
    Counters now = counters_;
    now.open_files = looks_.open_files();
    now.directories = tree_.directories().size();
    now.known_files = tree_.files();
    now.streams = streams_;
    for (const auto& [path, directory] : tree_.directories())
      for (const auto& [stem, file] : directory.files)
        if (file.live && file.live->transcript())
          now.pending_bytes += file.live->transcript()->pending_bytes();
    return now;
  }

 private:
  static const RecordReader* reader_of(const Root& root) {
    return root.program ? &root.program->reader() : &claude_code::reader();
  }
  std::string name_of(const Discovery::Place& place, std::string_view stem) {
    std::string below(Discovery::below_hall(place).substr(Discovery::below_hall(place).empty() ? 0 : 1));
    if (!below.empty()) below += '/';
    below += stem;
    const Root& root = *place.second.root;
    // The path below the hall, unless a file of projects/ is called so already.
    const bool plain = place.second.hall == TranscriptDir::conversations &&
                       place_of(percent(below))->hall == TranscriptDir::projects;
    const std::string twin =
        root.path + '/' + std::string(directory_of(TranscriptDir::projects)) + '/' + below;
    const auto last = twin.rfind('/');
    const bool taken = plain && tree_.find(twin.substr(0, last), twin.substr(last + 1)) != nullptr;
    return root.name + '/' + (plain && !taken ? percent(below) : stream_name(place.second.hall, below));
  }

  Identity identity(const Discovery::Place& place, std::string_view stem) const {
    const auto read = place.second.root->told ? identity_of_told : identity_of;
    return read(
        std::string(Discovery::below_hall(place)).substr(Discovery::below_hall(place).empty() ? 0 : 1) +
        (Discovery::below_hall(place).empty() ? "" : "/") + std::string(stem));
  }

  Cold cold(const Discovery::Place& place, const std::string& stem, const Discovery::File& file) {
    return {name_of(place, stem), path_of(place, stem), identity(place, stem), file.modified_ms,
            file.live ? file.live->bytes() : file.size};
  }

  Discovery::File* locate(std::string_view name, Discovery::Place*& place, std::string& stem) {
    const auto slash = name.find('/');
    if (slash == std::string_view::npos) return nullptr;
    const auto found = place_of(name.substr(slash + 1));
    if (!found) return nullptr;
    for (const Root& root : options_.roots) {
      if (root.name != name.substr(0, slash)) continue;
      if (Discovery::File* file = locate(root, *found, place, stem)) return file;
      return locate(root, {TranscriptDir::conversations, found->below}, place, stem);
    }
    return nullptr;
  }

  Discovery::File* locate(const Root& root, const Place& wanted, Discovery::Place*& place,
                          std::string& stem) {
    const std::string path = root.path + '/' + std::string(directory_of(wanted.hall)) + '/' + wanted.below;
    const auto last = path.rfind('/');
    const auto at = tree_.directories().find(std::string_view(path).substr(0, last));
    if (at == tree_.directories().end()) return nullptr;
    stem = path.substr(last + 1);
    place = &*at;
    return tree_.find(at->first, stem);
  }

  std::shared_ptr<FollowedFile> make(Discovery::Place& place, const std::string& stem, Discovery::File& file,
                                     const Facts& facts) {
    Identity who = identity(place, stem);
    TranscriptOptions options{options_.hash_key, who.agent, options_.line_bytes_max, options_.filter,
                              reader_of(*place.second.root)};
    const bool is_agent = !who.agent.empty();
    file.live = std::make_shared<FollowedFile>(name_of(place, stem), path_of(place, stem), std::move(who),
                                               std::move(options), facts);
    file.live->facts.changed_ns = 0;  // of its bytes none was read
    if (is_agent) read_meta(place, stem, file.live);
    return file.live;
  }

  void appear(FollowedFile& live) {
    const auto told = told_.extract(live.path());
    ++streams_;
    looks_.appear(live);
    if (told) looks_.prove(live, told.mapped());
  }

  void removed(FollowedFile& live) {
    told_.erase(live.path());
    if (live.appeared) --streams_;
    const std::string path = live.path();
    const auto slash = path.rfind('/');
    const Discovery::File* file =
        tree_.find(path.substr(0, slash), stem_of(std::string_view(path).substr(slash + 1)));
    if (!file || file->live.get() == &live) tree_.erase(path);
  }

  /// Of a cold one. The bytes that it was known to hold until now.
  static std::uint64_t known_now(Discovery::File& file, const Facts& facts) {
    file.inode = facts.inode;
    file.modified_ms = facts.modified_ms();
    return std::exchange(file.size, facts.size);
  }

  void fold_silently(const std::shared_ptr<FollowedFile>& live, std::uint64_t upto) {
    live->silent_bytes = upto;
    const auto told = told_.find(live->path());
    if (told == told_.end()) return fold_proven(live, upto);
    live->busy = true;
    check(disk_, {live->path(), options_.hash_key, told->second, 0, 0},
          [this, live, upto, proven = told->second](const PrefixCheckResult& is) {
            live->busy = live->again = false;
            if (live->removed) return;
            if (is.fits) return fold_proven(live, upto, proven);
            if (is.error) return could_not_be_read(*live, is.error);
            begin_anew(*live, "rewritten");
            for (const auto& waiter : std::exchange(live->waiters, {})) waiter(live.get());
          });
  }

  /// All of it is new; whoever resumes, or was told of it, counts on what it had (Stream::bytes).
  void begin_anew(FollowedFile& live, std::string_view reason) {
    told_.erase(live.path());
    appear(live);
    listener_.on_reset(live, reason);
    looks_.want(live);
  }

  void could_not_be_read(FollowedFile& live, int error) {
    const auto holder = live.shared_from_this();
    if (error) health_.set(live.path(), error);
    if (!live.removed) back_to_cold(live);
    for (const auto& waiter : std::exchange(live.waiters, {})) waiter(nullptr);
    check_ready();
  }

  /// `proven`: what somebody was told up to there is what the file says.
  void fold_proven(const std::shared_ptr<FollowedFile>& live, std::uint64_t upto, const Cursor& proven = {}) {
    looks_.fold(*live, upto, [this, live, proven](bool read) {
      const auto told = told_.find(live->path());
      const bool told_since = told != told_.end() && told->second != proven;  // to be proven first
      if (!read || told_since) return could_not_be_read(*live, 0);
      unreadable_.erase(live->path());
      appear(*live);
      for (const auto& waiter : std::exchange(live->waiters, {})) waiter(live.get());
      check_ready();
    });
  }

  /// It could not be read: known, cold, and tried again later.
  void back_to_cold(FollowedFile& live) {
    const std::string path = live.path();
    const auto slash = path.rfind('/');
    const std::string stem(stem_of(std::string_view(path).substr(slash + 1)));
    if (Discovery::File* file = tree_.find(path.substr(0, slash), stem)) {
      file->live = nullptr;
      file->size = std::min(file->size, live.silent_bytes);  // what it has beyond is still to be told
    }
    live.removed = true;
    auto& delay = unreadable_[path];
    delay = std::clamp(delay * 2, options_.retry_first, options_.retry_last);
    later_.after(delay, [this, path, stem, directory = path.substr(0, slash)] {
      const auto at = tree_.directories().find(directory);
      Discovery::File* file = at == tree_.directories().end() ? nullptr : tree_.find(directory, stem);
      if (!file) {
        unreadable_.erase(path);
        health_.clear(path);
      } else if (unreadable_.contains(path)) {
        file_rang(*at, stem, *file, nullptr);
      }
    });
  }

  // What the tree finds.

  void file_found(Discovery::Place& place, const std::string& stem, Discovery::File& file,
                  const Facts& facts) override {
    if (tree_.starting()) {
      if (file.modified_ms >= recent_since_ms_) fold_silently(make(place, stem, file, facts), facts.size);
      return;
    }
    const auto live = make(place, stem, file, facts);
    appear(*live);
    looks_.want(*live);
  }

  void file_rang(Discovery::Place& place, const std::string& stem, Discovery::File& file,
                 const Facts* known) override {
    if (file.live) {
      const Facts& last = file.live->facts;
      const bool as_before = known && file.live->appeared && known->same_file(last) &&
                             known->size == file.live->read() && known->changed_ns == last.changed_ns;
      if (!as_before) looks_.want(*file.live);
      return;
    }
    const std::string path = path_of(place, stem);
    const Facts facts = known ? *known : facts_of(path);
    if (facts.gone() || (!facts.error && facts.kind != Facts::Kind::regular)) {
      unreadable_.erase(path);
      facts.gone()
          ? health_.clear(path)
          : health_.set(path, "not a regular file", "transcripts are regular files; this one is left alone");
      tell_removed(place, stem, file);
      return tree_.erase(path);
    }
    if (facts.error) return health_.set(path, facts.error);
    const std::uint64_t had = known_now(file, facts);
    if (facts.size < had) {
      begin_anew(*make(place, stem, file, facts), "truncated");
    } else if (facts.size > had || unreadable_.contains(path) || told_.contains(path)) {
      fold_silently(make(place, stem, file, facts), had);
    }
  }

  void file_dropped(Discovery::Place& place, const std::string& stem, Discovery::File& file) override {
    if (file.live) return looks_.drop(*std::shared_ptr(file.live));
    tell_removed(place, stem, file);
  }

  /// A cold one is no more. Somebody may have had it from its file.
  void tell_removed(const Discovery::Place& place, const std::string& stem, const Discovery::File& file) {
    told_.erase(path_of(place, stem));
    listener_.on_removed(cold(place, stem, file));
    looks_.pump_soon();
  }

  void meta_rang(Discovery::Place& place, std::string_view stem) override {
    if (const Discovery::File* file = tree_.find(place.first, stem); file && file->live)
      read_meta(place, stem, file->live);
  }

  void read_meta(const Discovery::Place& place, std::string_view stem,
                 const std::shared_ptr<FollowedFile>& live) {
    ++metas_;
    auto read = [path = place.first + '/' + std::string(stem) + ".meta.json"] {
      return read_small(path, meta_bytes_max);
    };
    disk_.run(std::move(read), [this, live](const std::optional<std::string>& text) {
      --metas_;
      // Read while it is written it is no JSON, or less than it was: what it said stands until it says more.
      if (text && !live->removed) {
        AgentMeta meta = parse_meta(*text);
        if (meta != live->meta() && meta != AgentMeta{}) {
          live->set_meta(std::move(meta));
          if (live->appeared) {
            listener_.on_changed(*live);
            looks_.pump_soon();
          }
        }
      }
      check_ready();
    });
  }

  void compaction_rang(Discovery::Place& place, const std::string& name, bool born) override {
    const std::string path = place.first + '/' + name;
    if (born && compactions_.size() < compactions_max) compactions_.insert(path);
    if (!compactions_.contains(path)) return;
    const Identity who = identity(place, stem_of(name));
    if (!who.session.empty()) return tell_compaction(path, who.session);
    // Beside the session: its lines say whose it is.
    auto read = [path] {
      std::string text(compaction_bytes_max, '\0');
      const Descriptor file = open_transcript(path);
      const long got = file ? read_at(file.get(), text.data(), text.size() - feed_padding, 0, false) : 0;
      return std::pair(std::move(text), static_cast<std::size_t>(std::max(got, 0L)));
    };
    disk_.run(std::move(read), [this, path](const std::pair<std::string, std::size_t>& result) {
      Transcript transcript({options_.hash_key, "acompact", options_.line_bytes_max});
      class Silence final : public EventSink {
        void on_event(const Event&) override {}
      } silence;
      transcript.feed(std::span(result.first).first(result.second), workspace_, silence);
      if (const std::string session = transcript.recorded_session(); !session.empty())
        tell_compaction(path, session);
    });
  }

  void tell_compaction(const std::string& path, const std::string& session) {
    if (compactions_.erase(path) == 0) return;
    listener_.on_compacting(session);
    looks_.pump_soon();
  }

  void scanned() override { check_ready(); }

  void check_ready() {
    if (!on_ready_ || tree_.starting() || looks_.folding() > 0 || metas_ > 0) return;
    std::exchange(on_ready_, nullptr)();
  }

  const Options options_;
  Listener& listener_;
  IoThread disk_;
  ReadPool reads_;
  TimerQueue later_;
  HealthBook health_;
  Counters counters_;
  Workspace workspace_;  // for compactions; the looks have their own
  Follower looks_;
  Discovery tree_;
  watch::WatchMux& switchboard_;
  std::function<void()> on_ready_;
  std::int64_t recent_since_ms_ = 0;
  std::size_t streams_ = 0, metas_ = 0;
  std::unique_ptr<Cold> found_;
  std::map<std::string, Cursor> told_;  // of cold files, by path: how far somebody was told of them
  std::set<std::string> compactions_;   // born, and not told yet
  std::map<std::string, std::chrono::milliseconds> unreadable_;  // cold files that refused to be folded
  bool stopped_ = false;
};

Tail::Tail(boost::asio::io_context& io, boost::asio::any_io_executor disk, watch::WatchMux& switchboard,
           Options options, Listener& listener)
    : house_(std::make_shared<Impl>(io, std::move(disk), switchboard, std::move(options), listener)) {}

Tail::~Tail() { house_->stop(); }

void Tail::start(std::function<void()> on_ready) { house_->start(house_, std::move(on_ready)); }
void Tail::stop() { house_->stop(); }
void Tail::for_each(const std::function<void(const Stream&)>& visit) const { house_->for_each(visit); }
const Stream* Tail::find(std::string_view name) const { return house_->find(name); }
void Tail::fold(std::string_view name, std::function<void(const Stream*)> then) {
  house_->fold(name, std::move(then));
}
void Tail::doubt(const Stream& stream) { house_->doubt(stream); }
void Tail::told(const Stream& stream, const Cursor& end) { house_->told(stream, end); }
std::unique_ptr<History> Tail::history(const Stream& stream) { return house_->history(stream); }
void Tail::record(const Stream& stream, const Cursor& end, std::function<void(RecordText)> then) {
  house_->record(stream, end, std::move(then));
}
std::vector<Health> Tail::health() const { return house_->health(); }
Counters Tail::counters() const { return house_->counters(); }

}  // namespace earshot::tail
