#include "notifier/sample_events.hpp"

#include <algorithm>

#include "base/quantities.hpp"

namespace earshot::notifier {
namespace {

struct Sample {
  std::string_view name;
  std::string_view type;
  std::string_view fields;  // NOW is replaced by the time
};
constexpr Sample samples[] = {
    {"permission", "status",
     R"("state":"waiting","reason":"permission","detail":"approve Bash: make soak","source":"registry","since":"NOW")"},
    {"question", "status",
     R"("state":"waiting","reason":"question","detail":"Which database?","source":"registry","since":"NOW")"},
    {"plan", "status",
     R"("state":"waiting","reason":"plan","detail":"1. add an index","source":"registry","since":"NOW")"},
    {"status", "status",
     R"("state":"waiting","reason":"permission","detail":"approve Bash: make soak","source":"registry","since":"NOW")"},
    {"turn.started", "turn.started", R"("turn":3,"prompt":"Repair the fog signal.","origin":"human")"},
    {"turn.finished", "turn.finished",
     R"("turn":3,"outcome":"completed","stop_reason":"end_turn","duration_ms":95000,"tools":7,"usage":{"input":20,"output":900,"cache_read":0,"cache_write":0})"},
    {"turn.failed", "turn.finished",
     R"("turn":3,"outcome":"failed","duration_ms":12000,"tools":2,"usage":{"input":20,"output":0,"cache_read":0,"cache_write":0})"},
    {"api.failed", "api.failed", R"("turn":3,"fatal":true,"status":529,"error":"Overloaded")"},
    {"tool.invoked", "tool.invoked",
     R"("turn":3,"call":"toolu_1","tool":"Bash","input":{"command":"make soak"},"message":"msg_1")"},
    {"tool.finished", "tool.finished",
     R"("turn":3,"call":"toolu_1","tool":"Bash","outcome":"error","output":"make: *** No rule to make target 'soak'.","duration_ms":64000)"},
    {"agent.finished", "agent.finished",
     R"("turn":3,"outcome":"completed","call":"toolu_2","subagent":"a1","duration_ms":48000,"tokens":5200,"tools":9)"},
    {"task.finished", "task.finished",
     R"("turn":3,"task":"b1","outcome":"completed","summary":"the soak is over")"},
    {"usage.updated", "usage.updated",
     R"("turn":3,"message":"msg_1","total":{"input":20,"output":900,"cache_read":0,"cache_write":0},"cost_usd":6.4)"},
    {"message.added", "message.added",
     R"("turn":3,"role":"assistant","kind":"text","text":"The index is added.","message":"msg_1")"},
    {"compaction.finished", "compaction.finished",
     R"("turn":3,"kind":"full","trigger":"auto","pre_tokens":160000,"duration_ms":40000)"},
    {"todo.updated", "todo.updated", R"("turn":3,"todos":[],"source":"tool")"},
};

}  // namespace

std::vector<std::string_view> sample_names() {
  std::vector<std::string_view> names;
  for (const Sample& each : samples) names.push_back(each.name);
  return names;
}

std::string sample_event(std::string_view name, std::int64_t now_ms) {
  const auto found = std::find_if(std::begin(samples), std::end(samples),
                                  [&](const Sample& each) { return each.name == name; });
  if (found == std::end(samples)) return {};
  const std::string time = format_time(now_ms);
  std::string fields(found->fields);
  if (const std::size_t at = fields.find("NOW"); at != fields.npos) fields.replace(at, 3, time);
  std::string frame = R"({"type":")" + std::string(found->type) +
                      R"(","host":"here","session":"5a3b1e00-0000-4000-8000-000000000001")";
  if (found->type != "status")
    frame +=
        R"(,"stream":"claude/-home-ada-lighthouse/5a3b1e00-0000-4000-8000-000000000001","cursor":"1.1.0000000000000001","time":")" +
        time + "\"";
  return frame + "," + fields + "}";
}

}  // namespace earshot::notifier
