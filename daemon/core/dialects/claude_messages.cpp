// claude-messages: a documented early format below conversations/.
//
//   {"uuid":…,"parentUuid":…,"sessionId":…,"type":"human"|"assistant"|"tool_result","timestamp":<ms since
//   1970>,"version":…,
//    "message":{"type":"message","content":<string or blocks>}}
// Blocks are those of claude-code. `compact_prelude` opens a compaction; `compact_recap` ends it and is its
// summary.
#include "core/dialects/claude_code.hpp"

namespace earshot::dialects {
namespace {

class ClaudeMessages final : public Dialect {
 public:
  std::string_view name() const override { return "claude-messages"; }

  void read(const dom::element& json, std::string_view raw, Record& out) const override {
    const Fields fields(json);
    const std::string_view type = text(fields.type);
    if (type == "human" || type == "tool_result" || type == "compact_prelude" || type == "compact_recap") {
      out.type = type;
      read_header(fields, out);
    }
    if (type == "human" || type == "tool_result") return read_user(fields, raw, out);
    if (type == "compact_prelude") {
      out.facts.push_back(fact::Compaction{.started = true});
      return;
    }
    if (type == "compact_recap") {
      out.facts.push_back(fact::Compaction{.started = false, .kind = "full"});
      const Value content = fields.message ? dom::member(*fields.message, "content") : Value{};
      out.facts.push_back(fact::Summary{text_of_content(content, out)});
      return;
    }
    claude_code().read(json, raw, out);
  }
};

}  // namespace

const Dialect& claude_messages() {
  static const ClaudeMessages reader;
  return reader;
}

}  // namespace earshot::dialects
