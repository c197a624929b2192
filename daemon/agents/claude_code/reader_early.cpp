// The two documented early formats.
//
// claude-flat: a documented early format in which `message` is a plain string.
//
//   {"type":"user"|"assistant"|"system"|"compact_system","uuid":…,"parentUuid":…,"timestamp":…,"sessionId":…,"message":"…"}
//   {"type":"assistant","subtype":"tool_use","toolName":"Read","toolArguments":{…}}
// Calls have no ids: the `system` record below a call is its result. compact_system records report
// compaction.
//
// claude-messages: a documented early format, written below conversations/.
//
//   {"uuid":…,"parentUuid":…,"sessionId":…,"type":"human"|"assistant"|"tool_result","timestamp":<Unix ms>,
//    "version":…,"message":{"type":"message","content":<string or blocks>}}
// Content blocks are those of claude-code. `compact_prelude` starts a compaction; `compact_recap` finishes it
// and holds its summary.
#include "agents/claude_code/reader.hpp"

namespace earshot::claude_code {
namespace {

void read_flat_assistant(const Fields& f, Record& out) {
  out.author = Record::Author::assistant;
  const std::string_view subtype = f.subtype.as_text();
  if (const std::string_view message = f.message.as_text(); !message.empty())
    out.facts.push_back(
        fact::MessageBlock{"assistant", subtype == "thinking" ? subtype : "text", message, std::nullopt});
  if (!f.toolName && subtype != "tool_use") return;
  out.facts.push_back(invocation({}, f.toolName.as_text(), f.toolArguments));
}

void read_flat_user(const Fields& f, Record& out) {
  read_user(f, out);
  if (f.subtype.as_text() != "command") return;
  for (Fact& fact : out.facts)
    if (auto* prompt = std::get_if<fact::Prompt>(&fact)) prompt->origin = "command";
}

void read_flat_system(const Fields& f, Record& out) {
  fact::Result result;
  result.by_position = true;
  result.outcome = f.isError.as_bool() ? "error" : "ok";
  if (const std::string_view message = f.message.as_text(); f.message && f.message.is_string())
    result.output = message;
  out.facts.push_back(std::move(result));
}

void read_compact_system(const Fields& f, Record& out) {
  const std::string_view phase = f.message.as_text();
  if (phase == "conversation_compacting") out.facts.push_back(fact::Compaction{.started = true});
  if (phase == "conversation_compacted")
    out.facts.push_back(fact::Compaction{.started = false, .kind = "full"});
}

}  // namespace

void read_flat(const Value& json, Record& out) {
  const Fields fields(json);
  const std::string_view type = fields.type.as_text();
  const bool flat = !fields.message || fields.message.is_string();
  const bool is_flat = type == "compact_system" || (flat && (type == "user" || type == "assistant")) ||
                       (type == "system" && fields.message && flat);
  if (!is_flat) return read_code(json, out);
  out.type = type;
  read_header(fields, out);
  if (type == "assistant") return read_flat_assistant(fields, out);
  if (type == "user") return read_flat_user(fields, out);
  if (type == "system") return read_flat_system(fields, out);
  read_compact_system(fields, out);
}

void read_messages(const Value& json, Record& out) {
  const Fields fields(json);
  const std::string_view type = fields.type.as_text();
  if (type == "human" || type == "tool_result" || type == "compact_prelude" || type == "compact_recap") {
    out.type = type;
    read_header(fields, out);
  }
  if (type == "human" || type == "tool_result") return read_user(fields, out);
  if (type == "compact_prelude") {
    out.facts.push_back(fact::Compaction{.started = true});
    return;
  }
  if (type == "compact_recap") {
    out.facts.push_back(fact::Compaction{.started = false, .kind = "full"});
    out.facts.push_back(fact::Summary{text_of_content(fields.message.member("content"), out)});
    return;
  }
  read_code(json, out);
}

}  // namespace earshot::claude_code
