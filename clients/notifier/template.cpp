#include "notifier/template.hpp"

namespace earshot::notifier {

struct Template::Parser {
  std::string_view rest;
  std::string why;

  // Reads up to and including the closing `]`, or to the end.
  std::vector<Part> read(std::size_t depth) {
    std::vector<Part> parts;
    const auto text = [&](std::string_view more) {
      if (parts.empty() || parts.back().kind != Part::Kind::text) parts.emplace_back();
      parts.back().text += more;
    };
    while (!rest.empty() && why.empty()) {
      const char c = rest.front();
      const bool is_doubled = rest.size() > 1 && rest[1] == c;
      if (std::string_view("{}[]").find(c) == std::string_view::npos) {
        const std::size_t end = std::min(rest.find_first_of("{}[]"), rest.size());
        text(rest.substr(0, end));
        rest.remove_prefix(end);
      } else if (is_doubled && !(c == ']' && depth > 0)) {
        text(rest.substr(0, 1));
        rest.remove_prefix(2);
      } else if (c == '{') {
        const std::size_t end = rest.find('}');
        if (end == rest.npos) {
          why = "a } is missing";
        } else if (end == 1) {
          why = "{} has no name";
        } else {
          parts.push_back({Part::Kind::name, std::string(rest.substr(1, end - 1)), {}});
          rest.remove_prefix(end + 1);
        }
      } else if (c == '[') {
        if (depth == depth_max) {
          why = "[ ] is nested too deeply";
          break;
        }
        rest.remove_prefix(1);
        Part part{Part::Kind::optional, {}, read(depth + 1)};
        parts.push_back(std::move(part));
      } else if (c == ']' && depth > 0) {
        rest.remove_prefix(1);
        return parts;
      } else {
        why = std::string("a ") + c + " without an opening bracket; write " + c + c + " for a literal one";
      }
    }
    if (depth > 0 && why.empty()) why = "a ] is missing";
    return parts;
  }
};

std::variant<Template, Template::Error> Template::parse(std::string_view text) {
  if (text.size() > bytes_max) return Error{"is longer than " + std::to_string(bytes_max) + " bytes"};
  Template parsed;
  parsed.text_ = text;
  Parser parser{text, {}};
  parsed.parts_ = parser.read(0);
  if (!parser.why.empty()) return Error{parser.why};
  return parsed;
}

// False: it has variables, and all of them are unknown.
bool Template::append(const std::vector<Part>& parts, const Lookup& lookup, std::string& out) {
  bool has_variables = false, any_known = false;
  for (const Part& part : parts) {
    if (part.kind == Part::Kind::text) {
      out += part.text;
    } else if (part.kind == Part::Kind::name) {
      const std::string value = lookup(part.text);
      has_variables = true;
      any_known = any_known || !value.empty();
      out += value;
    } else {
      std::string inner;
      if (append(part.parts, lookup, inner)) {
        out += inner;
        has_variables = any_known = true;
      }
    }
  }
  return any_known || !has_variables;
}

std::string Template::fill(const Lookup& lookup) const {
  std::string out;
  append(parts_, lookup, out);
  out.erase(out.find_last_not_of(" \t\n") + 1);
  return out;
}

void Template::collect(const std::vector<Part>& parts, std::vector<std::string>& names) {
  for (const Part& part : parts) {
    if (part.kind == Part::Kind::name) names.push_back(part.text);
    collect(part.parts, names);
  }
}

std::vector<std::string> Template::names() const {
  std::vector<std::string> names;
  collect(parts_, names);
  return names;
}

}  // namespace earshot::notifier
