#include "notifier/event_context.hpp"

#include <algorithm>
#include <array>

#include "base/json_writer.hpp"
#include "common/frame.hpp"

namespace earshot::notifier {
namespace {

constexpr Variable variable_table[] = {
    {"type", false, "the event's type, or `status`"},
    {"name", false, "the project's last path component"},
    {"project", false, "the project's directory"},
    {"host", false, "the machine"},
    {"elsewhere", false, "the machine, unless it is the daemon's own (on a team hub)"},
    {"session", false, "the session's id"},
    {"short", false, "the first eight characters of the session's id"},
    {"branch", false, "the git branch"},
    {"model", false, "the model"},
    {"turn", false, "the turn's number"},
    {"state", false, "the session's state: waiting, working, …"},
    {"reason", false, "the reason of the state: permission, question, plan, …"},
    {"tool", false, "the tool of the event, or the one that waits for permission"},
    {"outcome", false, "the outcome: completed, failed, error, …"},
    {"duration", false, "the duration"},
    {"cost", false, "the session's cost so far"},
    {"tools", false, "the number of tool calls of the turn"},
    {"agent", false, "the subagent's id"},
    {"agent_type", false, "the subagent's type"},
    {"api_status", false, "the HTTP status of the last API error"},
    {"origin", false, "the origin of the turn"},
    {"time", false, "the time of the event"},
    {"title", true, "the session's title"},
    {"prompt", true, "the prompt of the turn"},
    {"text", true, "the text of the message"},
    {"detail", true, "the question or the requested permission"},
    {"error", true, "the API's error message"},
    {"output", true, "the output of the tool"},
    {"description", true, "the task of the subagent"},
    {"summary", true, "the summary of a background task"},
};

// Members that the meta view leaves out, at any depth, unless they are numbers (token counts).
constexpr std::array<std::string_view, 15> text_members{
    "text",  "prompt",      "input", "output", "summary",   "title", "error",    "detail",
    "todos", "description", "files", "agents", "last_text", "media", "truncated"};

bool is_text(std::string_view key, simdjson::dom::element value) {
  return !value.is_number() && std::find(text_members.begin(), text_members.end(), key) != text_members.end();
}

void write_without_text(JsonWriter& writer, simdjson::dom::element value) {
  simdjson::dom::object object;
  simdjson::dom::array array;
  if (value.get(object) == simdjson::SUCCESS) {
    writer.begin_object();
    for (const auto& [key, item] : object) {
      if (!is_text(key, item)) write_without_text(writer.key(key), item);
    }
    writer.end_object();
  } else if (value.get(array) == simdjson::SUCCESS) {
    writer.begin_array();
    for (const simdjson::dom::element item : array) write_without_text(writer, item);
    writer.end_array();
  } else {
    writer.raw(simdjson::minify(value));
  }
}

}  // namespace

std::span<const Variable> variables() { return variable_table; }

const Variable* find_variable(std::string_view name) {
  const auto found = std::find_if(std::begin(variable_table), std::end(variable_table),
                                  [&](const Variable& each) { return each.name == name; });
  return found == std::end(variable_table) ? nullptr : found;
}

std::string EventContext::value(std::string_view name, View view) const {
  const Variable* const variable = find_variable(name);
  if (variable == nullptr || (variable->text && view == View::meta)) return {};
  const auto found = values.find(name);
  return found == values.end() ? std::string() : found->second;
}

std::string frame_for(std::string_view json, View view) {
  common::FrameParser parser;
  const auto frame = parser.parse(json);
  if (!frame) return "{}";
  std::string out;
  JsonWriter writer(out);
  writer.begin_object();
  for (const auto& [key, value] : frame->raw()) {
    if (view == View::full) {
      writer.raw_member(key, simdjson::minify(value));
    } else if (!is_text(key, value)) {
      write_without_text(writer.key(key), value);
    }
  }
  writer.end_object();
  return out;
}

}  // namespace earshot::notifier
