// Which dialect a record shows. One table, most specific first; the path of a file says nothing.
#include "core/dialect.hpp"
#include "core/dialects/claude_code.hpp"

namespace earshot {
namespace {

using namespace dialects;

bool shows_messages(const Fields& f, std::string_view type) {
  return (f.timestamp && f.timestamp->is_number()) || type == "human" || type == "tool_result" ||
         type == "compact_prelude" || type == "compact_recap";
}

bool shows_flat(const Fields& f, std::string_view type) {
  return (f.message && f.message->is_string()) || f.toolName || f.toolArguments || type == "compact_system";
}

bool shows_code(const Fields& f, std::string_view type) {
  return is_claude_code_chain(type) && (f.uuid || f.sessionId || (f.message && f.message->is_object()));
}

struct Sign {
  bool (*shown)(const Fields&, std::string_view type);
  const Dialect& (*dialect)();
};
constexpr Sign signs[] = {
    {shows_messages, claude_messages},
    {shows_flat, claude_flat},
    {shows_code, claude_code},
};

}  // namespace

const Dialect* dialect_of(const dom::element& json) {
  const Fields fields(json);
  const std::string_view type = text(fields.type);
  if (is_claude_code_metadata(type)) return nullptr;
  for (const Sign& sign : signs)
    if (sign.shown(fields, type)) return &sign.dialect();
  return nullptr;
}

const Dialect* dialect_of_metadata(const dom::element& json) {
  return is_claude_code_metadata(dom::text_of(json, "type")) ? &claude_code() : nullptr;
}

}  // namespace earshot
