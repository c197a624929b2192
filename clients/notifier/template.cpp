#include "notifier/template.hpp"

namespace earshot::notifier {
namespace {

struct Expansion {
  const Lookup& lookup;
  std::string_view rest;
  std::string error = {};

  // Appends the text up to the closing `]`, or to the end. False: it has variables, and all are unknown.
  bool expand(std::size_t depth, std::string& out) {
    bool has_variables = false, any_known = false, closed = depth == 0;
    while (!rest.empty() && error.empty()) {
      const char c = rest.front();
      if (std::string_view("{}[]").find(c) == std::string_view::npos) {
        const std::string_view text = rest.substr(0, rest.find_first_of("{}[]"));
        out += text;
        rest.remove_prefix(text.size());
      } else if (rest.substr(1, 1) == rest.substr(0, 1) && !(c == ']' && depth > 0)) {
        out += c;
        rest.remove_prefix(2);
      } else if (c == '{') {
        const std::size_t end = rest.find('}');
        if (end == rest.npos || end == 1) {
          error = end == 1 ? "{} has no name" : "a } is missing";
          break;
        }
        const std::string value = lookup(rest.substr(1, end - 1));
        has_variables = true;
        any_known = any_known || !value.empty();
        out += value;
        rest.remove_prefix(end + 1);
      } else if (c == '[') {
        if (depth == Template::depth_max) {
          error = "[ ] is nested too deeply";
          break;
        }
        rest.remove_prefix(1);
        std::string inner;
        if (!expand(depth + 1, inner)) continue;
        out += inner;
        has_variables = any_known = true;
      } else if (c == ']' && depth > 0) {
        rest.remove_prefix(1);
        closed = true;
        break;
      } else {
        error = std::string("a ") + c + " without an opening bracket; write " + c + c + " for a literal one";
      }
    }
    if (!closed && error.empty()) error = "a ] is missing";
    return any_known || !has_variables;
  }
};

}  // namespace

std::variant<Template, Template::Error> Template::parse(std::string_view text) {
  if (text.size() > bytes_max) return Error{"is longer than " + std::to_string(bytes_max) + " bytes"};
  std::string ignored;
  const Lookup unknown = [](std::string_view) { return std::string(); };
  Expansion expansion{unknown, text};
  expansion.expand(0, ignored);
  if (!expansion.error.empty()) return Error{expansion.error};
  Template parsed;
  parsed.text_ = text;
  return parsed;
}

std::string Template::fill(const Lookup& lookup) const {
  std::string out;
  Expansion{lookup, text_}.expand(0, out);
  out.erase(out.find_last_not_of(" \t\n") + 1);
  return out;
}

std::vector<std::string> Template::names() const {
  std::vector<std::string> names;
  fill([&](std::string_view name) {
    names.emplace_back(name);
    return std::string();
  });
  return names;
}

}  // namespace earshot::notifier
