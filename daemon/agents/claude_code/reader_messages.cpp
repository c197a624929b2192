// claude-messages: a documented early format, written below conversations/.
//
//   {"uuid":…,"parentUuid":…,"sessionId":…,"type":"human"|"assistant"|"tool_result","timestamp":<Unix ms>,
//    "version":…,"message":{"type":"message","content":<string or blocks>}}
// Content blocks are those of claude-code. `compact_prelude` starts a compaction; `compact_recap` finishes it
// and holds its summary.
#include "agents/claude_code/reader.hpp"

namespace earshot::claude_code {
namespace {

class MessagesDialect final : public Dialect {
 public:
  std::string_view name() const override { return "claude-messages"; }

  void read(const dom::element& json, std::string_view raw, Record& out) const override {
    const Fields fields(json);
    const std::string_view type = text(fields.type);
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
      const Value content = fields.message ? dom::member(*fields.message, "content") : Value{};
      out.facts.push_back(fact::Summary{text_of_content(content, out)});
      return;
    }
    code_dialect().read(json, raw, out);
  }
};

}  // namespace

const Dialect& messages_dialect() {
  static const MessagesDialect dialect;
  return dialect;
}

}  // namespace earshot::claude_code
