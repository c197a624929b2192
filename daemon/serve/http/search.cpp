#include "serve/http/search.hpp"

#include <ctime>
#include <iterator>

#include "base/quantities.hpp"
#include "serve/http/router.hpp"

namespace earshot::serve {
namespace {

constexpr std::size_t results_default = 50, results_max = 200;      // of a page of search
constexpr std::size_t sessions_default = 100, sessions_max = 1000;  // of a page of history
constexpr std::size_t after_bytes_max = 512;

/// RFC 3339. Anything else sets the error.
std::int64_t time_of(Query& query, std::string_view key, std::int64_t fallback) {
  const std::string_view text = query.one(key);
  if (text.empty()) return fallback;
  const auto time = parse_time(text);
  if (!time && query.error.empty())
    query.error = "`" + std::string(key) + "` is not a time such as 2026-11-24T14:03:00Z";
  return time.value_or(fallback);
}

/// `2026-11-24`: the day in the daemon's time zone.
void set_day(Query& query, SearchRequest& wanted) {
  const std::string text(query.one("day"));
  if (text.empty()) return;
  std::tm day{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%d", &day);
  const auto at = [&](int days) {
    std::tm local{};
    local.tm_year = day.tm_year, local.tm_mon = day.tm_mon, local.tm_mday = day.tm_mday + days;
    local.tm_isdst = -1;
    return static_cast<std::int64_t>(std::mktime(&local)) * 1000;
  };
  if (!end || *end != '\0' || text.size() != 10) {
    if (query.error.empty()) query.error = "`day` is not a day such as 2026-11-24";
    return;
  }
  wanted.since_ms = at(0);
  wanted.until_ms = at(1);
}

HttpResponse answer(SearchRequest wanted, Query& query, const RequestContext& request_context,
                    ServerContext& context) {
  const Caller& caller = request_context.caller;
  wanted.filter.project = query.all("project");
  wanted.filter.session = query.all("session");
  wanted.filter.program = query.all("program");
  wanted.filter.host = query.all("host");
  wanted.since_ms = time_of(query, "since", wanted.since_ms);
  wanted.until_ms = time_of(query, "until", wanted.until_ms);
  if (wanted.what == SearchRequest::What::history) set_day(query, wanted);
  wanted.after = query.one("after");
  wanted.meta = query.is_meta_view() || caller.view == View::meta;
  if (caller.user) wanted.allowed = caller.user->allowed;
  wanted.client = caller.name();
  if (query.error.empty() && wanted.after.size() > after_bytes_max) query.error = "`after` is too long";
  if (query.error.empty() &&
      !wanted.filter.is_within(context.limits.patterns_max, context.limits.pattern_bytes_max))
    query.error = "too many patterns, or a pattern is too long";
  if (!query.error.empty()) return text_response(400, query.error);
  if (wanted.meta && wanted.what == SearchRequest::What::search)
    return text_response(403, "the meta view has no text to search");
  if (!context.search)
    return text_response(404,
                         "search is off: remove `search = false` from earshot.toml and restart the daemon");
  HttpResponse later;
  later.kind = HttpResponse::Kind::later;
  later.compute = [run = context.search, wanted = std::move(wanted)](std::function<void(HttpResponse)> done) {
    run(wanted, std::move(done));
  };
  return later;
}

}  // namespace

HttpResponse search(const Request& request, const RequestContext& request_context, ServerContext& context) {
  constexpr std::string_view known[] = {"q",     "project", "session", "program", "host", "since",
                                        "until", "kind",    "limit",   "after",   "view"};
  Query query = parse_query(request.query());
  query.only(known);
  SearchRequest wanted;
  wanted.text = query.one("q");
  wanted.limit = query.number("limit", results_default, 1, results_max);
  for (const std::string_view kind : query.all("kind")) {
    const auto found = std::find(std::begin(search_kinds), std::end(search_kinds), kind);
    if (found == std::end(search_kinds)) {
      if (query.error.empty()) query.error = "`kind` is one of prompt, answer, tool, title";
      break;
    }
    wanted.kinds |= 1u << (found - std::begin(search_kinds));
  }
  return answer(std::move(wanted), query, request_context, context);
}

HttpResponse history(const Request& request, const RequestContext& request_context, ServerContext& context) {
  constexpr std::string_view known[] = {"project", "session", "program", "host",  "since",
                                        "until",   "day",     "limit",   "after", "view"};
  Query query = parse_query(request.query());
  query.only(known);
  SearchRequest wanted;
  wanted.what = SearchRequest::What::history;
  wanted.limit = query.number("limit", sessions_default, 1, sessions_max);
  return answer(std::move(wanted), query, request_context, context);
}

}  // namespace earshot::serve
