#include "status/todo_lists.hpp"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/file.hpp"
#include "base/quantities.hpp"

namespace earshot::status {
namespace {

struct SourceRead {
  std::optional<TodoList> list;
  bool is_incomplete = false;
};

SourceRead read_list_file(const TodoFiles& format, const std::string& path) {
  SourceRead read;
  const SmallFile file = read_small_file(path, TodoFiles::todo_bytes_max);
  if (!file.ok()) return read;
  auto todos = format.parse_todo_list(file.text);
  read.is_incomplete = !todos;
  if (todos) read.list = TodoList{std::move(*todos), file.stat.modified_ms(), {}, {}};
  return read;
}

/// The names of the first todos by number.
std::vector<std::pair<std::uint64_t, std::string>> todo_files(const TodoFiles& format,
                                                              const Directory& directory) {
  std::vector<std::pair<std::uint64_t, std::string>> files;
  std::size_t seen = 0;
  directory.for_each([&](std::string_view name, FileType) {
    if (seen++ >= todo_names_max) return;
    if (const auto number = format.todo_number(name)) files.emplace_back(*number, name);
  });
  std::sort(files.begin(), files.end());
  if (files.size() > TodoFiles::todos_max) files.resize(TodoFiles::todos_max);
  return files;
}

SourceRead read_list_directory(const TodoFiles& format, const std::string& path, const Directory& directory) {
  SourceRead read;
  TodoList list;
  list.modified_ms = directory.stat().modified_ms();
  bool has_files = false;
  for (const auto& [number, name] : todo_files(format, directory)) {
    const SmallFile file = read_small_file(path + '/' + name, TodoFiles::todo_bytes_max);
    if (!file.ok()) continue;
    has_files = true;
    auto todo = format.parse_todo(file.text);
    if (!todo) {
      read.is_incomplete = true;
      continue;
    }
    list.modified_ms = std::max(list.modified_ms, file.stat.modified_ms());
    if (todo->status == "deleted") continue;
    if (todo->id.empty()) todo->id = std::to_string(number);
    list.todos.push_back(std::move(*todo));
  }
  if (has_files) read.list = std::move(list);
  return read;
}

/// Of a program without such files there are none.
std::vector<TodoSource> sources_of(const Root& root, const std::string& session) {
  const TodoFiles* const format = root.program->todo_files();
  return format ? format->todo_sources(session) : std::vector<TodoSource>();
}

}  // namespace

TodoRead read_todo_list(const Root& root, const std::string& session) {
  TodoRead result;
  for (const TodoSource& source : sources_of(root, session)) {
    const std::string path = root.path + '/' + source.path;
    SourceRead read;
    if (source.is_directory) {
      const Directory directory(path, Symlinks::follow);
      if (directory.error()) continue;
      result.directories[path] = directory.stat().modified_ms();
      read = read_list_directory(*root.program->todo_files(), path, directory);
    } else {
      read = read_list_file(*root.program->todo_files(), path);
    }
    result.is_incomplete |= read.is_incomplete;
    if (!read.list || (result.list && read.list->modified_ms < result.list->modified_ms)) continue;
    result.list = std::move(read.list);
    result.list->source = source.name;
    result.list->modified = format_time_if_valid(result.list->modified_ms);
  }
  return result;
}

TodoLists::TodoLists(boost::asio::io_context& io, boost::asio::any_io_executor disk, std::vector<Root> roots,
                     watch::Watcher& watcher, std::chrono::milliseconds retry, OnChange on_change)
    : io_(io),
      disk_(std::move(disk)),
      roots_(std::move(roots)),
      watcher_(watcher),
      retry_(retry),
      on_change_(std::move(on_change)),
      retry_timer_(io) {}

void TodoLists::stop() {
  alive_.reset();
  retry_timer_.cancel();
}

void TodoLists::watch_root(const Root& root) {
  const TodoFiles* const format = root.program->todo_files();
  if (!format) return;
  bool is_changed = false;
  for (const std::string_view name : format->todo_directories()) {
    const std::string path = root.path + '/' + std::string(name);
    const DirectoryId id = directory_id(path);
    if (id != DirectoryId{}) watcher_.watch(path);
    is_changed |= std::exchange(directory_ids_[path], id) != id;
  }
  if (is_changed) rescan();
}

void TodoLists::track(const std::string& session) {
  const bool has_sources = std::any_of(roots_.begin(), roots_.end(),
                                       [&](const Root& root) { return !sources_of(root, session).empty(); });
  if (has_sources && tracked_.try_emplace(session).second) mark_dirty(session);
}

void TodoLists::untrack(const std::string& session) {
  if (tracked_.erase(session) == 0) return;
  dirty_.erase(session);
  incomplete_.erase(session);
  for (const Root& root : roots_)
    for (const TodoSource& source : sources_of(root, session)) {
      const std::string path = root.path + '/' + source.path;
      if (watched_.erase(path)) watcher_.unwatch(path);
    }
}

void TodoLists::rescan() {
  for (const auto& [session, tracked] : tracked_) dirty_.insert(session);
  read_dirty();
}

void TodoLists::on_change(const Root& root, const std::string& path) {
  if (path.find('/') == path.npos) {  // the todo directory itself was created or removed
    watch_root(root);
    return rescan();
  }
  const std::string session = root.program->todo_files()->session_of_todo_path(path);
  watched_.erase(root.path + '/' + path);  // the name may belong to a different directory now
  mark_dirty(session);
}

void TodoLists::mark_dirty(const std::string& session) {
  if (!tracked_.contains(session)) return;
  dirty_.insert(session);
  read_dirty();
}

void TodoLists::read_dirty() {
  if (reading_ || dirty_.empty() || !alive_) return;
  reading_ = true;
  std::vector<std::string> sessions;
  while (!dirty_.empty() && sessions.size() < batch_max)
    sessions.push_back(std::move(dirty_.extract(dirty_.begin()).value()));
  auto guard = boost::asio::make_work_guard(io_);
  boost::asio::post(disk_, [this, alive = std::weak_ptr<char>(alive_), roots = roots_,
                            sessions = std::move(sessions), guard = std::move(guard)]() mutable {
    std::vector<Result> results;
    for (std::string& session : sessions) {
      Result result;
      for (const Root& root : roots) result.by_root.push_back(read_todo_list(root, session));
      result.session = std::move(session);
      results.push_back(std::move(result));
    }
    boost::asio::post(guard.get_executor(), [this, alive, results = std::move(results)]() mutable {
      if (alive.expired()) return;
      reading_ = false;
      for (Result& result : results) apply(std::move(result));
      read_dirty();
    });
  });
}

void TodoLists::apply(Result result) {
  const auto found = tracked_.find(result.session);
  if (found == tracked_.end()) return;
  Tracked& tracked = found->second;
  bool is_incomplete = false;
  std::int64_t directory_ms = 0;
  std::optional<TodoList> newest;
  for (TodoRead& read : result.by_root) {
    is_incomplete |= read.is_incomplete;
    if (read.list && (!newest || read.list->modified_ms > newest->modified_ms)) newest = std::move(read.list);
    for (const auto& [path, modified_ms] : read.directories) {
      directory_ms = std::max(directory_ms, modified_ms);
      if (!watched_.insert(path).second) continue;
      watcher_.watch(path);
      dirty_.insert(result.session);  // files may have been written between the reading and the watch
    }
  }
  tracked.incomplete_reads = is_incomplete ? tracked.incomplete_reads + 1 : 0;
  if (is_incomplete && tracked.incomplete_reads <= retries_max) {
    incomplete_.insert(result.session);
    return retry_later();
  }
  if (!newest && tracked.list) {  // the files were removed: the list is empty now
    newest = TodoList{{}, std::max(directory_ms, tracked.list->modified_ms), {}, tracked.list->source};
    newest->modified = format_time_if_valid(newest->modified_ms);
  }
  const bool is_changed = newest.has_value() && (!tracked.list || newest->todos != tracked.list->todos);
  tracked.list = newest ? std::make_unique<TodoList>(std::move(*newest)) : nullptr;
  if (is_changed) on_change_(result.session);
}

void TodoLists::retry_later() {
  if (retry_scheduled_ || !alive_) return;
  retry_scheduled_ = true;
  int tries = retries_max;
  for (const std::string& session : incomplete_)
    tries = std::min(tries, tracked_.at(session).incomplete_reads);
  retry_timer_.expires_after(retry_ * (1 << tries));
  retry_timer_.async_wait(
      [this, alive = std::weak_ptr<char>(alive_)](const boost::system::error_code& failed) {
        if (failed || alive.expired()) return;
        retry_scheduled_ = false;
        dirty_.merge(incomplete_);
        incomplete_.clear();
        read_dirty();
      });
}

const TodoList* TodoLists::of(const std::string& session) const {
  const auto found = tracked_.find(session);
  return found != tracked_.end() ? found->second.list.get() : nullptr;
}

}  // namespace earshot::status
