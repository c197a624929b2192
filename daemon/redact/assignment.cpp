// Secrets without a format of their own: the value assigned to a word such as `password`, and the shape of a
// value that decides whether it is one.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "redact/rules.hpp"

namespace earshot::redact {
namespace {

bool one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

// --- the shape of a value

std::string lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

// Words that may end in digits: `base64`, `sha256`, `oauth2`, `v1`, …
constexpr std::array<std::string_view, 48> number_words = {
    "aes",  "amd",   "arm", "base",  "bcp", "bytes", "crc", "ec",  "ecdsa", "ed",  "erc", "es",
    "fido", "float", "h",   "hmac",  "hs",  "http",  "i",   "int", "ipv",   "iso", "k",   "l",
    "log",  "md",    "mp",  "oauth", "p",   "pkcs",  "ps",  "py",  "rc",    "rfc", "rs",  "s",
    "secp", "sha",   "ssl", "tls",   "u",   "uint",  "utf", "v",   "web",   "win", "x",   "hmacsha"};

bool is_number_word(std::string_view letters) {
  if (letters.size() > 8) return false;
  const std::string word = lowered(letters);
  return std::any_of(number_words.begin(), number_words.end(),
                     [&](std::string_view one) { return word == one; });
}

// Common abbreviations without vowels.
constexpr std::array<std::string_view, 62> short_forms = {
    "bdd", "cfg",  "cli",   "cmd",   "cpp",  "crud",   "css",  "csv",   "ctx", "dbg", "dns",  "dst", "ftp",
    "gcp", "gpg",  "grpc",  "html",  "http", "https",  "jdbc", "jpg",   "jwt", "kms", "ldap", "lts", "mgr",
    "mnt", "msg",  "mysql", "nginx", "npm",  "params", "pfx",  "pgsql", "pkg", "png", "pkcs", "ptr", "pwd",
    "rpc", "smtp", "sql",   "src",   "srv",  "ssh",    "ssl",  "std",   "str", "svc", "svg",  "tcp", "tls",
    "tmp", "tmpl", "txt",   "vnd",   "vpn",  "vxlan",  "wss",  "xhtml", "xml", "yml"};

// True if letters could be a word: they have a vowel and no rare neighbours.
bool is_pronounceable(std::string_view letters) {
  constexpr std::size_t letters_max = 15;  // the rest is not checked
  const std::string word = lowered(letters.substr(0, letters_max));
  if (std::any_of(short_forms.begin(), short_forms.end(), [&](std::string_view one) { return word == one; }))
    return true;
  std::size_t consonants = 0;
  bool vowel = false;
  for (std::size_t at = 0; at < word.size(); ++at) {
    const char c = word[at], next = at + 1 < word.size() ? word[at + 1] : 'a';
    const bool next_is_vowel = one_of(next, "aeiouy");
    if (one_of(c, "aeiouy")) {
      vowel = true;
      consonants = 0;
      continue;
    }
    if (++consonants >= 5) return false;
    if (c == 'q' && next != 'u' && next != 'a') return false;
    if (one_of(c, "jvz") && !next_is_vowel && next != c && next != 'l') return false;
    if (c == 'x' && one_of(next, "bdgjknqrvwxz")) return false;
    if (one_of(next, "qxz") && one_of(c, "bfhkmpvw")) return false;
    if (next == 'j' && one_of(c, "cfghkmpvwx")) return false;
    if (c == 'w' && one_of(next, "bcfgjmpqtvwxz")) return false;
    if (c == 'h' && one_of(next, "bcdfghjkpqvxz")) return false;
  }
  return vowel;
}

// Splits a value at signs and capitals into words of letters, with digits at their ends at most, and decides
// whether it could be an identifier, a slug, a path or a list of words.
class Words {
 public:
  explicit Words(std::string_view value) {
    std::size_t chunks = 0;
    for (std::size_t at = 0; at < value.size() && made_of_words_;) {
      if (!is_letter(value[at]) && !is_digit(value[at])) {
        made_of_words_ = one_of(value[at], "_-./:|,+=@$");
        ++at;
        continue;
      }
      std::size_t end = at;
      while (end < value.size() && (is_letter(value[end]) || is_digit(value[end]))) ++end;
      ++chunks;
      chunk(value.substr(at, end - at));
      at = end;
    }
    const std::size_t digit_words_max = std::max<std::size_t>(1, words_ / 2);
    if (singles_ > 1 + words_ / 6 || digit_words_ > digit_words_max) made_of_words_ = false;
    if (words_ >= 3 && letters_ * 2 < words_ * 5)
      made_of_words_ = false;  // words have 2.5 letters on average
    if (odd_ > 0 && odd_ * 2 >= long_words_) made_of_words_ = false;
    // Digits at the end of a single piece: `hunter22`, `SuperSecret123`, but not `toUtf8`.
    if (chunks == 1 && last_digits_ >= 2 && !last_is_number_word_) made_of_words_ = false;
    one_word_ = chunks == 1 && words_ == 1 && last_digits_ == 1;
  }
  bool made_of_words() const { return made_of_words_; }
  bool one_word() const { return one_word_; }  // with one digit at its end

