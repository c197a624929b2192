#include "notifier/state_file.hpp"

#include "base/json_writer.hpp"

namespace earshot::notifier {
namespace {

constexpr int version = 1;

}  // namespace

std::string to_json(const State& state) {
  std::string out;
  JsonWriter writer(out);
  const auto write_notice = [&](const Notice& notice) { append_notice(writer.next(), notice); };
  writer.begin_object().member("version", version).member("since_ms", state.engine.since_ms);
  writer.key("cursors").array(state.cursors,
                              [&](const auto& each) { writer.value(each.first + ":" + each.second); });
  writer.key("handled").array(state.engine.handled, [&](const auto& each) {
    writer.begin_object().member("id", each.first).member("at_ms", each.second).end_object();
  });
  writer.key("held").array(state.engine.held, [&](const EngineState::Held& each) {
    writer.begin_object().member("due_ms", each.due_ms).member("is_grouped", each.is_grouped).key("notice");
    write_notice(each.notice);
    writer.end_object();
  });
  writer.key("open").array(state.engine.open, write_notice);
  writer.key("outgoing").array(state.outgoing, write_notice);
  writer.key("throttles").array(state.engine.throttles, [&](const auto& each) {
    const auto& [at_ms, id] = each.second;
    writer.begin_object().member("of", each.first).member("at_ms", at_ms).member("id", id).end_object();
  });
  writer.member_if_any("bus", state.bus);
  writer.key("shown").array(state.shown, [&](const auto& each) {
    writer.begin_object().member("slot", each.first).member("id", each.second).end_object();
  });
  writer.key("shown_ids").array(state.shown_ids, [&](const auto& each) {
    writer.begin_object().member("slot", each.first).member("notice", each.second).end_object();
  });
  writer.end_object();
  return out;
}

std::optional<State> parse_state(std::string_view json) {
  common::FrameParser parser;
  const auto fields = parser.parse(json);
  if (!fields || fields->integer("version") != version) return std::nullopt;
  State state;
  state.engine.since_ms = fields->integer("since_ms").value_or(0);
  for (const std::string_view entry : fields->texts("cursors")) {
    const std::size_t colon = entry.rfind(':');
    if (colon != entry.npos) state.cursors.emplace_back(entry.substr(0, colon), entry.substr(colon + 1));
  }
  for (const common::Fields& each : fields->objects("handled"))
    state.engine.handled.emplace(each.text("id"), each.integer("at_ms").value_or(0));
  for (const common::Fields& each : fields->objects("held")) {
    if (auto notice = parse_notice(each.object("notice")))
      state.engine.held.push_back(
          {std::move(*notice), each.integer("due_ms").value_or(0), each.flag("is_grouped")});
  }
  for (const common::Fields& each : fields->objects("open")) {
    if (auto notice = parse_notice(each)) state.engine.open.push_back(std::move(*notice));
  }
  for (const common::Fields& each : fields->objects("outgoing")) {
    if (auto notice = parse_notice(each)) state.outgoing.push_back(std::move(*notice));
  }
  for (const common::Fields& each : fields->objects("throttles"))
    state.engine.throttles[std::string(each.text("of"))] = {each.integer("at_ms").value_or(0),
                                                            std::string(each.text("id"))};
  state.bus = fields->text("bus");
  for (const common::Fields& each : fields->objects("shown"))
    state.shown.emplace_back(each.text("slot"), static_cast<std::uint32_t>(each.count("id")));
  for (const common::Fields& each : fields->objects("shown_ids"))
    state.shown_ids.emplace_back(each.text("slot"), each.text("notice"));
  return state;
}

}  // namespace earshot::notifier
