#include "agents/pi/program.hpp"

#include <algorithm>

#include "agents/pi/records.hpp"
#include "agents/stream_name.hpp"

namespace earshot::pi {
namespace {

class Format final : public RecordFormat {
 public:
  std::string_view program() const override { return program_name; }
  const Dialect* detect(const Value& json) const override {
    static constexpr Dialect dialect{dialect_name};
    return is_header(json) ? &dialect : nullptr;
  }
  std::unique_ptr<RecordReader> make_reader(bool) const override { return pi::make_reader(); }
};

// `<root>/sessions/--home-ada-lamp--/<time>_<id>.jsonl`
class Pi final : public AgentProgram {
 public:
  std::string_view program() const override { return program_name; }
  const RecordFormat& format() const override {
    static const Format format;
    return format;
  }

  std::vector<std::string> default_roots(const Environment& environment) const override {
    if (const auto directory = environment("PI_CODING_AGENT_DIR"); directory && !directory->empty())
      return {*directory};
    if (const auto home = environment("HOME"); home && !home->empty()) return {*home + "/.pi/agent"};
    return {};
  }

  bool is_root_entry(std::string_view path) const override {
    constexpr std::string_view prefix = "sessions/--";
    return path.starts_with(prefix) && path.ends_with("--") && path.size() > prefix.size() + 2;
  }
  std::string_view root_name(std::string_view directory) const override {
    return directory.ends_with("/.pi/agent") ? "pi" : "";
  }

  std::span<const std::string_view> transcript_directories() const override {
    static constexpr std::string_view directories[] = {"sessions"};
    return directories;
  }
  StreamIdentity identify(std::string_view below) const override {
    StreamIdentity identity;
    identity.is_likely = below.starts_with('/');  // elsewhere: the header names the session
    identity.session = percent_encode(session_of(below.substr(below.rfind('/') + 1)));
    if (const auto slash = below.find('/'); slash != below.npos && !identity.is_likely)
      identity.directory = percent_encode(below.substr(0, slash));
    return identity;
  }

  std::span<const std::string_view> resume_command() const override {
    static constexpr std::string_view words[] = {"pi", "--session"};
    return words;
  }
  bool matches_process(std::span<const std::string> arguments) const override {
    const auto is_pi = [](std::string_view path) {
      return path.substr(path.rfind('/') + 1) == "pi" ||
             (path.ends_with("/cli.js") && path.find("pi-coding-agent") != path.npos);
    };
    return std::any_of(arguments.begin(),
                       arguments.begin() + std::min<std::ptrdiff_t>(2, std::ssize(arguments)), is_pi);
  }
};

}  // namespace

const AgentProgram& program() {
  static const Pi pi;
  return pi;
}

}  // namespace earshot::pi
