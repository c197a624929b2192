#include "records.hpp"

#include <iterator>
#include <span>

namespace earshot::sim {
namespace {

// `%n` is the line's number, `%t` a text, `%i` one of three ids, `%c` a new call, `%o` a call that may be
// known, `%s` a second.
#define AT R"({"timestamp":"2026-01-01T00:00:0%sZ",)"
#define EVENT AT R"("type":"event_msg","payload":{"type":)"
#define ITEM AT R"("type":"response_item","payload":{"type":)"

constexpr std::string_view codex_lines[] = {
    AT
    R"("type":"session_meta","payload":{"id":"%i","session_id":"%i","cwd":"/w","cli_version":"0.169.0","source":"cli"}})",
    AT
    R"("type":"session_meta","payload":{"id":"%i","session_id":"0","cwd":"/w","thread_source":"subagent","source":{"subagent":"review"}}})",
    AT
    R"("type":"turn_context","payload":{"cwd":"/w%i","model":"m%i","approval_policy":"never","sandbox_policy":{"type":"read-only"}}})",
    EVENT R"("task_started","turn_id":"t%n"}})",
    EVENT R"("task_started","turn_id":"t%n"}})",
    EVENT R"("user_message","message":"prompt %t"}})",
    EVENT R"("user_message","message":"prompt %t"}})",
    EVENT
    R"("item_completed","item":{"type":"UserMessage","id":"u%n","content":[{"type":"text","text":"%t"}]}}})",
    EVENT
    R"("item_completed","item":{"type":"AgentMessage","id":"m%n","content":[{"type":"Text","text":"%t"}]}}})",
    EVENT R"("agent_message","message":"says %t"}})",
    ITEM R"("message","role":"assistant","content":[{"type":"output_text","text":"%t"}]}})",
    ITEM R"("function_call","name":"exec_command","arguments":"{\"cmd\":\"ls %t\"}","call_id":"%c"}})",
    ITEM R"("function_call","name":"exec_command","arguments":"{\"cmd\":\"ls %t\"}","call_id":"%c"}})",
    ITEM
    R"("function_call","name":"spawn_agent","namespace":"collaboration","arguments":"{\"message\":\"%t\"}","call_id":"%c"}})",
    ITEM
    R"("function_call","name":"update_plan","arguments":"{\"plan\":[{\"step\":\"%t\",\"status\":\"pending\"}]}","call_id":"%c"}})",
    ITEM R"("function_call_output","call_id":"%o","output":"Process exited with code 0\nOutput:\n%t"}})",
    ITEM R"("function_call_output","call_id":"%o","output":"Process running with session ID %n"}})",
    EVENT
    R"("item_completed","item":{"type":"CommandExecution","id":"%o","status":"completed","aggregated_output":"%t","exit_code":0}}})",
    EVENT
    R"("item_completed","item":{"type":"SubAgentActivity","id":"%o","kind":"started","agent_thread_id":"a%n"}}})",
    EVENT
    R"("token_count","info":{"total_token_usage":{"input_tokens":%n,"output_tokens":2},"last_token_usage":{"input_tokens":1,"output_tokens":2,"total_tokens":%n}},"rate_limits":{"limit_id":"codex","primary":{"used_percent":%n,"window_minutes":300}}}})",
    EVENT R"("task_complete","turn_id":"t%n","last_agent_message":null}})",
    EVENT R"("task_complete","duration_ms":7}})",
    EVENT R"("turn_aborted","reason":"interrupted"}})",
    AT R"("type":"compacted","payload":{"message":"%t"}})",
    AT R"("type":"world_state","payload":{"x":"%t"}})",
    R"({"id":"%i","timestamp":"2026-01-01T00:00:00Z","instructions":null})",
    R"({"type":"message","role":"user","content":[{"type":"input_text","text":"%t"}]})",
};

