#include "samples.hpp"

#include <charconv>

namespace earshot::test {
namespace {

class Digits {
 public:
  explicit Digits(std::uint64_t seed) : state_(seed) {}
  std::string take(std::string_view alphabet, std::size_t count) {
    std::string text;
    while (text.size() < count) {
      state_ = state_ * 6364136223846793005u + 1442695040888963407u;
      text += alphabet[(state_ >> 33) % alphabet.size()];
    }
    return text;
  }

 private:
  std::uint64_t state_;
};

#define SMALL "abcdefghijklmnopqrstuvwxyz"
#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

std::string_view alphabet_of(char name) {
  switch (name) {
    case 'a':
      return SMALL CAPITALS DIGITS;
    case 'h':
      return DIGITS "abcdef";
    case 'l':
      return SMALL DIGITS;
    case 'U':
      return CAPITALS DIGITS;
    case 'u':
      return CAPITALS "234567";
    case 'd':
      return DIGITS;
    case 'm':
      return SMALL CAPITALS;
    case 's':
      return SMALL;
    case 'b':
      return SMALL CAPITALS DIGITS "+/";
    case 'c':  // of crypt(3)
      return SMALL CAPITALS DIGITS "./";
    default:
      return {};
  }
}

#undef SMALL
#undef CAPITALS
#undef DIGITS

}  // namespace

Sample expanded(std::string_view written, std::uint64_t seed) {
  Digits digits(seed);
  Sample sample;
  for (std::size_t at = 0; at < written.size(); ++at) {
    const std::string_view rest = written.substr(at);
    std::string part;
    std::size_t count = 0;
    const char* const end = written.data() + written.size();
    if (rest.starts_with("\\n")) {
      sample.text += '\n';
      ++at;
      continue;
    }
    if (rest.starts_with("{key}")) {
      sample.text += "KEY";
      at += 4;
      continue;
    }
    if (rest.starts_with("{uuid}")) {
      constexpr std::string_view hex = "0123456789abcdef";
      part = digits.take(hex, 8) + "-" + digits.take(hex, 4) + "-4" + digits.take(hex, 3) + "-a" +
             digits.take(hex, 3) + "-" + digits.take(hex, 12);
      at += 5;
    } else if (rest[0] == '{' && rest.size() > 3 && !alphabet_of(rest[1]).empty()) {
      const char* const close = std::from_chars(rest.data() + 2, end, count).ptr;
      if (count > 0 && close < end && *close == '}') {
        part = digits.take(alphabet_of(rest[1]), count);
        at = static_cast<std::size_t>(close - written.data());
      }
    }
    if (part.empty()) {
      sample.text += written[at];
    } else {
      sample.text += part;
      sample.parts.push_back(part);
    }
  }
  return sample;
}

}  // namespace earshot::test
