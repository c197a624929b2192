#include "notifier/notice.hpp"

#include <xxhash.h>

#include <cstdio>

#include "base/display_text.hpp"
#include "notifier/json.hpp"

namespace earshot::notifier {

std::string digest(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  char digits[33];
  std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return digits;
}

std::string clean_line(std::string_view text, std::size_t columns) {
  return cut_to_width(to_display_line(text, Charset::utf8), columns, "…");
}

std::string clean_lines(std::string_view text) {
  std::string out;
  std::size_t lines = 0;
  while (!text.empty() && lines < Notice::body_lines_max) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string line = clean_line(text.substr(0, end), Notice::body_columns_max);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (lines++ > 0) out += '\n';
    out += line;
  }
  return out;
}

void append_notice(std::string& out, const Notice& notice) {
  Object object(out);
  object.add("id", notice.id).add("rule", notice.rule).add("sinks", notice.sinks).add("slot", notice.slot);
  object.add("title", notice.title).add("body", notice.body).add("urgency", urgency_name(notice.urgency));
  object.add("time_ms", notice.time_ms).add("type", notice.type).add("host", notice.host);
  object.add("session", notice.session).add("project", notice.project).maybe("event", notice.event);
  append_array(object.begin("ack_keys"), notice.ack_keys, [](std::string& to, const AckKey& ack_key) {
    Object each(to);
    each.add("id", ack_key.id).add("session", ack_key.session).add("is_status", ack_key.is_status);
    each.close();
  });
  object.close();
}

std::optional<Notice> parse_notice(const common::Fields& fields) {
  Notice notice;
  notice.id = fields.text("id");
  if (notice.id.empty()) return std::nullopt;
  notice.rule = fields.text("rule");
  notice.slot = fields.text("slot");
  notice.title = fields.text("title");
  notice.body = fields.text("body");
  const std::string_view urgency = fields.text("urgency");
  for (const Urgency each : {Urgency::low, Urgency::normal, Urgency::critical}) {
    if (urgency_name(each) == urgency) notice.urgency = each;
  }
  notice.time_ms = fields.integer("time_ms").value_or(0);
  notice.type = fields.text("type");
  notice.host = fields.text("host");
  notice.session = fields.text("session");
  notice.project = fields.text("project");
  notice.event = fields.text("event");
  for (const std::string_view sink : fields.texts("sinks")) notice.sinks.emplace_back(sink);
  for (const common::Fields& each : fields.objects("ack_keys"))
    notice.ack_keys.push_back(
        {std::string(each.text("id")), std::string(each.text("session")), each.flag("is_status")});
  return notice;
}

}  // namespace earshot::notifier
