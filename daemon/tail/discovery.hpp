// Finds the directories and transcripts below the roots. Each directory is watched, then scanned; a change
// hint starts another scan.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agents/roots.hpp"
#include "base/file.hpp"
#include "tail/followed_file.hpp"
#include "tail/io_thread.hpp"
#include "tail/tail.hpp"
#include "watch/watcher.hpp"

namespace earshot::tail {

class Discovery {
 public:
  static constexpr std::size_t depth_max = 16;       // below a transcript directory; deeper ones are ignored
  static constexpr std::size_t scans_per_task = 64;  // directories listed in one task of the disk thread
  static constexpr std::size_t copies_max = 64;      // at a time; more are streams at once
  static constexpr std::size_t files_max = 1 << 20;  // more are not followed; reported as a problem
  static constexpr std::size_t directories_max = 1 << 18;  // likewise
  static constexpr std::size_t tasks_max = 4;              // at a time
  static constexpr std::size_t applications_max = 256;     // listings that wait; then no task is started

  /// A known transcript. Small while it is cold: there may be a hundred thousand of them.
  struct File {
    std::uint64_t inode = 0;  // when it was found
    std::uint64_t size = 0;   // while cold: at its last examination; unknown_bytes: compressed since before
    std::int64_t modified_ms = 0;
    std::shared_ptr<FollowedFile> followed;  // null: cold
  };
  using Files = std::map<std::string, File, std::less<>>;
  struct DirectoryState {
    const Root* root = nullptr;
    std::uint8_t transcript_directory = 0;  // index into the program's transcript_directories()
    std::uint16_t depth = 0;                // 0: the transcript directory itself
    std::uint64_t scan = 0;                 // number of the scan in progress; 0: none
    bool scan_queued = false, scan_again = false, retry_scheduled = false;
    bool is_left = false;  // it was removed: its files are dropped, a part in each turn
    std::uint64_t device = 0, inode = 0;
    std::chrono::milliseconds retry_delay{0};
    Files files;                                            // by stem
    std::set<std::string, std::less<>> compaction_markers;  // names
  };
  using Directories = std::map<std::string, DirectoryState, std::less<>>;  // by path
  using DirectoryNode = Directories::value_type;

  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void on_file_found(DirectoryNode& directory, const std::string& stem, File& file,
                               const FileStat& stat) = 0;
    /// `listed`: its attributes in a listing that was just made; null: unknown.
    virtual void on_file_hint(DirectoryNode& directory, const std::string& stem, File& file,
                              const FileStat* listed) = 0;
    /// A transcript may have another name now, where its file has these attributes, or a copy of it. True:
    /// move() was called; false: it is another stream there.
    virtual bool on_file_moved(DirectoryNode& from, const std::string& from_stem, DirectoryNode& to,
                               const std::string& to_stem, const FileStat& stat, bool is_copy) = 0;
    /// Its directory was removed: erase the file when the rest of it was delivered and it was not found under
    /// another name for a while.
    virtual void on_file_dropped(DirectoryNode& directory, const std::string& stem, File& file) = 0;
    virtual void on_meta_hint(DirectoryNode& directory, std::string_view stem) = 0;
    virtual void on_compaction_hint(DirectoryNode& directory, const std::string& name, bool is_new) = 0;
    /// Everything was scanned once.
    virtual void on_scanned() = 0;
  };

  Discovery(IoThread& disk, TimerQueue& timers, FileProblems& problems, const Options& options,
            Observer& observer);
  void start(watch::Watcher& watcher);
  void on_change(const watch::ChangeHint& hint);

  Directories& directories() { return directories_; }
  const Directories& directories() const { return directories_; }
  /// Null: no such file.
  File* find(std::string_view directory, std::string_view stem);
  struct KnownFile {
    DirectoryNode* directory;
    Files::value_type* file;
    auto operator<=>(const KnownFile&) const = default;
  };
  /// Those whose paths name the session, by path; none for an empty name.
  std::vector<KnownFile> files_of_session(std::string_view session) const;
  /// Removes a transcript that does not exist any more.
  void erase(const std::string& path);
  /// Gives a transcript another name.
  File& move(DirectoryNode& from, const std::string& from_stem, DirectoryNode& to, const std::string& to_stem,
             std::uint64_t inode);
  /// The transcript is another file now.
  void set_inode(const std::string& directory, const std::string& stem, std::uint64_t inode);
  std::size_t files() const;
  std::size_t files_of(const Root& root) const;
  bool is_starting() const { return is_starting_; }
  bool is_listing() const { return tasks_ > 0 || !applications_.empty(); }

