#include "grammar.hpp"

#include <iterator>

#include "core/event_json.hpp"
#include "grammar_words.hpp"

namespace earshot::fuzz {
namespace {

constexpr std::size_t records_max = 64, depth_max = 5;

// In a template `%` and a letter is a hole: u a new uuid, i an id that is seen again, w a word, s a text,
// n a number, v anything, c the content of a message, r the content of a result, m more members.
struct Template {
  std::size_t dialect;  // 0 claude-code, 1 claude-flat, 2 claude-messages, 4 Codex, 5 Copilot CLI, 6 Pi
  std::string_view text;
};
constexpr Template templates[] = {
    {0, R"({"type":"user","uuid":%u,"parentUuid":%i,"message":{"role":"user","content":%c}%m})"},
    {0, R"({"type":"user","uuid":%u,"timestamp":%t,"message":{"role":"user","content":%r}%m})"},
    {0, R"({"type":"user","uuid":%u,"message":{"role":"user","content":%r},"toolUseResult":{%w:%v%m}%m})"},
    {0, R"({"type":"assistant","uuid":%u,"timestamp":%t,"requestId":%i,"message":{"id":%i,"model":%w,)"
        R"("content":%c,"stop_reason":%w,"usage":{"input_tokens":%n,"output_tokens":%n%m}}%m})"},
    {0,
     R"({"type":"assistant","uuid":%u,"parentUuid":%i,"isSidechain":true,"message":{"id":%i,"content":%c}%m})"},
    {0, R"({"type":"system","uuid":%u,"timestamp":%t,"subtype":%w%m})"},
    {0, R"({"type":"attachment","uuid":%u,"attachment":{"type":%w%m}%m})"},
    {0, R"({"type":"queue-operation","operation":%w,"content":%c%m})"},
    {0,
     R"({"type":"progress","uuid":%u,"parentToolUseID":%i,"data":{"type":"agent_progress","agentId":%i}%m})"},
    {0, R"({"type":"file-history-snapshot","messageId":%i,"snapshot":{"trackedFileBackups":%v%m}%m})"},
    {0, R"({"type":"summary","summary":%s,"leafUuid":%i%m})"},
    {0, R"({"type":%w,"sessionId":%i%m})"},
    {1, R"({"type":"user","uuid":%u,"parentUuid":%i,"message":%s%m})"},
    {1, R"({"type":"assistant","uuid":%u,"timestamp":%t,"subtype":%w,"message":%s%m})"},
    {1, R"({"type":"assistant","uuid":%u,"subtype":"tool_use","toolName":%w,"toolArguments":%v%m})"},
    {1, R"({"type":"system","uuid":%u,"parentUuid":%i,"message":%s,"isError":%v%m})"},
    {1, R"({"type":"compact_system","message":%w%m})"},
    {2, R"({"type":"human","uuid":%u,"timestamp":%n,"message":{"type":"message","content":%c}%m})"},
    {2, R"({"type":"assistant","uuid":%u,"timestamp":%n,"message":{"type":"message","content":%c}%m})"},
    {2, R"({"type":"tool_result","uuid":%u,"message":{"type":"message","content":%r}%m})"},
    {2, R"({"type":%w,"uuid":%u,"timestamp":%n,"message":{"type":"message","content":%c}%m})"},
    {4,
     R"({"timestamp":%t,"type":"session_meta","payload":{"id":%i,"session_id":%i,"cwd":%s,"cli_version":%s,"source":%v,"timestamp":%t%m}})"},
    {4,
     R"({"timestamp":%t,"type":"session_meta","payload":{"id":%i,"source":{"subagent":{"thread_spawn":{"parent_thread_id":%i}}},"history_mode":"paginated"%m}})"},
    {4,
     R"({"timestamp":%t,"type":"turn_context","payload":{"cwd":%s,"model":%w,"approval_policy":%v,"sandbox_policy":{"type":%w}%m}})"},
    {4,
     R"({"timestamp":%t,"type":"event_msg","payload":{"type":"task_started","turn_id":%i,"started_at":%n%m}})"},
    {4,
     R"({"timestamp":%t,"type":"event_msg","payload":{"type":"task_complete","turn_id":%i,"last_agent_message":%s,"error":%v%m}})"},
    {4,
     R"({"timestamp":%t,"type":"event_msg","payload":{"type":"turn_aborted","turn_id":%i,"reason":%w%m}})"},
    {4,
     R"({"timestamp":%t,"type":"event_msg","payload":{"type":"user_message","message":%s,"images":[%s]%m}})"},
    {4, R"({"timestamp":%t,"type":"event_msg","payload":{"type":"agent_message","message":%s%m}})"},
    {4, R"({"timestamp":%t,"type":"event_msg","payload":{"type":"agent_reasoning","text":%s%m}})"},
    {4,
     R"({"timestamp":%t,"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":%n,"output_tokens":%n},"last_token_usage":{"input_tokens":%n},"model_context_window":%n},"rate_limits":{"limit_id":%w,"primary":{"used_percent":%n,"window_minutes":%n,"resets_at":%n}}%m}})"},
    {4,
     R"({"timestamp":%t,"type":"event_msg","payload":{"type":"exec_command_end","call_id":%i,"exit_code":%n,"aggregated_output":%s%m}})"},
    {4,
     R"({"timestamp":%t,"type":"event_msg","payload":{"type":"error","message":%s,"codex_error_info":%v%m}})"},
    {4,
     R"({"timestamp":%t,"type":"event_msg","payload":{"type":"item_completed","turn_id":%i,"item":{"type":"UserMessage","id":%i,"content":[{"type":"text","text":%s}]%m}%m}})"},
    {4,
     R"({"timestamp":%t,"type":"event_msg","payload":{"type":"item_completed","turn_id":%i,"item":{"type":"AgentMessage","id":%i,"content":[{"type":"Text","text":%s}]%m}%m}})"},
    {4,
     R"({"timestamp":%t,"type":"event_msg","payload":{"type":"item_completed","turn_id":%i,"item":{"type":"Plan","id":%i,"text":%s%m}%m}})"},
    {4,
     R"({"timestamp":%t,"type":"event_msg","payload":{"type":"item_completed","turn_id":%i,"item":{"type":"CommandExecution","id":%i,"command":[%s],"source":%w,"status":%w,"exit_code":%n,"aggregated_output":%s,"duration":{"secs":%n,"nanos":%n}%m}%m}})"},
    {4,
     R"({"timestamp":%t,"type":"event_msg","payload":{"type":"item_completed","turn_id":%i,"item":{"type":"SubAgentActivity","id":%i,"kind":%w,"agent_thread_id":%i%m}%m}})"},
    {4,
     R"({"timestamp":%t,"type":"event_msg","payload":{"type":"item_completed","turn_id":%i,"item":{"type":%w,"id":%i%m}%m}})"},
    {4,
     R"({"timestamp":%t,"type":"response_item","payload":{"type":"message","id":%i,"role":%w,"content":[{"type":"input_text","text":%s}]%m}})"},
    {4,
     R"({"timestamp":%t,"type":"response_item","payload":{"type":"function_call","name":"spawn_agent","arguments":"{\"message\":\"x\"}","call_id":%i%m}})"},
    {4,
     R"({"timestamp":%t,"type":"response_item","payload":{"type":"function_call","name":%w,"arguments":%s,"call_id":%i%m}})"},
    {4,
     R"({"timestamp":%t,"type":"response_item","payload":{"type":"custom_tool_call","name":%w,"input":%s,"call_id":%i%m}})"},
    {4,
     R"({"timestamp":%t,"type":"response_item","payload":{"type":"function_call_output","call_id":%i,"output":%v%m}})"},
    {4,
     R"({"timestamp":%t,"type":"response_item","payload":{"type":"function_call_output","call_id":%i,"output":"Process running with session ID 7"%m}})"},
    {4,
     R"({"timestamp":%t,"type":"response_item","payload":{"type":"web_search_call","id":%i,"action":%v%m}})"},
    {4, R"({"timestamp":%t,"type":"compacted","payload":{"message":%s,"window_id":%i%m}})"},
    {5,
     R"({"type":"session.start","id":%u,"timestamp":%t,"data":{"sessionId":%i,"copilotVersion":%s,"context":{"cwd":%s,"branch":%w},"selectedModel":%w%m}})"},
    {5,
     R"({"type":"session.resume","id":%u,"timestamp":%t,"data":{"context":{"cwd":%s},"alreadyInUse":%v%m}})"},
    {5, R"({"type":"user.message","id":%u,"timestamp":%t,"data":{"content":%s,"delivery":%w%m}})"},
    {5, R"({"type":"user.message","id":%u,"timestamp":%t,"data":{"content":%s,"delivery":"steering"%m}})"},
    {5,
     R"({"type":"assistant.message","id":%u,"timestamp":%t,"data":{"messageId":%i,"model":%w,"content":%s,"toolRequests":[{"toolCallId":%i,"name":%w,"arguments":%v}],"outputTokens":%n%m}})"},
    {5,
     R"({"type":"assistant.message","id":%u,"timestamp":%t,"data":{"messageId":%i,"content":%s,"reasoningText":%s,"toolRequests":[],"outputTokens":%n%m}})"},
    {5, R"({"type":"assistant.turn_end","id":%u,"timestamp":%t,"data":{"turnId":%s%m}})"},
    {5,
     R"({"type":"tool.execution_start","id":%u,"timestamp":%t,"data":{"toolCallId":%i,"toolName":%w,"arguments":%v%m}})"},
    {5,
     R"({"type":"tool.execution_complete","id":%u,"timestamp":%t,"data":{"toolCallId":%i,"success":%v,"result":{"content":%s},"error":{"code":%w,"message":%s}%m}})"},
    {5,
     R"({"type":"permission.requested","id":%u,"timestamp":%t,"data":{"requestId":%i,"permissionRequest":{"toolCallId":%i,"kind":%w}%m}})"},
    {5,
     R"({"type":"permission.completed","id":%u,"timestamp":%t,"data":{"requestId":%i,"toolCallId":%i,"result":{"kind":%w}%m}})"},
    {5, R"({"type":"subagent.started","id":%u,"timestamp":%t,"data":{"toolCallId":%i,"agentName":%w%m}})"},
    {5,
     R"({"type":"subagent.completed","id":%u,"timestamp":%t,"data":{"toolCallId":%i,"durationMs":%n,"totalTokens":%n%m}})"},
    {5,
     R"({"type":"system.notification","id":%u,"timestamp":%t,"data":{"content":%s,"kind":{"type":"agent_completed","agentId":%i,"status":%w}%m}})"},
    {5, R"({"type":"session.compaction_start","id":%u,"timestamp":%t,"data":{"currentTokens":%n%m}})"},
    {5,
     R"({"type":"session.compaction_complete","id":%u,"timestamp":%t,"data":{"success":%v,"preCompactionTokens":%n,"summaryContent":%s%m}})"},
    {5,
     R"({"type":"session.usage_record","id":%u,"timestamp":%t,"data":{"usage":{"model":%w,"inputTokens":%n,"outputTokens":%n,"cacheReadTokens":%n}%m}})"},
    {5,
     R"({"type":"session.error","id":%u,"timestamp":%t,"data":{"errorType":%w,"message":%s,"statusCode":%n%m}})"},
    {5, R"({"type":"abort","id":%u,"timestamp":%t,"data":{"reason":%w%m}})"},
    {5,
     R"({"type":"session.shutdown","id":%u,"timestamp":%t,"data":{"shutdownType":%w,"modelMetrics":{%w:{"usage":{"inputTokens":%n,"outputTokens":%n}}}%m}})"},
    {5,
     R"({"type":"assistant.message","id":%u,"agentId":%i,"timestamp":%t,"data":{"messageId":%i,"content":%s,"toolRequests":[{"toolCallId":%i,"name":%w}]%m}})"},
    {6, R"({"type":"session","version":%n,"id":%i,"timestamp":%t,"cwd":%s%m})"},
    {6,
     R"({"type":"message","id":%u,"timestamp":%t,"message":{"role":"user","content":%c,"timestamp":%n}%m})"},
    {6,
     R"({"type":"message","id":%u,"timestamp":%t,"message":{"role":"assistant","content":[{"type":"text","text":%s}],"model":%w,"stopReason":"stop","usage":{"input":%n,"output":%n,"cost":{"total":%n}}}%m})"},
    {6,
     R"({"type":"message","id":%u,"timestamp":%t,"message":{"role":"assistant","content":[{"type":"toolCall","id":%i,"name":%w,"arguments":%v}],"stopReason":"toolUse"}%m})"},
    {6,
     R"({"type":"message","id":%u,"timestamp":%t,"message":{"role":"assistant","content":[],"stopReason":"aborted","errorMessage":%s}%m})"},
    {6,
     R"({"type":"message","id":%u,"timestamp":%t,"message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"529 overloaded"}%m})"},
    {6,
     R"({"type":"message","id":%u,"timestamp":%t,"message":{"role":"toolResult","toolCallId":%i,"content":%c,"isError":%v}%m})"},
    {6, R"({"type":"model_change","id":%u,"timestamp":%t,"modelId":%w%m})"},
    {6, R"({"type":"session_info","id":%u,"timestamp":%t,"name":%s%m})"},
    {6, R"({"type":"compaction","id":%u,"timestamp":%t,"summary":%s,"tokensBefore":%n%m})"},
    {6, R"({"type":"branch_summary","id":%u,"timestamp":%t,"summary":%s%m})"},
    {6, R"({"type":"custom_message","id":%u,"timestamp":%t,"content":%s,"display":%v%m})"},
    {6, R"({"type":"usage","id":%u,"timestamp":%t,"usage":{"input":%n,"output":%n}%m})"},
};

