#include "common/notifier_health.hpp"

#include "base/file.hpp"

namespace earshot::common {

void write_health(JsonWriter& writer, const NotifierHealth& health) {
  writer.member_if_any("rules_problem", health.rules_problem);
  writer.key("sinks").array(health.sinks, [&](const auto& each) {
    const auto& [name, sink] = each;
    writer.begin_object().member("sink", name).member("failures", sink.failures);
    if (sink.sent_ms > 0) writer.member("sent_ms", sink.sent_ms).member_if_any("answer", sink.answer);
    if (sink.failed_ms > 0) writer.member("failed_ms", sink.failed_ms).member_if_any("why", sink.why);
    if (sink.next_ms > 0) writer.member("next_ms", sink.next_ms);
    if (sink.is_reported) writer.member("is_reported", true);
    writer.end_object();
  });
}

NotifierHealth parse_notifier_health(const Fields& state) {
  NotifierHealth health;
  health.rules_problem = state.text("rules_problem");
  for (const Fields& each : state.objects("sinks")) {
    SinkHealth& sink = health.sinks[std::string(each.text("sink"))];
    sink.sent_ms = each.integer("sent_ms").value_or(0);
    sink.answer = each.text("answer");
    sink.failed_ms = each.integer("failed_ms").value_or(0);
    sink.why = each.text("why");
    sink.failures = static_cast<int>(each.count("failures"));
    sink.next_ms = each.integer("next_ms").value_or(0);
    sink.is_reported = each.flag("is_reported");
  }
  return health;
}

bool read_notifier_health(const std::string& directory, NotifierHealth& health) {
  const PrivateFile file = read_private_file(directory + "/state.json", NotifierHealth::file_bytes_max);
  FrameParser parser;
  const auto state = file.text ? parser.parse(*file.text) : std::nullopt;
  if (state) health = parse_notifier_health(*state);
  return state.has_value();
}

}  // namespace earshot::common