#undef AT
#undef EVENT
#undef ITEM
#define RECORD(type) \
  R"({"id":"e%n","parentId":null,"timestamp":"2026-01-01T00:00:0%sZ","type":")" type R"(","data":{)"

constexpr std::string_view copilot_lines[] = {
    RECORD(
        "session.start") R"("sessionId":"%i","copilotVersion":"1.0.102","context":{"cwd":"/w","branch":"main"}}})",
    RECORD("session.resume") R"("context":{"cwd":"/w%i","branch":"b%i"}}})",
    RECORD("session.model_change") R"("newModel":"m%i"}})",
    RECORD("user.message") R"("content":"prompt %t","delivery":"idle"}})",
    RECORD("user.message") R"("content":"prompt %t","delivery":"idle"}})",
    RECORD("user.message") R"("content":"steer %t","delivery":"steering"}})",
    RECORD("system.message") R"("role":"system","content":"%t"}})",
    RECORD("assistant.turn_start") R"("turnId":"0"}})",
    RECORD("assistant.message") R"("messageId":"m%n","model":"m%i","content":"says %t","toolRequests":[]}})",
    RECORD(
        "assistant.message") R"("messageId":"m%n","content":"","toolRequests":[{"toolCallId":"%c","name":"bash","arguments":{"command":"ls %t"}}]}})",
    RECORD("tool.execution_start") R"("toolCallId":"%o","toolName":"bash","arguments":{"command":"ls %t"}}})",
    RECORD("tool.execution_start") R"("toolCallId":"%c","toolName":"task","arguments":{"prompt":"%t"}}})",
    RECORD("tool.execution_complete") R"("toolCallId":"%o","success":true,"result":{"content":"%t"}}})",
    RECORD("tool.execution_complete") R"("toolCallId":"%o","success":true,"result":{"content":"%t"}}})",
    RECORD(
        "tool.execution_complete") R"("toolCallId":"%o","success":false,"error":{"message":"%t","code":"denied"}}})",
    RECORD("subagent.started") R"("toolCallId":"%o","agentName":"explore"}})",
    RECORD("subagent.completed") R"("toolCallId":"%o","agentName":"explore"}})",
    RECORD(
        "permission.requested") R"("requestId":"q%i","permissionRequest":{"kind":"shell","toolCallId":"%o"}}})",
    RECORD("permission.completed") R"("requestId":"q%i","toolCallId":"%o","result":{"kind":"approved"}}})",
    RECORD("assistant.turn_end") R"("turnId":"0"}})",
    RECORD("assistant.turn_end") R"("turnId":"0"}})",
    RECORD("abort") R"("reason":"user_abort"}})",
    RECORD("session.error") R"("message":"%t","errorType":"quota"}})",
    RECORD("session.compaction_start") R"("currentTokens":%n}})",
    RECORD(
        "session.compaction_complete") R"("success":true,"preCompactionTokens":%n,"summaryContent":"%t"}})",
    RECORD("session.usage_record") R"("usage":{"model":"m%i","inputTokens":%n,"outputTokens":2}}})",
    RECORD("session.shutdown") R"("shutdownType":"routine","currentTokens":%n}})",
    RECORD("session.whatever") R"("x":"%t"}})",
};

#undef RECORD
#define ENTRY(type) R"({"id":"e%n","parentId":null,"timestamp":"2026-01-01T00:00:0%sZ","type":")" type R"(",)"
#define MESSAGE(role) ENTRY("message") R"("message":{"role":")" role R"(",)"
#define USAGE R"("model":"m%i","usage":{"input":%n,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":%n})"

constexpr std::string_view pi_lines[] = {
    R"({"type":"session","version":3,"id":"%i","timestamp":"2026-01-01T00:00:0%sZ","cwd":"/w"})",
    R"({"type":"session","version":3,"id":"%i","timestamp":"2026-01-01T00:00:0%sZ","cwd":"/w","parentSession":"/x_%i.jsonl"})",
    ENTRY("model_change") R"("provider":"acme","modelId":"m%i"})",
    ENTRY("session_info") R"("name":"title %t"})",
    MESSAGE("user") R"("content":[{"type":"text","text":"prompt %t"}]}})",
    MESSAGE("user") R"("content":"prompt %t"}})",
    MESSAGE("user") R"("content":[{"type":"text","text":"prompt %t"}]}})",
    MESSAGE("assistant") R"("content":[{"type":"text","text":"says %t"}],"stopReason":"stop",)" USAGE "}}",
    MESSAGE("assistant") R"("content":[{"type":"thinking","thinking":"%t"}],"stopReason":"toolUse",)" USAGE
                         "}}",
    MESSAGE(
        "assistant") R"("content":[{"type":"toolCall","id":"%c","name":"bash","arguments":{"command":"ls %t"}}],"stopReason":"toolUse",)" USAGE
                     "}}",
    MESSAGE(
        "assistant") R"("content":[{"type":"toolCall","id":"%c","name":"bash","arguments":{"command":"ls %t"}}],"stopReason":"toolUse",)" USAGE
                     "}}",
    MESSAGE("assistant") R"("content":[],"stopReason":"aborted","errorMessage":"Request was aborted."}})",
    MESSAGE("assistant") R"("content":[],"stopReason":"error","errorMessage":"%t"}})",
    MESSAGE(
        "toolResult") R"("toolCallId":"%o","toolName":"bash","content":[{"type":"text","text":"%t"}],"isError":false}})",
    MESSAGE(
        "toolResult") R"("toolCallId":"%o","toolName":"bash","content":[{"type":"text","text":"%t"}],"isError":false}})",
    MESSAGE(
        "toolResult") R"("toolCallId":"%o","toolName":"bash","content":[{"type":"text","text":"%t"}],"isError":true}})",
    MESSAGE("bashExecution") R"("command":"ls","output":"%t","exitCode":0}})",
    ENTRY("compaction") R"("summary":"%t","tokensBefore":%n,"firstKeptEntryId":"e1"})",
    ENTRY("branch_summary") R"("summary":"%t","fromId":"e1"})",
    ENTRY("custom") R"("customType":"x","data":"%t"})",
    ENTRY("whatever") R"("x":"%t"})",
};

#undef ENTRY
#undef MESSAGE
#undef USAGE

std::span<const std::string_view> lines_of(const AgentProgram& program) {
  if (program.program() == "codex") return codex_lines;
  if (program.program() == "copilot") return copilot_lines;
  if (program.program() == "pi") return pi_lines;
  return {};
}

std::string head(const std::string& type, const std::string& n) {
  return R"({"type":")" + type + R"(","uuid":"u)" + n +
         R"(","sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","version":"2.1.330","message":{)";
}

