// Todo and task files, rewritten whole: `todos/<session>-agent-<session>.json`, `tasks/<session>/<n>.json`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/event.hpp"

namespace earshot::status {

constexpr std::size_t list_bytes_max = 256 << 10;  // a longer todo or task file is left out
constexpr std::size_t tasks_max = 512;        // of a session; those with the highest numbers are left out
constexpr std::size_t task_names_max = 8192;  // entries of a task directory that are looked at

struct TodoList {
  std::vector<Todo> todos;
  std::int64_t modified_ms = 0;  // of the newest file, since 1970
  std::string modified;          // the same, RFC 3339 with milliseconds, UTC
  std::string source;            // todos, tasks: the directory that it came from
  friend bool operator==(const TodoList&, const TodoList&) = default;
};

/// A todo file: an array of {content, status, activeForm?, id?, priority?}. Nothing when it is no array.
std::optional<std::vector<Todo>> parse_todos(std::string_view json);

/// A task file: {id, subject, activeForm?, status}. Nothing when it is no object, or without a subject.
std::optional<Todo> parse_task(std::string_view json);

/// The session whose main list is in a file of this name; empty: another agent's, or no todo file.
std::string_view session_of_todo_name(std::string_view file_name);

/// A name that may stand for one directory entry: no separator, not `.` or `..`, 1 to 255 bytes.
bool is_entry_name(std::string_view name);

struct ListRead {
  std::optional<TodoList> list;   // the newer of the two; nothing: neither is there
  bool torn = false;              // a file was caught half written: read again soon
  bool tasks_directory = false;   // tasks/<session> exists
  std::int64_t directory_ms = 0;  // its modification time
};

/// Reads both; may block.
ListRead read_lists(const std::string& root, const std::string& session);

}  // namespace earshot::status