 private:
  void chunk(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at;
      const bool capitals = at + 1 < text.size() && is_upper(text[at]) && is_upper(text[at + 1]);
      if (is_letter(text[at])) ++end;
      while (end < text.size() && (capitals ? is_upper(text[end]) : is_lower(text[end]))) ++end;
      // `HTTPServer`: the last capital begins the next word.
      if (capitals && end < text.size() && is_lower(text[end])) --end;
      const std::size_t letters = end - at;
      while (end < text.size() && is_digit(text[end])) ++end;
      const std::size_t digits = end - at - letters;
      word(text.substr(at, letters), digits);
      // After digits only a new capitalised word may follow.
      const bool camel = end + 1 < text.size() && is_upper(text[end]) && is_lower(text[end + 1]);
      if (digits > 0 && end < text.size() && !camel && !is_number_word(text.substr(at, letters)))
        made_of_words_ = false;
      at = end;
    }
  }
  void word(std::string_view letters, std::size_t digits) {
    ++words_;
    letters_ += letters.size();
    if (letters.size() >= 3) {
      ++long_words_;
      odd_ += !is_pronounceable(letters);
    }
    singles_ += letters.size() == 1;
    digit_words_ += digits > 0;
    last_digits_ = digits;
    last_is_number_word_ = digits > 0 && is_number_word(letters);
    if (!letters.empty() && digits > 5) made_of_words_ = false;
  }

  bool made_of_words_ = true, one_word_ = false, last_is_number_word_ = false;
  std::size_t words_ = 0, letters_ = 0, singles_ = 0, digit_words_ = 0, last_digits_ = 0, long_words_ = 0,
              odd_ = 0;
};

// Common placeholder words.
constexpr std::array<std::string_view, 46> placeholder_words = {
    "bool",      "boolean",  "changeme", "disabled", "empty",   "enabled", "example", "false",
    "float",     "hidden",   "int",      "integer",  "invalid", "key",     "masked",  "missing",
    "n/a",       "nil",      "none",     "null",     "number",  "object",  "off",     "on",
    "optional",  "pass",     "passwd",   "password", "private", "public",  "pwd",     "redacted",
    "removed",   "required", "secret",   "str",      "string",  "text",    "token",   "true",
    "undefined", "unknown",  "unset",    "value",    "yes",     "no"};
constexpr std::array<std::string_view, 23> placeholder_beginnings = {
    "change-me", "change_me", "changeme",  "dummy",     "enter-",      "enter_",     "example-", "example_",
    "insert-",   "insert_",   "my-secret", "my_secret", "placeholder", "replace-me", "replace_", "replaceme",
    "todo",      "your-",     "your_",     "yourapi",   "yourpass",    "yoursecret", "yourtoken"};

constexpr std::size_t placeholder_bytes_max = 14;  // of the words above; fits the small-string buffer

bool has_run(std::string_view value, char c, std::size_t length) {
  std::size_t run = 0;
  for (const char d : value) {
    run = lower(d) == c ? run + 1 : 0;
    if (run >= length) return true;
  }
  return false;
}

// `year-month-day`, or `1.2` after a version prefix.
bool is_version_or_date(std::string_view value) {
  while (!value.empty() && one_of(value.front(), "^~<>=vV")) value.remove_prefix(1);
  std::size_t digits = 0;
  while (digits < value.size() && is_digit(value[digits])) ++digits;
  if (digits == 0 || digits + 1 >= value.size() || !is_digit(value[digits + 1])) return false;
  if (value[digits] == '.') return true;
  return digits == 4 && value[digits] == '-' && value.size() >= 8 && value[7] == '-';
}

bool is_mail_address(std::string_view value) {
  const std::size_t at = value.find('@');
  if (at == std::string_view::npos || at == 0 || value.find('@', at + 1) != std::string_view::npos)
    return false;
  const std::string_view host = value.substr(at + 1);
  return host.find('.') != std::string_view::npos &&
         host.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") ==
             std::string_view::npos;
}

bool is_number(std::string_view value) {
  if (value.starts_with("0x") || value.starts_with("0X"))
    return value.size() <= 18 &&
           value.find_first_not_of("0123456789abcdefABCDEF_", 2) == std::string_view::npos;
  if (value.starts_with("#"))
    return value.size() <= 9 &&
           value.find_first_not_of("0123456789abcdefABCDEF", 1) == std::string_view::npos;
  return false;
}

bool is_pattern(std::string_view value) {
  if (value.starts_with('^') && (value.ends_with('$') || value.find('[') != std::string_view::npos))
    return true;
  for (const char* piece :
       {"[a-", "[A-", "[0-", "[^", "\\d", "\\w", "\\s", "\\S", ".*", ".+", "(?", "{8", "{6"})
    if (value.find(piece) != std::string_view::npos) return true;
  return false;
}

bool is_template(std::string_view value) {
  const std::size_t open = value.find_first_of("{(<[");
  if (open == std::string_view::npos) return false;
  const char close = value[open] == '{' ? '}' : value[open] == '(' ? ')' : value[open] == '<' ? '>' : ']';
  return value.find(close, open) != std::string_view::npos;
}

}  // namespace

