#include "cli/statusline.hpp"

#include <algorithm>
#include <vector>

#include "common/cursors.hpp"
#include "core/event_json.hpp"

namespace earshot::cli {
namespace {

// What is counted; the first one that there is names the whole.
struct Kind {
  std::string_view state;
  Glyph mark;
  bool shown;  // in the line and in the tooltip
};
constexpr Kind kinds[] = {
    {"waiting", Glyph::waiting, true},
    {"working", Glyph::working, true},
    {"idle", Glyph::idle, false},
    {"unknown", Glyph::unknown, false},
};

std::string key_of(const Fields& frame) {
  return std::string(frame.text("host")) + '/' + std::string(frame.text("session"));
}

std::string about(const SessionRow& row, bool several_hosts, Glyph mark, Charset charset) {
  std::string text(glyph(mark, charset));
  text.append(" ").append(several_hosts ? row.project_at_host() : row.project);
  if (row.state == "waiting" && !row.reason.empty()) text.append(" ").append(row.reason);
  if (!row.last.empty()) text.append(": ").append(row.last);
  return cut_to_width(text, StatusLine::line_columns_max, glyph(Glyph::ellipsis, charset));
}

/// A subagent's lies below its session's, and has a longer name.
std::string main_stream(const Fields& session) {
  std::vector<SeenStream> streams;
  append_seen(session, streams);
  const auto main = std::min_element(
      streams.begin(), streams.end(),
      [](const SeenStream& a, const SeenStream& b) { return a.name.size() < b.name.size(); });
  return main == streams.end() ? std::string() : main->name;
}

void append_member(std::string& out, std::string_view name, std::string_view text) {
  out += out.size() > 1 ? "," : "";
  append_string(out, name);
  out += ':';
  append_string(out, text);
}

}  // namespace

void StatusLine::begin() { sessions_ = {}; }

void StatusLine::take(const Fields& frame, std::int64_t now_ms) {
  const std::string_view type = frame.text("type");
  if (type == "session")
    sessions_[key_of(frame)] = {make_session_row(frame, charset_, now_ms), main_stream(frame)};
  if (type != "stream.removed") return;
  // Of its streams, only the main one's end is its own.
  const std::string_view stream = frame.text("stream");
  const Known* const known = sessions_.find(key_of(frame));
  const bool told = known != nullptr && !known->main.empty();
  if (told ? known->main == stream : last_component(stream) == frame.text("session"))
    sessions_.erase(key_of(frame));
}

bool StatusLine::several_hosts() const {
  std::string_view first;
  for (const auto& [key, known] : sessions_) {
    if (first.empty()) first = known.row.host;
    if (known.row.host != first) return true;
  }
  return false;
}

std::string StatusLine::line() const {
  std::string text;
  for (const Kind& kind : kinds) {
    const auto count = std::count_if(sessions_.begin(), sessions_.end(),
                                     [&](const auto& entry) { return entry.second.row.state == kind.state; });
    if (!kind.shown || count == 0) continue;
    text += text.empty() ? "" : " ";
    text.append(glyph(kind.mark, charset_)).append(" ").append(std::to_string(count));
  }
  return text;
}

std::string StatusLine::json() const {
  std::string_view whole = "idle";
  std::string counts;
  std::vector<std::string> rows;
  const bool hosts = several_hosts();
  for (const Kind& kind : kinds) {
    std::vector<const SessionRow*> of_kind;
    for (const auto& [key, known] : sessions_)
      if (known.row.state == kind.state) of_kind.push_back(&known.row);
    counts.append(",\"").append(kind.state).append("\":").append(std::to_string(of_kind.size()));
    if (!kind.shown || of_kind.empty()) continue;
    if (whole == "idle") whole = kind.state;
    std::sort(of_kind.begin(), of_kind.end(), [](const SessionRow* a, const SessionRow* b) {
      return a->activity_ms != b->activity_ms ? a->activity_ms > b->activity_ms : a->session < b->session;
    });
    for (const SessionRow* row : of_kind) rows.push_back(about(*row, hosts, kind.mark, charset_));
  }
  std::string tooltip;
  for (std::size_t n = 0; n < rows.size() && n < lines_max; ++n) tooltip += (n > 0 ? "\n" : "") + rows[n];
  if (rows.size() > lines_max) tooltip += "\n+" + std::to_string(rows.size() - lines_max);

  std::string out = "{";
  append_member(out, "text", line());
  append_member(out, "alt", whole);
  append_member(out, "class", whole);
  append_member(out, "tooltip", tooltip);
  return out + counts + "}";
}

std::string StatusLine::away_line() { return "earshot?"; }

std::string StatusLine::away_json(const std::string& why) {
  std::string out = "{";
  append_member(out, "text", away_line());
  append_member(out, "alt", "away");
  append_member(out, "class", "away");
  append_member(out, "tooltip", why);
  return out + "}";
}

}  // namespace earshot::cli
