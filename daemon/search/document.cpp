#include "search/document.hpp"

#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "base/json_rewrite.hpp"
#include "base/text.hpp"

namespace earshot::search {
namespace {

constexpr std::size_t title_bytes_max = 512;  // as in a session frame

/// Also the markers of a match (store.cpp) are control characters.
void blank_controls(std::string& text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if ((c < 0x20 && c != '\n') || c == 0x7F) text[at] = ' ';
    const bool is_c1 = c == 0xC2 && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xA0;
    if (is_c1) text[at] = text[at + 1] = ' ';
  }
}

/// Bytes that are not UTF-8 become U+FFFD: positions in a result count characters.
std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::size_t bad = 0;
    const std::size_t good = utf8_length(text, bad);
    good > 0 ? out.append(text.substr(0, good)) : out.append(replacement);
    text.remove_prefix(std::min(text.size(), good > 0 ? good : std::max<std::size_t>(bad, 1)));
  }
  return out;
}

void append_strings(std::string& out, const simdjson::dom::element& json, std::size_t depth) {
  constexpr std::size_t depth_max = 64;
  if (depth > depth_max || out.size() > document_bytes_max) return;
  std::string_view text;
  simdjson::dom::object object;
  simdjson::dom::array array;
  if (!json.get_string().get(text)) {
    if (!out.empty()) out += '\n';
    out += text;
  } else if (!json.get_object().get(object)) {
    for (const auto member : object) append_strings(out, member.value, depth + 1);
  } else if (!json.get_array().get(array)) {
    for (const simdjson::dom::element each : array) append_strings(out, each, depth + 1);
  }
}

}  // namespace

std::string clean_text(std::string_view text, std::size_t bytes_max, const TextFilter& filter) {
  std::string scratch;
  std::string clean = valid_utf8(clean_beginning(&filter, text, bytes_max, scratch).text);
  clean = cut_utf8(clean, bytes_max);
  blank_controls(clean);
  return clean;
}

void DocumentMaker::on_event(const Event& event) {
  event_ = &event;
  add_time(event.time_ms);
  std::visit([this](const auto& body) { (*this)(body); }, event.body);
}

void DocumentMaker::add(Kind kind, std::string_view text) {
  if (!is_skipped()) add_clean(kind, clean_text(text, document_bytes_max, filter_));
}

void DocumentMaker::add_clean(Kind kind, std::string text) {
  if (trim(text).empty()) return;
  bytes_ += text.size() + sizeof(Document);
  documents_.push_back(
      {event_->cursor, event_->time_ms > 0 ? event_->time_ms : totals_.last_ms, kind, std::move(text)});
}

void DocumentMaker::operator()(const event::SessionStarted& body) {
  std::string text(body.title);
  if (!body.cwd.empty()) text += (text.empty() ? "" : "\n") + std::string(body.cwd);
  add(Kind::title, text);
}

void DocumentMaker::operator()(const event::SessionUpdated& body) {
  std::string text(body.title.value_or(""));
  if (body.cwd && !body.cwd->empty()) text += (text.empty() ? "" : "\n") + std::string(*body.cwd);
  add(Kind::title, text);
}

void DocumentMaker::operator()(const event::TurnStarted& body) {
  ++totals_.prompts;
  if (!body.prompt) return;
  std::string& title = totals_.last_prompt;
  title = clean_text(*body.prompt, title_bytes_max, filter_);
  std::replace(title.begin(), title.end(), '\n', ' ');
  add(Kind::prompt, *body.prompt);
}

void DocumentMaker::operator()(const event::MessageAdded& body) {
  if (is_answer(body)) add(Kind::answer, *body.text);
}

/// All strings of the input, in order, behind the tool's name. They are redacted as the wire has them: the
/// keys of an object may be secrets, too.
void DocumentMaker::operator()(const event::ToolInvoked& body) {
  ++totals_.tools;
  if (is_skipped()) return;
  scratch_.clear();
  std::string text = clean_text(body.tool, input_text_bytes_max, filter_);
  const RewriteOptions options{.text_bytes_max = input_text_bytes_max, .filter = &filter_};
  if (!body.input.json.empty() &&
      rewrite_json(scratch_, body.input.json, options).result == JsonResult::complete) {
    thread_local simdjson::dom::parser parser;
    simdjson::dom::element json;
    if (!parser.parse(scratch_.data(), scratch_.size(), true).get(json)) append_strings(text, json, 0);
    constexpr std::size_t kept_bytes_max = 1 << 20;
    if (parser.capacity() > kept_bytes_max) parser = simdjson::dom::parser();
  }
  if (scratch_.capacity() > document_bytes_max * 8) scratch_ = {};
  text = cut_utf8(text, document_bytes_max);
  blank_controls(text);
  add_clean(Kind::tool, std::move(text));
}

void DocumentMaker::operator()(const event::AgentStarted& body) { add(Kind::tool, body.description); }

}  // namespace earshot::search
