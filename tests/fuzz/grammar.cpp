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
  std::size_t dialect;  // 0 claude-code, 1 claude-flat, 2 claude-messages
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
    for (const Template& one : templates) fitting += dialect == 3 || one.dialect == dialect;
    std::size_t left = what % fitting;
    for (const Template& one : templates)
      if ((dialect == 3 || one.dialect == dialect) && left-- == 0) return one.text;
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
