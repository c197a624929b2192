// `earshot replay`: the events of transcript files, without a daemon.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "agents/claude_code/reader.hpp"
#include "cli/event_formatter.hpp"
#include "cli/options.hpp"
#include "cli/place.hpp"
#include "cli/replay_stats.hpp"
#include "core/event_json.hpp"
#include "core/transcript.hpp"
#include "redact/redactor.hpp"

namespace earshot::cli {
namespace {

constexpr std::size_t read_bytes = 1 << 20;  // per read

struct Settings {
  const ReplayOptions& options;
  std::string host;
  std::uint64_t hash_key = 0;
  bool print = true;
  const TextFilter* filter = nullptr;  // null: secrets are not redacted
};

// Receives the events: prints them as JSON or as readable lines, counts them for the statistics, or both.
class Printer : public EventSink {
 public:
  Printer(const Settings& settings, EventFormatter* formatter, ReplayStats* stats, Output& out)
      : settings_(settings),
        formatter_(formatter),
        stats_(stats),
        out_(out),
        safe_json_(is_terminal(STDOUT_FILENO)) {
    encode_.view = settings.options.view;
    encode_.filter = settings.filter;
  }

  void begin(const Transcript& transcript, const Place& place) {
    transcript_ = &transcript;
    place_ = &place;
  }

  void on_event(const Event& event) override {
    if (stats_ != nullptr) stats_->count_event(event);
    if (!settings_.print) return;
    const std::string& session = place_->session.empty() ? transcript_->recorded_session() : place_->session;
    const StreamAddress address{settings_.host, place_->stream, session.empty() ? place_->stream : session};
    if (formatter_ == nullptr && !safe_json_) {
      append_event(out_.buffer(), event, address, encode_);
      out_.buffer() += '\n';
    } else {
      json_.clear();
      append_event(json_, event, address, encode_);
      if (formatter_ == nullptr) {
        out_.buffer() += json_line(json_, true);
      } else if (const auto frame = parser_.parse(json_)) {
        formatter_->format(*frame, out_.buffer());
      }
    }
    out_.flush_if_full();
  }

 private:
  const Settings& settings_;
  EventFormatter* formatter_;  // null: JSON
  ReplayStats* stats_;         // null: not requested
  Output& out_;
  EncodeOptions encode_;
  bool safe_json_;
  const Transcript* transcript_ = nullptr;
  const Place* place_ = nullptr;
  FrameParser parser_;
  std::string json_;
};

// A file that is read to its end.
class Input {
 public:
  explicit Input(const std::string& path) : is_stdin_(path == "-") {
    descriptor_ = is_stdin_ ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor_ < 0) error_ = std::strerror(errno);
  }
  ~Input() {
    if (descriptor_ >= 0 && !is_stdin_) ::close(descriptor_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  /// 0 at the end or on an error.
  std::size_t read(char* bytes, std::size_t size) {
    while (error_.empty()) {
      const ssize_t got = ::read(descriptor_, bytes, size);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) error_ = std::strerror(errno);
    }
    return 0;
  }
  const std::string& error() const { return error_; }

 private:
  bool is_stdin_;
  int descriptor_ = -1;
  std::string error_;
};

class Replay {
 public:
  Replay(const Settings& settings, Printer& printer, ReplayStats* stats, const Output& out)
      : settings_(settings),
        printer_(printer),
        stats_(stats),
        out_(out),
        buffer_(new char[read_bytes + feed_padding]()) {}

  /// Returns false if the file could not be read to its end.
  bool file(const std::string& path) {
    Place place = place_of(path);
    if (!settings_.options.agent.empty()) place.own_agent = settings_.options.agent;
    if (!settings_.options.stream.empty()) place.stream = settings_.options.stream;
    Input input(path);
    Transcript transcript({.hash_key = settings_.hash_key,
                           .own_agent = place.own_agent,
                           .reader = &claude_code::reader()});  // no session frames are made from its state
    printer_.begin(transcript, place);
    while (const std::size_t size = input.read(buffer_.get(), read_bytes)) {
      transcript.feed({buffer_.get(), size}, workspace_, printer_);
      if (out_.closed() || !out_.error().empty()) return true;
    }
    if (!input.error().empty()) {
      print_message(safe_text(path) + ": " + input.error());
      return false;
    }
    if (stats_ != nullptr) stats_->add_file(transcript);
    return true;
  }

