// claude-code: assistant records. One content block a line (older ones: several); lines of a message share
// its id.
#include "base/json_scan.hpp"
#include "core/dialects/claude_code.hpp"

namespace earshot::dialects {
namespace {

constexpr std::string_view machine_model = "<synthetic>";

using Purpose = fact::Invocation::Purpose;
struct Tool {
  std::string_view name;
  Purpose purpose;
};
constexpr Tool tools[] = {
    {"Task", Purpose::subagent},           // to 2.1.50
    {"Agent", Purpose::subagent},          // from 2.1.63
    {"TodoWrite", Purpose::todo_whole},    // to 2.1.63
    {"TaskCreate", Purpose::todo_create},  // from 2.1.17
    {"TaskUpdate", Purpose::todo_update}, {"TaskList", Purpose::todo_list},
};

std::uint64_t count_or_zero(const dom::element& value, std::string_view key) {
  return dom::count_of(value, key).value_or(0);
}

Usage usage_of(const dom::element& usage) {
  Usage seen{count_or_zero(usage, "input_tokens"), count_or_zero(usage, "output_tokens"),
             count_or_zero(usage, "cache_read_input_tokens"),
             count_or_zero(usage, "cache_creation_input_tokens")};
  if (const auto nested = dom::member(usage, "cache_creation"); nested && nested->is_object()) {
    std::uint64_t sum = 0;  // by lifetime: together they are the flat figure
    dom::object lifetimes = nested->get_object().value_unsafe();
    for (const auto one : lifetimes)
      if (const auto tokens = dom::count(one.value)) sum += *tokens;
    seen.cache_write = std::max(seen.cache_write, sum);
  }
  return seen;
}

void read_block(const dom::element& block, std::string_view raw_block, Record& out, bool& substance) {
  const std::string_view kind = dom::text_of(block, "type");
  if (kind == "tool_use") {
    const std::string_view raw_input =
        raw_block.empty() ? std::string_view{} : find_member(raw_block, "input");
    out.facts.push_back(invocation(dom::text_of(block, "id"), dom::text_of(block, "name"),
                                   dom::member(block, "input"), raw_input));
    return;
  }
  if (kind == "thinking" || kind == "redacted_thinking") {
    std::optional<std::string_view> thought;
    if (const std::string_view words = dom::text_of(block, "thinking"); !words.empty()) thought = words;
    out.facts.push_back(fact::Said{"assistant", kind, thought, std::nullopt});
    return;
  }
  if (kind.empty()) return;
  substance = true;
  if (kind == "text") {
    if (const std::string_view words = dom::text_of(block, "text"); !words.empty())
      out.facts.push_back(fact::Said{"assistant", kind, words, std::nullopt});
    return;
  }
  std::optional<Media> media;
  if (kind == "image" || kind == "document") media = media_of(kind, block);
  out.facts.push_back(fact::Said{"assistant", kind, std::nullopt, media});
}

}  // namespace

fact::Invocation invocation(std::string_view call, std::string_view tool, const Value& input,
                            std::string_view raw_input) {
  fact::Invocation made{.call = call, .tool = tool, .input = raw_input};
  for (const Tool& one : tools)
    if (one.name == tool) made.purpose = one.purpose;
  if (!input || !input->is_object()) return made;
  switch (made.purpose) {
    case Purpose::subagent:
      made.agent_type = dom::text_of(*input, "subagent_type");
      made.description = dom::text_of(*input, "description");
      made.background = dom::truth_of(*input, "run_in_background");
      break;
    case Purpose::todo_whole:
      if (const auto list = dom::member(*input, "todos")) made.todos = todos_of(*list);
      break;
    case Purpose::todo_create:
    case Purpose::todo_update:
      made.todos = {todo_of(*input)};
      break;
    case Purpose::todo_list:
    case Purpose::plain:
      break;
  }
  return made;
}

void read_assistant(const Fields& f, std::string_view raw, Record& out) {
  out.by = Record::By::assistant;
  if (!f.message || !f.message->is_object()) return;
  std::string_view stop_reason;
  Value content, usage;
  dom::object message = f.message->get_object().value_unsafe();
  for (const auto field : message) {
    if (field.key == "id")
      out.message = dom::text(field.value);
    else if (field.key == "model")
      out.model = dom::text(field.value);
    else if (field.key == "stop_reason")
      stop_reason = dom::text(field.value);
    else if (field.key == "content")
      content = field.value;
    else if (field.key == "usage")
      usage = field.value;
  }
  const bool machine = out.model == machine_model;
  const bool failed = truth(f.isApiErrorMessage);
  if (machine || failed) {
    out.by = Record::By::machine;
    out.model = machine ? out.model : std::string_view{};
    const auto words = text_of_content(content, out);
    if (words && *words == "No response requested.") return;
  }

  bool substance = false;
  dom::array blocks;
  if (content && content->is_string()) {
    substance = true;
    if (const std::string_view words = dom::text(*content); !words.empty())
      out.facts.push_back(fact::Said{"assistant", "text", words, std::nullopt});
  } else if (content && !content->get_array().get(blocks)) {
    std::string_view raw_blocks;
    std::size_t index = 0;
    for (const dom::element block : blocks) {
      std::string_view raw_block;
      if (dom::text_of(block, "type") == "tool_use") {
        if (raw_blocks.empty()) raw_blocks = find_member(find_member(raw, "message"), "content");
        raw_block = find_element(raw_blocks, index);
      }
      read_block(block, raw_block, out, substance);
      ++index;
    }
  }

  fact::UsageSeen seen{.model = out.model, .usage = {}, .cost_usd = {}};
  if (usage && usage->is_object()) seen.usage = usage_of(*usage);
  if (f.costUSD) seen.cost_usd = dom::real(*f.costUSD);
  if (seen.cost_usd || seen.usage != Usage{}) out.facts.push_back(seen);

  if (failed) {
    const auto words = text_of_content(content, out);
    out.facts.push_back(
        fact::ApiError{.status = f.apiErrorStatus ? dom::whole(*f.apiErrorStatus) : std::nullopt,
                       .error = !text(f.error).empty() ? text(f.error) : words.value_or(""),
                       .attempt = {},
                       .max_attempts = {},
                       .retry_in_ms = {},
                       .fatal = true});
    out.facts.push_back(fact::TurnEnd{"failed", {}, std::nullopt, false});
  } else if (substance && !stop_reason.empty() && out.by != Record::By::machine) {
    out.facts.push_back(fact::Stop{stop_reason, f.durationMs ? dom::whole(*f.durationMs) : std::nullopt});
  }
}

}  // namespace earshot::dialects