  /// Path below the transcript directory: empty, or with a leading slash.
  static std::string_view path_below(const DirectoryNode& directory);
  /// Returns the path of a file in it, without a leading slash.
  static std::string path_below(const DirectoryNode& directory, std::string_view stem);
  static std::string transcript_path(const DirectoryNode& directory, std::string_view stem) {
    return directory.first + '/' + std::string(stem) + std::string(transcript_suffix);
  }
  /// True for a root whose files are transcripts themselves.
  static bool is_root(const DirectoryNode& directory) {
    return directory.first.size() == directory.second.root->path.size();
  }
  /// What its path says.
  static StreamIdentity identify(const DirectoryNode& directory, std::string_view stem);

 private:
  using FileId = std::pair<std::uint64_t, std::uint64_t>;  // device, inode
  struct HashOfId {
    std::size_t operator()(const FileId& id) const { return id.first * 0x9e3779b97f4a7c15u ^ id.second; }
  };
  /// A listing of which a part was applied.
  struct Application {
    DirectoryListing listing;  // sorted by name
    std::uint64_t scan = 0;
    bool has_begun = false;
    std::vector<std::string> missing;      // stems of known files that are not listed
    std::size_t checked = 0, applied = 0;  // of `missing`; of the entries
    int error = 0;                         // of errno, of an entry
  };
  struct ScanTask;
  using Scans = std::vector<std::pair<DirectoryListing, std::uint64_t>>;

  void watch_root(const Root& root);
  void continue_watching_root(const Root& root, const std::string& watched);
  void retry_root(const Root& root);
  void enter_transcript_directory(const Root& root, std::size_t index);
  void enter_transcript_directory(const Root& root, const std::string& path);
  void enter(const std::string& path, const Root& root, std::size_t index, std::size_t depth,
             const FileStat& stat);
  bool is_entered_elsewhere(const std::string& path, const FileId& id);
  void leave(const std::string& path);
  void drop_some();
  void scan(DirectoryNode& directory);
  void start_scans();
  std::vector<ScanTask> next_scan_tasks();
  void apply_some();
  bool apply_part(Application& application, std::size_t& files);
  bool begin(Application& application);
  void apply_entry(DirectoryNode& directory, const DirectoryEntry& entry);
  void on_unreadable(DirectoryNode& directory, int error);
  void check_path(const std::string& path);
  void check_subtree(const std::string& path);
  void check_entry(DirectoryNode& directory, const std::string& path, const std::string& name);
  void check_subdirectory(DirectoryNode& parent, const std::string& path, std::string_view name);
  void add_file(DirectoryNode& directory, const std::string& name, const FileStat& stat);
  bool is_linked_elsewhere(const std::string& path, const FileStat& stat);
  bool is_moved(DirectoryNode& directory, const std::string& path, const FileStat& stat);
  void add_to_session(DirectoryNode& directory, Files::value_type& file);
  void remove_from_session(DirectoryNode& directory, Files::value_type& file);
  void check_links(DirectoryNode& directory, Files::value_type& file, const FileStat* listed);
  void remember(DirectoryNode& directory, Files::value_type& file);
  void forget(const DirectoryNode& directory, const Files::value_type& file);
  void forget_other_name(const std::string& path);
  void check_scanned();

  IoThread& disk_;
  TimerQueue& timers_;
  FileProblems& problems_;
  const Options& options_;
  Observer& observer_;
  watch::Watcher* watcher_ = nullptr;
  watch::DirectoryLister lister_;

  Directories directories_;
  std::map<FileId, std::string> entered_;  // directories: detects loops of links
  using FilesById = std::unordered_map<FileId, KnownFile, HashOfId>;
  std::optional<FilesById> files_by_id_;  // all of them; made when the first file with several names is found
  struct SessionFile {
    std::size_t session;  // the hash of its name
    KnownFile file;
    auto operator<=>(const SessionFile&) const = default;
  };
  std::vector<SessionFile> files_by_session_;                      // all of them; sorted after the start
  std::map<FileId, std::set<std::string>> other_names_;            // hard links of these files: no streams
  std::map<std::string, FileId, std::less<>> ids_of_other_names_;  // the same, by path
  std::set<const Root*> root_retries_;                             // scheduled
  std::deque<std::string> scan_queue_;
  std::deque<Application> applications_;
  std::set<std::string> missing_;  // names that were missing since those listings may have been made
  std::deque<std::pair<std::string, std::string>>
      left_;  // directories; the stem of the last file that was dropped
  std::size_t tasks_ = 0;
  std::uint64_t scans_ = 0;
  std::map<const Root*, std::size_t> files_;         // their number
  std::map<std::string, bool, std::less<>> copies_;  // unknown files by path; true: it has waited
  bool is_starting_ = true;
};

}  // namespace earshot::tail
