// `earshot replay`: the events of transcripts, without a daemon.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>

#include "agents/claude_code/reader.hpp"
#include "cli/commands.hpp"
#include "cli/event_formatter.hpp"
#include "cli/place.hpp"
#include "cli/replay_stats.hpp"
#include "core/transcript.hpp"
#include "redact/redactor.hpp"

namespace earshot::cli {
namespace {

constexpr std::size_t read_bytes =
    1 << 20;  // a piece; what a transcript keeps between pieces is its own affair

struct Options {
  const ReplayOptions& asked;  // the command's
  std::string host;
  std::uint64_t hash_key = 0;
  bool print = true;
  const TextFilter* filter = nullptr;  // null: secrets are shown
};

// Where events go: to stdout as JSON or as lines for people, to the statistics, or both.
class Printer : public EventSink {
 public:
  Printer(const Options& options, EventFormatter* formatter, ReplayStats* stats, Output& out)
      : options_(options),
        formatter_(formatter),
        stats_(stats),
        out_(out),
        safe_json_(is_terminal(STDOUT_FILENO)) {
    encode_.view = options.asked.view;
    encode_.filter = options.filter;
  }

  void begin(const Transcript& transcript, const Place& place) {
    transcript_ = &transcript;
    place_ = &place;
  }

  void on_event(const Event& event) override {
    if (stats_ != nullptr) stats_->count_event(event);
    if (!options_.print) return;
    const std::string& session = place_->session.empty() ? transcript_->recorded_session() : place_->session;
    const StreamAddress address{options_.host, place_->stream, session.empty() ? place_->stream : session};
    if (formatter_ == nullptr && !safe_json_) {
      append_event(out_.buffer(), event, address, encode_);
      out_.buffer() += '\n';
    } else {
      json_.clear();
      append_event(json_, event, address, encode_);
      if (formatter_ == nullptr) {
        out_.buffer() += to_display_json(json_) + "\n";
      } else if (const auto frame = parser_.parse(json_)) {
        formatter_->format(*frame, out_.buffer());
      }
    }
    out_.spill();
  }

 private:
  const Options& options_;
  EventFormatter* formatter_;  // null: JSON
  ReplayStats* stats_;         // null: none are wanted
  Output& out_;
  EncodeOptions encode_;
  bool safe_json_;
  const Transcript* transcript_ = nullptr;
  const Place* place_ = nullptr;
  FrameParser parser_;
  std::string json_;
};

// A file for as long as it is read.
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
  Replay(const Options& options, Printer& printer, ReplayStats* stats, const Output& out)
      : options_(options),
        printer_(printer),
        stats_(stats),
        out_(out),
        buffer_(new char[read_bytes + feed_padding]()) {}

  /// False when it could not be read to its end.
  bool file(const std::string& path) {
    Place place = place_of(path);
    if (!options_.asked.agent.empty()) place.own_agent = options_.asked.agent;
    if (!options_.asked.stream.empty()) place.stream = options_.asked.stream;
    Input input(path);
    Transcript transcript({.hash_key = options_.hash_key,
                           .own_agent = place.own_agent,
                           .reader = &claude_code::reader()});  // its state is not shown
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
  const Options& options_;
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

int replay_command(const ReplayOptions& asked) {
  Options options{asked, asked.host.empty() ? host_name() : asked.host, 0, !asked.stats || asked.events};
  if (!asked.state.empty()) {
    const auto key = read_prefix_key(asked.state);
    if (const auto* why = std::get_if<std::string>(&key)) {
      print_message(safe_text(*why));
      return exit_failed;
    }
    options.hash_key = std::get<std::uint64_t>(key);
  }
  const redact::Redactor redactor;
  if (asked.redact) options.filter = &redactor;
  const DisplayOptions display = stdout_display(asked.colour);
  Output out;
  ReplayStats stats;
  ReplayStats* const wanted_stats = asked.stats ? &stats : nullptr;
  std::optional<EventFormatter> formatter;
  if (asked.pretty) formatter.emplace(display, asked.verbose);
  Printer printer(options, formatter ? &*formatter : nullptr, wanted_stats, out);
  Replay replay(options, printer, wanted_stats, out);

  int exit_code = exit_ok;
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& path : asked.files) {
    const Walk walk = transcripts_at(path);
    for (const std::string& error : walk.errors) print_message(safe_text(error));
    if (!walk.errors.empty()) exit_code = exit_failed;
    if (walk.files.empty()) print_message(safe_text(path) + ": no transcripts there");
    for (const std::string& file : walk.files) {
      if (out.closed() || !out.error().empty()) break;
      if (!replay.file(file)) exit_code = exit_failed;
    }
  }
  stats.set_seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  if (asked.stats) out.write(asked.json ? stats.json() : stats.table(display));
  out.flush();
  if (out.error().empty()) return exit_code;
  print_message("cannot write: " + out.error());
  return exit_failed;
}

}  // namespace earshot::cli
