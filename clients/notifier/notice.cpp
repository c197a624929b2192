#include "notifier/notice.hpp"

#include <xxhash.h>

#include <algorithm>

#include "base/display_text.hpp"
#include "base/hex.hpp"
#include "base/json_writer.hpp"

namespace earshot::notifier {

std::string digest(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  std::string digits;
  append_hex(digits, hash.high64);
  append_hex(digits, hash.low64);
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
  JsonWriter writer(out);
  writer.begin_object().member("id", notice.id).member("rule", notice.rule);
  writer.array_member("sinks", notice.sinks).member("slot", notice.slot);
  writer.member("title", notice.title).member("body", notice.body);
  writer.member("urgency", urgency_name(notice.urgency)).member("time_ms", notice.time_ms);
  writer.member("type", notice.type).member("host", notice.host).member("session", notice.session);
  writer.member("project", notice.project).member_if_any("event", notice.event);
  writer.key("ack_keys").array(notice.ack_keys, [&](const AckKey& each) {
    writer.begin_object().member("id", each.id).member("session", each.session);
    writer.member("is_status", each.is_status).end_object();
  });
  writer.end_object();
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
