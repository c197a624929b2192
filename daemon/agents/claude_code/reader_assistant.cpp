// claude-code: assistant records. The lines of one message share its id.
#include "agents/claude_code/reader.hpp"
#include "base/json_scan.hpp"

namespace earshot::claude_code {
namespace {

// The model of messages that the program writes in the assistant's name.
constexpr std::string_view synthetic_model = "<synthetic>";

using Purpose = fact::Invocation::Purpose;
struct Tool {
  std::string_view name;
  Purpose purpose;
};
constexpr Tool tools[] = {
    {"Task", Purpose::subagent},           // to 2.1.50
    {"Agent", Purpose::subagent},          // from 2.1.63
    {"TodoWrite", Purpose::todo_write},    // to 2.1.63
    {"TaskCreate", Purpose::todo_create},  // from 2.1.17
    {"TaskUpdate", Purpose::todo_update}, {"TaskList", Purpose::todo_list},
};

std::uint64_t count_or_zero(const dom::element& value, std::string_view key) {
  return dom::count_of(value, key).value_or(0);
}

Usage usage_of(const dom::element& usage) {
  Usage tokens{count_or_zero(usage, "input_tokens"), count_or_zero(usage, "output_tokens"),
               count_or_zero(usage, "cache_read_input_tokens"),
               count_or_zero(usage, "cache_creation_input_tokens")};
  if (const auto nested = dom::member(usage, "cache_creation"); nested && nested->is_object()) {
    std::uint64_t sum = 0;  // per cache lifetime; their sum is the flat figure
    dom::object lifetimes = nested->get_object().value_unsafe();
    for (const auto one : lifetimes)
      if (const auto count = dom::as_count(one.value)) sum += *count;
    tokens.cache_write = std::max(tokens.cache_write, sum);
  }
  return tokens;
}

void read_block(const dom::element& block, std::string_view raw_block, Record& out, bool& has_content) {
  const std::string_view kind = dom::text_of(block, "type");
  if (kind == "tool_use") {
    const std::string_view raw_input =
        raw_block.empty() ? std::string_view{} : find_member(raw_block, "input");
    out.facts.push_back(invocation(dom::text_of(block, "id"), dom::text_of(block, "name"),
                                   dom::member(block, "input"), raw_input));
    return;
  }
  if (kind == "thinking" || kind == "redacted_thinking") {
    std::optional<std::string_view> thinking;
    if (const std::string_view text = dom::text_of(block, "thinking"); !text.empty()) thinking = text;
    out.facts.push_back(fact::MessageBlock{"assistant", kind, thinking, std::nullopt});
    return;
  }
  if (kind.empty()) return;
  has_content = true;
  if (kind == "text") {
    if (const std::string_view text = dom::text_of(block, "text"); !text.empty())
      out.facts.push_back(fact::MessageBlock{"assistant", kind, text, std::nullopt});
    return;
  }
  std::optional<Media> media;
  if (is_media(kind)) media = media_of(kind, block);
  out.facts.push_back(fact::MessageBlock{"assistant", kind, std::nullopt, media});
}

}  // namespace

fact::Invocation invocation(std::string_view call, std::string_view tool, const Value& input,
                            std::string_view raw_input) {
  fact::Invocation result{.call = call, .tool = tool, .input = raw_input};
  for (const Tool& known : tools)
    if (known.name == tool) result.purpose = known.purpose;
  if (!input || !input->is_object()) return result;
  switch (result.purpose) {
    case Purpose::subagent:
      result.agent_type = dom::text_of(*input, "subagent_type");
      result.description = dom::text_of(*input, "description");
      result.background = dom::bool_of(*input, "run_in_background");
      break;
    case Purpose::todo_write:
      if (const auto list = dom::member(*input, "todos")) result.todos = todos_of(*list);
      break;
    case Purpose::todo_create:
    case Purpose::todo_update:
      result.todos = {todo_of(*input)};
      break;
    case Purpose::todo_list:
    case Purpose::plain:
      break;
  }
  return result;
}

void read_assistant(const Fields& f, std::string_view raw, Record& out) {
  out.author = Record::Author::assistant;
  if (!f.message || !f.message->is_object()) return;
  std::string_view stop_reason;
  Value content, usage;
  dom::object message = f.message->get_object().value_unsafe();
  for (const auto field : message) {
    if (field.key == "id")
      out.message = dom::as_text(field.value);
    else if (field.key == "model")
      out.model = dom::as_text(field.value);
    else if (field.key == "stop_reason")
      stop_reason = dom::as_text(field.value);
    else if (field.key == "content")
      content = field.value;
    else if (field.key == "usage")
      usage = field.value;
  }
  const bool synthetic = out.model == synthetic_model;
  const bool failed = is_true(f.isApiErrorMessage);
  if (synthetic || failed) {
    out.author = Record::Author::program;
    out.model = synthetic ? out.model : std::string_view{};
    if (text_of_content(content, out) == "No response requested.") return;
  }

  bool has_content = false;
  dom::array blocks;
  if (content && content->is_string()) {
    has_content = true;
    if (const std::string_view message_text = dom::as_text(*content); !message_text.empty())
      out.facts.push_back(fact::MessageBlock{"assistant", "text", message_text, std::nullopt});
  } else if (content && !content->get_array().get(blocks)) {
    std::string_view raw_blocks;
    std::size_t index = 0;
    for (const dom::element block : blocks) {
      std::string_view raw_block;
      if (dom::text_of(block, "type") == "tool_use") {
        if (raw_blocks.empty()) raw_blocks = find_member(find_member(raw, "message"), "content");
        raw_block = find_element(raw_blocks, index);
      }
      read_block(block, raw_block, out, has_content);
      ++index;
    }
  }

  fact::MessageUsage used{.model = out.model, .usage = {}, .cost_usd = {}};
  if (usage && usage->is_object()) used.usage = usage_of(*usage);
  if (f.costUSD) used.cost_usd = dom::as_double(*f.costUSD);
  if (used.cost_usd || used.usage != Usage{}) out.facts.push_back(used);

  if (failed) {
    const auto message_text = text_of_content(content, out);
    out.facts.push_back(
        fact::ApiError{.status = integer(f.apiErrorStatus),
                       .error = !text(f.error).empty() ? text(f.error) : message_text.value_or(""),
                       .attempt = {},
                       .max_attempts = {},
                       .retry_in_ms = {},
                       .fatal = true});
    out.facts.push_back(fact::TurnEnd{"failed", {}, std::nullopt, false});
  } else if (has_content && !stop_reason.empty() && out.author != Record::Author::program) {
    out.facts.push_back(fact::Stop{stop_reason, integer(f.durationMs)});
  }
}

}  // namespace earshot::claude_code
