// The configuration file and the command line: consistent options or an error text. Input: the file, a NUL,
// then the arguments, one per line. Arguments cannot name other files.
#include <sys/mman.h>
#include <unistd.h>

#include "base/quantities.hpp"
#include "config/options.hpp"
#include "fuzz.hpp"
#include "serve/limits.hpp"

namespace {

using namespace earshot;
using fuzz::require;

/// An anonymous file.
class File {
 public:
  File() : descriptor_(::memfd_create("earshot.toml", MFD_CLOEXEC)) {
    fuzz::require(descriptor_ >= 0, "memfd_create succeeds");
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::string& path() const { return path_; }
  void write(std::string_view text) {
    const bool written = ::ftruncate(descriptor_, 0) == 0 && ::pwrite(descriptor_, text.data(), text.size(),
                                                                      0) == static_cast<ssize_t>(text.size());
    fuzz::require(written, "the file is written");
  }

 private:
  int descriptor_;
  std::string path_ = "/proc/self/fd/" + std::to_string(descriptor_);
};

void require_options(const config::Options& options) {
  require(!options.host.empty() && !options.state.empty() && !options.socket.empty(), "names are set");
  require(options.recent.count() >= 0, "a duration is not negative");
  require(options.tls_cert.empty() == options.tls_key.empty(), "a certificate has its key");
  require(options.listen.address().is_loopback() || !options.tls_cert.empty(),
          "listening beyond loopback requires TLS");
  for (const serve::LimitRule& rule : serve::limit_rules()) {
    const std::uint64_t value = serve::limit_value(options.limits, rule);
    require(value >= rule.min && value <= rule.max, "a limit is within its bounds");
  }
  require(options.limits.silence > options.limits.ping, "a client is pinged before its timeout");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static File file;
  fuzz::Input input(data, size);
  file.write(input.until('\0'));
  std::vector<std::string> words;
  while (!input.done()) {
    const std::string_view word = input.until('\n');
    if (!word.starts_with("--config")) words.emplace_back(word);
  }
  words.insert(words.begin(), {"--config", file.path()});
  const auto environment = [](std::string_view name) -> std::optional<std::string> {
    if (name == "HOME") return "/home/u";
    return std::nullopt;
  };

  const config::ParseResult parsed = config::parse_options(words, environment, "1.2.3");
  if (parsed.options) {
    require(parsed.err.empty() && parsed.exit_code == 0, "options exclude an error");
    require_options(*parsed.options);
  } else if (parsed.exit_code == 0) {
    require(!parsed.out.empty(), "exit code 0 has an output");
  } else {
    require(parsed.exit_code == 2, "invalid input has exit code 2");
    require(parsed.err.starts_with("earshotd: ") && parsed.err.ends_with("\n"), "an error has a text");
  }
  for (const std::string& word : words)
    if (const auto duration = parse_duration(word))
      require(duration->count() >= 0, "a duration is not negative");
  return 0;
}
