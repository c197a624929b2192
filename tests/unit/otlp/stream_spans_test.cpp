#include "otlp/stream_spans.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/quantities.hpp"
#include "otlp/encoding.hpp"

namespace earshot::otlp {
namespace {

/// Takes events as text and keeps the spans.
class Feed final : public SpanSink {
 public:
  explicit Feed(StreamSpans spans = StreamSpans()) : spans_(std::move(spans)) {}

  /// An event one second after the last one; `members` follow the common ones.
  Feed& add(std::string_view type, std::string_view members = "", std::string_view agent = "") {
    lines.push_back(line(type, members, agent, ++number_));
    return take(lines.back());
  }
  /// The same without a time.
  Feed& add_timeless(std::string_view type, std::string_view members = "") {
    std::string text = line(type, members, "", ++number_);
    const std::size_t begin = text.find(R"("time":)");
    text.erase(begin, text.find(',', begin) + 1 - begin);
    lines.push_back(text);
    return take(text);
  }
  Feed& take(const std::string& text) {
    const auto frame = parser_.parse(text);
    REQUIRE(frame);
    REQUIRE(frame->is_event());
    spans_.on_event(*frame, {"claude-code", "/home/ada"}, parent ? &*parent : nullptr, *this);
    return *this;
  }
  const Span* find(std::string_view name) const {
    for (const Span& each : spans)
      if (each.name == name) return &each;
    return nullptr;
  }
  const StreamSpans& state() const { return spans_; }

  void on_span(const Span& span) override { spans.push_back(span); }
  void on_subagent(std::string_view key, const SpanContext& span) override {
    subagents.emplace_back(key, span);
  }

  std::vector<std::string> lines;
  std::vector<Span> spans;
  std::vector<std::pair<std::string, SpanContext>> subagents;
  std::optional<SpanContext> parent;

 private:
  static std::string line(std::string_view type, std::string_view members, std::string_view agent,
                          int number) {
    std::string text = R"({"type":")" + std::string(type) + R"(","host":"h","stream":"s","session":"t",)";
    if (!agent.empty()) text += R"("agent":")" + std::string(agent) + R"(",)";
    text += R"("cursor":")" + to_string(Cursor{static_cast<std::uint64_t>(number) * 100, 1, 7}) +
            R"(","time":")" + format_time(number * 1000) + R"(","turn":1)";
    if (!members.empty()) text += ',' + std::string(members);
    return text + '}';
  }

  StreamSpans spans_;
  FrameParser parser_;
  int number_ = 0;
};

std::string attribute(const Span& span, std::string_view key) {
  for (const Attribute& each : span.attributes.all()) {
    if (each.key != key) continue;
    if (const auto* text = std::get_if<std::string>(&each.value)) return *text;
    if (const auto* number = std::get_if<std::int64_t>(&each.value)) return std::to_string(*number);
  }
  return "-";
}

std::string usage(std::string_view message, int input, int output) {
  return R"("message":")" + std::string(message) + R"(","model":"claude-x","input":)" +
         std::to_string(input) + R"(,"output":)" + std::to_string(output) +
         R"(,"cache_read":5,"cache_write":2,"total":{})";
}

/// One turn of everything.
Feed complete_turn() {
  Feed feed;
  feed.add("session.started")
      .add("turn.started", R"("origin":"human")")
      .add("usage.updated", usage("m1", 10, 1));
  feed.add("tool.invoked", R"("call":"c1","tool":"Bash","message":"m1")")
      .add("usage.updated", usage("m1", 10, 30));
  feed.add("tool.finished", R"("call":"c1","tool":"Bash","outcome":"error")");
  feed.add("usage.updated", usage("m2", 20, 3)).add("tool.invoked", R"("call":"c2","tool":"Agent")");
  feed.add("agent.started", R"("call":"c2","agent_type":"scout","subagent":"a1")");
  feed.add("tool.invoked", R"("call":"c3","tool":"Read")", "a1");
  feed.add("tool.finished", R"("call":"c3","tool":"Read","outcome":"ok")", "a1");
  feed.add("agent.finished", R"("call":"c2","subagent":"a1","outcome":"completed")");
  feed.add("tool.finished", R"("call":"c2","tool":"Agent","outcome":"ok")");
  feed.add("tool.invoked", R"("call":"c4","tool":"AskUserQuestion")");
  feed.add("tool.finished", R"("call":"c4","tool":"AskUserQuestion","outcome":"ok")");
  feed.add("api.failed", R"("status":529,"fatal":false)").add("compaction.finished", R"("kind":"full")");
  feed.add("turn.finished", R"("outcome":"completed","tools":3,"usage":{"input":30,"output":33})");
  return feed;
}

