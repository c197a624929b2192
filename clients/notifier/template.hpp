// Templates of titles and bodies: `{project} needs you[: {tool}]`.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace earshot::notifier {

/// The value of a variable; empty: unknown.
using Lookup = std::function<std::string(std::string_view name)>;

/// `{name}` is replaced by the variable's value. `[…]` is omitted if all its variables are unknown. `{{ }} [[
/// ]]` are literal brackets.
class Template {
 public:
  static constexpr std::size_t bytes_max = 2048;  // longer templates are refused
  static constexpr std::size_t depth_max = 4;     // of nested [ ]

  struct Error {
    std::string why;
  };
  static std::variant<Template, Error> parse(std::string_view text);

  /// The text with values inserted, without trailing blanks.
  std::string fill(const Lookup& lookup) const;
  /// The variables used.
  std::vector<std::string> names() const;
  const std::string& text() const { return text_; }

 private:
  struct Part {
    enum class Kind { text, name, optional } kind = Kind::text;
    std::string text;
    std::vector<Part> parts;
  };
  struct Parser;
  static bool append(const std::vector<Part>& parts, const Lookup& lookup, std::string& out);
  static void collect(const std::vector<Part>& parts, std::vector<std::string>& names);

  std::string text_;
  std::vector<Part> parts_;
};

}  // namespace earshot::notifier