class Writer {
 public:
  explicit Writer(Input& input) : input_(input) {}

  std::string session(std::size_t dialect) {
    for (std::size_t n = 0; n < records_max && !input_.done(); ++n) {
      const std::uint8_t what = input_.byte();
      if (what == '\n') continue;
      if (what == '{') {
        out_.append("{").append(input_.until('\n'));
      } else {
        fill(pick(dialect, what));
      }
      out_ += '\n';
    }
    return std::move(out_);
  }

 private:
  static std::string_view pick(std::size_t dialect, std::uint8_t what) {
    std::size_t fitting = 0;
    const auto fits = [&](const Template& one) {
      return one.dialect == dialect || (dialect == 3 && one.dialect < 3);
    };
    for (const Template& one : templates) fitting += fits(one);
    std::size_t left = what % fitting;
    for (const Template& one : templates)
      if (fits(one) && left-- == 0) return one.text;
    return templates[0].text;
  }
  template <std::size_t n>
  std::string_view one_of(const std::string_view (&list)[n]) {
    return list[input_.below(n)];
  }

  void fill(std::string_view text) {
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (text[at] == '%' && at + 1 < text.size())
        hole(text[++at]);
      else
        out_ += text[at];
    }
  }
  void hole(char which) {
    switch (which) {
      case 'u':
        return append_json_string(out_, "u" + std::to_string(++uuids_));
      case 'i':
        return id();
      case 'w':
        return append_json_string(out_, one_of(words));
      case 's':
        return text();
      case 'n':
        out_ += one_of(numbers);
        return;
      case 't':
        out_ += one_of(times);
        return;
      case 'c':
        return content(false);
      case 'r':
        return content(true);
      case 'm':
        return more(depth_max);
      default:
        return value(depth_max);
    }
  }
  void id() {
    const std::uint8_t which = input_.byte();
    append_json_string(out_, (which & 1 ? "u" : "i") + std::to_string(which / 2 % 12));
  }
  void text() {
    const std::uint8_t which = input_.byte();
    if (which < 0x80) return append_json_string(out_, texts[which % std::size(texts)]);
    append_json_string(out_, input_.take(which % 32));
  }
  void member(std::size_t depth) {
    append_json_string(out_, one_of(keys));
    out_ += ':';
    value(depth - 1);
  }
  void more(std::size_t depth) {
    for (std::size_t n = input_.below(4); n > 0; --n) {
      out_ += ',';
      member(depth);
    }
  }
  void value(std::size_t depth) {
    const std::uint8_t which = input_.byte();
    switch (depth == 0 ? which % 6 : which % 9) {
      case 0:
        return append_json_string(out_, one_of(words));
      case 1:
        return text();
      case 2:
        out_ += one_of(numbers);
        return;
      case 3:
        out_ += which & 16 ? "true" : "false";
        return;
      case 4:
        return id();
      case 5:
        out_ += which & 16 ? "null" : "{}";
        return;
      case 6:
        out_ += '[';
        for (std::size_t n = input_.below(4); n > 0; --n) {
          value(depth - 1);
          if (n > 1) out_ += ',';
        }
        out_ += ']';
        return;
      default:
        out_ += '{';
        member(depth);
        more(depth);
        out_ += '}';
    }
  }
  void content(bool result) {
    const std::uint8_t which = input_.byte();
    if (which % 4 == 0) return text();
    out_ += '[';
    for (std::size_t n = 1 + which / 4 % 3; n > 0; --n) {
      block(result);
      if (n > 1) out_ += ',';
    }
    out_ += ']';
  }
  void block(bool result) {
    static constexpr std::string_view blocks[] = {
        R"({"type":"text","text":%s%m})",
        R"({"type":"thinking","thinking":%s})",
        R"({"type":"tool_use","id":%i,"name":%w,"input":{"command":%s,"taskId":%i,"status":%w,"subject":%s%m}})",
        R"({"type":"tool_use","id":%i,"name":"TodoWrite","input":{"todos":[{"content":%s,"status":%w%m}]}})",
        R"({"type":"image","source":{"type":"base64","media_type":%w,"data":%s}%m})",
        "%v"};
    static constexpr std::string_view results[] = {
        R"({"type":"tool_result","tool_use_id":%i,"content":%s%m})",
        R"({"type":"tool_result","tool_use_id":%i,"content":[{"type":"text","text":%s%m}],"is_error":%v})"};
    if (result && input_.below(4) != 0) return fill(one_of(results));
    fill(one_of(blocks));
  }

  Input& input_;
  std::string out_;
  std::size_t uuids_ = 0;
};

}  // namespace

std::string session(Input& input, std::size_t dialect) { return Writer(input).session(dialect); }

}  // namespace earshot::fuzz