/// Events without a time: at the beginning, and inside and between turns.
Feed timeless_turns() {
  Feed feed;
  feed.add_timeless("turn.started", R"("origin":"human")").add_timeless("usage.updated", usage("m1", 10, 1));
  feed.add_timeless("api.failed", R"("fatal":false)");
  feed.add_timeless("tool.invoked", R"("call":"c1","tool":"Bash")");
  feed.add("tool.finished", R"("call":"c1","tool":"Bash","outcome":"ok")");
  feed.add("turn.finished", R"("outcome":"completed","tools":1,"usage":{})");
  feed.add_timeless("turn.started", R"("origin":"human")");
  feed.add_timeless("tool.invoked", R"("call":"c2","tool":"Read")");
  feed.add("tool.finished", R"("call":"c2","tool":"Read","outcome":"ok")");
  feed.add("turn.finished", R"("outcome":"completed","tools":1,"usage":{})");
  return feed;
}

std::vector<std::string> encoded(const std::vector<Span>& spans) {
  std::vector<std::string> all;
  for (const Span& each : spans) all.push_back(encode_span(each));
  return all;
}

}  // namespace

TEST_CASE("a turn is a trace: tools, subagents and waits are below what they belong to") {
  const Feed feed = complete_turn();
  const Span* turn = feed.find("invoke_agent claude-code");
  const Span* tool = feed.find("execute_tool Bash");
  const Span* call = feed.find("execute_tool Agent");
  const Span* agent = feed.find("invoke_agent scout");
  const Span* inner = feed.find("execute_tool Read");
  const Span* question = feed.find("execute_tool AskUserQuestion");
  const Span* wait = feed.find("earshot.wait question");
  for (const Span* each : {turn, tool, call, agent, inner, question, wait}) {
    REQUIRE(each);
    CHECK(each->context.trace == turn->context.trace);
  }
  CHECK(turn->parent == 0);
  CHECK(tool->parent == turn->context.span);
  CHECK(call->parent == turn->context.span);
  CHECK(agent->parent == call->context.span);
  CHECK(inner->parent == agent->context.span);
  CHECK(wait->parent == question->context.span);
  CHECK(tool->status == Span::Status::error);
  CHECK(attribute(*tool, "error.type") == "error");
  CHECK(turn->status == Span::Status::unset);
  CHECK(tool->start_ms == 4000);
  CHECK(tool->end_ms == 6000);
  REQUIRE(turn->events.size() == 2);
  CHECK(turn->events[0].name == "earshot.api_failed");
  CHECK(turn->events[1].name == "earshot.compaction.finished");
  CHECK(feed.subagents.size() >= 2);
}

TEST_CASE("a message is one chat span with its last token counts") {
  const Feed feed = complete_turn();
  std::vector<std::string> chats;
  for (const Span& each : feed.spans)
    if (each.kind == Span::Kind::client)
      chats.push_back(attribute(each, "gen_ai.response.id") + ' ' +
                      attribute(each, "gen_ai.usage.input_tokens") + ' ' +
                      attribute(each, "gen_ai.usage.output_tokens") + ' ' + std::to_string(each.start_ms) +
                      ' ' + std::to_string(each.end_ms));
  CHECK(chats == std::vector<std::string>{"m1 17 30 2000 5000", "m2 27 3 6000 7000"});
}

