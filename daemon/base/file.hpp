// Small files, listings and private files. Built on base/system.hpp.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system.hpp"

namespace earshot {

/// The content of a small regular file, or why there is none.
struct SmallFile {
  int error = 0;  // of errno; EINVAL: not a regular file; EFBIG: longer than allowed
  std::string text;
  FileStat stat;  // of the file that was read

  bool ok() const { return error == 0; }
  bool is_missing() const { return error == ENOENT || error == ENOTDIR; }
  /// For users: "Permission denied", "not a regular file", …
  std::string error_text() const;
};

/// Reads to the end of the file, whatever size it reports (files of /proc report 0).
SmallFile read_small_file(const std::string& path, std::size_t bytes_max,
                          Symlinks symlinks = Symlinks::no_follow);

/// Writes all of it, after short writes and interruptions too. On failure false, and errno is set.
bool write_all(int fd, std::string_view bytes);

struct DirectoryEntry {
  std::string name;
  FileStat stat;  // with an error if the entry exists but cannot be examined
};
struct DirectoryListing {
  std::string path;
  FileStat stat;  // its error is why there are no entries
  std::vector<DirectoryEntry> entries;
};
/// Which links to directories a listing follows. Links to files are never followed.
struct ListingSymlinks {
  bool self = false;     // the listed path may be a link
  bool entries = false;  // its entries may be links; the target's attributes are returned
};
/// Lists subdirectories and the other entries whose names `is_wanted` accepts. Unwanted entries are not
/// examined, unless `visit_all` is set: it is called for each entry, with the attributes of the link if the
/// entry is one. Its name is followed by a NUL.
DirectoryListing list_directory(
    const std::string& path, ListingSymlinks symlinks,
    const std::function<bool(const std::string& name)>& is_wanted,
    const std::function<void(std::string_view name, const FileStat& stat)>& visit_all = {});

/// Creates the directory with mode 0700, and its parents. Returns an error for users unless the directory
/// exists, belongs to this user and is not writable by others. Empty: it is usable.
std::string make_private_directory(const std::string& path);

/// Whether write_private_file() leaves an existing file as it is.
enum class IfExists { keep, replace };

/// Writes a file with mode 0600: readers find the old content or all of the new content, also after a crash.
/// Returns an error for users; empty: done.
std::string write_private_file(const std::string& path, std::string_view content,
                               IfExists if_exists = IfExists::replace);

/// Deletes what write_private_file() leaves in `directory` when its process is killed. No other process may
/// be writing there.
void remove_unfinished_files(const std::string& directory);

/// The content of a file that holds a secret.
struct PrivateFile {
  std::optional<std::string> text;  // absent without an error: there is no such file
  std::string error;                // for users: the problem and what to do
};
/// Refuses links, files of other users and files that others can read: the secret may be known already. Reads
/// at most `bytes_max` bytes.
PrivateFile read_private_file(const std::string& path, std::size_t bytes_max);

/// An exclusive advisory lock on a file; it ends when `fd` is closed.
struct FileLock {
  Fd fd;               // empty: not locked
  int error = 0;       // of errno, then; EWOULDBLOCK: another process holds the lock
  std::string holder;  // the process that holds it, if it wrote its number into the file
};
/// Locks the file, which is created with mode 0600 if it is missing, and writes this process's number into
/// it.
FileLock lock_file(const std::string& path);

}  // namespace earshot