std::string assistant(const std::string& n, const std::string& content) {
  return head("assistant", n) + R"("id":"m)" + n +
         R"(","role":"assistant","model":"opus","stop_reason":null,"content":[)" + content +
         R"(],"usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3,"cache_creation_input_tokens":0}}})";
}

}  // namespace

std::string Records::claude_code_line(Random& random) {
  const std::string n = std::to_string(++lines_);
  const std::string text = n + std::string(random.below(random.percent(5) ? 3000 : 60), 'x');
  switch (random.below(14)) {
    case 0:
    case 1:
    case 2:
      return head("user", n) + R"("role":"user","content":"prompt )" + text + "\"}}\n";
    case 3:
    case 4:
      return assistant(n, R"({"type":"tool_use","id":"c)" + std::to_string(++calls_) +
                              R"(","name":"Bash","input":{"command":"ls )" + text + "\"}}") +
             "\n";
    case 5:
    case 6:
      return head("user", n) + R"("role":"user","content":[{"type":"tool_result","tool_use_id":"c)" +
             std::to_string(random.between(1, calls_ + 1)) + R"(","content":")" + text + "\"}]}}\r\n";
    case 7:
      return "not JSON " + text + "\n";
    case 8:
      return "\n";
    case 9:
      return assistant(n, R"({"type":"text","text":"torn )" + text) +
             assistant(n + "b", R"({"type":"text","text":"glued"})") + "\n";
    case 10:
      return R"({"type":"bulk","data":")" + text + "\"}\n";
    default:
      return assistant(n, R"({"type":"text","text":"says )" + text + "\"}") + "\n";
  }
}

std::string Records::line(Random& random) {
  const auto known = lines_of(program_);
  if (known.empty()) return claude_code_line(random);
  const std::string n = std::to_string(++lines_);
  const std::string text = n + std::string(random.below(random.percent(5) ? 3000 : 60), 'x');
  const std::uint64_t what = random.below(known.size() + 3);
  if (what == known.size()) return "not JSON " + text + "\n";
  if (what == known.size() + 1) return "\n";
  const std::string_view record = what < known.size() ? known[what] : known[random.below(known.size())];
  std::string line;
  for (std::size_t at = 0; at < record.size(); ++at) {
    if (record[at] != '%') {
      line += record[at];
      continue;
    }
    switch (record[++at]) {
      case 'n':
        line += n;
        break;
      case 't':
        line += text;
        break;
      case 'i':
        line += std::to_string(random.below(3));
        break;
      case 's':
        line += std::to_string(random.below(10));
        break;
      case 'c':
        line += "c" + std::to_string(++calls_);
        break;
      default:
        line += "c" + std::to_string(random.between(calls_ > 4 ? calls_ - 4 : 1, calls_ + 1));
    }
  }
  if (what > known.size()) line.resize(random.below(line.size()));  // a writer that was killed
  return line + "\n";
}

std::string Records::directory(Random& random) const {
  const auto n = std::to_string(random.below(3));
  const std::string_view name = program_.program();
  if (name == "codex") return root_ + (n == "2" ? "/archived_sessions" : "/sessions/2026/01/0" + n);
  if (name == "copilot") return root_ + "/session-state/s" + n;
  if (name == "pi") return root_ + "/sessions/--p" + n + "--";
  return root_ + "/projects/p" + n;
}

std::string Records::path(Random& random) const {
  std::string path = directory(random);
  const std::string_view name = program_.program();
  const std::string uuid = "00000000-0000-4000-8000-00000000000";
  if (name == "codex")
    path += "/rollout-2026-01-01T00-00-00-" + uuid;
  else if (name == "pi")
    path += "/2026-01-01T00-00-00-000Z_" + uuid;
  else if (name == "copilot")
    return random.percent(70) ? path + "/events.jsonl" : path + std::to_string(random.below(4)) + ".jsonl";
  else if (random.percent(20))
    path += "/s" + std::to_string(random.below(3)) + "/subagents/agent-";
  else
    path += "/s";
  return path + std::to_string(random.below(4)) + ".jsonl";
}

}  // namespace earshot::sim
