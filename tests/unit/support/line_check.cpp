#include "line_check.hpp"

#include <bit>
#include <cstdint>
#include <utility>

#include "core/member_table.hpp"

namespace earshot::test {
namespace {

using simdjson::dom::element_type;
using Kind = LineParser::Kind;

struct Named {
  Value a, type, message;
};
constexpr std::pair<std::string_view, Value Named::*> names[] = {
    {"a", &Named::a}, {"type", &Named::type}, {"message", &Named::message}};
constexpr MemberTable<Named, 16> named_table({{"a", &Named::a},
                                              {"type", &Named::type},
                                              {"message", &Named::message}});

const char* difference(const dom::element& dom, const Value& value);

// Of an object's members that a table reads.
const char* difference_in_table(const dom::element& dom, const Value& value) {
  Named fields;
  named_table.read(value, fields);
  for (const auto& [name, member] : names) {
    const auto expected = dom::member(dom, name);
    const Value& found = fields.*member;
    if (expected.has_value() != static_cast<bool>(found)) return "a member in a table";
    if (!expected) continue;
    if (const char* what = difference(*expected, found)) return what;
  }
  return nullptr;
}

// What differs between a value and the DOM's; null: nothing.
const char* difference(const dom::element& dom, const Value& value) {
  if (value.is_object() != dom.is_object() || value.is_array() != dom.is_array() ||
      value.is_string() != dom.is_string() || value.is_bool() != dom.is_bool() ||
      value.is_number() != dom.is_number() || !value)
    return "a type";
  if (value.as_lazy_text().view() != dom::as_text(dom) || value.as_text() != dom::as_text(dom) ||
      value.as_optional_text() != dom::as_optional_text(dom))
    return "a string";
  if (value.as_bool() != dom::as_bool(dom)) return "a bool";
  if (value.as_int() != dom::as_int(dom) || value.as_count() != dom::as_count(dom)) return "an integer";
  const auto a = value.as_double(), b = dom::as_double(dom);
  if (a.has_value() != b.has_value() ||
      (a && std::bit_cast<std::uint64_t>(*a) != std::bit_cast<std::uint64_t>(*b)))
    return "a number";
  if (value.raw().empty()) return "a text";
  dom::object object;
  if (!dom.get_object().get(object)) {
    auto expected = object.begin();
    for (const Member& member : value.members()) {
      if (!(expected != object.end())) return "members: too many";
      if (member.key != expected.key()) return "a key";
      if (const char* found = difference(expected.value(), member.value)) return found;
      ++expected;
    }
    if (expected != object.end()) return "members: too few";
  } else if (value.members().begin() != value.members().end()) {
    return "members of no object";
  }
  dom::array array;
  if (!dom.get_array().get(array)) {
    if (value.items().empty() != (array.size() == 0)) return "emptiness";
    auto expected = array.begin();
    for (const Value& item : value.items()) {
      if (!(expected != array.end())) return "items: too many";
      if (const char* found = difference(*expected, item)) return found;
      ++expected;
    }
    if (expected != array.end()) return "items: too few";
  } else if (!value.items().empty()) {
    return "items of no array";
  }
  return nullptr;
}

// Of the root's members by name: the last one of a name counts.
const char* difference_by_name(const dom::element& dom, const Value& value) {
  dom::object object;
  if (dom.get_object().get(object)) return nullptr;
  for (const auto field : object) {
    const auto expected = dom::member(dom, field.key);
    if (const char* found = difference(*expected, value.member(field.key))) return found;
  }
  constexpr std::string_view rare = "no such member";
  if (static_cast<bool>(value.member(rare)) != dom::member(dom, rare).has_value())
    return "a member that is not there";
  return difference_in_table(dom, value);
}

}  // namespace

std::string LineCheck::compare_line(const LineParser::Parsed& parsed, std::string_view line) {
  const auto fail = [&](const char* what) { return std::string(what) + " in: " + std::string(line); };
  if (parsed.kind == Kind::blank)
    return line.find_first_not_of(" \t\r\n") == line.npos ? std::string() : fail("not blank");
  if (line.find_first_not_of(" \t\r\n") == line.npos) return fail("blank");
  dom::element dom;
  // Later versions of simdjson skip a byte order mark.
  const bool dom_accepts = !line.starts_with("\xEF\xBB\xBF") && !dom_.parse(line).get(dom);
  if (parsed.kind == Kind::refused) return dom_accepts ? fail("refused, but not by the DOM") : std::string();
  if (!dom_accepts) return fail("accepted, but not by the DOM");
  if (dom.is_object() != (parsed.kind == Kind::object)) return fail("another kind of value");
  if (parsed.kind == Kind::other) return {};
  if (const char* found = difference(dom, parsed.value)) return fail(found);
  if (const char* found = difference_by_name(dom, parsed.value)) return fail(found);
  dom::element written;
  if (again_.parse(parsed.value.raw()).get(written) || simdjson::minify(written) != simdjson::minify(dom))
    return fail("another text");
  return {};
}

std::string LineCheck::compare(std::string_view lines) {
  // What follows the text must not matter.
  text_.assign(lines);
  text_.append(scan_padding, "{\"\\"[lines.size() % 3]);
  const std::string_view chunk(text_.data(), lines.size());
  std::size_t begin = 0;
  if (parser_.begin_chunk(chunk)) {
    for (const std::uint32_t end : parser_.line_ends()) {
      const std::string_view line = chunk.substr(begin, end + 1 - begin);
      begin = end + 1;
      const LineParser::Parsed parsed = parser_.next_line(line, end);
      counts_.blank += parsed.kind == Kind::blank, counts_.object += parsed.kind == Kind::object;
      counts_.other += parsed.kind == Kind::other, counts_.refused += parsed.kind == Kind::refused;
      if (std::string found = compare_line(parsed, line); !found.empty()) return "chunk: " + found;
    }
    if (begin != chunk.size()) return "chunk: lines are missing";
  }
  for (begin = 0; begin < chunk.size();) {
    const std::string_view line = chunk.substr(begin, chunk.find('\n', begin) + 1 - begin);
    begin += line.size();
    if (std::string found = compare_line(parser_.parse(line), line); !found.empty()) return "alone: " + found;
  }
  return {};
}

}  // namespace earshot::test
