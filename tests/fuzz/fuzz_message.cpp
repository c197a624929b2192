// Client messages: parsed or refused with an error; a parsed message round-trips as JSON.
#include <memory>

#include "base/quantities.hpp"
#include "core/event_json.hpp"
#include "fuzz.hpp"
#include "serve/stream/frames.hpp"
#include "serve/stream/subscription.hpp"

namespace {

using namespace earshot;
using namespace earshot::serve::message;
using fuzz::require;

void append_list(std::string& out, std::string_view key, const std::vector<std::string>& list) {
  append_json_string(out, key);
  out += ":[";
  for (std::size_t i = 0; i < list.size(); ++i) append_json_string(i == 0 ? out : out += ',', list[i]);
  out += ']';
}

/// The message that this is, written in the plainest way.
struct Writer {
  std::string out;
  void member(std::string_view key, std::string_view value) {
    append_json_string(out += ',', key);
    append_json_string(out += ':', value);
  }
  void flag(std::string_view key, bool value) {
    append_json_string(out += ',', key);
    out += value ? ":true" : ":false";
  }
  void operator()(const Hello& hello) {
    out = R"({"type":"hello")";
    member("token", hello.token), member("client", hello.client),
        member("view", hello.meta ? "meta" : "full");
  }
  void operator()(const Subscribe& asked) {
    out = R"({"type":"subscribe")";
    member("id", asked.id), member("deliver", asked.state ? "state" : "events");
    member("on_lag", asked.catch_up ? "catch_up" : "snapshot");
    flag("snapshot", asked.snapshot);
    flag("all", asked.all);
    if (asked.page > 0) out += ",\"page\":" + std::to_string(asked.page);
    member("new_streams", asked.from_beginning ? "beginning" : "snapshot");
    if (asked.since_ms) member("since", format_time(*asked.since_ms));
    out += R"(,"filter":{)";
    for (const serve::FilterKey& key : serve::filter_keys)
      append_list(&key == serve::filter_keys ? out : out += ',', key.name, asked.filter.*key.list);
    out += '}';
    if (asked.after) append_list(out += ',', "after", *asked.after);
  }
  void operator()(const Unsubscribe& asked) { out = R"({"type":"unsubscribe")", member("id", asked.id); }
  void operator()(const NextPage& asked) {
    out = R"({"type":"next_page")", member("id", asked.id), member("next", asked.next);
  }
  void operator()(const Read& read) {
    out = R"({"type":"read")";
    member("id", read.id), member("stream", read.stream), member("cursor", to_string(read.cursor));
  }
  void operator()(const Invalid&) {}
};

std::string written(const Message& message) {
  Writer writer;
  std::visit(writer, message);
  return writer.out.empty() ? std::string() : writer.out + "}";
}

void require_bounds(const Message& message) {
  if (const auto* bad = std::get_if<Invalid>(&message)) {
    require(bad->code == "bad_message" || bad->code == "bad_filter" || bad->code == "bad_cursor",
            "an error has a code of the protocol");
    require(!bad->text.empty() && bad->id.size() <= id_bytes_max, "an error has a text");
    require(fuzz::is_json(serve::error_frame(bad->id, bad->code, bad->text)), "an error is JSON");
    return;
  }
  const auto* asked = std::get_if<Subscribe>(&message);
  if (!asked) return;
  require(asked->id.size() <= id_bytes_max, "an id is bounded");
  require(!asked->state || !asked->after, "`after` requires events");
  require(asked->filter.is_within(serve::Filter::patterns_max, serve::Filter::pattern_bytes_max),
          "patterns are bounded");
  require(fuzz::is_json(serve::control_frame("ready", asked->id)), "a frame with its id is JSON");
  if (!asked->after) return;
  for (const std::string& frame : serve::bookmark_frames(asked->id, *asked->after, true))
    require(fuzz::is_json(frame), "a bookmark is JSON");
  for (const std::string& place : *asked->after)
    require(fuzz::is_json(serve::reset_frame(asked->id, "h", place, place, "rewritten")), "a reset is JSON");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Nothing behind it that a reader could lean on.
  const auto room = std::make_unique<char[]>(size);
  std::copy_n(reinterpret_cast<const char*>(data), size, room.get());
  const Message message = parse({room.get(), size});
  require_bounds(message);
  const std::string text = written(message);
  if (!text.empty()) {
    const Message again = parse(text);
    require(again.index() == message.index(), "a rewritten message has the same kind");
    require(written(again) == text, "a rewritten message is equal");
  }
  return 0;
}
