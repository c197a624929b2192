#include "notifier/state_file.hpp"

#include "notifier/json.hpp"

namespace earshot::notifier {
namespace {

constexpr int version = 1;

}  // namespace

std::string to_json(const State& state) {
  std::string out;
  Object object(out);
  object.add("version", version).add("since_ms", state.engine.since_ms);
  append_array(object.begin("cursors"), state.cursors,
               [](std::string& to, const auto& each) { append_string(to, each.first + ":" + each.second); });
  append_array(object.begin("handled"), state.engine.handled, [](std::string& to, const auto& each) {
    Object(to).add("id", each.first).add("at_ms", each.second).close();
  });
  append_array(object.begin("held"), state.engine.held, [](std::string& to, const EngineState::Held& each) {
    Object held(to);
    held.add("due_ms", each.due_ms).add("is_grouped", each.is_grouped);
    append_notice(held.begin("notice"), each.notice);
    held.close();
  });
  append_array(object.begin("open"), state.engine.open,
               [](std::string& to, const Notice& each) { append_notice(to, each); });
  append_array(object.begin("outgoing"), state.outgoing,
               [](std::string& to, const Notice& each) { append_notice(to, each); });
  append_array(object.begin("throttles"), state.engine.throttles, [](std::string& to, const auto& each) {
    Object(to).add("of", each.first).add("at_ms", each.second.first).add("id", each.second.second).close();
  });
  object.maybe("bus", state.bus);
  append_array(object.begin("shown"), state.shown, [](std::string& to, const auto& each) {
    Object(to).add("slot", each.first).add("id", each.second).close();
  });
  append_array(object.begin("shown_ids"), state.shown_ids, [](std::string& to, const auto& each) {
    Object(to).add("slot", each.first).add("notice", each.second).close();
  });
  object.close();
  return out;
}

std::optional<State> parse_state(std::string_view json) {
  common::FrameParser parser;
  const auto fields = parser.parse(json);
  if (!fields || fields->integer("version") != version) return std::nullopt;
  State state;
  state.engine.since_ms = fields->integer("since_ms").value_or(0);
  for (const std::string_view place : fields->texts("cursors")) {
    const std::size_t colon = place.rfind(':');
    if (colon != place.npos) state.cursors.emplace_back(place.substr(0, colon), place.substr(colon + 1));
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