bool is_placeholder(std::string_view value) {
  while (!value.empty() && one_of(value.front(), " \t\r\n")) value.remove_prefix(1);
  while (!value.empty() && one_of(value.back(), " \t\r\n")) value.remove_suffix(1);
  if (value.empty() || value.starts_with("[redacted")) return true;
  // Masks: stars, bullets, one repeated character.
  if (std::all_of(value.begin(), value.end(), [&](char c) {
        return c == value.front() || one_of(c, "*xX.-_#?0\xE2\x80\xA2\xA6\x97\x8F");
      }))
    return true;
  if (has_run(value, '*', 3) || has_run(value, 'x', 4) || has_run(value, '.', 3) ||
      value.find("\xE2\x80\xA6") != std::string_view::npos ||
      value.find("\xE2\x80\xA2\xE2\x80\xA2") != std::string_view::npos)
    return true;
  // Variables of a shell, a template or a formatter.
  const char second = value.size() > 1 ? value[1] : '\0';
  if (value[0] == '$' && (is_letter(second) || one_of(second, "_{(@*?$") || value.size() == 2))
    // `$word` may begin a password too: only a name is a variable.
    return !is_letter(second) || value.find_first_of("!#$^&%~", 1) == std::string_view::npos;
  if (value[0] == '<' || value[0] == '{' || value.starts_with("%(") || value.starts_with("@{") ||
      value.starts_with("#{") || value.starts_with("(("))
    return true;
  if (value[0] == '%' && (value.size() <= 3 || value.back() == '%')) return true;
  const std::string word = lowered(value.substr(0, placeholder_bytes_max + 1));
  const auto is_word = [&](std::string_view one) { return word == one; };
  const auto begins = [&](std::string_view one) { return word.starts_with(one); };
  return std::any_of(placeholder_words.begin(), placeholder_words.end(), is_word) ||
         std::any_of(placeholder_beginnings.begin(), placeholder_beginnings.end(), begins);
}

bool is_path(std::string_view value) {
  if (value.starts_with("~/") || value.starts_with("./") || value.starts_with("../")) return true;
  if (value.size() > 2 && is_letter(value[0]) && value[1] == ':' && one_of(value[2], "\\/")) return true;
  if (value.starts_with('/')) return value.find('/', 1) != std::string_view::npos;
  // A file with an ending, below something.
  const std::size_t dot = value.rfind('.'), slash = value.rfind('/');
  if (dot == std::string_view::npos || slash == std::string_view::npos || dot < slash) return false;
  const std::size_t ending = value.size() - dot - 1;
  return ending >= 1 && ending <= 5 &&
         std::all_of(value.begin() + static_cast<std::ptrdiff_t>(dot) + 1, value.end(), is_lower);
}

bool is_made_of_words(std::string_view value) { return Words(value).made_of_words(); }

bool is_random(std::string_view value) {
  const bool lower_case = std::any_of(value.begin(), value.end(), is_lower);
  const bool upper_case = std::any_of(value.begin(), value.end(), is_upper);
  const bool digits = std::any_of(value.begin(), value.end(), is_digit);
  return lower_case + upper_case + digits >= 2 && !is_placeholder(value) && !Words(value).made_of_words();
}

bool is_token(std::string_view value) {
  constexpr int digits_of_words_max = 2;  // `sk-ant-api03-your-key`
  return std::count_if(value.begin(), value.end(), is_digit) > digits_of_words_max ? !is_placeholder(value)
                                                                                   : is_random(value);
}

bool is_plausible(std::string_view value, bool quoted, bool is_password) {
  constexpr std::size_t password_digits_min = 6;
  if (is_password && !value.empty() && std::all_of(value.begin(), value.end(), is_digit))
    return value.size() >= password_digits_min && !is_placeholder(value);
  if (value.size() < secret_bytes_min || value.find_first_of(" \t\r\n") != std::string_view::npos)
    return false;
  if (is_placeholder(value) || is_path(value) || is_number(value) || is_version_or_date(value) ||
      (!is_password && is_mail_address(value)) || is_pattern(value) || is_template(value))
    return false;
  if (value.find("://") != std::string_view::npos || value.starts_with("arn:") || value.starts_with("urn:"))
    return false;
  // Between quotes of other strings: "token=" + value + "&…"
  if (quoted && one_of(value.front(), "+,)&;.}]:")) return false;
  if (!std::any_of(value.begin(), value.end(), is_letter)) return false;
  if (!std::any_of(value.begin(), value.end(), is_digit)) {
    if (value.size() >= 20 && is_random(value)) return true;
    const auto is_sign = [](char c) { return !is_letter(c); };
    while (!value.empty() && is_sign(value.front())) value.remove_prefix(1);
    while (!value.empty() && is_sign(value.back())) value.remove_suffix(1);
    return quoted && value.size() >= secret_bytes_min &&
           value.find_first_of("!#$^") != std::string_view::npos;
  }
  const Words words(value);
  return !words.made_of_words() || (quoted && words.one_word());
}

// --- assignments

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

bool is_name_byte(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '-'; }

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
