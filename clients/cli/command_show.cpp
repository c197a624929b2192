// `earshot show`: what one session did, from its beginning.
#include <algorithm>
#include <vector>

#include "cli/commands.hpp"
#include "cli/name_resolver.hpp"
#include "cli/style.hpp"
#include "cli/timeline.hpp"
#include "cli/transcript_view.hpp"
#include "common/client.hpp"
#include "common/cursors.hpp"

namespace earshot::cli {
namespace {

constexpr const char* find_id = "find";
constexpr const char* find_all_id = "find-all";  // those that are not live, too
constexpr const char* show_id = "show";

constexpr const char* without_daemon =
    "  Without a daemon a transcript is told by:  earshot replay FILE --pretty";

// The conversation with the daemon: which session it is, then all its events.
class Reader {
 public:
  explicit Reader(const ShowOptions& options) : options_(options), is_last_(options.session == "last") {
    filters_ = options.filters;
    if (!is_last_) filters_.session = {options.session};
  }

  std::string first_request() const {
    // The last one is live, mostly: looking at all sessions reads all transcripts.
    return subscribe_request(filters_,
                             {.id = is_last_ ? find_id : find_all_id, .all = !is_last_, .state = true});
  }
  std::vector<std::string> take_requests() { return std::exchange(requests_, {}); }

  bool take(std::string_view json) {
    const auto frame = parser_.parse(json);
    if (!frame) return true;
    const std::string_view type = frame->text("type"), id = frame->text("id");
    if (type == "error") return take_error(*frame);
    if (chosen_.empty()) {
      if (type == "session") candidates_.add(*frame, json);
      return type != "ready" || choose(std::string(id));
    }
    if (type == "ready" && id == show_id) {
      reading_ = true;
      complete_ = seen_.empty();
    }
    const bool ours = frame->text("session") == session_;
    if (reading_ && ours && !frame->text("cursor").empty() && !timeline_.add(*frame, json)) {
      print_message("the session is too long: its last events are left out");
      complete_ = true;
    }
    if (type == "bookmark" && id == show_id && frame->flag("complete")) complete_ = true;
    return !complete_;
  }

  bool complete() const { return complete_; }
  /// Why it ended without being complete, said already; nothing: it did not end by itself.
  std::optional<int> exit_code() const { return exit_code_; }
  const std::string& session_frame() const { return chosen_; }
  Timeline& timeline() { return timeline_; }

 private:
  bool take_error(const Fields& frame) {
    if (frame.text("code") == "bad_cursor") return true;  // of one stream: the others come
    print_message("the daemon says: " + safe_text(frame.text("message")) + " (" +
                  safe_text(frame.text("code")) + ")");
    if (frame.text("code") == "unsupported")
      print_message("this daemon is older than this program: start it anew");
    exit_code_ = exit_failed;
    return false;
  }

  bool choose(std::string id) {  // by value: the frame that it stood in gives way to another
    if (is_last_ && candidates_.empty() && id == find_id) {
      requests_.push_back(unsubscribe_request(find_id));
      requests_.push_back(subscribe_request(filters_, {.id = find_all_id, .all = true, .state = true}));
      return true;
    }
    const Selection choice = is_last_ ? candidates_.last() : candidates_.named(options_.session);
    if (choice.frame.empty()) {
      print_message(choice.trouble);
      exit_code_ = choice.several ? exit_usage : exit_failed;
      return false;
    }
    chosen_ = choice.frame;
    const auto frame = parser_.parse(chosen_);
    session_ = frame->text("session");
    append_seen(*frame, seen_);
    std::vector<std::string> after;
    for (const SeenStream& stream : seen_) after.push_back(stream.name + ":");
    Filters filters;
    filters.session = {session_};
    if (!frame->text("host").empty()) filters.host = {std::string(frame->text("host"))};
    requests_.push_back(unsubscribe_request(id));
    requests_.push_back(subscribe_request(
        filters,
        {.id = show_id, .snapshot = false, .all = true, .catch_up = true, .after = std::move(after)}));
    return true;
  }

  const ShowOptions& options_;
  bool is_last_;
  Filters filters_;
  SessionSelector candidates_;
  std::string chosen_, session_;
  std::vector<SeenStream> seen_;
  std::vector<std::string> requests_;
  bool reading_ = false, complete_ = false;
  std::optional<int> exit_code_;
  FrameParser parser_;
  Timeline timeline_;
};

int print(Reader& reader, const ShowOptions& options) {
  const DisplayOptions display = stdout_display(options.colour);
  const bool safe_json = is_terminal(1);
  Pager pager(!options.no_pager && !options.json);
  Output out(pager.descriptor());
  FrameParser parser;
  const auto session = parser.parse(reader.session_frame());
  TranscriptView view(display, options.verbose);
  if (!options.json) view.head(*session, out.buffer());
  bool any = false;
  const auto visit = [&](const Timeline::Step& step) {
    any = true;
    if (options.json) {
      out.write((safe_json ? to_display_json(step.json) : std::string(step.json)) + "\n");
    } else {
      view.tell(step, reader.timeline(), out.buffer());
      out.spill();
    }
    return !out.closed() && out.error().empty();
  };
  const auto stranger = [&](std::string_view agent, std::size_t depth) {
    if (!options.json) view.stranger(agent, depth, out.buffer());
  };
  reader.timeline().walk(options.turn, visit, stranger);
  const std::uint64_t turns = session->object("turn").count("number");
  if (!options.json && (options.turn == 0 || options.turn == turns)) view.foot(*session, out.buffer());
  out.flush();
  if (!out.error().empty()) {
    print_message("cannot write: " + out.error());
    return exit_failed;
  }
  if (any || options.turn == 0) return exit_ok;
  print_message("it has no turn " + std::to_string(options.turn) + ": the last one is " +
                std::to_string(turns));
  return exit_failed;
}

}  // namespace

int show_command(const ShowOptions& options) {
  const auto found = find_daemon(options.daemon);
  if (const auto* why = std::get_if<std::string>(&found)) {
    print_message(safe_text(*why));
    return options.daemon.connect.empty() && options.daemon.socket.empty() ? exit_failed : exit_usage;
  }
  const DaemonAddresses& addresses = std::get<DaemonAddresses>(found);
  Reader reader(options);
  {
    Client client;
    Handlers handlers;
    handlers.on_open = [&] { client.send(reader.first_request()); };
    handlers.on_frame = [&](std::string_view json) {
      const bool more = reader.take(json);
      for (std::string& request : reader.take_requests()) client.send(std::move(request));
      return more;
    };
    const ConnectResult result = client.run_any(addresses, handlers);
    if (const auto exit_code = reader.exit_code()) return *exit_code;
    if (!reader.complete() && result.last().end_reason == EndReason::stopped) return exit_ok;  // ^C
    if (!reader.complete()) {
      const bool nobody = result.last().end_reason == EndReason::unreachable;
      print_message(format_connect_error(result, addresses) +
                    (nobody ? std::string("\n") + without_daemon : std::string()));
      return exit_failed;
    }
  }
  return print(reader, options);
}

}  // namespace earshot::cli
