#include "notifier/notice.hpp"

#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "base/display_text.hpp"
#include "base/hex.hpp"
#include "base/quantities.hpp"

namespace earshot::notifier {
namespace {

constexpr std::pair<std::string_view, std::string Notice::*> text_fields[] = {
    {"id", &Notice::id},       {"rule", &Notice::rule},       {"slot", &Notice::slot},
    {"title", &Notice::title}, {"body", &Notice::body},       {"type", &Notice::type},
    {"host", &Notice::host},   {"session", &Notice::session}, {"project", &Notice::project},
    {"event", &Notice::event}, {"link", &Notice::link}};

}  // namespace

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

void write_notice(JsonWriter& writer, const Notice& notice) {
  writer.begin_object();
  for (const auto& [name, field] : text_fields) writer.member_if_any(name, notice.*field);
  writer.array_member("sinks", notice.sinks).member("time_ms", notice.time_ms);
  writer.member("urgency", urgency_name(notice.urgency)).member("is_here", notice.is_here);
  writer.key("ack_keys").array(notice.ack_keys, [&](const AckKey& each) {
    writer.begin_object().member("id", each.id).member("session", each.session);
    writer.member("is_status", each.is_status).end_object();
  });
  writer.end_object();
}

std::optional<Notice> parse_notice(const common::Fields& fields) {
  Notice notice;
  for (const auto& [name, field] : text_fields) notice.*field = fields.text(name);
  if (notice.id.empty()) return std::nullopt;
  for (const Urgency each : {Urgency::low, Urgency::normal, Urgency::critical}) {
    if (urgency_name(each) == fields.text("urgency")) notice.urgency = each;
  }
  notice.time_ms = fields.integer("time_ms").value_or(0);
  notice.is_here = fields.flag("is_here");
  for (const std::string_view sink : fields.texts("sinks")) notice.sinks.emplace_back(sink);
  for (const common::Fields& each : fields.objects("ack_keys"))
    notice.ack_keys.push_back(
        {std::string(each.text("id")), std::string(each.text("session")), each.flag("is_status")});
  return notice;
}

std::string notice_json(const Notice& notice) {
  std::string out;
  JsonWriter writer(out);
  writer.begin_object();
  writer.member("type", "notice").member("version", 1).member("id", notice.id).member("rule", notice.rule);
  writer.member("title", notice.title).member("body", notice.body);
  writer.member("urgency", urgency_name(notice.urgency));
  if (notice.time_ms > 0) writer.member("time", format_time(notice.time_ms));
  writer.member("about", notice.type).member_if_any("host", notice.host);
  writer.member_if_any("session", notice.session).member_if_any("project", notice.project);
  writer.member_if_any("link", notice.link);
  if (!notice.event.empty()) writer.raw_member("event", notice.event);
  writer.end_object();
  return out;
}

}  // namespace earshot::notifier
