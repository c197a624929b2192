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

  bool by_name(const ServerContext& shared, std::string_view name) const {
    Filter only_name = filter;
    only_name.project.clear();
    return !name.empty() && name > after && only_name.matches_session(shared.host_of(name), name, {}) &&
           shared.might_see(allowed, name);
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
Names warm(const Wanted& wanted, ServerContext& shared) {
  Names names;
  shared.sessions.for_each([&](Session& session) {
    if (session.members.empty() && !session.process_lives()) return;
    if (!wanted.by_name(shared, session.name)) return;
    if (!wanted.filter.matches_session(shared.host_of(session.name), session.name,
                                       session.project_or_directory()))
      return;
    if (!shared.may_see(wanted.allowed, session)) return;
    if (wanted.all || is_live(session, shared.recent)) names.insert(session.name);
  });
  return names;
}

/// Sessions of which something has not been read yet.
Names cold(const Wanted& wanted, const ServerContext& shared) {
  Names names;
  if (!wanted.all || !shared.read_cold) return names;
  shared.read_cold(
      [&](std::string_view name) {
        if (wanted.by_name(shared, name)) names.emplace(name);
        return false;  // only looked at
      },
      [] {});
  return names;
}

}  // namespace

HttpResponse sessions_answer(const Request& request, const RequestContext& asker, ServerContext& shared) {
  Query query = parse_query(request.query());
  query.only(known);
  Wanted wanted;
  if (asker.user) wanted.allowed = asker.user->allowed;
  wanted.filter.project = strings(query.all("project"));
  wanted.filter.session = strings(query.all("session"));
  wanted.after = query.one("after");
  wanted.limit = query.number("limit", limit_default, 1, limit_max);
  wanted.all = query.flag("all", false);
  const std::string_view view = query.one("view", "full");
  if (query.error.empty() && view != "full" && view != "meta") query.error = "`view` is full or meta";
  if (query.error.empty()) query.error = unfit(wanted.filter, shared.limits);
  if (!query.error.empty()) return plain(400, query.error);
  const View shown = view == "meta" ? View::meta : asker.view;

  Names names = warm(wanted, shared);
  Names unread = cold(wanted, shared);
  if (!asker.cold_is_read) {
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
    Session* session = shared.sessions.find(name);
    if (!session) continue;
    if (count++ > 0) body += ',';
    body +=
        session_payload(*session, shared.host_of(session->name), {.view = shown, .filter = shared.filter});
    last = name;
  }
  body += ']';
  const bool more = names.upper_bound(last) != names.end() || unread.upper_bound(last) != unread.end();
  if (count > 0 && more) {
    body += R"(,"next":)";
    append_string(body, last);
  }
  HttpResponse answer = json(body + "}\n");
  answer.etag = etag_of(answer.body);
  return unless_known(std::move(answer), request.if_none_match);
}

}  // namespace earshot::serve
