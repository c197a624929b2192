#include "agents/claude_code/todo_files.hpp"

#include <dirent.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "status/small_file.hpp"
#include "status/text.hpp"

namespace earshot::status {

namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

std::string text_of(const object& from, std::string_view key) {
  element value;
  if (from[key].get(value) != simdjson::SUCCESS) return {};
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return std::string(text);
  std::int64_t number = 0;  // ids are numbers in some versions
  return value.get(number) == simdjson::SUCCESS ? std::to_string(number) : std::string();
}

Todo todo_of(const object& from, std::string_view content_key) {
  Todo todo;
  todo.id = text_of(from, "id");
  todo.content = text_of(from, content_key);
  todo.status = text_of(from, "status");
  todo.active_form = text_of(from, "activeForm");
  todo.priority = text_of(from, "priority");
  if (todo.status.empty()) todo.status = "pending";
  return todo;
}

/// `<n>.json`; nothing for locks, temporary files and whatever else lies beside the tasks.
std::optional<std::uint64_t> number_of_name(std::string_view name) {
  constexpr std::string_view ending = ".json";
  if (!name.ends_with(ending)) return std::nullopt;
  name.remove_suffix(ending.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

struct Directory {
  bool exists = false;
  std::int64_t modified_ms = 0;
  std::vector<std::pair<std::uint64_t, std::string>> names;  // by number
};

Directory list_tasks(const std::string& path) {
  Directory found;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(path.c_str()), ::closedir);
  if (!open) return found;
  struct stat about {};
  if (::fstat(::dirfd(open.get()), &about) == 0) found.modified_ms = modified_ms_of(about);
  found.exists = true;
  for (std::size_t seen = 0; seen < task_names_max; ++seen) {
    const dirent* entry = ::readdir(open.get());
    if (!entry) break;
    if (const auto number = number_of_name(entry->d_name)) found.names.emplace_back(*number, entry->d_name);
  }
  std::sort(found.names.begin(), found.names.end());
  if (found.names.size() > tasks_max) found.names.resize(tasks_max);
  return found;
}

struct OneRead {
  std::optional<TodoList> list;
  bool torn = false;
};

OneRead read_todos(const std::string& path) {
  OneRead read;
  const SmallFile file = read_small_file(path, list_bytes_max);
  if (file.outcome != SmallFile::Outcome::read) return read;
  auto todos = parse_todos(file.text);
  read.torn = !todos;
  if (todos) read.list = TodoList{std::move(*todos), file.modified_ms, {}, "todos"};
  return read;
}

OneRead read_tasks(const std::string& path, const Directory& directory) {
  OneRead read;
  TodoList list;
  list.source = "tasks";
  list.modified_ms = directory.modified_ms;
  const std::string below = path + "/";
  bool any = false;
  for (const auto& [number, name] : directory.names) {
    const SmallFile file = read_small_file(below + name, list_bytes_max);
    if (file.outcome != SmallFile::Outcome::read) continue;
    any = true;
    auto task = parse_task(file.text);
    if (!task) {
      read.torn = true;
      continue;
    }
    list.modified_ms = std::max(list.modified_ms, file.modified_ms);
    if (task->status == "deleted") continue;
    if (task->id.empty()) task->id = std::to_string(number);
    list.todos.push_back(std::move(*task));
  }
  if (any) read.list = std::move(list);
  return read;
}

}  // namespace

std::optional<std::vector<Todo>> parse_todos(std::string_view json) {
  simdjson::dom::parser parser;
  array from;
  if (json.size() > list_bytes_max || parser.parse(json.data(), json.size()).get(from) != simdjson::SUCCESS)
    return std::nullopt;
  std::vector<Todo> todos;
  for (const element one : from) {
    object todo;
    if (todos.size() == tasks_max) break;
    if (one.get(todo) == simdjson::SUCCESS) todos.push_back(todo_of(todo, "content"));
  }
  return todos;
}

std::optional<Todo> parse_task(std::string_view json) {
  simdjson::dom::parser parser;
  object from;
  if (json.size() > list_bytes_max || parser.parse(json.data(), json.size()).get(from) != simdjson::SUCCESS)
    return std::nullopt;
  Todo task = todo_of(from, "subject");
  if (task.content.empty()) return std::nullopt;
  return task;
}

std::string_view session_of_todo_name(std::string_view file_name) {
  constexpr std::string_view middle = "-agent-", ending = ".json";
  if (!file_name.ends_with(ending)) return {};
  file_name.remove_suffix(ending.size());
  if (file_name.size() <= middle.size() || (file_name.size() - middle.size()) % 2 != 0) return {};
  const std::size_t length = (file_name.size() - middle.size()) / 2;
  const std::string_view session = file_name.substr(0, length);
  const bool main_list = file_name.substr(length, middle.size()) == middle &&
                         file_name.substr(length + middle.size()) == session;
  return main_list ? session : std::string_view();
}

bool is_entry_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

ListRead read_lists(const std::string& root, const std::string& session) {
  ListRead result;
  if (!is_entry_name(session)) return result;
  OneRead todos = read_todos(root + "/todos/" + session + "-agent-" + session + ".json");
  const std::string directory = root + "/tasks/" + session;
  const Directory listed = list_tasks(directory);
  OneRead tasks = read_tasks(directory, listed);
  result.torn = todos.torn || tasks.torn;
  result.tasks_directory = listed.exists;
  result.directory_ms = listed.modified_ms;
  result.list = std::move(todos.list);
  if (tasks.list && (!result.list || tasks.list->modified_ms >= result.list->modified_ms))
    result.list = std::move(tasks.list);
  if (result.list) result.list->modified = rfc3339(result.list->modified_ms);
  return result;
}

}  // namespace earshot::status
