#include "session_generator.hpp"

#include <initializer_list>
#include <string_view>
#include <vector>

namespace earshot::test {
namespace {

enum class Era { messages, flat, code };

class Session {
 public:
  Session(std::uint64_t seed, Damage damage) : state_(seed * 2 + 1), damage_(damage.any) {
    for (int i = 0; i < 8; ++i) next();
    era_ = Era(below(3));
  }

  std::string write(std::size_t records) {
    std::string out;
    if (damage_ && chance(8)) out += "\xEF\xBB\xBF";
    std::string line;
    for (std::size_t i = 0; i < records; ++i) {
      line += era_ == Era::code ? code() : era_ == Era::flat ? flat() : messages();
      lines_.push_back(line);
      if (damage_ && chance(25)) continue;  // the LF is dropped: the next record is glued on
      if (damage_) {
        spoil(line);
      } else {
        line += '\n';
      }
      out += line;
      line.clear();
    }
    if (damage_ && chance(3)) out += R"({"type":"user","uuid":"tail","mess)";
    return out + line;
  }

 private:
  std::uint64_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    std::uint64_t x = state_ ^ (state_ >> 33);
    x *= 0xff51afd7ed558ccdu;
    return x ^ (x >> 33);
  }
  std::size_t below(std::size_t n) { return next() % n; }
  bool chance(std::size_t one_in) { return below(one_in) == 0; }
  std::string_view one_of(std::initializer_list<std::string_view> list) {
    return list.begin()[below(list.size())];
  }

  // ---- pieces

