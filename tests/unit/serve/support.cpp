#include "unit/serve/support.hpp"
#include "agents/claude_code/reader.hpp"

#include <simdjson.h>
#include <stdlib.h>

#include <boost/asio.hpp>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "core/event_json.hpp"

namespace earshot::test {
namespace {

std::int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

class ToListener final : public EventSink {
 public:
  ToListener(const tail::Stream& stream, tail::StreamObserver* listener)
      : stream_(stream), listener_(listener) {}
  void on_event(const Event& event) override {
    if (listener_) listener_->on_event(stream_, event);
  }

 private:
  const tail::Stream& stream_;
  tail::StreamObserver* listener_;
};

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string head(std::string_view type, int n, std::string_view cwd) {
  char time[40];
  std::snprintf(time, sizeof time, "2026-03-01T10:%02d:%02d.000Z", n / 60 % 60, n % 60);
  std::string out =
      R"({"type":")" + std::string(type) + R"(","uuid":"u-)" + std::to_string(n) + R"(","parentUuid":)";
  out += n == 0 ? "null" : "\"u-" + std::to_string(n - 1) + "\"";
  out +=
      R"(,"isSidechain":false,"userType":"external","version":"2.1.330","gitBranch":"main","sessionId":"s","cwd":)" +
      quoted(cwd);
  return out + R"(,"timestamp":")" + time + "\"";
}

}  // namespace

FakeStream::FakeStream(std::string name, std::string session, std::string agent, const RecordFormat* format)
    : modified_ms_(now_ms()),
      session_(std::move(session)),
      name_(std::move(name)),
      agent_(std::move(agent)),
      format_(format ? format : &claude_code::format()) {
  restart();
}

TranscriptOptions FakeStream::options() const {
  TranscriptOptions options;
  options.own_agent = agent_;
  options.format = format_;
  return options;
}

void FakeStream::restart() {
  unread();
  written_.clear();
}

void FakeStream::unread() { transcript_ = std::make_unique<Transcript>(options()); }

std::vector<Cursor> FakeStream::cursors(const std::function<bool(std::string_view)>& wanted) const {
  struct Collector final : EventSink {
    void on_event(const Event& event) override {
      if (!wanted || wanted(type_name(event.body))) cursors.push_back(event.cursor);
    }
    std::function<bool(std::string_view)> wanted;
    std::vector<Cursor> cursors;
  } collector;
  collector.wanted = wanted;
  std::string padded(written_);
  padded.resize(written_.size() + feed_padding);
  Workspace workspace;
  Transcript whole(options());
  whole.feed({padded.data(), written_.size()}, workspace, collector);
  return collector.cursors;
}

void FakeStream::write(std::string_view lines, tail::StreamObserver* listener) {
  written_ += lines;
  std::string padded(lines);
  padded.resize(lines.size() + feed_padding);
  ToListener sink(*this, listener);
  transcript_->feed({padded.data(), lines.size()}, workspace_, sink);
  modified_ms_ = now_ms();
  if (listener) listener->on_changed(*this);
}

std::string prompt(int n, std::string_view text, std::string_view cwd) {
  return head("user", n, cwd) + R"(,"message":{"role":"user","content":)" + quoted(text) + "}}\n";
}

std::string call(int n, std::string_view tool, std::string_view input, std::string_view call_id) {
  return head("assistant", n, "/home/u/api") + R"(,"requestId":"r-)" + std::to_string(n) +
         R"(","message":{"id":"m-)" + std::to_string(n) +
         R"(","role":"assistant","model":"opus","stop_reason":"tool_use","content":[{"type":"tool_use","id":)" +
         quoted(call_id) + R"(,"name":)" + quoted(tool) + R"(,"input":)" + std::string(input) +
         R"(}],"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":1}}})"
         "\n";
}

std::string result(int n, std::string_view call_id, std::string_view text) {
  return head("user", n, "/home/u/api") +
         R"(,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":)" + quoted(call_id) +
         R"(,"content":)" + quoted(text) + R"(}]},"toolUseResult":{"stdout":)" + quoted(text) + "}}\n";
}

std::string answer(int n, std::string_view text) {
  return head("assistant", n, "/home/u/api") + R"(,"requestId":"r-)" + std::to_string(n) +
         R"(","message":{"id":"m-)" + std::to_string(n) +
         R"(","role":"assistant","model":"opus","stop_reason":"end_turn","content":[{"type":"text","text":)" +
         quoted(text) +
         R"(}],"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":1}}})"
         "\n";
}

std::string at(std::string_view json, std::string_view pointer) {
  simdjson::dom::parser parser;
  simdjson::dom::element root, found;
  if (parser.parse(json.data(), json.size(), true).get(root) != simdjson::SUCCESS) return "no JSON";
  if (root.at_pointer(pointer).get(found) != simdjson::SUCCESS) return "absent";
  return simdjson::minify(found);
}

std::vector<std::string> unframe(std::string_view bytes) {
  std::vector<std::string> payloads;
  while (!bytes.empty()) {
    const auto byte = [&](std::size_t i) {
      return static_cast<std::uint64_t>(static_cast<unsigned char>(bytes.at(i)));
    };
    if (byte(0) != 0x81) throw std::runtime_error("not a final text frame");
    std::uint64_t size = byte(1);
    std::size_t header = 2;
    if (size == 126) {
      size = byte(2) << 8 | byte(3);
      header = 4;
    } else if (size == 127) {
      size = 0;
      for (std::size_t i = 2; i < 10; ++i) size = size << 8 | byte(i);
      header = 10;
    }
    if (bytes.size() < header + size) throw std::runtime_error("a torn frame");
    payloads.emplace_back(bytes.substr(header, size));
    bytes.remove_prefix(header + size);
  }
  return payloads;
}

std::string payload_of(serve::SessionStore& sessions, serve::Session& session) {
  return unframe(*sessions.frame(session, serve::Audience::full)).front();
}

bool run_until(boost::asio::io_context& io, const std::function<bool()>& condition,
               std::chrono::seconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    io.restart();
    io.run_one_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace earshot::test