 private:
  const Settings& settings_;
  Printer& printer_;
  ReplayStats* stats_;
  const Output& out_;
  Workspace workspace_;
  std::unique_ptr<char[]> buffer_;
};

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != 0 ? name : "localhost";
}

}  // namespace

int replay_command(const ReplayOptions& options) {
  Settings settings{options, options.host.empty() ? host_name() : options.host, 0,
                    !options.stats || options.events};
  if (!options.state.empty()) {
    const auto key = read_prefix_key(options.state);
    if (const auto* error = std::get_if<std::string>(&key)) {
      print_message(safe_text(*error));
      return exit_failed;
    }
    settings.hash_key = std::get<std::uint64_t>(key);
  }
  const redact::Redactor redactor;
  if (options.redact) settings.filter = &redactor;
  const DisplayOptions display = stdout_display(options.colour);
  Output out;
  ReplayStats stats;
  ReplayStats* const stats_if_requested = options.stats ? &stats : nullptr;
  std::optional<EventFormatter> formatter;
  if (options.pretty) formatter.emplace(display, options.verbose);
  Printer printer(settings, formatter ? &*formatter : nullptr, stats_if_requested, out);
  Replay replay(settings, printer, stats_if_requested, out);

  int exit_code = exit_ok;
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& path : options.files) {
    const TranscriptSearch search = transcripts_at(path);
    for (const std::string& error : search.errors) print_message(safe_text(error));
    if (!search.errors.empty()) exit_code = exit_failed;
    if (search.files.empty()) print_message(safe_text(path) + ": no transcripts found");
    for (const std::string& file : search.files) {
      if (out.closed() || !out.error().empty()) break;
      if (!replay.file(file)) exit_code = exit_failed;
    }
  }
  stats.set_seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  if (options.stats) out.write(options.json ? stats.json() : stats.table(display));
  return std::max(exit_code, finish(out));
}

Command add_replay(CLI::App& app) {
  CLI::App* command = app.add_subcommand("replay", "print the events of transcripts; needs no daemon");
  const auto options = std::make_shared<ReplayOptions>();
  command
      ->add_option("FILE", options->files,
                   "transcripts; directories are searched for transcripts; - is stdin")
      ->type_name("FILE")
      ->required();
  command->add_flag("--pretty", options->pretty, "print readable lines instead of JSON");
  command->add_flag("-v,--verbose", options->verbose,
                    "with --pretty: also thinking, token counts, messages of subagents");
  const std::map<std::string, View> views{{"full", View::full}, {"meta", View::meta}};
  command->add_option("--view", options->view, "full (default), or meta: no text, inputs or outputs")
      ->type_name("full|meta")
      ->transform(CLI::CheckedTransformer(views).description(""));
  command->add_flag_callback(
      "--no-redact", [options] { options->redact = false; }, "do not redact secrets");
  command->add_flag("--stats", options->stats, "print statistics instead of events");
  command->add_flag("--events", options->events, "with --stats: print the events, too");
  command->add_flag("--json", options->json, "with --stats: print one JSON object");
  const auto add = [&](const char* name, std::string& value, const char* description, const char* type) {
    command->add_option(name, value, description)->type_name(type);
  };
  add("--agent", options->agent, "id of the subagent (default: from the name agent-<ID>.jsonl)", "ID");
  add("--stream", options->stream, "name of the stream (default: from the path)", "NAME");
  add("--host", options->host, "name of the host (default: this host)", "NAME");
  add("--state", options->state, "the daemon's state directory, to print the same cursors as the daemon",
      "DIR");
  add_colour(*command, options->colour);
  command->footer(
      "Examples:\n  earshot replay session.jsonl | jq -r .type | sort | uniq -c\n"
      "  earshot replay --pretty session.jsonl | less -R\n  zcat old.jsonl.gz | earshot replay -\n"
      "  earshot replay --stats ~/.claude/projects\n\nExit codes: 0 success; 1 a file could not be read; 2 "
      "usage error.");
  return {command, [options] {
            if ((options->events || options->json) && !options->stats)
              return usage_error("--events and --json require --stats");
            if (options->verbose && !options->pretty) return usage_error("--verbose requires --pretty");
            return replay_command(*options);
          }};
}

}  // namespace earshot::cli