  std::string text() {
    return std::string(one_of(
        {"go on", "a \\\"quoted\\\" word", "line one\\nline two", "gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80",
         "\\ud83d\\ude00 and \\u00fc", "", "[Request interrupted by user]",
         "<system-reminder>x</system-reminder> mend it", "\xE2\x80\xA8", "}{\\\"type\\\":\\\"user\\\"}",
         "Warmup", "Stop hook feedback:\\nno",
         "<command-name>/review</command-name>\\n<command-args>all</command-args>",
         "<task-notification>\\n<task-id>b1</task-id>\\n<status>completed</status>\\n</task-notification>",
         "<task-notification>\\n<task-id>b2</task-id>\\n<status>failed</status>\\n<summary>s</summary>\\n</"
         "task-notification>",
         "Operation stopped by hook: x", "<teammate-message teammate_id=\\\"x\\\">hi</teammate-message>"}));
  }
  std::string call_id() { return "c" + std::to_string(below(12)); }
  std::string uuid() {
    if (chance(20)) return "u" + std::to_string(below(uuids_ + 1));  // may be a repetition
    return "u" + std::to_string(++uuids_);
  }
  std::string envelope(std::string_view type) {
    std::string out = R"({"type":")" + std::string(type) + '"';
    if (!chance(15)) out += R"(,"uuid":")" + uuid() + '"';
    if (chance(2))
      out += chance(4) ? R"(,"parentUuid":null)"
                       : R"(,"parentUuid":"u)" + std::to_string(below(uuids_ + 2)) + '"';
    if (chance(6)) out += R"(,"isSidechain":true)";
    if (!chance(10)) {
      seconds_ += below(4);
      out += era_ == Era::messages ? R"(,"timestamp":)" + std::to_string(1738160130000 + 1000 * seconds_)
                                   : R"(,"timestamp":"2026-02-03T00:)" + two(seconds_ / 60 % 60) + ":" +
                                         two(seconds_ % 60) + ".000Z\"";
    }
    if (chance(40)) out += R"(,"isDeleted":true)";
    if (chance(40)) out += R"(,"isAborted":true)";
    if (chance(12)) out += R"(,"cwd":"/w)" + std::to_string(below(3)) + '"';
    return out;
  }
  static std::string two(std::size_t n) { return {char('0' + n / 10), char('0' + n % 10)}; }

  std::string blocks() {
    std::string out = "[";
    for (std::size_t i = 0, n = below(3); i <= n; ++i) {
      if (i) out += ',';
      switch (below(4)) {
        case 0:
          out += R"({"type":"thinking","thinking":")" + text() + "\"}";
          break;
        case 1:
          out += R"({"type":"tool_use","id":")" + call_id() + R"(","name":")" +
                 std::string(
                     one_of({"Bash", "Read", "Task", "Agent", "TodoWrite", "TaskCreate", "TaskUpdate"})) +
                 R"(","input":{"command":")" + text() +
                 R"(","taskId":"1","status":"completed","subject":"s","todos":[{"content":"a","status":")" +
                 std::string(one_of({"pending", "completed"})) + R"("}],"n":)" +
                 std::string(one_of({"1", "1e400", "18446744073709551616", "-0.5"})) + "}}";
          break;
        default:
          out += R"({"type":"text","text":")" + text() + "\"}";
      }
    }
    return out + "]";
  }
  std::string result_block() {
    return R"([{"type":"tool_result","tool_use_id":")" + call_id() + R"(","content":")" + text() + '"' +
           (chance(4) ? R"(,"is_error":true)" : "") + "}" +
           (chance(8) ? R"(,{"type":"text","text":")" + text() + "\"}" : "") + "]";
  }

  // ---- records

  std::string messages() {
    switch (below(8)) {
      case 0:
      case 1:
        return envelope("human") + R"(,"message":{"type":"message","content":")" + text() + "\"}}";
      case 2:
      case 3:
      case 4:
        return envelope("assistant") + R"(,"message":{"type":"message","content":)" + blocks() + "}}";
      case 5:
      case 6:
        return envelope("tool_result") + R"(,"message":{"type":"message","content":)" + result_block() + "}}";
      default:
        return envelope(one_of({"compact_prelude", "compact_recap"})) +
               R"(,"message":{"type":"message","content":")" + text() + "\"}}";
    }
  }
  std::string flat() {
    switch (below(8)) {
      case 0:
      case 1:
        return envelope("user") + R"(,"message":")" + text() + "\"}";
      case 2:
      case 3:
        return envelope("assistant") + R"(,"subtype":"response","message":")" + text() + "\"}";
      case 4:
      case 5:
        return envelope("assistant") + R"(,"subtype":"tool_use","toolName":")" +
               std::string(one_of({"Bash", "Task"})) + R"(","toolArguments":{"command":")" + text() + "\"}}";
      case 6:
        return envelope("system") + R"(,"message":")" + text() + "\"}";
      default:
        return envelope("compact_system") + R"(,"message":")" +
               std::string(
                   one_of({"conversation_compacting", "conversation_compacted", "conversation_restored"})) +
               "\"}";
    }
  }
  std::string code() {
    switch (below(16)) {
      case 0:
      case 1:
        return envelope("user") + (chance(6) ? R"(,"isMeta":true)" : "") +
               (chance(12) ? R"(,"isCompactSummary":true)" : "") +
               (chance(6) ? R"(,"promptSource":"queued")" : "") + R"(,"message":{"role":"user","content":")" +
               text() + "\"}}";
      case 2:
      case 3:
      case 4:
      case 5:
        return envelope("assistant") + R"(,"requestId":"q)" + std::to_string(below(9)) +
               R"(","message":{"id":"m)" + std::to_string(below(9)) + R"(","model":")" +
               std::string(one_of({"big", "small", "<synthetic>"})) + R"(","content":)" + blocks() +
               R"(,"stop_reason":)" +
               std::string(one_of({"null", "null", "\"end_turn\"", "\"tool_use\"", "\"refusal\""})) +
               R"(,"usage":{"input_tokens":)" + std::to_string(below(9)) + R"(,"output_tokens":)" +
               std::to_string(below(99)) + "}}" + (chance(30) ? R"(,"isApiErrorMessage":true)" : "") + "}";
      case 6:
      case 7:
      case 8:
        return envelope("user") + R"(,"message":{"role":"user","content":)" + result_block() + "}" +
               std::string(
                   one_of({"", "", R"(,"toolUseResult":{"interrupted":true})",
                           R"(,"toolUseResult":{"backgroundTaskId":"b1"})",
                           R"(,"toolUseResult":{"status":"async_launched","agentId":"b2"})",
                           R"(,"toolDenialKind":"user-rejected")",
                           R"(,"toolUseResult":{"newTodos":[{"content":"a","status":"in_progress"}]})",
                           R"(,"toolUseResult":{"task":{"id":"1","subject":"s"}})"})) +
               "}";
      case 9:
        return envelope("system") + R"(,"subtype":")" +
               std::string(
                   one_of({"turn_duration\",\"durationMs\":5",
                           "stop_hook_summary\",\"hookErrors\":[],\"preventedContinuation\":false",
                           "compact_boundary\",\"compactMetadata\":{\"trigger\":\"auto\",\"preTokens\":5}",
                           "microcompact_boundary\"", "api_error\",\"retryAttempt\":1",
                           "scheduled_task_fire\"", "away_summary\",\"content\":\"x\""})) +
               "}";
      case 10:
        return R"({"type":"queue-operation","operation":")" +
               std::string(one_of({"enqueue", "dequeue", "remove"})) + R"(","content":")" + text() + "\"}";
      case 11:
        return envelope("attachment") + R"(,"attachment":{"type":")" +
               std::string(one_of(
                   {"queued_command\",\"commandMode\":\"prompt\",\"prompt\":\"x\"",
                    "task_reminder\",\"content\":[{\"id\":\"1\",\"subject\":\"s\",\"status\":\"pending\"}]",
                    "max_turns_reached\"", "skill_listing\",\"content\":\"x\"", "novelty\""})) +
               "}}";
      case 12:
        return std::string(one_of(
            {R"({"type":"summary","summary":"s","leafUuid":"u1"})", R"({"type":"ai-title","aiTitle":"t"})",
             R"({"type":"mode","mode":"normal"})", R"({"type":"cost-state","totalCostUSD":0.5})",
             R"({"type":"last-prompt","lastPrompt":"x"})", R"({"type":"novelty","a":[1,{"b":2}]})",
             R"({"type":"permission-mode","permissionMode":"plan"})"}));
      case 13:
        return R"({"type":"file-history-snapshot","messageId":"m","snapshot":{"trackedFileBackups":)" +
               std::string(one_of({"{}", R"({"a.txt":{}})"})) + "}}";
      case 14:
        return envelope("progress") + R"(,"parentToolUseID":")" + call_id() +
               R"(","data":{"type":"agent_progress","agentId":"b2"}})";
      default:
        return envelope("user") + R"(,"message":{"role":"user","content":[{"type":"text","text":")" + text() +
               "\"}]}}";
    }
  }

  // ---- damage

  /// Ends the line, mostly with a plain LF.
  void spoil(std::string& line) {
    switch (below(40)) {
      case 0:
        line = line.substr(0, below(line.size()));
        break;  // cut
      case 1:
        line = line.substr(0, below(line.size())) + lines_[below(lines_.size())];
        break;  // cut, another glued on
      case 2:
        line.insert(below(line.size()), 1, char(below(256)));
        break;  // a byte too many
      case 3:
        line[below(line.size())] = char(below(256));
        break;  // another byte
      case 4:
        line = std::string(below(300), '\0') + (chance(2) ? line : "");
        break;  // a hole
      case 5:
        line = lines_[below(lines_.size())];
        break;  // repeated
      case 6:
        line = std::string(one_of({"", " ", "\t", "null", "7", "[]", "\"x\"", "{}"}));
        break;  // no record
      case 7:
        line = "{\n  \"type\": \"user\",\n  \"x\": [\n    1\n  ]\n}";
        break;  // pretty
      case 8:
        line = R"({"type":"user","x":)" + std::string(1000 + below(50), '[') +
               std::string(1000 + below(50), ']') + "}";
        break;
      case 9:
        line = R"({"type":"user","x":")" + std::string(below(6000), 'y') + "\"}";
        break;  // long
      case 10:
        line += R"({"type":"user","uuid":"u9)";
        break;  // the start of another
      case 11:
        line = "\xEF\xBB\xBF" + line;
        break;
      default:
        break;
    }
    line += chance(10) ? "\r\n" : "\n";
  }

  std::uint64_t state_;
  bool damage_;
  Era era_{};
  std::size_t uuids_ = 0;
  std::size_t seconds_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace

std::string generated_session(std::uint64_t seed, std::size_t records, Damage damage) {
  return Session(seed, damage).write(records);
}

}  // namespace earshot::test