TEST_CASE("a start without a time is that of the stream before, else that of the end") {
  const Feed feed = timeless_turns();
  std::vector<std::string> times;
  for (const Span& each : feed.spans)
    times.push_back(each.name + ' ' + std::to_string(each.start_ms) + ' ' + std::to_string(each.end_ms));
  CHECK(times == std::vector<std::string>{"execute_tool Bash 5000 5000", "chat claude-x 6000 6000",
                                          "invoke_agent claude-code 6000 6000", "execute_tool Read 6000 9000",
                                          "invoke_agent claude-code 6000 10000"});
  REQUIRE(feed.spans[2].events.size() == 1);
  CHECK(feed.spans[2].events[0].time_ms == 6000);
}

TEST_CASE("from each anchor on the same events give the same spans") {
  const auto make = GENERATE(&complete_turn, &timeless_turns);
  const Feed whole = make();
  const std::vector<std::string> expected = encoded(whole.spans);
  for (std::size_t cut = 0; cut <= whole.lines.size(); ++cut) {
    Feed first;
    for (std::size_t i = 0; i < cut; ++i) first.take(whole.lines[i]);
    const std::size_t exported = first.spans.size();
    const Cursor anchor = first.state().anchor();
    Feed second{StreamSpans(anchor, first.state().anchor_ms())};
    std::vector<std::string> after = encoded(first.spans);
    FrameParser parser;
    for (std::size_t i = 0; i < whole.lines.size(); ++i) {
      const Cursor cursor = *parser.parse(whole.lines[i])->cursor;
      if (!is_after(cursor, anchor)) continue;
      if (i == cut) second.spans.clear();  // those before were exported by the first one
      second.take(whole.lines[i]);
    }
    if (cut == whole.lines.size()) second.spans.clear();
    for (const std::string& each : encoded(second.spans)) after.push_back(each);
    INFO("cut after " << cut << " events, " << exported << " spans");
    CHECK(after == expected);
  }
}

TEST_CASE("the turns of a subagent's stream belong to the trace of its parent") {
  Feed feed;
  feed.parent = SpanContext{{1, 2}, 3};
  feed.add("turn.started", R"("origin":"agent")", "a1");
  feed.add("turn.finished", R"("outcome":"failed","tools":0,"usage":{})", "a1");
  REQUIRE(feed.spans.size() == 1);
  CHECK(feed.spans[0].context.trace == TraceId{1, 2});
  CHECK(feed.spans[0].parent == 3);
  CHECK(feed.spans[0].status == Span::Status::error);
  REQUIRE(feed.state().parent());
  CHECK(*feed.state().parent() == *feed.parent);
}

TEST_CASE("events of a turn beyond the limit are counted") {
  Feed feed;
  feed.add("turn.started", R"("origin":"human")");
  for (std::size_t i = 0; i < StreamSpans::span_events_max + 3; ++i)
    feed.add("api.failed", R"("fatal":false)");
  feed.add("turn.finished", R"("outcome":"completed","tools":0,"usage":{})");
  CHECK(feed.spans[0].events.size() == StreamSpans::span_events_max);
  CHECK(feed.spans[0].dropped_events == 3);
}

TEST_CASE("ids are those of the host, stream and cursor") {
  CHECK(span_id({"tool", "h", "s", "1.1"}) == span_id({"tool", "h", "s", "1.1"}));
  CHECK(span_id({"ab", "c"}) != span_id({"a", "bc"}));
  CHECK(trace_id({"ab", "c"}) != trace_id({"a", "bc"}));
  CHECK(to_hex(TraceId{1, 0xab}) == "000000000000000100000000000000ab");
}

TEST_CASE("tokens of any size are a number that is not negative") {
  Feed feed;
  feed.add("turn.started", R"("origin":"human")")
      .add("usage.updated", R"("message":"m1","input":9223372036854775807,"output":-1,)"
                            R"("cache_read":9223372036854775807,"cache_write":9223372036854775807)")
      .add("turn.finished", R"("outcome":"completed")");
  const Span* chat = feed.find("chat");
  REQUIRE(chat);
  CHECK(attribute(*chat, "gen_ai.usage.input_tokens") == "9223372036854775806");
  CHECK(attribute(*chat, "gen_ai.usage.output_tokens") == "0");
}

}  // namespace earshot::otlp
