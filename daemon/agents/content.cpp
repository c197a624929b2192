#include "agents/content.hpp"

#include <algorithm>
#include <initializer_list>

#include "agents/agent.hpp"
#include "core/nested_json.hpp"

namespace earshot {

Content content_of(const Value& content) {
  Content found;
  if (!content) return found;
  if (content.is_string()) {
    found.text = content.as_text();
    return found;
  }
  for (const Value block : content.items()) {
    const std::string_view type = block.text_of("type");
    if (type == "image" || type == "input_image") {
      const std::string_view data = block.text_of("data");
      found.media.push_back({"image", block.text_of("mimeType"), decoded_bytes(data)});
    }
    const auto text = block.member("text");
    if (!text || !text.is_string() || !(type.ends_with("text") || type.ends_with("Text"))) continue;
    if (found.text)
      found.text->append("\n").append(text.as_text());
    else
      found.text = text.as_text();
  }
  return found;
}

namespace {

/// A text, or the words of a command line; of `bash -lc <script>` the script.
std::string shown_text(const Value& value) {
  if (value.is_string()) return std::string(value.as_text());
  std::vector<std::string_view> words;
  for (const Value word : value.items()) words.push_back(word.as_text());
  if (words.size() == 3 && words[1] == "-lc") return std::string(words[2]);
  std::string text;
  for (const std::string_view word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

/// The first of these members that has a text.
std::string first_member(const Value& object, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (std::string text = shown_text(object.member(key)); !text.empty()) return text;
  return {};
}

}  // namespace

std::string describe_call(std::string_view tool, std::string_view input_json, std::string_view reason) {
  NestedJson json;
  const LineParser::Parsed parsed = json.parse("{\"input\":" + std::string(input_json) + "}");
  const Value input = parsed.kind == LineParser::Kind::object ? parsed.value.member("input") : Value{};
  std::string what = input.is_string() ? std::string(input.as_text()) : std::string();
  if (reason == "question") {
    for (const Value question : input.member("questions").items())
      if (what.empty()) what = first_member(question, {"question", "header"});
    if (what.empty()) what = first_member(input, {"question", "message", "prompt"});
  } else if (reason == "plan") {
    what = first_member(input, {"plan", "summary"});
    what.erase(0, std::min(what.find_first_not_of(" \t\r\n#"), what.size()));
    what.resize(std::min(what.find_first_of("\r\n"), what.size()));
  } else if (what.empty()) {
    what = first_member(input,
                        {"command", "cmd", "file_path", "path", "url", "query", "pattern", "description"});
  }
  std::string text = reason == "question" ? "" : reason == "plan" ? "plan" : "approve " + std::string(tool);
  if (!what.empty() && !text.empty()) text += ": ";
  return text.append(what, 0, Requests::prompt_bytes_max);
}

std::uint64_t decoded_bytes(std::string_view base64) {
  while (base64.ends_with('=')) base64.remove_suffix(1);
  return base64.size() * 3 / 4;
}

bool skip_word(std::string_view& text, std::string_view word) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  if (text.size() < word.size() ||
      !std::equal(word.begin(), word.end(), text.begin(), [&](char a, char b) { return a == lower(b); }))
    return false;
  text.remove_prefix(word.size());
  return true;
}

}  // namespace earshot
