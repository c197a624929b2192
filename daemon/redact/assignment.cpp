// Secrets assigned to a word such as `password`.
#include <algorithm>
#include <array>
#include <string>

#include "redact/rules.hpp"

namespace earshot::redact {
namespace {

// Between a key, its sign and its value.
constexpr std::size_t blanks_max = 16;
// Searched for a closing quote; a longer value ends at a blank.
constexpr std::size_t value_bytes_max = 4096;
// The part of an unquoted value that decides whether it is a secret.
constexpr std::size_t judged_bytes_max = 128;
// Before a quote: JSON nested four times as text.
constexpr std::size_t backslashes_max = 32;
// `password: Optional[str] = "…"`
constexpr std::size_t type_bytes_max = 40;
// A longer object key is a sentence.
constexpr std::size_t name_bytes_max = 64;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_name_byte(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-'; }
bool one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// Endings of a name without its `_` and `-`.
constexpr std::array secret_words = {
    "password",  "passwd",    "passphrase",    "pwd",           "secret",        "token",
    "apikey",    "accesskey", "secretkey",     "privatekey",    "encryptionkey", "signingkey",
    "masterkey", "authkey",   "secretkeybase", "authorization", "clientkeydata"};
// Before `token`: a position in a list or a piece of a text, not a secret.
constexpr std::array harmless_tokens = {
    "page",         "next", "prev",  "previous", "continuation", "continue", "cursor",  "sync", "cancel",
    "cancellation", "stop", "start", "end",      "eos",          "bos",      "eot",     "pad",  "unk",
    "sep",          "cls",  "mask",  "max",      "min",          "resume",   "special", "image"};

bool is_harmless_token(std::string_view name) {  // lower case, without `token`
  return std::any_of(harmless_tokens.begin(), harmless_tokens.end(),
                     [&](const char* one) { return name.ends_with(one); });
}

// A forward-moving position in a text.
class Reader {
 public:
  Reader(std::string_view text, std::size_t at) : text_(text), at_(at) {}
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  std::size_t at() const { return at_; }
  void skip(std::size_t bytes) { at_ += bytes; }
  std::size_t skip_any(std::string_view set, std::size_t bytes_max) {
    const std::size_t begin = at_;
    while (at_ - begin < bytes_max && at_ < text_.size() && one_of(text_[at_], set)) ++at_;
    return at_ - begin;
  }
  /// Takes a quote that may be escaped. Returns its number of backslashes; -1: no quote.
  int take_quote(char& quote) {
    std::size_t back = 0;
    while (back < backslashes_max && peek(back) == '\\') ++back;
    if (!one_of(peek(back), "\"'`")) return -1;
    quote = peek(back);
    skip(back + 1);
    return static_cast<int>(back);
  }

 private:
  std::string_view text_;
  std::size_t at_;
};

// `--token VALUE`
bool is_flag(std::string_view text, std::size_t at) {
  std::size_t begin = at;
  while (begin > 0 && at - begin < name_bytes_max && is_name_byte(text[begin - 1])) --begin;
  return text.substr(begin, at - begin).starts_with("--") &&
         (begin == 0 || one_of(text[begin - 1], " \t\n'\"`="));
}

// Moves from the end of the key to the value or its quote; false if nothing is assigned.
bool pass_sign(std::string_view text, std::size_t key, Reader& reader, bool& quote_needed) {
  char quote = 0;
  if (reader.take_quote(quote) >= 0 && reader.peek() == ']') reader.skip(1);
  reader.skip_any("*", 2);  // Markdown's bold
  const std::size_t blanks = reader.skip_any(" \t", blanks_max);
  const bool colon = reader.peek() == ':';
  if (reader.peek() == '=' && reader.peek(1) == '>') {
    reader.skip(2);
    quote_needed = true;
  } else if (colon && reader.peek(1) == '=') {
    reader.skip(2);
  } else if (reader.peek() == '=' || colon) {
    if (one_of(reader.peek(1), "=~:")) return false;
    reader.skip(1);
  } else if (blanks == 0 || quote != 0 || !is_flag(text, key)) {
    return false;
  }
  reader.skip_any("*", 2);
  reader.skip_any(" \t", blanks_max);
  if (!colon) return true;
  // After a type annotation the value must be quoted.
  Reader typed = reader;
  const std::size_t type =
      typed.skip_any("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_&'.[]| ", type_bytes_max);
  if (type == 0 || typed.peek() != '=' || typed.peek(1) == '=') return true;
  typed.skip(1);
  typed.skip_any(" \t", blanks_max);
  if (!one_of(typed.peek(), "\"'\\")) return true;
  reader = typed;
  return true;
}

// The position of the closing quote with this many backslashes; npos: not on this line.
std::size_t closing_quote(std::string_view text, std::size_t from, char quote, int backslashes) {
  const std::size_t last = std::min(text.size(), from + value_bytes_max);
  std::size_t back = 0;
  for (std::size_t at = from; at < last && text[at] != '\n'; ++at) {
    if (text[at] == '\\') {
      ++back;
      continue;
    }
    // Each level of escaping doubles the backslashes before an inner quote, and adds one.
    const auto deeper = static_cast<std::ptrdiff_t>(back) - backslashes;
    if (text[at] == quote && deeper >= 0 && deeper % (2 * (backslashes + 1)) == 0)
      return at - static_cast<std::size_t>(backslashes);
    back = 0;
  }
  return std::string_view::npos;
}

// An unquoted value ends at a blank or at a delimiter of code and data.
std::size_t bare_end(std::string_view text, std::size_t from) {
  constexpr std::string_view ends = " \t\r\n\"'`,;&<>(){}[]|\\";
  std::size_t at = from;
  while (at < text.size() && static_cast<unsigned char>(text[at]) >= 0x20 && !one_of(text[at], ends)) ++at;
  return at;
}

// The password of a complete entry of a .netrc file: `machine NAME login USER password`, or `default` for the
// machine. `at` is the position of `password`.
bool is_netrc_entry(std::string_view text, std::size_t at) {
  constexpr std::size_t word_bytes_max = 128;
  const auto take_word_back = [&] {
    std::size_t end = at;
    while (end > 0 && at - end < blanks_max && one_of(text[end - 1], " \t\r\n")) --end;
    if (end == at) return std::string_view();
    std::size_t begin = end;
    while (begin > 0 && end - begin < word_bytes_max && !one_of(text[begin - 1], " \t\r\n")) --begin;
    at = begin;
    return text.substr(begin, end - begin);
  };
  if (take_word_back().empty() || take_word_back() != "login") return false;
  return take_word_back().ends_with("default") || take_word_back().ends_with("machine");
}

bool find_netrc(std::string_view text, std::size_t begin, Range& secret) {
  constexpr std::size_t password_bytes_min = 4;
  const std::string_view value = text.substr(begin, text.find_first_of(" \t\r\n", begin) - begin);
  secret = {begin, begin + value.size()};
  const bool is_word = std::all_of(value.begin(), value.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return value.size() >= password_bytes_min && !is_word && !is_placeholder(value);
}

bool find_bare(std::string_view text, std::size_t begin, bool is_password, Range& secret) {
  const std::size_t bracket = std::string_view("[(").find(begin < text.size() ? text[begin] : '\0');
  if (bracket != std::string_view::npos) {  // `password: [value]`
    const std::size_t close = begin + 1 < text.size() ? bare_end(text, begin + 1) : text.size();
    return close < text.size() && text[close] == "])"[bracket] &&
           !text.substr(begin).starts_with("[redacted:") && !one_of(text[begin + 1], "[(") &&
           find_bare(text.substr(0, close), begin + 1, is_password, secret);
  }
  if (begin >= text.size() || one_of(text[begin], "=$%{<&|-#@*")) return false;
  std::size_t end = bare_end(text.substr(0, std::min(text.size(), begin + judged_bytes_max)), begin);
  const bool longer = end == begin + judged_bytes_max;
  if (!longer && end < text.size() && one_of(text[end], "([{<")) return false;  // a call, a subscript, a type
  while (end > begin && one_of(text[end - 1], ".,:;!?*")) --end;
  if (!is_plausible(text.substr(begin, end - begin), false, is_password)) return false;
  secret = {begin, longer ? bare_end(text, end) : end};
  return true;
}

}  // namespace

std::string_view assignment_words() {
  return "password|passwd|passphrase|pwd|secret|token|api[_- ]key|apikey|access[_- ]key|accesskey|"
         "secret[_- ]key|secretkey|private[_- ]key|privatekey|encryption[_- ]key|encryptionkey|signing[_- "
         "]key|"
         "signingkey|master[_- ]key|masterkey|auth[_- "
         "]key|authkey|secret_key_base|client-key-data|_auth|_pass";
}

bool find_assignment(std::string_view text, std::size_t at, std::size_t length, Range& secret) {
  const std::size_t key_end = at + length;
  // Most such words are mentioned, not assigned.
  if (key_end >= text.size() || !one_of(text[key_end], " \t\"'`\\:=*")) return false;
  if (lower(text[at]) == 't') {
    std::string name;
    for (std::size_t i = at - std::min<std::size_t>(at, 14); i < at; ++i)
      if (!one_of(text[i], "_- ")) name += lower(text[i]);
    if (is_harmless_token(name)) return false;
  }
  Reader reader(text, key_end);
  bool quote_needed = false;
  const char first = lower(text[at] == '_' ? text[at + 1] : text[at]);
  const bool is_password = first == 'p' && lower(text[at + 1]) != 'r';  // not private_key
  if (!pass_sign(text, at, reader, quote_needed))
    return is_password && is_netrc_entry(text, at) && find_netrc(text, reader.at(), secret);
  if (is_letter(reader.peek()) && one_of(reader.peek(1), "\"'\\")) reader.skip(1);  // b"…", r'…'
  char quote = 0;
  const int backslashes = reader.take_quote(quote);
  const std::size_t begin = reader.at();
  if (backslashes < 0) return !quote_needed && find_bare(text, begin, is_password, secret);
  const std::size_t close = closing_quote(text, begin, quote, backslashes);
  if (close == std::string_view::npos) return find_bare(text, begin, is_password, secret);
  std::string_view value = text.substr(begin, close - begin);
  value = value.substr(0, value.find("[redacted:"));
  const bool is_bracketed = value.size() > 2 && ((value.front() == '[' && value.back() == ']') ||
                                                 (value.front() == '(' && value.back() == ')'));
  if (is_bracketed) value = value.substr(1, value.size() - 2);
  if (!is_plausible(value, true, is_password)) return false;
  const auto value_begin = static_cast<std::size_t>(value.data() - text.data());
  secret = {value_begin, value_begin + value.size()};
  return true;
}

bool is_secret_name(std::string_view name) {
  if (name.size() < 2 || name.size() > name_bytes_max) return false;
  std::string plain;
  for (const char c : name) {
    if (!is_name_byte(c) && c != '.' && c != ':') return false;
    if (is_letter(c) || (c >= '0' && c <= '9')) plain += lower(c);
  }
  if (plain == "pass" || name.ends_with("_pass") || name.ends_with("_PASS")) return true;
  return std::any_of(secret_words.begin(), secret_words.end(), [&](std::string_view word) {
    if (!plain.ends_with(word)) return false;
    return word != "token" ||
           !is_harmless_token(std::string_view(plain).substr(0, plain.size() - word.size()));
  });
}

}  // namespace earshot::redact
