// `earshot show`: one session from its beginning.
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/name_resolver.hpp"
#include "cli/style.hpp"
#include "cli/transcript_view.hpp"
#include "common/client.hpp"

namespace earshot::cli {
namespace {

constexpr const char* find_id = "find";
constexpr const char* find_all_id = "find-all";  // including sessions that are not live
constexpr const char* suggest_id = "suggest";    // all sessions, for a name that matches none
constexpr const char* show_id = "show";

constexpr const char* without_daemon =
    "  To read a transcript without a daemon:  earshot replay FILE --pretty";

// Finds the session, then requests all its events.
class Reader {
 public:
  explicit Reader(const ShowOptions& options) : options_(options), is_last_(options.session == "last") {
    filters_ = options.filters;
    if (!is_last_) filters_.session = {options.session};
  }

  std::string first_request() const {
    // The last session is usually live; listing all sessions makes the daemon read all transcripts.
    return subscribe_request(filters_,
                             {.id = is_last_ ? find_id : find_all_id, .all = !is_last_, .state = true});
  }
  std::vector<std::string> take_requests() { return std::exchange(requests_, {}); }

  bool receive(std::string_view json) {
    const auto frame = parser_.parse(json);
    if (!frame) return true;
    const std::string_view type = frame->text("type"), id = frame->text("id");
    if (type == "error") return receive_error(*frame);
    if (frame_.empty()) {
      if (type == "session") selector_.add(*frame, json);
      return type != "ready" || choose(std::string(id));
    }
    if (type == "ready" && id == show_id) {
      reading_ = true;
      complete_ = streams_.empty();
    }
    const bool ours = frame->text("session") == session_;
    if (reading_ && ours && !frame->text("cursor").empty() && !timeline_.add(*frame, json)) {
      print_message("the session is too long to show: its last events are omitted");
      complete_ = true;
    }
    if (type == "bookmark" && id == show_id && frame->flag("complete")) complete_ = true;
    return !complete_;
  }

  bool complete() const { return complete_; }
  /// Set if reading was ended by an error, which was printed.
  std::optional<int> exit_code() const { return exit_code_; }
  const std::string& session_frame() const { return frame_; }
  const std::string& session() const { return session_; }
  Timeline& timeline() { return timeline_; }

 private:
  bool receive_error(const Fields& frame) {
    if (frame.text("code") == "bad_cursor") return true;  // affects one stream only
    print_daemon_error(frame);
    if (frame.text("code") == "unsupported")
      print_message("the daemon is older than this program: restart it with the installed version");
    exit_code_ = exit_failed;
    return false;
  }

  bool choose(std::string id) {  // by value: the frame it refers to is replaced
    if (is_last_ && selector_.empty() && id == find_id) {
      requests_.push_back(unsubscribe_request(find_id));
      requests_.push_back(subscribe_request(filters_, {.id = find_all_id, .all = true, .state = true}));
      return true;
    }
    const Selection selection = is_last_ ? selector_.last() : selector_.named(options_.session);
    if (selection.frame.empty() && !is_last_ && id == find_all_id && selector_.empty()) {
      Filters filters = options_.filters;  // all sessions, to suggest one with a similar id
      requests_.push_back(unsubscribe_request(find_all_id));
      requests_.push_back(subscribe_request(filters, {.id = suggest_id, .all = true, .state = true}));
      return true;
    }
    if (id == suggest_id) {
      const std::string nearest = selector_.suggest(options_.session);
      print_message("no session has an id that is or begins with " + safe_text(options_.session) +
                    (nearest.empty() ? std::string() : "; did you mean " + safe_text(nearest) + "?") +
                    "\n  List all sessions:  earshot ls --all");
      exit_code_ = exit_failed;
      return false;
    }
    if (selection.frame.empty()) {
      print_message(selection.error);
      exit_code_ = selection.ambiguous ? exit_usage : exit_failed;
      return false;
    }
    frame_ = selection.frame;
    const auto frame = parser_.parse(frame_);
    session_ = frame->text("session");
    for (const StreamCursor& each : stream_cursors(*frame)) streams_.emplace_back(each.stream);
    std::vector<std::string> after;
    for (const std::string& stream : streams_) after.push_back(stream + ":");
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
  SessionSelector selector_;
  std::string frame_, session_;
  std::vector<std::string> streams_;
  std::vector<std::string> requests_;
  bool reading_ = false, complete_ = false;
  std::optional<int> exit_code_;
  FrameParser parser_;
  Timeline timeline_;
};

int print(Reader& reader, const ShowOptions& options) {
  const DisplayOptions display = stdout_display(options.colour);
  Pager pager(!options.no_pager && !options.json);
  Output out(pager.fd());
  FrameParser parser;
  const auto session = parser.parse(reader.session_frame());
  TranscriptView view(display, options.verbose);
  if (!options.json) view.write_header(*session, out.buffer());
  bool any = false;
  const auto visit = [&](const Timeline::Step& step) {
    any = true;
    if (options.json) {
      out.write_json_line(step.json);
    } else {
      view.write(step, reader.timeline(), out.buffer());
      out.flush_if_full();
    }
    return !out.closed() && out.error().empty();
  };
  const auto on_agent = [&](std::string_view agent, std::size_t depth) {
    if (!options.json) view.write_unlinked_agent(agent, depth, out.buffer());
  };
  reader.timeline().walk(options.turn, visit, on_agent);
  const std::uint64_t turns = session->object("turn").count("number");
  if (!options.json && (options.turn == 0 || options.turn == turns))
    view.write_footer(*session, out.buffer());
  if (const int failed = finish(out); failed != exit_ok) return failed;
  if (any || options.turn == 0) return exit_ok;
  print_message("the session has no turn " + std::to_string(options.turn) + "; its last turn is " +
                std::to_string(turns));
  return exit_failed;
}

}  // namespace

int show_command(const ShowOptions& options, const DaemonAddresses& addresses) {
  Reader reader(options);
  {
    Client client;
    Handlers handlers;
    handlers.on_open = [&] { client.send(reader.first_request()); };
    handlers.on_frame = [&](std::string_view json) {
      const bool more = reader.receive(json);
      for (std::string& request : reader.take_requests()) client.send(std::move(request));
      return more;
    };
    const ConnectResult result = client.run_any(addresses, handlers);
    if (const auto failed = reader.exit_code()) return *failed;
    if (!reader.complete() && result.last().end_reason == EndReason::stopped) return exit_ok;  // ^C
    if (!reader.complete()) {
      const bool unreachable = result.last().end_reason == EndReason::unreachable;
      print_message(format_connect_error(result, addresses) +
                    (unreachable ? std::string("\n") + without_daemon : std::string()));
      return exit_failed;
    }
  }
  if (!options.json) mark_seen(addresses, reader.session());
  return print(reader, options);
}

}  // namespace earshot::cli
