#include "serve/http/sessions_page.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>

#include "serve/http/query.hpp"
#include "serve/stream/subscriber.hpp"

namespace earshot::serve {
namespace {

constexpr std::string_view known[] = {"after", "limit", "all", "project", "session", "view"};
constexpr std::size_t limit_default = 100, limit_max = 1000;

using Names = std::set<std::string, std::less<>>;

struct Wanted {
  Filter filter;
  std::string after;
  std::size_t limit = limit_default;
  bool all = false;
  Filter allowed;  // of a user: who is shown only a part

  bool by_name(const ServerContext& context, std::string_view name) const {
    Filter only_name = filter;
    only_name.project.clear();
    return !name.empty() && name > after && only_name.matches_session(context.host_of(name), name, {}) &&
           context.may_see_by_name(allowed, name);
  }
  /// The project of a session is known once it is read: then the page cannot be chosen before.
  bool by_project() const { return !filter.project.empty() || !allowed.project.empty(); }
};

std::vector<std::string> strings(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

/// Empty: it fits.
std::string unfit(const Filter& filter, const Limits& limits) {
  for (const auto* key : {&filter.project, &filter.session}) {
    bool fits = key->size() <= limits.patterns_max;
    for (const std::string& pattern : *key) fits = fits && pattern.size() <= limits.pattern_bytes_max;
    if (!fits) return "too many patterns, or one that is too long";
  }
  return {};
}

/// Sessions that are known and fit.
Names warm(const Wanted& wanted, ServerContext& context) {
  Names names;
  context.sessions.for_each([&](Session& session) {
    if (session.members.empty() && !session.process_lives()) return;
    if (!wanted.by_name(context, session.name)) return;
    if (!wanted.filter.matches_session(context.host_of(session.name), session.name,
                                       session.project_or_directory()))
      return;
    if (!context.may_see(wanted.allowed, session)) return;
    if (wanted.all || is_live(session, context.recent)) names.insert(session.name);
  });
  return names;
}

/// Sessions of which something has not been read yet.
Names cold(const Wanted& wanted, const ServerContext& context) {
  Names names;
  if (!wanted.all || !context.read_cold) return names;
  context.read_cold(
      [&](std::string_view name) {
        if (wanted.by_name(context, name)) names.emplace(name);
        return false;  // only looked at
      },
      [] {});
  return names;
}

}  // namespace

HttpResponse sessions_answer(const Request& request, const RequestContext& caller, ServerContext& context) {
  Query query = parse_query(request.query());
  query.only(known);
  Wanted wanted;
  if (caller.user) wanted.allowed = caller.user->allowed;
  wanted.filter.project = strings(query.all("project"));
  wanted.filter.session = strings(query.all("session"));
  wanted.after = query.one("after");
  wanted.limit = query.number("limit", limit_default, 1, limit_max);
  wanted.all = query.flag("all", false);
  const std::string_view view = query.one("view", "full");
  if (query.error.empty() && view != "full" && view != "meta") query.error = "`view` is full or meta";
  if (query.error.empty()) query.error = unfit(wanted.filter, context.limits);
  if (!query.error.empty()) return text_response(400, query.error);
  const View shown = view == "meta" ? View::meta : caller.view;

  Names names = warm(wanted, context);
  Names unread = cold(wanted, context);
  if (!caller.cold_is_read) {
    Names due = unread;
    Names all = names;
    all.insert(unread.begin(), unread.end());
    if (!wanted.by_project() && all.size() > wanted.limit) {
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

  // What cannot be read is of a project that nobody knows: that it is there is not told to whom it may not
  // be.
  if (!wanted.allowed.project.empty()) unread.clear();
  std::string body = R"({"sessions":[)", last;
  std::size_t count = 0;
  for (const std::string& name : names) {
    if (count == wanted.limit) break;
    Session* session = context.sessions.find(name);
    if (!session) continue;
    if (count++ > 0) body += ',';
    body +=
        session_payload(*session, context.host_of(session->name), {.view = shown, .filter = context.filter});
    last = name;
  }
  body += ']';
  const bool more = names.upper_bound(last) != names.end() || unread.upper_bound(last) != unread.end();
  if (count > 0 && more) {
    body += R"(,"next":)";
    append_string(body, last);
  }
  HttpResponse answer = json_response(body + "}\n");
  answer.etag = etag_of(answer.body);
  return or_not_modified(std::move(answer), request.if_none_match);
}

}  // namespace earshot::serve
