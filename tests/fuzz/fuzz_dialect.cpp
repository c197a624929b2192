// Sessions of each dialect from a grammar (grammar.hpp), so that mutations stay records: split invariance,
// paired turns and calls, growing cursors, valid JSON; their spans. Input: dialect and split, main or agent
// file, then records.
#include "agents/agent.hpp"
#include "grammar.hpp"
#include "otlp/encoding.hpp"
#include "otlp/metric_collector.hpp"
#include "otlp/stream_spans.hpp"
#include "transcript_check.hpp"

namespace {

using namespace earshot;

/// Exports the events of one stream.
class Export final : public otlp::SpanSink {
 public:
  void add(const std::string& event) {
    const auto frame = parser_.parse(event);
    fuzz::require(frame && frame->is_event(), "an event can be read again");
    spans_.on_event(*frame, {"program", "/project"}, nullptr, *this);
  }
  void on_span(const otlp::Span& span) override {
    fuzz::require(span.start_ms <= span.end_ms, "a span does not end before it starts");
    fuzz::require(!encode_span(span).empty(), "a span can be encoded");
    metrics_.on_span(span, "program");
  }
  void on_subagent(std::string_view, const otlp::SpanContext&) override {}

 private:
  otlp::StreamSpans spans_;
  otlp::FrameParser parser_;
  otlp::MetricCollector metrics_{0, "host"};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::uint64_t seed = input.byte();
  const std::size_t dialect = seed < 128 ? seed % 4 : 4 + seed % 3;
  constexpr const char* programs[] = {"codex", "copilot", "pi"};
  const AgentProgram& program = dialect < 4 ? default_program() : *find_agent_program(programs[dialect - 4]);
  TranscriptOptions options;
  options.format = &program.format();
  options.hash_key = 0x5eed;
  if (input.byte() & 1 && dialect < 4) options.own_agent = "abc";
  const std::string bytes = fuzz::session(input, dialect);

  const fuzz::Run whole = fuzz::run(options, bytes, 0, seed);
  fuzz::require_sound(whole, options, bytes);
  fuzz::require_same(whole, fuzz::run(options, bytes, seed & 4 ? 16 : 4096, seed));

  Export exported;
  for (const fuzz::Run::Emitted& event : whole.events) exported.add(event.json);
  return 0;
}
