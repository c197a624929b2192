#include "search/reader.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <charconv>
#include <new>
#include <utility>

#include "base/hex.hpp"
#include "base/quantities.hpp"
#include "base/system.hpp"
#include "models/session_cost.hpp"
#include "search/query.hpp"
#include "search/result_text.hpp"

namespace earshot::search {
namespace {

using serve::HttpResponse;
using serve::SearchRequest;

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::int64_t first_id_at(std::int64_t ms) {
  return std::clamp<std::int64_t>(ms, 0, time_ms_max + 1) << id_time_shift;
}

void append_time(JsonWriter& json, std::string_view name, std::int64_t ms) {
  if (ms > 0) json.member_if_any(name, format_time_if_valid(ms));
}

/// The number of streams is not shown to a restricted user.
void append_state(JsonWriter& json, const IndexState& state, const SearchRequest& request) {
  json.key("index").begin_object().member("building", state.building);
  if (request.allowed.empty()) json.member("indexed", state.indexed).member("total", state.total);
  json.end_object();
}

void append_snippet(JsonWriter& json, const Snippet& snippet) {
  json.key("snippet").begin_object().member("text", snippet.text);
  json.key("matches").array(snippet.matches, [&](const auto& match) {
    json.begin_array().value(match.first).value(match.second).end_array();
  });
  if (snippet.cut_before) json.member("cut_before", true);
  if (snippet.cut_after) json.member("cut_after", true);
  json.end_object();
}

HttpResponse bad_request(std::string_view text) { return serve::text_response(400, text); }

}  // namespace

// --- Streams ---

void StreamTable::load(Database& db) {
  rows_.clear(), by_id_.clear(), by_name_.clear(), main_.clear();
  Statement& statement = db.statement("SELECT " + std::string(stream_columns) + " FROM streams");
  statement.reset();
  while (statement.step()) rows_.push_back(read_stream(statement));
  for (std::size_t at = 0; at < rows_.size(); ++at) {
    const StreamRow& row = rows_[at];
    by_id_[row.id] = at;
    by_name_[row.name] = at;
    if (!row.agent.empty() || row.session.empty()) continue;
    const auto [known, is_new] = main_.emplace(row.session, at);
    if (!is_new && rows_[known->second].last_ms < row.last_ms) known->second = at;
  }
}

const StreamRow* StreamTable::find(std::int64_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &rows_[found->second];
}

const StreamRow* StreamTable::main_of(std::string_view session) const {
  const auto found = main_.find(session);
  return found == main_.end() ? nullptr : &rows_[found->second];
}

std::string_view StreamTable::host_of(std::string_view session) const {
  if (!host_.empty()) return host_;
  const auto at = session.rfind('@');
  return at == session.npos ? std::string_view() : session.substr(at + 1);
}

/// A subagent belongs to the main stream whose name its own one begins with, else to its session's.
std::string_view StreamTable::project_of(const StreamRow& row) const {
  if (row.agent.empty()) return row.project;
  for (auto slash = row.name.rfind('/'); slash != row.name.npos && slash > 0;
       slash = row.name.rfind('/', slash - 1)) {
    const auto found = by_name_.find(std::string_view(row.name).substr(0, slash));
    if (found != by_name_.end()) return rows_[found->second].project;
  }
  const StreamRow* main = main_of(row.session);
  return main ? std::string_view(main->project) : std::string_view();
}

bool StreamTable::matches(const StreamRow& row, const SearchRequest& request) const {
  const std::string_view project = project_of(row);
  const StreamRow* main = main_of(row.session);
  const std::string_view program = main ? main->program : row.program;
  if (!request.allowed.empty()) {
    if (row.session.empty() || (!request.allowed.project.empty() && project.empty())) return false;
    if (!request.allowed.matches_session({host_of(row.session), row.session, project, program})) return false;
  }
  const std::string_view shown = project.empty() ? std::string_view(row.directory) : project;
  return request.filter.matches_session({host_of(row.session), row.session, shown, program});
}

// --- Queries ---

/// Not a number: parse_number() refuses it.
std::string HiddenPlaces::add(std::int64_t id) {
  std::string name = "p" + random_hex(16);
  ids_[name] = id;
  return name;
}

std::optional<std::int64_t> HiddenPlaces::find(std::string_view name) const {
  const std::int64_t* const id = ids_.find(name);
  return id ? std::optional(*id) : std::nullopt;
}

/// The state of one search, for the callbacks of SQLite.
struct Reader::Scan {
  Database& db;
  const StreamTable& table;
  const SearchRequest& request;
  Clock::time_point deadline;
  const std::atomic<bool>& stopped;
  std::unordered_map<std::int64_t, bool> wanted = {};  // by stream
  std::int64_t last_done = -1;                         // rejected, or returned

