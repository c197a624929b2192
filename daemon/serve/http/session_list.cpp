#include "serve/http/session_list.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/json_writer.hpp"
#include "serve/auth/access.hpp"
#include "serve/slices.hpp"
#include "serve/stream/session_store.hpp"

namespace earshot::serve {
namespace {

constexpr std::size_t limit_default = 100, limit_max = 1000;  // sessions of a page
constexpr std::size_t page_bytes_max = 4 << 20;               // a longer page ends early, with `next`

struct Wanted {
  Filter filter;
  std::string after;
  std::size_t limit = limit_default;
  bool all = false;
  Filter allowed;  // of a restricted user
  View view = View::full;
  std::string if_none_match;

  /// Project and program are known after reading: the page cannot be chosen before.
  bool by_content() const {
    return !filter.project.empty() || !filter.program.empty() || !allowed.project.empty();
  }
};

/// Makes one page: with `all` it lists the unread sessions, and reads those that may be on the page. Each
/// step returns the response that makes the next one.
class SessionList : public std::enable_shared_from_this<SessionList> {
 public:
  SessionList(ServerContext& context, Wanted wanted)
      : context_(context), wanted_(std::move(wanted)), in_use_(context.cold_sessions_in_use) {}

  HttpResponse begin() {
    if (!wanted_.all || !context_.read_cold_sessions) return write();
    HttpResponse later;
    later.kind = HttpResponse::Kind::later;
    later.compute = [self = shared_from_this()](const std::function<void(HttpResponse)>& done) {
      const auto list = [self](std::string_view name) {
        if (self->is_wanted(name)) self->unread_.emplace(name);
        return false;  // not read yet
      };
      self->context_.read_cold_sessions(list, [self, done] { done(self->choose()); });
    };
    return later;
  }

 private:
  using Names = std::set<std::string, std::less<>>;

  bool is_wanted(std::string_view name) const {
    return !name.empty() && name > wanted_.after &&
           wanted_.filter.matches_name(context_.host_of(name), name) &&
           may_see_by_name(wanted_.allowed, context_.sessions, name);
  }
  bool is_wanted(const Session& session) const {
    return (!session.members.empty() || session.process_lives()) && is_wanted(session.name) &&
           wanted_.filter.matches_session(context_.sessions.keys_of(session)) &&
           may_see(wanted_.allowed, context_.sessions, session) &&
           (wanted_.all || is_live(session, context_.recent));
  }
  bool is_unread(const std::string& name) const {
    const Session* const session = context_.sessions.find(name);
    return !session || session->members.empty();
  }

  /// Continues by name until the slice is over or `visit` returns false; true: this was the end.
  template <class Visit>
  bool visit_wanted(Slice& slice, std::string& last, Visit visit) {
    bool is_enough = false;
    const bool is_end = context_.sessions.visit_after(last, [&](Session& session) {
      is_enough = is_wanted(session) && !visit(session);
      if (!is_enough) last = session.name;
      return !is_enough && !slice.is_over();
    });
    return is_end || is_enough;
  }

  /// Chooses the unread sessions that may be on the page.
  HttpResponse choose() {
    if (unread_.empty() || wanted_.by_content()) return read(unread_);
    HttpResponse sliced;
    sliced.kind = HttpResponse::Kind::sliced;
    sliced.make = [self = shared_from_this(), due = unread_, last = wanted_.after, count = std::size_t{0}](
                      Slice& slice, HttpResponse& made) mutable {
      const auto add = [&](const Session& session) {
        due.insert(session.name);
        return ++count < self->wanted_.limit;
      };
      if (!self->visit_wanted(slice, last, add)) return false;
      if (due.size() > self->wanted_.limit)
        due.erase(std::next(due.begin(), static_cast<std::ptrdiff_t>(self->wanted_.limit)), due.end());
      std::erase_if(due, [&](const std::string& name) { return !self->unread_.contains(name); });
      made = self->read(std::move(due));
      return true;
    };
    return sliced;
  }

  HttpResponse read(Names due) {
    if (due.empty()) return write();
    HttpResponse later;
    later.kind = HttpResponse::Kind::later;
    later.compute = [self = shared_from_this(), due = std::move(due)](const auto& done) {
      const auto is_due = [due](std::string_view name) { return due.contains(name); };
      self->context_.read_cold_sessions_once(is_due, [self, done] { done(self->write()); });
    };
    return later;
  }

  HttpResponse write() {
    // Unreadable transcripts have an unknown project: a restricted user must not learn that they exist.
    if (!wanted_.allowed.project.empty()) unread_.clear();
    HttpResponse sliced;
    sliced.kind = HttpResponse::Kind::sliced;
    sliced.make = [self = shared_from_this(), last = wanted_.after](Slice& slice,
                                                                    HttpResponse& made) mutable {
      if (made.body.empty()) made = json_response(R"({"sessions":[)");
      const auto add = [&](const Session& session) { return self->add(session, made.body); };
      if (!self->visit_wanted(slice, last, add)) return false;
      self->finish(made);
      return true;
    };
    return sliced;
  }

  /// False: it is on the next page.
  bool add(const Session& session, std::string& body) {
    if (visited_ == wanted_.limit) return !(has_more_ = true);
    if (session.is_shown()) {
      const std::string payload =
          context_.sessions.payload(session, {.view = wanted_.view, .filter = context_.filter});
      if (count_ > 0 && body.size() + payload.size() > page_bytes_max) return !(has_more_ = true);
      if (count_++ > 0) body += ',';
      body += payload;
    }
    ++visited_;  // what is no session yet, too
    last_ = session.name;
    return true;
  }

  void finish(HttpResponse& made) {
    has_more_ |= std::any_of(unread_.upper_bound(last_), unread_.end(),
                             [this](const std::string& name) { return is_unread(name); });
    made.body += ']';
    if (visited_ > 0 && has_more_) {
      made.body += R"(,"next":)";
      append_json_string(made.body, last_);
    }
    made.body += "}\n";
    made.etag = etag_of(made.body);
    made = or_not_modified(std::move(made), wanted_.if_none_match);
  }

  ServerContext& context_;
  const Wanted wanted_;
  const std::shared_ptr<void> in_use_;  // what is read stays until the page is complete
  Names unread_;
  std::size_t count_ = 0, visited_ = 0;  // sessions on the page, and those that are not shown
  std::string last_;                     // of these
  bool has_more_ = false;
};

}  // namespace

HttpResponse sessions(const Request& request, const RequestContext& request_context, ServerContext& context) {
  constexpr std::string_view known[] = {"after", "limit", "all", "project", "session", "program", "view"};
  Query query = parse_query(request.query());
  query.only(known);
  Wanted wanted;
  if (const User* user = request_context.caller.user) wanted.allowed = user->allowed;
  wanted.filter.project = query.all("project");
  wanted.filter.session = query.all("session");
  wanted.filter.program = query.all("program");
  wanted.after = query.one("after");
  wanted.limit = query.number("limit", limit_default, 1, limit_max);
  wanted.all = query.flag("all", false);
  wanted.view = query.is_meta_view() ? View::meta : request_context.caller.view;
  wanted.if_none_match = request.if_none_match;
  if (query.error.empty() &&
      !wanted.filter.is_within(context.limits.patterns_max, context.limits.pattern_bytes_max))
    query.error = "too many patterns, or a pattern is too long";
  if (!query.error.empty()) return text_response(400, query.error);
  return std::make_shared<SessionList>(context, std::move(wanted))->begin();
}

}  // namespace earshot::serve
