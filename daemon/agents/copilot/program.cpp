#include "agents/copilot/program.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "agents/content.hpp"
#include "agents/copilot/records.hpp"
#include "agents/stream_name.hpp"
#include "base/text.hpp"
#include "core/nested_json.hpp"

namespace earshot::copilot {
namespace {

class Format final : public RecordFormat {
 public:
  std::string_view program() const override { return program_name; }
  const Dialect* detect(const Value& json) const override {
    static constexpr Dialect dialect{dialect_name};
    return is_record(json) ? &dialect : nullptr;
  }
  std::unique_ptr<RecordReader> make_reader(bool) const override { return copilot::make_reader(); }
};

/// A scalar on the rest of one line of YAML: plain, or in quotes. Empty for one that goes on in the next
/// line, and for every other form.
std::string yaml_scalar(std::string_view text, bool continues) {
  text = trim(text);
  if (text.empty() || continues) return {};
  if (text.front() == '"') {
    NestedJson json;
    return std::string(json.parse("{\"title\":" + std::string(text) + "}").value.text_of("title"));
  }
  if (text.front() == '\'') {
    std::string title;
    for (std::size_t at = 1; at < text.size(); ++at) {
      if (text[at] != '\'')
        title += text[at];
      else if (at + 1 == text.size())
        return title;
      else if (text[++at] == '\'')
        title += '\'';
      else
        return {};
    }
    return {};
  }
  constexpr std::string_view indicators = "|>&*!%@`[]{},?#-";
  if (indicators.find(text.front()) != indicators.npos || text == "~" || text == "null") return {};
  return std::string(trim(text.substr(0, text.find(" #"))));
}

// `<root>/session-state/<id>/events.jsonl`; older versions `<root>/session-state/<id>.jsonl`
class Copilot final : public AgentProgram, public TitleFiles, public Writers, public Requests {
 public:
  std::string_view program() const override { return program_name; }
  const RecordFormat& format() const override {
    static const Format format;
    return format;
  }
  const TitleFiles* title_files() const override { return this; }
  const Writers& writers() const override { return *this; }
  const Requests& requests() const override { return *this; }

  std::vector<std::string> default_roots(const Environment& environment) const override {
    const auto is_blank = [](const std::string& text) { return text.find_first_not_of(" \t") == text.npos; };
    if (const auto directory = environment("COPILOT_HOME"); directory && !is_blank(*directory))
      return {*directory};
    if (const auto home = environment("HOME"); home && !home->empty()) return {*home + "/.copilot"};
    return {};
  }

  std::span<const std::string_view> transcript_directories() const override {
    static constexpr std::string_view directories[] = {"session-state"};
    return directories;
  }
  bool is_root_entry(std::string_view path) const override { return path == "session-state"; }
  FileKind classify(std::string_view directory, std::string_view name) const override {
    const bool is_transcript = directory.empty()
                                   ? name.ends_with(transcript_suffix) && name != transcript_suffix
                                   : name == "events.jsonl" && directory.rfind('/') == 0;
    return is_transcript ? FileKind::transcript : FileKind::other;
  }
  bool may_contain_transcripts(std::size_t depth, std::string_view) const override { return depth == 0; }
  // Of a file elsewhere only the records name the session.
  StreamIdentity identify(std::string_view below) const override {
    StreamIdentity identity;
    identity.is_likely = below.starts_with('/');
    if (identity.is_likely) below.remove_prefix(below.rfind('/') + 1);
    const std::string_view session = below.substr(0, below.find('/'));
    identity.session = percent_encode(session);
    if (session.size() != below.size()) identity.directory = identity.session;
    return identity;
  }

  // `session-state/<id>/workspace.yaml`: `name` is the title.
  std::string_view title_path() const override { return "session-state"; }
  std::string title_file(std::string_view transcript) const override {
    constexpr std::string_view name = "/events.jsonl";
    if (!transcript.ends_with(name)) return {};
    return std::string(transcript.substr(0, transcript.size() - name.size())) + "/workspace.yaml";
  }
  std::vector<SessionTitle> parse_titles(std::string_view text) const override {
    constexpr std::string_view key = "name:";
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      if (!line.starts_with(key)) continue;
      std::string title = yaml_scalar(line.substr(key.size()), text.starts_with(' '));
      return title.empty() ? std::vector<SessionTitle>() : std::vector<SessionTitle>{{{}, std::move(title)}};
    }
    return {};
  }

  bool names_writers() const override { return true; }
  // `inuse.<pid>.lock`; it may stay behind.
  std::int64_t writer_of(std::string_view name) const override {
    constexpr std::string_view prefix = "inuse.", suffix = ".lock";
    if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() < prefix.size() + suffix.size())
      return 0;
    name.remove_prefix(prefix.size());
    name.remove_suffix(suffix.size());
    std::int64_t pid = 0;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
    return failed == std::errc() && end == name.data() + name.size() && pid > 0 ? pid : 0;
  }
  std::string_view prompt_reason(std::string_view tool) const override {
    return tool == "ask_user" ? "question" : tool == "exit_plan_mode" ? "plan" : "";
  }
  std::string describe_prompt(std::string_view tool, std::string_view input) const override {
    return describe_call(tool, input, prompt_reason(tool));
  }

  std::span<const std::string_view> resume_command() const override {
    static constexpr std::string_view words[] = {"copilot", "--resume"};
    return words;
  }
  bool matches_process(std::span<const std::string> arguments) const override {
    const auto is_copilot = [](std::string_view path) {
      return path.substr(path.rfind('/') + 1) == "copilot" ||
             (path.ends_with(".js") && path.find("@github/copilot") != path.npos);
    };
    return std::any_of(arguments.begin(),
                       arguments.begin() + std::min<std::ptrdiff_t>(2, std::ssize(arguments)), is_copilot);
  }
  bool is_headless(std::span<const std::string> arguments) const override {
    return std::any_of(arguments.begin(), arguments.end(), [](std::string_view each) {
      return each == "-p" || each == "--prompt" || each.starts_with("--prompt=");
    });
  }
};

}  // namespace

const AgentProgram& program() {
  static const Copilot copilot;
  return copilot;
}

}  // namespace earshot::copilot
