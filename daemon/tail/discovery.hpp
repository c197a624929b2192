// Which directories and transcripts exist below the roots. Watches first, then scans; a ring says where to
// scan again.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agents/claude_code/layout.hpp"
#include "tail/files.hpp"
#include "tail/followed_file.hpp"
#include "tail/health.hpp"
#include "tail/io_thread.hpp"
#include "tail/roots.hpp"
#include "tail/tail.hpp"
#include "watch/watcher.hpp"

namespace earshot::tail {

class Discovery {
 public:
  static constexpr std::size_t depth_max = 16;       // below projects/; what lies deeper is not looked for
  static constexpr std::size_t scans_a_task = 64;    // directories that the second thread lists in one go
  static constexpr std::size_t files_max = 1 << 20;  // more are not followed, and problems() says so
  static constexpr std::size_t directories_max = 1 << 18;  // likewise
  static constexpr std::size_t tasks_max = 2;              // at a time

  /// A known transcript. Small while nobody needs it: there are a hundred thousand of these.
  struct File {
    std::uint64_t inode = 0;
    std::uint64_t size = 0;  // while cold: when it was last looked at
    std::int64_t modified_ms = 0;
    std::shared_ptr<FollowedFile> live;  // null: cold
  };
  struct Directory {
    const Root* root = nullptr;  // of the tree's roots
    TranscriptDir hall = TranscriptDir::projects;
    std::uint16_t depth = 0;  // 0: the hall itself
    std::uint64_t scan = 0;   // the number of the one that is under way; 0: none
    bool again = false, retry_due = false;
    std::uint64_t device = 0, inode = 0;
    std::chrono::milliseconds retry{0};
    std::map<std::string, File, std::less<>> files;  // by name without `.jsonl`
    std::set<std::string, std::less<>> compactions;  // names
  };
  using Directories = std::map<std::string, Directory, std::less<>>;  // by path
  using Place = Directories::value_type;

  /// Hears what is found. `known` facts are those of a listing just made.
  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void file_found(Place& place, const std::string& stem, File& file, const Facts& facts) = 0;
    virtual void file_rang(Place& place, const std::string& stem, File& file, const Facts* known) = 0;
    virtual void file_dropped(Place& place, const std::string& stem,
                              File& file) = 0;  // its directory is gone
    virtual void meta_rang(Place& place, std::string_view stem) = 0;
    virtual void compaction_rang(Place& place, const std::string& name, bool born) = 0;
    virtual void scanned() = 0;  // the first time that everything has been
  };

  Discovery(IoThread& disk, TimerQueue& later, FileProblems& health, const Options& options,
            Observer& keeper);
  void start(watch::Watcher& watcher);
  void ring(const watch::ChangeHint& ring);

  Directories& directories() { return directories_; }
  const Directories& directories() const { return directories_; }
  /// Null: no such file.
  File* find(std::string_view directory, std::string_view stem);
  void erase(const std::string& path);  // of a transcript that is no more
  std::size_t files() const { return files_; }
  bool starting() const { return starting_; }
  /// `/<path>` below the hall.
  static std::string_view below_hall(const Place& place);

 private:
  using Identity = std::pair<std::uint64_t, std::uint64_t>;  // device, inode
  struct Linked {
    std::string owner;             // the path that is the stream
    std::set<std::string> others;  // hard links to it: no streams
  };

  void arm(const Root& root);
  void arm_further(const Root& root, const std::string& watched);
  void arm_later(const Root& root);
  void arm_hall(const Root& root, TranscriptDir hall);
  void enter(const std::string& path, const Root& root, TranscriptDir hall, std::size_t depth,
             const Facts& facts);
  void leave(const std::string& path);
  void scan(Place& place);
  void next_scans();
  void apply(const Listing& listing, std::uint64_t scanned);
  void apply_entry(Place& place, const Entry& entry);
  void unreadable(Place& place, int error);
  void ring_path(const std::string& path);
  void ring_subtree(const std::string& path);
  void ring_directory(Place* parent, const std::string& path, std::string_view name);
  void file_new(Place& place, const std::string& name, const Facts& facts);
  bool is_linked_elsewhere(const std::string& path, const Facts& facts);
  const std::string* path_of(const Identity& identity, std::string& into) const;
  void check_scanned();

  IoThread& disk_;
  TimerQueue& later_;
  FileProblems& health_;
  const Options& options_;
  Observer& keeper_;
  watch::Watcher* watcher_ = nullptr;

  Directories directories_;
  std::map<Identity, std::string> visited_;  // directories: a loop of links ends here
  std::map<Identity, Linked> linked_;        // files with more than one link
  std::set<const Root*> arms_due_;           // roots that could not be looked at
  std::deque<std::string> to_scan_;
  std::size_t tasks_ = 0;
  std::uint64_t scans_ = 0;
  std::size_t files_ = 0;
  bool starting_ = true;
};

}  // namespace earshot::tail
