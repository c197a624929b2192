// `/v1/sessions`: the sessions, a page at a time.

#include <iterator>
#include <set>

#include "serve/http/router.hpp"
#include "serve/stream/frames.hpp"

namespace earshot::serve {
namespace {

constexpr std::string_view known[] = {"after", "limit", "all", "project", "session", "program", "view"};
constexpr std::size_t limit_default = 100, limit_max = 1000;
constexpr std::size_t body_bytes_max = 4 << 20;  // above it the page ends early, with `next`

using Names = std::set<std::string, std::less<>>;

struct Wanted {
  Filter filter;
  std::string after;
  std::size_t limit = limit_default;
  bool all = false;
  Filter allowed;  // of a restricted user

  bool by_name(const ServerContext& context, std::string_view name) const {
    return !name.empty() && name > after && filter.matches_name(context.host_of(name), name) &&
           may_see_by_name(allowed, context.sessions, name);
  }
  /// Project and program are known after reading: the page cannot be chosen before.
  bool by_content() const {
    return !filter.project.empty() || !filter.program.empty() || !allowed.project.empty();
  }
};

std::vector<std::string> strings(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

/// Matching sessions in memory.
Names warm(const Wanted& wanted, ServerContext& context) {
  Names names;
  context.sessions.for_each([&](Session& session) {
    if (session.members.empty() && !session.process_lives()) return;
    if (!wanted.by_name(context, session.name)) return;
    if (!wanted.filter.matches_session(context.sessions.keys_of(session))) return;
    if (!may_see(wanted.allowed, context.sessions, session)) return;
    if (wanted.all || is_live(session, context.recent)) names.insert(session.name);
  });
  return names;
}

/// Sessions with unread transcripts that may match.
Names cold(const Wanted& wanted, const ServerContext& context) {
  Names names;
  if (!wanted.all || !context.read_cold_sessions) return names;
  context.read_cold_sessions(
      [&](std::string_view name) {
        if (wanted.by_name(context, name)) names.emplace(name);
        return false;  // only list them
      },
      [] {});
  return names;
}

}  // namespace

HttpResponse sessions_response(const Request& request, const RequestContext& request_context,
                               ServerContext& context) {
  Query query = parse_query(request.query());
  query.only(known);
  Wanted wanted;
  if (const User* user = request_context.caller.user) wanted.allowed = user->allowed;
  wanted.filter.project = strings(query.all("project"));
  wanted.filter.session = strings(query.all("session"));
  wanted.filter.program = strings(query.all("program"));
  wanted.after = query.one("after");
  wanted.limit = query.number("limit", limit_default, 1, limit_max);
  wanted.all = query.flag("all", false);
  const View view = query.is_meta_view() ? View::meta : request_context.caller.view;
  if (query.error.empty() &&
      !wanted.filter.is_within(context.limits.patterns_max, context.limits.pattern_bytes_max))
    query.error = "too many patterns, or a pattern is too long";
  if (!query.error.empty()) return text_response(400, query.error);

  Names names = warm(wanted, context);
  Names unread = cold(wanted, context);
  if (!request_context.cold_sessions_read) {
    Names due = unread;
    Names all = names;
    all.insert(unread.begin(), unread.end());
    if (!wanted.by_content() && all.size() > wanted.limit) {
      const std::string last = *std::next(all.begin(), static_cast<std::ptrdiff_t>(wanted.limit) - 1);
      due.erase(due.upper_bound(last), due.end());
    }
    if (!due.empty()) {
      HttpResponse answer;
      answer.kind = HttpResponse::Kind::cold;
      answer.wanted = [due = std::move(due)](std::string_view name) { return due.contains(name); };
      return answer;
    }
  }

  // Unreadable transcripts have an unknown project: a restricted user must not learn that they exist.
  if (!wanted.allowed.project.empty()) unread.clear();
  std::string body = R"({"sessions":[)", last;
  std::size_t count = 0;
  for (const std::string& name : names) {
    if (count == wanted.limit || body.size() >= body_bytes_max) break;
    Session* session = context.sessions.find(name);
    if (!session) continue;
    if (count++ > 0) body += ',';
    body +=
        session_payload(*session, context.host_of(session->name), {.view = view, .filter = context.filter});
    last = name;
  }
  body += ']';
  const bool more = names.upper_bound(last) != names.end() || unread.upper_bound(last) != unread.end();
  if (count > 0 && more) {
    body += R"(,"next":)";
    append_json_string(body, last);
  }
  HttpResponse answer = json_response(body + "}\n");
  answer.etag = etag_of(answer.body);
  return or_not_modified(std::move(answer), request.if_none_match);
}

}  // namespace earshot::serve
