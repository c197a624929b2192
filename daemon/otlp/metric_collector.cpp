#include "otlp/metric_collector.hpp"

#include <algorithm>
#include <initializer_list>
#include <span>
#include <utility>

namespace earshot::otlp {
namespace {

/// As the GenAI conventions have them for gen_ai.client.token.usage.
const std::vector<double> token_bounds = {1,     4,     16,     64,      256,     1024,     4096,
                                          16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864};
const std::vector<double> second_bounds = {0.01, 0.05, 0.1, 0.5, 1,   2,    5,   10,
                                           30,   60,   120, 300, 600, 1800, 3600};

const Attribute* find(const Span& span, std::string_view key) {
  for (const Attribute& each : span.attributes.all())
    if (each.key == key) return &each;
  return nullptr;
}
std::string_view text_of(const Span& span, std::string_view key) {
  const Attribute* found = find(span, key);
  const auto* text = found ? std::get_if<std::string>(&found->value) : nullptr;
  return text ? std::string_view(*text) : std::string_view();
}
std::int64_t number_of(const Span& span, std::string_view key) {
  const Attribute* found = find(span, key);
  const auto* number = found ? std::get_if<std::int64_t>(&found->value) : nullptr;
  return number ? *number : 0;
}

template <class Labels>
Attributes attributes(std::span<const std::string_view> keys, const Labels& labels) {
  Attributes result;
  for (std::size_t i = 0; i < keys.size(); ++i) result.label(keys[i], labels[i]);
  return result;
}

}  // namespace

std::string_view MetricCollector::label(Names& known, std::string_view value, std::size_t values_max) {
  value = value.substr(0, label_bytes_max);
  if (value.empty()) return {};
  if (const auto found = known.find(value); found != known.end()) return *found;
  if (known.size() >= values_max) return other;
  return *known.emplace(value).first;
}

MetricCollector::ChatTotals& MetricCollector::chat_totals(const Span& span, std::string_view program) {
  const std::string_view model = label(models_, text_of(span, "gen_ai.request.model"), models_max);
  const std::string_view provider = label(values_, text_of(span, "gen_ai.provider.name"), values_max);
  if (const auto known = chats_.find(std::initializer_list{program, provider, model}); known != chats_.end())
    return known->second;
  const auto usage = [&](std::string_view type) {
    return &value_at(token_usage_, {program, provider, model, type}, token_bounds);
  };
  return value_at(chats_, {program, provider, model}, ChatTotals{usage("input"), usage("output")});
}

void MetricCollector::on_span(const Span& span, std::string_view program_name) {
  const std::string_view operation = text_of(span, "gen_ai.operation.name");
  const std::string_view program = label(programs_, program_name, programs_max);
  const double seconds = static_cast<double>(span.end_ms - span.start_ms) / 1000;
  const std::string_view outcome = label(values_, text_of(span, "earshot.outcome"), values_max);
  if (operation == "execute_tool") {
    value_at(tool_seconds_, {program, outcome}, second_bounds).add(seconds);
  } else if (operation == "invoke_agent" && find(span, "earshot.turn")) {
    const std::string_view kind = text_of(span, "gen_ai.agent.id").empty() ? "main" : "subagent";
    value_at(turn_seconds_, {program, outcome, kind}, second_bounds).add(seconds);
  } else if (operation == "chat") {
    const ChatTotals& totals = chat_totals(span, program);
    totals.input->add(static_cast<double>(number_of(span, "gen_ai.usage.input_tokens")));
    totals.output->add(static_cast<double>(number_of(span, "gen_ai.usage.output_tokens")));
  } else if (const std::string_view reason = text_of(span, "earshot.wait.reason"); !reason.empty()) {
    value_at(wait_seconds_, {program, label(values_, reason, values_max)}, second_bounds).add(seconds);
  }
}

std::vector<Metric> MetricCollector::collect(const SessionNumbers& sessions, std::int64_t now_ms) {
  std::vector<Metric> metrics;
  const std::int64_t time_ms = std::max(start_ms_, now_ms);  // the clock may have been set back
  const auto begin = [&](std::string_view name, std::string_view description, std::string_view unit,
                         Metric::Kind kind) -> Metric& {
    return metrics.emplace_back(Metric{name, description, unit, kind, start_ms_, time_ms, {}});
  };
  const auto add_histograms = [&](std::string_view name, std::string_view description, std::string_view unit,
                                  const ByLabels<Histogram>& all,
                                  std::initializer_list<std::string_view> keys, bool is_chat = false) {
    Metric& metric = begin(name, description, unit, Metric::Kind::histogram);
    for (const auto& [labels, each] : all) {
      Point point{attributes(std::span(keys.begin(), keys.size()), labels), 0, &each};
      if (is_chat) point.attributes.label("gen_ai.operation.name", "chat");
      metric.points.push_back(std::move(point));
    }
  };
  const auto add_sums = [&](std::string_view name, std::string_view description, std::string_view unit,
                            const ByLabels<double>& all, std::initializer_list<std::string_view> keys) {
    Metric& metric = begin(name, description, unit, Metric::Kind::sum);
    for (const auto& [labels, value] : all)
      metric.points.push_back({attributes(std::span(keys.begin(), keys.size()), labels), value});
  };
  add_histograms("gen_ai.client.token.usage", "Tokens of a request to the model.", "{token}", token_usage_,
                 {"gen_ai.agent.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.token.type"},
                 true);
  add_histograms("earshot.tool.duration", "Duration of tool calls.", "s", tool_seconds_,
                 {"gen_ai.agent.name", "earshot.outcome"});
  add_histograms("earshot.turn.duration", "Duration of turns.", "s", turn_seconds_,
                 {"gen_ai.agent.name", "earshot.outcome", "earshot.agent.kind"});
  add_histograms("earshot.wait.duration", "How long agents waited for a person.", "s", wait_seconds_,
                 {"gen_ai.agent.name", "earshot.wait.reason"});
  ByLabels<double> tokens;
  for (const auto& [labels, count] : sessions.tokens) {
    const auto& [program, model, kind] = labels;
    value_at(tokens, {label(programs_, program, programs_max), label(models_, model, models_max), kind}) +=
        static_cast<double>(count);
  }
  add_sums("earshot.tokens", "Tokens used.", "{token}", tokens,
           {"gen_ai.agent.name", "gen_ai.request.model", "earshot.token.kind"});
  ByLabels<double> costs;
  for (const auto& [program, usd] : sessions.usd_by_program)
    value_at(costs, {label(programs_, program, programs_max)}) += usd;
  add_sums("earshot.cost", "Cost, recorded or estimated.", "{USD}", costs, {"gen_ai.agent.name"});
  Metric& states = begin("earshot.sessions", "Live sessions, by state.", "{session}", Metric::Kind::gauge);
  std::map<std::string, double> counts;
  for (const auto& [state, count] : sessions.by_state)
    counts[std::string(label(states_, state, values_max))] += static_cast<double>(count);
  for (const std::string& state : states_) counts.try_emplace(state, 0);
  for (const auto& [state, count] : counts) {
    Point point;
    point.attributes.label("earshot.state", state);
    point.value = count;
    states.points.push_back(std::move(point));
  }
  Metric& limits =
      begin("earshot.limit.used", "Used share of the account's limits.", "1", Metric::Kind::gauge);
  for (const SessionNumbers::Limit& each : sessions.limits) {
    Point point;
    point.attributes.label("gen_ai.agent.name", each.program);
    point.attributes.label("earshot.limit", each.limit);
    point.attributes.label("earshot.limit.window", each.window);
    point.value = each.used_ratio;
    limits.points.push_back(std::move(point));
  }
  for (Metric& metric : metrics)
    for (Point& point : metric.points) point.attributes.label("host.name", host_);
  return metrics;
}

}  // namespace earshot::otlp
