// What others report about a session: its program's status line, and the user who has seen it.
#include "base/quantities.hpp"
#include "serve/server.hpp"

namespace earshot::serve {

void Server::on_status_line(const StatusLine& line) {
  ReportedNumbers numbers;
  numbers.context_window = line.context_window;
  Session* changed = line.context_window ? context_.sessions.report(line.session, numbers) : nullptr;
  Session* session = context_.sessions.find(line.session);
  if (session && !line.windows.empty()) {
    const LimitState limit{format_time_if_valid(wall_now_ms()), line.limit, "", "", line.windows};
    if (context_.sessions.report_limit(*session, limit)) changed = session;
  }
  if (!changed) return;
  touch(*changed, false);
  append_session(*changed);
  wake_soon();
}

void Server::on_host_numbers(const std::string& name, ReportedNumbers numbers) {
  numbers.is_from_host = true;
  metrics_.count_costs();
  const Session* const known = context_.sessions.find(name);
  const bool is_first = known && !known->reported->is_from_host;
  Session* session = context_.sessions.report(name, numbers);
  if (!session) return;
  context_.sessions.note_cost(*session);
  if (is_first) metrics_.skip_costs();
  touch(*session, false);
  append_session(*session);
  wake_soon();
}

void Server::on_host_clock(const std::string& host, std::int64_t offset_ms) {
  for (Session* session : context_.sessions.set_clock_offset(host, offset_ms)) {
    touch(*session, false);
    if (is_live(*session, context_.recent)) append_session(*session);
  }
  wake_soon();
}

bool Server::mark_seen(const std::string& name) {
  Session* session = context_.sessions.find(name);
  if (!session && !(context_.has_cold_session && context_.has_cold_session(name))) return false;
  // The transcript's time is compared with others of the same clock; of an unread one, this clock is as good.
  const std::int64_t until_ms = session ? session->finished_ms() : wall_now_ms();
  if (!context_.sessions.seen().mark(name, until_ms)) return true;
  if (context_.callbacks.seen_changed) context_.callbacks.seen_changed();
  if (!session || !session->was_unseen) return true;
  touch(*session, false);
  append_session(*session);
  wake_soon();
  return true;
}

}  // namespace earshot::serve
