// What a service manager is given to read: a systemd unit or a launchd property list, from the files in
// systemd/.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace earshot::service {

/// The files in systemd/, as they were when this program was built (service_files.cpp.in).
extern const std::string_view unit_file;   // user/earshot.service
extern const std::string_view plist_file;  // launchd/dev.earshot.earshotd.plist

/// What is to run, and where it must be let in. All paths are absolute.
struct Job {
  std::string program;
  std::vector<std::string> words;                                // its options
  std::vector<std::pair<std::string, std::string>> environment;  // name → value
  std::string home;
  std::string state;                      // directory, writable
  std::vector<std::string> writable;      // further directories
  std::vector<std::string> must_be_seen;  // what it reads: a private /tmp would hide some of it
};

struct Text {
  std::string text;
  std::string error;  // not empty: for people; a path that the format cannot carry
};

Text unit_text(const Job& job);
Text plist_text(const Job& job);

/// One word of ExecStart=, in quotes. systemd.service(5): `%` and `$` doubled, `\` and `"` escaped.
std::string exec_word(std::string_view word);
/// One path of ReadWritePaths= and its like, in quotes: `$` has no meaning there.
std::string path_word(std::string_view path);

/// The text with a last line that says who wrote it and what it was; `open` and `close` make that line a
/// comment.
std::string sealed(std::string text, std::string_view open, std::string_view close);
/// Sealed, and not changed since.
bool is_untouched(std::string_view text);

}  // namespace earshot::service
