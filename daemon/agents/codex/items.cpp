#include "agents/codex/items.hpp"

#include <algorithm>
#include <chrono>
#include <initializer_list>

#include "agents/codex/outcome.hpp"
#include "agents/content.hpp"
#include "base/quantities.hpp"
#include "base/text.hpp"

namespace earshot::codex {
namespace {

bool is_given(const Value& value) {
  return value && !value.is_null() && !(value.is_string() && value.as_text().empty());
}

std::string_view outcome_of(const Value& item) {
  const std::string_view status = item.text_of("status");
  if (status == "declined") return "denied";
  const Value success = item.member("success"), result = item.member("result");
  bool failed = status == "failed" || item.int_of("exit_code").value_or(0) != 0 ||
                is_given(item.member("error")) || (success.is_bool() && !success.as_bool()) ||
                item.bool_of("isError");
  if (result.is_object())
    failed |= result.bool_of("isError") || result.member("Ok").bool_of("isError") || result.member("Err");
  if (failed) return "error";
  return status == "interrupted" || status == "cancelled" ? "interrupted" : "ok";
}

std::optional<std::int64_t> duration_of(const Value& item) {
  const Value duration = item.member("duration");
  constexpr std::uint64_t seconds_max = duration_max / std::chrono::seconds(1);
  if (const auto seconds = duration.count_of("secs"); seconds && *seconds <= seconds_max)
    return static_cast<std::int64_t>(*seconds * 1000 + duration.count_of("nanos").value_or(0) / 1'000'000);
  if (const auto ms = item.count_of("duration_ms")) return static_cast<std::int64_t>(*ms);
  return std::nullopt;
}

std::string object_json(std::string_view key, std::string_view value_json) {
  return std::string("{").append(json_string(key)).append(":").append(value_json).append("}");
}

std::string files_json(const Value& changes) {
  std::string files = "[";
  for (const Member& change : changes.members())
    files.append(files.size() > 1 ? "," : "").append(json_string(change.key));
  return object_json("files", files + "]");
}

std::string tool_name(std::string_view space, std::string_view tool) {
  return std::string(space).append(space.empty() ? "" : ".").append(tool);
}

// Of an input that is `null`, there is none.
std::string input_of(const Value& call) {
  const std::string_view found = call.member("arguments").raw();
  return found == "null" ? std::string() : std::string(found);
}

void read_command(const Value& item, ToolItem& out) {
  out.tool = item.text_of("source") == "user_shell" ? "user_shell" : "exec_command";
  out.input = object_json("cmd", json_string(command_of(item)));
  out.output = item.text_of("aggregated_output");
  if (out.output.empty()) out.output.append(item.text_of("stdout")).append(item.text_of("stderr"));
}

void read_patch(const Value& item, ToolItem& out) {
  out.tool = "apply_patch";
  out.input = files_json(item.member("changes"));
  out.output = first_of({item.text_of("stdout"), item.text_of("stderr")});
}

void read_mcp(const Value& item, ToolItem& out) {
  const Value invocation = item.member("invocation");
  const Value& call = invocation.is_object() ? invocation : item;
  out.tool = tool_name(call.text_of("server"), call.text_of("tool"));
  out.input = input_of(call);
  const Value result = item.member("result"), ok = result.member("Ok");
  const Value content = (ok.is_object() ? ok : result).member("content");
  out.output = content_of(content).text.value_or("");
  out.media = images_of(content);
  if (out.output.empty())
    out.output = first_of({result.text_of("Err"), item.member("error").text_of("message")});
}

void read_dynamic(const Value& item, ToolItem& out) {
  const Value content = item.member("content_items");
  out.tool = tool_name(item.text_of("namespace"), item.text_of("tool"));
  out.input = input_of(item);
  out.output = content_of(content).text.value_or("");
  out.media = images_of(content);
  if (out.output.empty()) out.output = item.text_of("error");
}

void read_search(const Value& item, ToolItem& out) {
  const Value action = item.member("action");
  out.tool = "web_search";
  out.input = object_json(
      "query",
      json_string(first_of({item.text_of("query"), action.text_of("query"), action.text_of("url")})));
}

void read_view(const Value& item, ToolItem& out) {
  out.tool = "view_image";
  out.input = object_json("path", json_string(item.text_of("path")));
}

void read_picture(const Value& item, ToolItem& out) {
  out.tool = "image_generation";
  out.input = object_json("prompt", json_string(item.text_of("revised_prompt")));
}

void read_sleep(const Value&, ToolItem& out) { out.tool = "sleep"; }

void read_collab(const Value& item, ToolItem& out) { out.tool = item.text_of("tool"); }

struct Rule {
  std::string_view type;
  void (*read)(const Value& item, ToolItem& out);
};
constexpr Rule rules[] = {
    {"CommandExecution", read_command},
    {"exec_command_end", read_command},
    {"FileChange", read_patch},
    {"patch_apply_end", read_patch},
    {"McpToolCall", read_mcp},
    {"mcp_tool_call_end", read_mcp},
    {"DynamicToolCall", read_dynamic},
    {"dynamic_tool_call_response", read_dynamic},
    {"WebSearch", read_search},
    {"web_search_end", read_search},
    {"web_search_call", read_search},
    {"Extension", read_search},
    {"ImageView", read_view},
    {"view_image_tool_call", read_view},
    {"ImageGeneration", read_picture},
    {"image_generation_end", read_picture},
    {"image_generation_call", read_picture},
    {"Sleep", read_sleep},
    {"CollabAgentToolCall", read_collab},
};

}  // namespace

ToolItem read_tool_item(std::string_view type, const Value& item) {
  ToolItem found;
  found.outcome = outcome_of(item);
  found.duration_ms = duration_of(item);
  for (const Rule& rule : rules)
    if (rule.type == type) rule.read(item, found);
  if (type == "collab_agent_spawn_end")
    found.outcome = item.text_of("new_thread_id").empty() ? "error" : "ok";
  return found;
}

std::string command_of(const Value& item) {
  const Value command = item.member("command");
  if (command.is_string()) return std::string(command.as_text());
  std::vector<std::string_view> words;
  for (const Value word : command.items())
    if (word.is_string()) words.push_back(word.as_text());
  if (words.size() == 3 && is_one_of(words[1], {"-lc", "-c"})) return std::string(words[2]);
  std::string text;
  for (const std::string_view word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

std::string joined_texts(const Value& list) {
  std::string text;
  for (const Value part : list.items()) {
    const std::string_view one = part.is_string() ? part.as_text() : part.text_of("text");
    if (one.empty()) continue;
    if (!text.empty()) text += '\n';
    text += one;
  }
  return text;
}

Media image_of(std::string_view url) {
  Media media{"image", {}, 0};
  if (!url.starts_with("data:")) return media;
  url.remove_prefix(5);
  const std::size_t comma = url.find(',');
  if (comma == url.npos) return media;
  media.media_type = url.substr(0, url.find_first_of(";,"));
  media.bytes = decoded_bytes(url.substr(comma + 1));
  return media;
}

std::vector<Media> images_of(const Value& content) {
  std::vector<Media> found;
  for (const Value block : content.items()) {
    if (!is_one_of(block.text_of("type"), {"image", "local_image", "input_image", "inputImage"})) continue;
    if (const std::string_view data = block.text_of("data"); !data.empty())
      found.push_back({"image", block.text_of("mimeType"), decoded_bytes(data)});
    else
      found.push_back(image_of(first_of({block.text_of("image_url"), block.text_of("imageUrl")})));
  }
  return found;
}

std::string_view word_of(const Value& value) {
  if (value.is_string()) return value.as_text();
  for (const Member& member : value.members()) return member.key;
  return {};
}

std::string_view first_of(std::initializer_list<std::string_view> texts) {
  for (const std::string_view text : texts)
    if (!text.empty()) return text;
  return {};
}

}  // namespace earshot::codex
