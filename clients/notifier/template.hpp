// Titles and bodies with holes in them: `{project} needs you[: {tool}]`. Pure.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace earshot::notifier {

/// What a name stands for; empty: not known.
using Lookup = std::function<std::string(std::string_view name)>;

/// `{name}` is replaced; `[…]` is left out when nothing that it names is known; `{{ }} [[ ]]` are the
/// characters themselves.
class Template {
 public:
  static constexpr std::size_t bytes_max = 2048;  // a longer one is refused
  static constexpr std::size_t depth_max = 4;     // of [ ] in [ ]

  struct Error {
    std::string why;
  };
  static std::variant<Template, Error> parse(std::string_view text);

  /// On one line or several, as it is written; trailing blanks go.
  std::string fill(const Lookup& lookup) const;
  /// The names that it asks for.
  std::vector<std::string> names() const;
  const std::string& text() const { return text_; }

 private:
  struct Part {
    enum class Kind { text, name, optional } kind = Kind::text;
    std::string word;
    std::vector<Part> parts;
  };
  struct Reader;
  static bool append(const std::vector<Part>& parts, const Lookup& lookup, std::string& out);
  static void collect(const std::vector<Part>& parts, std::vector<std::string>& names);

  std::string text_;
  std::vector<Part> parts_;
};

}  // namespace earshot::notifier
