// `earshot tail`: follows live.
#include <unistd.h>

#include <algorithm>
#include <random>
#include <vector>

#include "cli/client.hpp"
#include "cli/commands.hpp"
#include "cli/human.hpp"
#include "cli/narrator.hpp"
#include "cli/trouble.hpp"

namespace earshot::cli {
namespace {

constexpr std::int64_t backoff_first_ms = 250;
constexpr std::int64_t backoff_max_ms = 10'000;
constexpr std::size_t snapshot_frames_max = 20'000;  // more sessions are not introduced
constexpr std::size_t snapshot_lines_max = 12;  // of sessions at rest no more are told than fit with these

// Half of it for certain, half by chance: a thousand clients must not come back at once.
std::int64_t jittered(std::int64_t ms) {
  static std::minstd_rand random(std::random_device{}());
  return ms / 2 + std::uniform_int_distribution<std::int64_t>(0, ms / 2)(random);
}

// Frames in, lines out.
class Follower {
 public:
  Follower(const TailOptions& options, bool pretty)
      : options_(options),
        pretty_(pretty),
        safe_json_(is_terminal(STDOUT_FILENO)),
        narrator_(look_of_stdout(options.colour), options.verbose) {}

  void begin() {
    introduced_ = false;
    snapshot_.clear();
  }

  bool take(std::string_view json) {
    const auto frame = parser_.parse(json);
    if (!frame) {
      complain("the daemon sent what is no JSON object: ignored");
      return true;
    }
    const std::string_view type = frame->text("type");
    if (type == "error")
      complain("the daemon says: " + for_stderr(frame->text("message")) + " (" +
               for_stderr(frame->text("code")) + ")");
    if (pretty_) {
      tell(*frame, type, json);
    } else {
      write_json(json);
    }
    const bool hopeless = type == "error" && !frame->flag("retry") && frame->text("id") == "cli";
    failed_ = failed_ || hopeless;
    return !hopeless && !out_.closed() && out_.error().empty();
  }

  bool failed() const { return failed_; }

  void flush() { out_.flush(); }
  const Output& output() const { return out_; }

 private:
  void write_json(std::string_view json) {
    if (safe_json_ || json.find('\n') != json.npos) {
      out_.write(terminal_json(json));
    } else {
      out_.write(json);
    }
    out_.write("\n");
  }

  void tell(const Fields& frame, std::string_view type, std::string_view json) {
    narrator_.set_columns(terminal_columns());
    if (type == "session") {
      narrator_.learn(frame);
      if (!introduced_ && options_.snapshot && snapshot_.size() < snapshot_frames_max) keep(frame, json);
      return;
    }
    if (type == "ready") return introduce();
    narrator_.tell(frame, out_.buffer());
    out_.spill();
  }

  struct Kept {
    std::string json;
    std::int64_t activity_ms;
    bool active;  // working or waiting
  };

  void keep(const Fields& frame, std::string_view json) {
    const std::string_view state = frame.object("status").text("state");
    snapshot_.push_back({std::string(json), parse_time(frame.text("last_activity")).value_or(0),
                         state == "working" || state == "waiting"});
  }

  // The snapshot's lines, once all names are known: the least recent first, as in a log. All that are active,
  // and those at rest that there is room for.
  void introduce() {
    if (introduced_) return;
    introduced_ = true;
    std::vector<Kept> kept = std::move(snapshot_);
    snapshot_.clear();
    std::stable_sort(kept.begin(), kept.end(),
                     [](const Kept& a, const Kept& b) { return a.activity_ms > b.activity_ms; });
    std::vector<const Kept*> shown;
    std::size_t left_out = 0;
    for (const Kept& each : kept) {
      if (each.active || shown.size() < snapshot_lines_max) {
        shown.push_back(&each);
      } else {
        ++left_out;
      }
    }
    for (auto each = shown.rbegin(); each != shown.rend(); ++each) {
      if (const auto frame = parser_.parse((*each)->json)) narrator_.tell(*frame, out_.buffer());
    }
    if (left_out > 0) out_.write("and " + std::to_string(left_out) + " more at rest: earshot ls\n");
    if (kept.empty() && options_.snapshot) out_.write("listening; no session is live\n");
  }

  const TailOptions& options_;  // the command's
  bool pretty_;
  bool safe_json_;
  bool introduced_ = false;
  bool failed_ = false;
  FrameParser parser_;
  Narrator narrator_;
  Output out_;
  std::vector<Kept> snapshot_;
};

}  // namespace

int tail_command(const TailOptions& options) {
  const bool pretty =
      options.format == Format::pretty || (options.format == Format::automatic && is_terminal(STDOUT_FILENO));
  Client client;
  Follower follower(options, pretty);
  // Names are learned from the snapshot, shown or not.
  const std::string subscribe = subscribe_message(options.filters, {.snapshot = options.snapshot || pretty});
  std::int64_t backoff_ms = backoff_first_ms;
  bool was_open = false, warned = false;
  while (true) {
    const auto found =
        find_daemon(options.daemon);  // again each time: a new daemon may have another address and token
    if (const auto* why = std::get_if<std::string>(&found)) {
      complain(for_stderr(*why));
      return options.daemon.connect.empty() ? exit_failed : exit_usage;
    }
    const DaemonAddress& address = std::get<DaemonAddress>(found);
    if (!address.warning.empty() && !warned) complain(for_stderr(address.warning));
    warned = true;
    bool is_open = false;
    Handlers handlers;
    handlers.on_open = [&] {
      if (was_open) complain("connected again; what happened meanwhile is not shown");
      is_open = was_open = true;
      follower.begin();
      client.send(subscribe);
    };
    handlers.on_message = [&](std::string_view json) { return follower.take(json); };
    handlers.on_quiet = [&] { follower.flush(); };
    const Outcome outcome = client.run(address.endpoint, address.token, handlers);
    follower.flush();
    if (!follower.output().error().empty()) {
      complain("cannot write: " + follower.output().error());
      return exit_failed;
    }
    if (outcome.ending == Ending::stopped) return follower.failed() ? exit_failed : exit_ok;
    if (!was_open || is_final(outcome)) {
      complain(explain(outcome, address));
      return exit_failed;
    }
    if (is_open) {
      backoff_ms = backoff_first_ms;
      complain("lost the daemon (" + for_stderr(outcome.text) + "); trying to come back");
    }
    if (!client.pause(jittered(backoff_ms))) return exit_ok;
    backoff_ms = std::min(backoff_ms * 2, backoff_max_ms);
  }
}

}  // namespace earshot::cli