  bool accepts(std::int64_t id) {
    Statement& statement = db.statement("SELECT stream, kind FROM documents WHERE id = ?");
    if (!statement.bind(id).step()) return false;
    const std::int64_t stream = statement.integer(0), kind = statement.integer(1);
    statement.reset();
    const bool accepted = (request.kinds == 0 || (request.kinds >> kind & 1)) && wants(stream);
    if (!accepted) last_done = id;
    return accepted;
  }

  bool wants(std::int64_t stream) {
    const auto known = wanted.find(stream);
    if (known != wanted.end()) return known->second;
    const StreamRow* row = table.find(stream);
    return wanted[stream] = row && table.matches(*row, request);
  }
};

bool Reader::is_in_place() const {
  const FileStat stat = stat_file(path_);
  return stat.ok() && stat.device == device_ && stat.inode == inode_;
}

void Reader::open() {
  if (db_ && is_in_place()) return;
  db_.reset();
  const FileStat stat = stat_file(path_);
  db_.emplace(path_, Database::Mode::read);
  db_->run("PRAGMA query_only=ON; PRAGMA temp_store=MEMORY");
  if (db_->number("PRAGMA user_version") != schema_version) {
    db_.reset();
    throw DatabaseError(SQLITE_BUSY, "the index is being created");
  }
  device_ = stat.device, inode_ = stat.inode;
  data_version_ = -1;
}

HttpResponse Reader::run(const SearchRequest& request, const IndexState& state, Fault& fault) {
  fault = Fault::none;
  if (stopped_) return serve::text_response(503, "the daemon stops");
  try {
    if (!is_in_place() && stat_file(path_).is_missing()) fault = Fault::missing;
    open();
    const std::int64_t version = db_->number("PRAGMA data_version");
    if (version != data_version_) table_.load(*db_);
    data_version_ = version;
    return request.what == SearchRequest::What::search ? search(request, state) : history(request, state);
  } catch (const std::bad_alloc&) {
    db_.reset();
    return serve::text_response(503, "the index is not available at the moment: retry later");
  } catch (const DatabaseError& error) {
    if (error.is_corrupt() && fault == Fault::none) fault = Fault::corrupt;
    if (!error.is_interrupted()) db_.reset();
    return serve::text_response(503, error.is_interrupted()
                                         ? "the query took too long: use longer words, or a filter"
                                         : "the index is not available at the moment: retry later");
  }
}

HttpResponse Reader::search(const SearchRequest& request, const IndexState& state) {
  const ParsedQuery query = parse_query(request.text);
  if (!query.error.empty()) return bad_request(query.error);
  std::int64_t end = first_id_at(request.until_ms);
  if (!request.after.empty()) {
    auto after = parse_number(request.after);
    if (!after) after = places_.find(request.after);
    if (!after) return bad_request("`after` is not the `next` of a page");
    end = std::min(end, *after);
  }

  Scan scan{*db_, table_, request, Clock::now() + time_allowed_, stopped_};
  sqlite3_create_function(
      db_->handle(), "is_wanted", 1, SQLITE_UTF8, &scan,
      [](sqlite3_context* context, int, sqlite3_value** values) {
        try {
          auto& of = *static_cast<Scan*>(sqlite3_user_data(context));
          sqlite3_result_int(context, of.accepts(sqlite3_value_int64(values[0])));
        } catch (const DatabaseError& error) {  // not through C
          sqlite3_result_error_code(context, error.code);
        }
      },
      nullptr, nullptr);
  constexpr int steps_between_checks = 100;  // a page of words that FTS5 reads is three of them
  sqlite3_progress_handler(
      db_->handle(), steps_between_checks,
      [](void* of) {
        const Scan& running = *static_cast<Scan*>(of);
        return static_cast<int>(running.stopped || Clock::now() >= running.deadline);
      },
      &scan);
  struct Cleanup {
    sqlite3* db;
    ~Cleanup() {
      sqlite3_progress_handler(db, 0, nullptr, nullptr);
      sqlite3_create_function(db, "is_wanted", 1, SQLITE_UTF8, nullptr, nullptr, nullptr, nullptr);
    }
  } const cleanup{db_->handle()};

  struct Found {
    std::int64_t id;
    std::string highlighted;
  };
  std::vector<Found> found;
  bool is_incomplete = false;
  {
    Statement statement(
        db_->handle(),
        "SELECT rowid, highlight(words, 0, char(1), char(2)) FROM words WHERE words MATCH ? AND "
        "rowid >= ? AND rowid < ? AND is_wanted(rowid) ORDER BY rowid DESC LIMIT ?");
    statement.bind(query.expression, first_id_at(request.since_ms), end, request.limit + 1);
    try {
      while (statement.step()) {
        scan.last_done = statement.integer(0);
        found.push_back({scan.last_done, statement.text(1)});
      }
    } catch (const DatabaseError& error) {
      if (!error.is_interrupted() || scan.last_done < 0) throw;
      is_incomplete = true;
    }
  }
  sqlite3_progress_handler(db_->handle(), 0, nullptr, nullptr);

  std::string body;
  JsonWriter json(body);
  json.begin_object().key("results").begin_array();
  const std::size_t shown = std::min(found.size(), request.limit);
  for (std::size_t at = 0; at < shown; ++at) {
    Statement& document = db_->statement(
        "SELECT stream, kind, cursor_offset, cursor_index, cursor_hash FROM documents WHERE id = ?");
    if (!document.bind(found[at].id).step()) continue;
    const StreamRow* row = table_.find(document.integer(0));
    const auto kind = static_cast<std::size_t>(document.integer(1));
    const Cursor cursor{static_cast<std::uint64_t>(document.integer(2)),
                        static_cast<std::uint32_t>(document.integer(3)),
                        static_cast<std::uint64_t>(document.integer(4))};
    document.reset();
    if (!row || kind >= kind_names.size()) continue;
    const StreamRow* main = table_.main_of(row->session);
    if (!main || !table_.matches(*main, request)) main = row;  // one id may be in use in several projects
    json.begin_object().member("stream", row->name).member("cursor", to_string(cursor));
    json.member_if_any("session", row->session).member_if_any("agent", row->agent);
    json.member_if_any("host", table_.host_of(row->session)).member_if_any("project", main->project);
    json.member_if_any("program", main->program).member_if_any("title", main->title);
    append_time(json, "time", found[at].id >> id_time_shift);
    json.member("kind", kind_names[kind]);
    append_snippet(json, make_snippet(found[at].highlighted));
    json.end_object();
  }
  json.end_array();
  if (found.size() > shown) {
    json.member("next", std::to_string(found[shown - 1].id));
  } else if (is_incomplete) {
    json.member("next",
                request.allowed.empty() ? std::to_string(scan.last_done) : places_.add(scan.last_done));
  }
  if (is_incomplete) json.member("incomplete", true);
  append_state(json, state, request);
  json.end_object();
  return serve::json_response(body + "\n");
}

// --- History ---

namespace {

struct HistorySession {
  const StreamRow* shown = nullptr;  // the main stream
  std::int64_t first_ms = 0, last_ms = 0;
  std::size_t streams = 0;
  std::uint64_t tools = 0, input = 0, output = 0, cache_read = 0, cache_write = 0;
  std::vector<const StreamRow*> rows;

