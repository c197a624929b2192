// Templates of titles and bodies: `{project} needs you[: {tool}]`.
#pragma once
#include <functional>
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
  std::string text_;  // valid
};

}  // namespace earshot::notifier
