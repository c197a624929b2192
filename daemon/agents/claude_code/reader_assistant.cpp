// claude-code: assistant records. The lines of one message share its id.
#include "agents/claude_code/program.hpp"
#include "agents/claude_code/reader.hpp"
#include "base/json_scan.hpp"
#include "core/member_table.hpp"

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

struct MessageFields {
  Value id, model, stop_reason, content, usage;
};
constexpr MemberTable<MessageFields, 32> message_table({{"id", &MessageFields::id},
                                                        {"model", &MessageFields::model},
                                                        {"stop_reason", &MessageFields::stop_reason},
                                                        {"content", &MessageFields::content},
                                                        {"usage", &MessageFields::usage}});

struct UsageFields {
  Value input, output, cache_read, cache_write, cache_creation;
};
constexpr MemberTable<UsageFields, 32> usage_table({{"input_tokens", &UsageFields::input},
                                                    {"output_tokens", &UsageFields::output},
                                                    {"cache_read_input_tokens", &UsageFields::cache_read},
                                                    {"cache_creation_input_tokens",
                                                     &UsageFields::cache_write},
                                                    {"cache_creation", &UsageFields::cache_creation}});

Usage usage_of(const Value& usage) {
  UsageFields fields;
  usage_table.read(usage, fields);
  const auto count = [](const Value& value) { return value.as_count().value_or(0); };
  Usage tokens{count(fields.input), count(fields.output), count(fields.cache_read),
               count(fields.cache_write)};
  if (fields.cache_creation.is_object()) {
    std::uint64_t sum = 0;  // per cache lifetime; their sum is the flat figure
    for (const Member& one : fields.cache_creation.members()) {
      sum += count(one.value);
      if (one.key == "ephemeral_1h_input_tokens") tokens.cache_write_1h = count(one.value);
    }
    tokens.cache_write = std::max(tokens.cache_write, sum);
  }
  return tokens;
}

void read_block(const Block& block, std::string_view kind, Record& out, bool& has_content) {
  if (kind == "thinking" || kind == "redacted_thinking") {
    std::optional<std::string_view> thinking;
    if (const std::string_view text = block.thinking.as_text(); !text.empty()) thinking = text;
    out.facts.push_back(fact::MessageBlock{"assistant", kind, thinking, std::nullopt});
    return;
  }
  if (kind.empty()) return;
  has_content = true;
  if (kind == "text") {
    if (const std::string_view text = block.text.as_text(); !text.empty())
      out.facts.push_back(fact::MessageBlock{"assistant", kind, text, std::nullopt});
    return;
  }
  std::optional<Media> media;
  if (is_media(kind)) media = media_of(kind, block.source);
  out.facts.push_back(fact::MessageBlock{"assistant", kind, std::nullopt, media});
}

}  // namespace

fact::Invocation invocation(std::string_view call, std::string_view tool, const Value& input) {
  fact::Invocation result{.call = call, .tool = tool, .input = {input.raw(), true}};
  for (const Tool& known : tools)
    if (known.name == tool) result.purpose = known.purpose;
  result.asks = program().prompt_reason(tool);
  if (!input.is_object()) return result;
  switch (result.purpose) {
    case Purpose::subagent:
      result.agent_type = input.text_of("subagent_type");
      result.description = input.text_of("description");
      result.background = input.bool_of("run_in_background");
      break;
    case Purpose::todo_write:
      result.todos = todos_of(input.member("todos"));
      break;
    case Purpose::todo_create:
    case Purpose::todo_update:
      result.todos = {todo_of(input)};
      break;
    case Purpose::todo_list:
    case Purpose::plain:
      break;
  }
  return result;
}

void read_assistant(const Fields& f, Record& out) {
  out.author = Record::Author::assistant;
  if (!f.message.is_object()) return;
  MessageFields message;
  message_table.read(f.message, message);
  const Value& content = message.content;
  out.message = message.id.as_text();
  out.model = message.model.as_text();
  const bool synthetic = out.model == synthetic_model;
  const bool failed = f.isApiErrorMessage.as_bool();
  if (synthetic || failed) {
    out.author = Record::Author::program;
    out.model = synthetic ? out.model : std::string_view{};
    if (text_of_content(content, out) == "No response requested.") return;
  }

  bool has_content = false;
  if (content.is_string()) {
    has_content = true;
    if (const std::string_view message_text = content.as_text(); !message_text.empty())
      out.facts.push_back(fact::MessageBlock{"assistant", "text", message_text, std::nullopt});
  } else {
    for (const Value& item : content.items()) {
      const Block block(item);
      const std::string_view kind = block.type.as_text();
      if (kind == "tool_use")
        out.facts.push_back(invocation(block.id.as_text(), block.name.as_text(), block.input));
      else
        read_block(block, kind, out, has_content);
    }
  }

  fact::MessageUsage used{.model = out.model, .usage = {}, .cost_usd = {}};
  if (message.usage.is_object()) used.usage = usage_of(message.usage);
  used.cost_usd = f.costUSD.as_double();
  if (used.cost_usd || used.usage != Usage{}) out.facts.push_back(used);

  if (failed) {
    const auto message_text = text_of_content(content, out);
    out.facts.push_back(
        fact::ApiError{.status = f.apiErrorStatus.as_int(),
                       .error = !f.error.as_text().empty() ? f.error.as_text() : message_text.value_or(""),
                       .attempt = {},
                       .max_attempts = {},
                       .retry_in_ms = {},
                       .fatal = true});
    out.facts.push_back(fact::TurnEnd{"failed", {}, std::nullopt, false});
  } else if (const std::string_view stop_reason = message.stop_reason.as_text();
             has_content && !stop_reason.empty() && out.author != Record::Author::program) {
    out.facts.push_back(fact::Stop{stop_reason, not_negative(f.durationMs.as_int())});
  }
}

}  // namespace earshot::claude_code