  void add(const StreamRow& row) {
    const bool is_main = row.agent.empty();
    if (!shown || (is_main && (!shown->agent.empty() || shown->last_ms < row.last_ms))) shown = &row;
    if (row.first_ms > 0 && (first_ms == 0 || row.first_ms < first_ms)) first_ms = row.first_ms;
    last_ms = std::max(last_ms, row.last_ms);
    ++streams;
    tools += row.tools, input += row.input, output += row.output;
    cache_read += row.cache_read, cache_write += row.cache_write;
    rows.push_back(&row);
  }
};

std::optional<Cost> cost_of(const HistorySession& session, const ModelTable& models) {
  std::vector<std::vector<ModelUsage>> used;
  std::vector<StreamCost> streams;
  used.reserve(session.rows.size());  // borrowed by `streams`
  for (const StreamRow* row : session.rows) {
    used.push_back(decode_models(row->models));
    streams.push_back(
        {row->cost_usd, row->cost_total_ms, row->last_ms, row->turn_started_ms, row->turn, used.back()});
  }
  return session_cost(streams, models);
}

void append_session(JsonWriter& json, const HistorySession& session, std::string_view host,
                    const ModelTable& models, bool meta) {
  const StreamRow& row = *session.shown;
  json.begin_object().member("session", row.session).member("stream", row.name);
  json.member_if_any("host", host);
  json.member_if_any("project", row.project.empty() ? row.directory : row.project);
  json.member_if_any("program", row.program).member_if_any("model", row.model);
  if (!meta) json.member_if_any("title", row.title);
  append_time(json, "first_time", session.first_ms);
  append_time(json, "last_time", session.last_ms);
  json.member("streams", session.streams).member("prompts", row.prompts).member("tools", session.tools);
  json.key("usage").begin_object().member("input", session.input).member("output", session.output);
  json.member("cache_read", session.cache_read).member("cache_write", session.cache_write).end_object();
  if (const auto cost = cost_of(session, models))
    json.member("cost_usd", cost->usd).member("cost_source", cost->source);
  json.end_object();
}

/// `<last_ms>:<session>` of the last session of a page.
struct HistoryPlace {
  std::int64_t last_ms;
  std::string_view session;
};
std::optional<HistoryPlace> parse_place(std::string_view text) {
  const auto colon = text.find(':');
  const auto last_ms = parse_number(text.substr(0, colon));
  if (colon == text.npos || !last_ms) return std::nullopt;
  return HistoryPlace{*last_ms, text.substr(colon + 1)};
}

}  // namespace

HttpResponse Reader::history(const SearchRequest& request, const IndexState& state) {
  std::optional<HistoryPlace> after;
  if (!request.after.empty() && !(after = parse_place(request.after)))
    return bad_request("`after` is not the `next` of a page");
  std::map<std::string_view, HistorySession> sessions;
  for (const StreamRow& row : table_.rows()) {
    if (row.session.empty() || !table_.matches(row, request)) continue;
    HistorySession& session = sessions[row.session];
    session.add(row);
  }
  std::vector<const HistorySession*> all;
  std::map<std::string_view, std::size_t> projects;
  for (const auto& [name, session] : sessions) {
    if (session.last_ms < request.since_ms || session.first_ms >= request.until_ms) continue;
    if (!session.shown->project.empty()) ++projects[session.shown->project];
    const bool is_before = after && (session.last_ms > after->last_ms ||
                                     (session.last_ms == after->last_ms && name <= after->session));
    if (!is_before) all.push_back(&session);
  }
  const std::size_t shown = std::min(all.size(), request.limit);
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown), all.end(),
                    [](const HistorySession* a, const HistorySession* b) {
                      return a->last_ms != b->last_ms ? a->last_ms > b->last_ms
                                                      : a->shown->session < b->shown->session;
                    });
  std::string body;
  JsonWriter json(body);
  json.begin_object().key("sessions").begin_array();
  for (std::size_t at = 0; at < shown; ++at)
    append_session(json, *all[at], table_.host_of(all[at]->shown->session), models_, request.meta);
  json.end_array();
  if (!after) {
    std::size_t left = projects_max;
    json.key("projects").begin_array();
    for (const auto& [project, count] : projects) {
      if (left-- == 0) break;
      json.begin_object().member("project", project).member("sessions", count).end_object();
    }
    json.end_array();
  }
  if (shown > 0 && shown < all.size())
    json.member("next", std::to_string(all[shown - 1]->last_ms) + ":" + all[shown - 1]->shown->session);
  append_state(json, state, request);
  json.end_object();
  return serve::json_response(body + "\n");
}

}  // namespace earshot::search
