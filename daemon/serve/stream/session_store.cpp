#include "serve/stream/session_store.hpp"

#include <algorithm>
#include <utility>

#include "base/quantities.hpp"
#include "serve/stream/frames.hpp"

namespace earshot::serve {
namespace {

std::string_view root_of(const tail::Stream& stream) {
  return std::string_view(stream.name()).substr(0, stream.name().find('/'));
}

}  // namespace

const tail::Stream* Session::main() const {
  const tail::Stream* best = nullptr;
  std::int64_t best_ms = -1;
  for (const Member& member : members) {
    if (!member.stream->agent().empty()) continue;
    const Transcript* transcript = member.stream->transcript();
    const std::int64_t ms = transcript ? transcript->last_activity_ms() : -1;
    if (!best || ms > best_ms) {
      best = member.stream;
      best_ms = ms;
    }
  }
  return best;
}

std::int64_t Session::modified_ms() const {
  std::int64_t newest = 0;
  for (const Member& member : members) newest = std::max(newest, member.stream->modified_ms());
  return newest;
}

bool Session::process_lives() const {
  return status && status->source == "registry" && status->state != "ended" && status->state != "unknown";
}

bool Session::has_events() const {
  return std::any_of(members.begin(), members.end(), [](const Member& member) {
    const StreamState* const state = state_of(member.stream);
    return state && (state->has_events || state->is_announced);
  });
}

std::int64_t Session::finished_ms() const {
  const tail::Stream* stream = main();
  if (!stream || !stream->transcript()) return 0;
  return parse_time(stream->transcript()->state().last_finished).value_or(0);
}

bool Session::is_unseen() const {
  const tail::Stream* stream = main();
  if (!seen || !stream || !stream->transcript()) return false;
  if (status && (status->state == "working" || status->state == "waiting")) return false;  // not done yet
  const StreamState& state = stream->transcript()->state();
  const bool is_finished = state.last_outcome == "completed" || state.last_outcome == "failed";
  return is_finished && !state.turn_open && finished_ms() > seen->seen_until(name);
}

void Session::set_status(const status::Status& next) {
  const tail::Stream* stream = main();
  const StreamState* state = stream && stream->transcript() ? &stream->transcript()->state() : nullptr;
  live_waits.status_changed(status ? &*status : nullptr, next, state ? state->turn : 0,
                            state ? state->times.turn_waited().value_or(0) : 0);
  status = next;
}

void Session::add_project(std::string_view added) {
  if (added.empty() || other_projects.size() == projects_max) return;
  if (std::find(other_projects.begin(), other_projects.end(), added) == other_projects.end())
    other_projects.emplace_back(added);
}

std::string_view project_of(const Session& session, const tail::Stream& stream) {
  std::string_view project;
  int main_streams = 0;
  bool is_subagent_of_main = false;
  for (const Member& member : session.members) {
    const bool is_main = member.stream->agent().empty();
    const bool is_its_main = is_main && stream.name().starts_with(member.stream->name() + "/");
    main_streams += is_main;
    is_subagent_of_main |= is_its_main;
    const Transcript* transcript = member.stream->transcript();
    if (!transcript || (!is_its_main && (is_subagent_of_main || member.stream != &stream))) continue;
    project = transcript->project();
  }
  const bool is_of_main = stream.agent().empty() || is_subagent_of_main;
  const bool is_only_project = main_streams == 0 || (main_streams == 1 && is_of_main);
  // The session's one may be that of a stream that was removed.
  const bool is_known = !project.empty() || !is_only_project || !session.other_projects.empty();
  return is_known ? project : std::string_view(session.project);
}

std::set<std::string> projects_of(const Session& session) {
  std::set<std::string> projects(session.other_projects.begin(), session.other_projects.end());
  projects.insert(session.project);
  for (const Member& member : session.members)
    if (member.stream->agent().empty()) projects.emplace(project_of(session, *member.stream));
  projects.erase("");
  return projects;
}

Session& SessionStore::make(std::string_view name) {
  auto session = std::make_unique<Session>();
  session->id = next_id_++;
  session->name = name;
  session->seen = &seen_;
  if (const ReportedNumbers* reported = reported_.find(name)) session->reported.change() = *reported;
  if (const auto offset = clock_offsets_.find(host_of(name)); offset != clock_offsets_.end())
    session->clock_offset_ms = offset->second;
  if (is_online_ && !name.empty() && !is_online_(host_of(name)))
    session->status = status::host_offline_status({});
  Session& made = *session;
  by_id_.emplace(made.id, std::move(session));
  if (!name.empty()) by_name_.emplace(made.name, &made);
  return made;
}

Session& SessionStore::find_or_create(std::string_view name) {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? make(name) : *it->second;
}

Session* SessionStore::find(std::string_view name) {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

const Session* SessionStore::find(std::string_view name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

Session* SessionStore::find(std::uint32_t id) {
  auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : it->second.get();
}

Session& SessionStore::session_of(const tail::Stream& stream) {
  Known& known = by_stream_[&stream];
  Session*& slot = known.session;
  if (slot && slot->name == stream.session()) return *slot;
  Member member{&stream};
  if (!slot) account_for(member);
  Session& session = stream.session().empty() ? make({}) : find_or_create(stream.session());
  if (slot) {  // its session was unknown until now
    const auto moved = std::find_if(slot->members.begin(), slot->members.end(),
                                    [&](const Member& each) { return each.stream == &stream; });
    slot->add_project(project_of(*slot, stream));
    member.used = std::move(moved->used);
    member.counted = moved->counted;
    slot->members.erase(moved);
    slot->frames = {};
    slot->retired = slot->changed;
    session.counted_usd += std::exchange(slot->counted_usd, 0);
    session.grown_usd.merge(slot->grown_usd);
  } else {
    known.id = next_stream_++;
    streams_.emplace(known.id, &stream);
  }
  member.id = known.id;
  session.members.push_back(std::move(member));
  if (const auto account = accounts_.find(root_of(stream)); account != accounts_.end())
    session.account = &account->second;
  session.frames = {};
  slot = &session;
  note_cost(session);
  refresh(session);
  return session;
}

Session* SessionStore::report(std::string_view name, const ReportedNumbers& numbers) {
  reported_[name] = numbers;
  Session* session = find(name);
  if (!session || *session->reported == numbers) return nullptr;
  session->reported.change() = numbers;
  session->frames = {};
  return session;
}

std::vector<Session*> SessionStore::set_clock_offset(std::string_view host, std::int64_t offset_ms) {
  clock_offsets_.erase(std::string(host));
  if (offset_ms != 0) clock_offsets_.emplace(host, offset_ms);
  std::vector<Session*> changed;
  for (const auto& [name, session] : by_name_) {
    if (host_of(name) != host || session->clock_offset_ms == offset_ms) continue;
    session->clock_offset_ms = offset_ms;
    session->frames = {};
    changed.push_back(session);
  }
  return changed;
}

bool SessionStore::report_limit(const Session& reporting, LimitState limit) {
  const tail::Stream* main = reporting.main();
  if (!main) return false;
  LimitState& known = accounts_[std::string(root_of(*main))];
  const bool is_same = known.limit == limit.limit && known.windows == limit.windows;
  known = std::move(limit);
  if (is_same) return false;
  for (const auto& [stream, each] : by_stream_) {
    if (root_of(*stream) != root_of(*main)) continue;
    each.session->account = &known;
    each.session->frames = {};
  }
  return true;
}

void SessionStore::account_for(Member& member) {
  const tail::Stream& stream = *member.stream;
  const auto used = [&stream]() -> const StreamUsage* {
    const Transcript* const transcript = stream.transcript();
    return transcript ? &transcript->used() : nullptr;
  };
  const auto changed = [this, &stream] {
    const auto known = by_stream_.find(&stream);
    if (known == by_stream_.end() || !known->second.session) return;
    known->second.session->frames = {};
    note_cost(*known->second.session);
  };
  changed();
  member.used = UsageAccount(ledger_, used, {stream.origin_ns(), stream.name()}, changed);
}

Session* SessionStore::remove_stream(const tail::Stream& stream, Position log_head) {
  auto it = by_stream_.find(&stream);
  if (it == by_stream_.end()) return nullptr;
  Session& session = *it->second.session;
  const std::string_view project = project_of(session, stream);
  removed_[std::to_string(it->second.id)] = project;
  session.add_project(project);
  streams_.erase(it->second.id);
  by_stream_.erase(it);
  std::erase_if(session.members, [&](const Member& member) { return member.stream == &stream; });
  session.frames = {};
  session.retired = log_head;
  note_cost(session);
  return &session;
}

std::vector<Session*> SessionStore::take_changed_costs() {
  std::vector<Session*> sessions;
  for (const std::uint32_t id : std::exchange(changed_costs_, {})) {
    Session* const session = find(id);
    if (session && std::exchange(session->cost_changed, false)) sessions.push_back(session);
  }
  return sessions;
}

void SessionStore::refresh(Session& session) {
  const tail::Stream* main = session.main();
  const tail::Stream* shown = main;
  std::string_view project;
  if (main && main->transcript()) project = main->transcript()->project();
  for (const Member& member : session.members) {
    if (!shown) shown = member.stream;
    if (project.empty() && member.stream->transcript()) project = member.stream->transcript()->project();
  }
  const std::string_view directory = shown ? std::string_view(shown->directory()) : session.directory;
  // Once known, the project and the program are kept, even if their stream is deleted.
  if (project.empty()) project = session.project;
  std::string_view program = session.program;
  for (const Member& member : session.members)
    if (program.empty() && member.stream->transcript()) program = member.stream->transcript()->program();
  if (session.status) {  // a process that has not written a line yet
    if (project.empty()) project = session.status->project;
    if (program.empty()) program = session.status->program;
  }
  if (project == session.project && directory == session.directory && program == session.program) return;
  session.project = project;
  session.directory = directory;
  session.program = program;
  ++session.generation;
}

std::size_t SessionStore::purge(Position log_first) {
  std::size_t waiting = 0;
  for (auto it = by_id_.begin(); it != by_id_.end();) {
    Session& session = *it->second;
    const bool alive = !session.members.empty() || session.process_lives();
    const bool retired = !alive && session.retired < log_first && !session.pending && !session.is_throttled;
    if (!alive && !retired) ++waiting;
    if (!retired) {
      ++it;
      continue;
    }
    if (!session.name.empty()) by_name_.erase(session.name);
    it = by_id_.erase(it);
  }
  return waiting;
}

std::string SessionStore::payload(const Session& session, const EncodeOptions& options) const {
  return session_payload(session, host_of(session.name), options, *models_);
}

Frame SessionStore::frame(Session& session, Audience audience) {
  Frame& frame = session.frames[static_cast<std::size_t>(audience)];
  if (!frame) frame = make_frame(payload(session, {.view = view_of(audience), .filter = filter_}));
  return frame;
}

std::uint32_t SessionStore::stream_id(const tail::Stream& stream) const {
  const auto it = by_stream_.find(&stream);
  return it == by_stream_.end() ? 0 : it->second.id;
}

const tail::Stream* SessionStore::find_stream(std::uint32_t id) const {
  const auto it = streams_.find(id);
  return it == streams_.end() ? nullptr : it->second;
}

void SessionStore::for_each(const std::function<void(Session&)>& visit) {
  for (auto& [name, session] : by_name_) visit(*session);
}

void SessionStore::for_each(const std::function<void(const Session&)>& visit) const {
  for (const auto& [name, session] : by_name_) visit(*session);
}

bool SessionStore::visit_after(std::string_view name, const std::function<bool(Session&)>& visit) {
  for (auto at = by_name_.upper_bound(name); at != by_name_.end();) {
    Session& session = *at->second;
    if (++at, !visit(session)) return at == by_name_.end();
  }
  return true;
}

bool SessionStore::visit_slice(Slice& slice, std::string& name, const std::function<void(Session&)>& visit) {
  return visit_after(name, [&](Session& session) {
    name = session.name;
    visit(session);
    return !slice.is_over();
  });
}

void SessionScans::begin(const void* owner, Visit visit, std::function<void()> done) {
  const auto work = [this, visit = std::move(visit), last = std::string()](Slice& slice) mutable {
    return sessions_.visit_slice(slice, last, visit);
  };
  begin(owner, Work(work), std::move(done));
}

}  // namespace earshot::serve
