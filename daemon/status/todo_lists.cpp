#include "status/todo_lists.hpp"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <string_view>
#include <utility>

#include "status/text.hpp"

namespace earshot::status {

namespace {

std::string tasks_of(const std::string& root, const std::string& session) {
  return root + "/tasks/" + session;
}

}  // namespace

TodoLists::TodoLists(boost::asio::io_context& io, boost::asio::any_io_executor disk,
                     std::vector<std::string> roots, watch::Watcher& watcher, std::chrono::milliseconds retry,
                     Changed changed)
    : io_(io),
      disk_(std::move(disk)),
      roots_(std::move(roots)),
      watcher_(watcher),
      retry_(retry),
      changed_(std::move(changed)),
      retry_timer_(io) {}

void TodoLists::stop() {
  here_.reset();
  retry_timer_.cancel();
}

void TodoLists::arm(const std::string& root) {
  bool others = false;
  for (const char* name : {"/todos", "/tasks"}) {
    const std::string directory = root + name;
    const Identity identity = directory_at(directory);
    if (identity != Identity{}) watcher_.watch(directory);
    others = others || identity_[directory] != identity;
    identity_[directory] = identity;
  }
  if (others) rescan();
}

void TodoLists::track(const std::string& session) {
  if (is_entry_name(session) && known_.try_emplace(session).second) mark_dirty(session);
}

void TodoLists::untrack(const std::string& session) {
  if (known_.erase(session) == 0) return;
  dirty_.erase(session);
  torn_.erase(session);
  for (const std::string& root : roots_) {
    const std::string directory = tasks_of(root, session);
    if (watched_.erase(directory)) watcher_.unwatch(directory);
  }
}

void TodoLists::rescan() {
  for (const auto& [session, known] : known_) dirty_.insert(session);
  read();
}

void TodoLists::on_change(const std::string& root, const std::string& below_root) {
  const std::string_view path = below_root;
  const auto slash = path.find('/');
  const std::string_view kind = path.substr(0, slash);
  if (slash == path.npos) {  // the directory itself: born, gone, or to be listed again
    arm(root);
    return rescan();
  }
  const std::string_view rest = path.substr(slash + 1);
  if (kind == "todos") return mark_dirty(std::string(session_of_todo_name(rest)));
  const std::string session(rest.substr(0, rest.find('/')));
  if (session.size() == rest.size())
    watched_.erase(tasks_of(root, session));  // perhaps another directory of the name
  mark_dirty(session);
}

void TodoLists::mark_dirty(const std::string& session) {
  if (!known_.contains(session)) return;
  dirty_.insert(session);
  read();
}

void TodoLists::read() {
  if (reading_ || dirty_.empty() || !here_) return;
  reading_ = true;
  std::vector<std::string> sessions;
  while (!dirty_.empty() && sessions.size() < batch_max)
    sessions.push_back(std::move(dirty_.extract(dirty_.begin()).value()));
  auto guard = boost::asio::make_work_guard(io_);
  boost::asio::post(disk_, [this, here = std::weak_ptr<char>(here_), roots = roots_,
                            sessions = std::move(sessions), guard = std::move(guard)]() mutable {
    std::vector<Answer> answers;
    for (std::string& session : sessions) {
      Answer answer;
      for (const std::string& root : roots) answer.by_root.push_back(read_lists(root, session));
      answer.session = std::move(session);
      answers.push_back(std::move(answer));
    }
    boost::asio::post(guard.get_executor(), [this, here, answers = std::move(answers)]() mutable {
      if (!here.lock()) return;
      reading_ = false;
      for (Answer& answer : answers) apply(std::move(answer));
      read();
    });
  });
}

void TodoLists::apply(Answer answer) {
  const auto found = known_.find(answer.session);
  if (found == known_.end()) return;
  Known& known = found->second;
  bool torn = false;
  std::int64_t directory_ms = 0;
  std::optional<TodoList> newest;
  for (std::size_t at = 0; at < answer.by_root.size(); ++at) {
    ListRead& read = answer.by_root[at];
    torn = torn || read.torn;
    directory_ms = std::max(directory_ms, read.directory_ms);
    if (read.list && (!newest || read.list->modified_ms > newest->modified_ms)) newest = std::move(read.list);
    const std::string directory = tasks_of(roots_[at], answer.session);
    if (read.tasks_directory && watched_.insert(directory).second) {
      watcher_.watch(directory);
      dirty_.insert(answer.session);  // what was written before the watch and after the reading
    }
  }
  known.torn = torn ? known.torn + 1 : 0;
  if (torn && known.torn <= retries_max) {
    torn_.insert(answer.session);
    return retry_later();
  }
  if (!newest &&
      known.list) {  // the files went: an empty list, and that is news; a list that never was is none
    newest = TodoList{{}, std::max(directory_ms, known.list->modified_ms), {}, known.list->source};
    newest->modified = rfc3339(newest->modified_ms);
  }
  const bool changed = newest.has_value() && (!known.list || newest->todos != known.list->todos);
  known.list = std::move(newest);
  if (changed) changed_(answer.session);
}

void TodoLists::retry_later() {
  if (retry_armed_ || !here_) return;
  retry_armed_ = true;
  int tries = retries_max;
  for (const std::string& session : torn_) tries = std::min(tries, known_.at(session).torn);
  retry_timer_.expires_after(retry_ * (1 << tries));
  retry_timer_.async_wait([this, here = std::weak_ptr<char>(here_)](const boost::system::error_code& failed) {
    if (failed || !here.lock()) return;
    retry_armed_ = false;
    dirty_.merge(torn_);
    torn_.clear();
    read();
  });
}

const TodoList* TodoLists::of(const std::string& session) const {
  const auto found = known_.find(session);
  return found != known_.end() && found->second.list ? &*found->second.list : nullptr;
}

}  // namespace earshot::status
