// Renders the systemd unit and the launchd property list for --install-service from the files in systemd/.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace earshot::service {

/// The files in systemd/ at build time (service_files.cpp.in).
extern const std::string_view unit_file;   // user/earshot.service
extern const std::string_view plist_file;  // launchd/dev.earshot.earshotd.plist

/// The command of the service, and the paths its sandbox must allow. All paths are absolute.
struct ServiceSpec {
  std::string program;
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  // name, value
  std::string home;
  std::string state;                  // directory, writable
  std::vector<std::string> writable;  // further directories
  std::vector<std::string> readable;  // paths that a private /tmp would hide
};

struct RenderedFile {
  std::string text;
  std::string error;  // not empty: a value that the format cannot hold; for the user
};

RenderedFile render_unit(const ServiceSpec& spec);
RenderedFile render_plist(const ServiceSpec& spec);

/// One argument of ExecStart=, quoted. systemd.service(5): `%` and `$` doubled, `\` and `"` escaped.
std::string quote_argument(std::string_view argument);
/// One path of ReadWritePaths= and similar settings, quoted; `$` has no meaning there.
std::string quote_path(std::string_view path);

/// Appends a last line with a checksum of `text`; `open` and `close` make that line a comment.
std::string with_checksum(std::string text, std::string_view open, std::string_view close);
/// `text` ends with a checksum that matches: --install-service wrote it and no one edited it.
bool is_unmodified(std::string_view text);

}  // namespace earshot::service
