// `earshot search`: text in all sessions, by the daemon's index.
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "common/format.hpp"
#include "common/http.hpp"

namespace earshot::cli {
namespace {

constexpr std::size_t results_per_request = 100;

void append_parameter(std::string& target, std::string_view name, std::string_view value) {
  const std::string pair = query({{name, value}});  // begins with `?`
  if (pair.empty()) return;
  target += target.find('?') == target.npos ? '?' : '&';
  target += pair.substr(1);
}

std::string target_of(const SearchOptions& options, std::string_view after, std::size_t limit) {
  std::string text;
  for (const std::string& word : options.words) {
    if (!text.empty()) text += ' ';
    text += word;
  }
  std::string target = "/v1/search";
  append_parameter(target, "q", text);
  for (const std::string& each : options.filters.project)
    append_parameter(target, "project", project_pattern(each));
  for (const std::string& each : options.filters.session)
    append_parameter(target, "session", session_pattern(each));
  for (const std::string& each : options.filters.program) append_parameter(target, "program", each);
  for (const std::string& each : options.filters.host) append_parameter(target, "host", each);
  for (const std::string& each : options.kinds) append_parameter(target, "kind", each);
  if (options.since_ms) append_parameter(target, "since", format_time(*options.since_ms));
  append_parameter(target, "limit", std::to_string(limit));
  append_parameter(target, "after", after);
  return target;
}

/// The snippet with its matches emphasised. Positions count code points of the original text, so that it is
/// escaped piece by piece.
Line snippet_line(const Fields& snippet, Charset charset) {
  std::string_view text = snippet.text("text");
  std::vector<std::pair<std::uint64_t, std::uint64_t>> matches;
  simdjson::dom::array pairs;
  if (const auto found = snippet.as<simdjson::dom::array>("matches")) pairs = *found;
  for (const simdjson::dom::element each : pairs) {
    simdjson::dom::array pair;
    std::uint64_t begin = 0, size = 0;
    if (!each.get_array().get(pair) && !pair.at(0).get(begin) && !pair.at(1).get(size))
      matches.emplace_back(begin, size);
  }
  Line line;
  if (snippet.flag("cut_before")) line.add(glyph(Glyph::ellipsis, charset), Style::dim);
  std::string piece;
  bool is_match = false;
  const auto end_piece = [&] {
    // Display text has no blanks at its ends, but those between two pieces belong to the snippet.
    const bool before = piece.starts_with(' '), after = piece.size() > 1 && piece.ends_with(' ');
    const std::string shown = to_display_line(piece, charset);
    if (before) line.add(" ");
    if (!shown.empty()) line.add(shown, is_match ? Style::loud : Style::plain);
    if (after && !shown.empty()) line.add(" ");
    piece.clear();
  };
  std::size_t next = 0;
  for (std::uint64_t at = 0; !text.empty(); ++at) {
    while (next < matches.size() && matches[next].first + matches[next].second <= at) ++next;
    const bool matched = next < matches.size() && matches[next].first <= at;
    if (matched != is_match) end_piece();
    is_match = matched;
    const std::size_t before = text.size();
    const std::string_view rest = text;
    take_code_point(text);
    piece += rest.substr(0, before - text.size());
  }
  end_piece();
  if (snippet.flag("cut_after")) line.add(glyph(Glyph::ellipsis, charset), Style::dim);
  return line;
}

std::string local_time(std::int64_t ms) {
  return format_local_day(ms) + " " + format_local_clock(ms).substr(0, std::string_view("14:03").size());
}

void append_result(std::string& out, const Fields& result, const DisplayOptions& display) {
  const auto shown = [&](std::string_view text) { return to_display_line(text, display.charset); };
  const std::string session = shown(short_id(result.text("session")));
  const std::string project = shown(last_component(result.text("project")));
  Line head;
  head.add(session, style_of_name(session)).space(2);
  if (const auto time = parse_time(result.text("time"))) {
    constexpr std::size_t time_columns = 21;
    const std::string text = local_time(*time);
    head.add(text, Style::dim).space(time_columns - std::min(time_columns, text.size()) + 2);
  }
  constexpr std::size_t kind_columns = 6;  // of prompt and answer
  const std::string kind = shown(result.text("kind"));
  head.add(kind, Style::note).space(kind_columns - std::min(kind_columns, display_width(kind)));
  if (!project.empty()) head.space(2).add(project, Style::bold);
  if (const std::string title = shown(result.text("title")); !title.empty()) head.space(2).add(title);
  Line text;
  text.space(2).add(snippet_line(result.object("snippet"), display.charset));
  out += head.str(display) + "\n" + text.str(display) + "\n";
}

/// As grep: 1 means that nothing was found.
constexpr int exit_error = exit_usage;

/// Prints why there is no answer.
int print_refusal(const HttpResult& result, const DaemonAddresses& addresses) {
  const std::string_view reason = trim(result.response.body);
  const bool is_off = reason.starts_with("search is off");
  constexpr int statuses[] = {400, 403, 429, 503};
  const bool has_reason =
      std::find(std::begin(statuses), std::end(statuses), result.response.status) != std::end(statuses);
  if (!reason.empty() && (has_reason || is_off)) {
    print_message(safe_text(reason));
  } else {
    print_http_error(result, addresses);
  }
  return exit_error;
}

void print_index(const Fields& index, bool found) {
  if (!index.flag("building")) return;
  std::string progress = "the index is still being built";
  if (index.count("total") > 0)
    progress +=
        ": " + std::to_string(index.count("indexed")) + " of " + plural(index.count("total"), "transcript");
  print_message(progress + (found ? "" : "; search again later"));
}

int run_search(const SearchOptions& options, const DaemonAddresses& addresses) {
  const DisplayOptions display = stdout_display(options.colour);
  Output out;
  FrameParser parser;
  std::string after;
  std::vector<std::string> json;
  std::size_t printed = 0;
  bool more = false, incomplete = false;
  do {
    const std::size_t limit = std::min(results_per_request, options.limit - printed);
    const HttpResult result = send_request(addresses, {.target = target_of(options, after, limit)});
    if (!result.response.ok()) return print_refusal(result, addresses);
    const auto answer = parser.parse(result.response.body);
    if (!answer) {
      print_message("the daemon's response is not understood");
      return exit_error;
    }
    for (const Fields& each : answer->objects("results")) {
      if (options.json)
        json.push_back(simdjson::minify(each.raw()));
      else
        append_result(out.buffer(), each, display);
      out.flush_if_full();
      ++printed;
    }
    after = answer->text("next");
    more = !after.empty();
    incomplete = answer->flag("incomplete");
    if (!more || printed >= options.limit || incomplete) print_index(answer->object("index"), printed > 0);
  } while (more && printed < options.limit && !incomplete);
  if (options.json) {
    out.write_json_array(json);
  } else if (printed > 0) {
    out.write("\n" + Line().add("open one: earshot show SESSION", Style::dim).str(display) + "\n");
  }
  const int exit_code = finish(out);
  if (incomplete)
    print_message("older matches are left out, as the query took too long: use longer words, or a filter");
  else if (more)
    print_message("there are more: use --limit, --since or a filter");
  if (printed == 0) print_message("nothing was found");
  return exit_code != exit_ok ? exit_error : printed > 0 ? exit_ok : exit_failed;
}

}  // namespace

int search_command(const SearchOptions& options) {
  std::optional<int> result;
  const int other = with_daemon(options.daemon, [&](const DaemonAddresses& addresses) {
    result = run_search(options, addresses);
    return *result;
  });
  return result ? *result : std::max(other, exit_error);  // without a daemon
}

}  // namespace earshot::cli
