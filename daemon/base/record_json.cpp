#include "base/record_json.hpp"

#include "base/json_rewrite.hpp"
#include "base/json_scan.hpp"

namespace earshot {

std::string redact_record(std::string_view line, const TextFilter* filter, bool& is_json) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  std::string text;
  text.reserve(line.size());
  const Copied copied = copy_json(text, line, {.depth_max = nesting_max, .filter = filter});
  is_json = copied.how == Copied::How::whole;
  if (is_json) return text;
  text.clear();
  return std::string(filter ? clean_fragment(line, line.size(), *filter, text) : line);
}

}  // namespace earshot
