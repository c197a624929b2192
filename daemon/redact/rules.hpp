// The built-in rules, and how a value is classified by its shape: a secret, a placeholder, or words.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace earshot::redact {

constexpr auto npos = std::string_view::npos;

inline bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
inline bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
inline bool is_letter(char c) { return is_lower(c) || is_upper(c); }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_word(char c) { return is_digit(c) || is_letter(c) || c == '_' || c == '-'; }
inline char lower(char c) { return is_upper(c) ? static_cast<char>(c + 32) : c; }
inline bool one_of(char c, std::string_view set) {
  for (const char one : set)  // faster than a call of memchr for a few bytes
    if (one == c) return true;
  return false;
}

/// Whether one of the words of a list, with blanks between them, is accepted.
template <class Accept>
bool any_word(std::string_view list, Accept accept) {
  for (std::size_t at = 0, end = 0; at < list.size(); at = end + 1) {
    for (end = at; end < list.size() && list[end] != ' ';) ++end;
    if (accept(list.substr(at, end - at))) return true;
  }
  return false;
}

/// Bytes of a text: from `begin` up to `end`.
struct Range {
  std::size_t begin = 0, end = 0;
};

/// A rule is tried only at its literals. Several rows may share a name.
struct Rule {
  enum Flags : unsigned {
    any_case = 1,  // of the literals
    /// The prefix is common in names: no byte of a token (`-` and `_` too) may stand around the token, which
    /// is not made of words and, if it is long, has digits, capitals and small letters.
    generic = 2,
    unproved = 4,   // the shape suffices: the token may be of letters only
    anywhere = 8,   // a letter or digit may precede the literal
    wordless = 16,  // the secret is not made of words; if unproved, not of small letters only
  };
  std::string_view name;
  /// Separated by `|`; [abc] is one of these bytes. At least three bytes each.
  std::string_view literals;
  /// What follows the literal: `{h40}` is 40 bytes of the set `h`, `{a20-30}` 20 to 30, `{w20+}` 20 or more;
  /// the sets are listed in rules.cpp. `~` is the sign between a name and its value, `!` the beginning of the
  /// secret, which is otherwise that of the literal. Other bytes stand for themselves. Empty: `find`.
  std::string_view shape;
  unsigned flags = 0;
  std::string_view before = {};  // what precedes the literal and belongs to the secret, as a shape
  /// Finds the secret that the literal at `at` introduces. Work is bounded by the length of the match or by
  /// a constant.
  bool (*find)(std::string_view text, std::size_t at, std::size_t length, Range& secret) = nullptr;
};

/// In order of rank: of two matches at one position the first names it.
std::span<const Rule> rules();
constexpr std::string_view assignment_rule = "secret";  // also for strings under a secret key

/// A parsed shape.
class Shape {
 public:
  explicit Shape(std::string_view written);
  /// Matches at `at`; `secret.begin` is set only by `!`. A repetition without an end is matched to 256 bytes
  /// beyond its minimum: see extend().
  bool matches(std::string_view text, std::size_t at, Range& secret) const;
  bool matches_before(std::string_view text, std::size_t at, Range& secret) const;
  std::size_t extend(std::string_view text, std::size_t end) const;
  bool is_exact() const { return pieces_.empty() || pieces_.back().max != endless; }
  bool is_long_mixed() const;  // ends in 30 or more bytes of capitals, small letters and digits

 private:
  static constexpr std::uint16_t endless = 65535;
  struct Piece {
    char name = 0;                  // of the set, or the byte itself
    std::string_view members = {};  // of the set; `~` of `~` and `!`; empty: a byte
    std::uint16_t min = 1, max = 1;
    bool has(char c) const;
  };
  std::vector<Piece> pieces_;
};

/// True if the rule's secret stands here.
bool find_shape(const Rule& rule, const Shape& shape, const Shape& before, std::string_view text,
                std::size_t at, std::size_t length, Range& secret);

/// True if a token may begin at `at`: no letter or digit precedes it, and if it is `generic`, no `-` or `_`.
/// The letters of an escape (`\n`, `%3D`, a terminal colour) may precede it.
bool may_begin(std::string_view text, std::size_t at, unsigned flags);

// --- What has no shape. Each is a Rule::find.

/// A private key in PEM, from its first line to its END line, the next BEGIN line or the end of the text.
/// Line ends may be written `\n`, lines may be numbered or quoted. Requires a line of Base64.
bool find_private_key(std::string_view text, std::size_t at, std::size_t length, Range& secret);
/// A private key whose beginning was cut off: the lines of Base64 before the END line at `at`, or before the
/// `Private-MAC:` of PuTTY, at most 8 KiB.
bool find_private_key_end(std::string_view text, std::size_t at, std::size_t length, Range& secret);
/// The password of a URL, or a token in place of its user. The literal is `://`.
bool find_url_password(std::string_view text, std::size_t at, std::size_t length, Range& secret);
/// The password among the options of a command: `curl -u USER:PASSWORD`, `mysql -pPASSWORD`.
bool find_option(std::string_view text, std::size_t at, std::size_t length, Range& secret);
/// The values in `Cookie: …` and `Set-Cookie: …` from the first to the last that is a secret.
bool find_cookie(std::string_view text, std::size_t at, std::size_t length, Range& secret);
/// `password = "…"`, `"api_key": "…"`, `TOKEN=…`, `--token …`: see is_plausible for the conditions.
bool find_assignment(std::string_view text, std::size_t at, std::size_t length, Range& secret);

/// From the end of a name to its value behind `=`, `:`, `:=` or `=>`, past a quote of each; npos: no such
/// sign.
std::size_t value_behind(std::string_view text, std::size_t at);

/// What a name says of its value.
enum class NameKind {
  none,
  key,       // `STRIPE_KEY`: a secret if it looks random
  secret,    // `client_secret`, `api_key`, `GITHUB_TOKEN`
  password,  // `password`, `DB_PASS`
};
struct SecretName {
  NameKind kind = NameKind::none;
  bool is_plural = false;
};
/// Of a member, variable, option or setting.
SecretName secret_name(std::string_view name);

// --- The shape of a value

constexpr std::size_t secret_bytes_min = 8;  // a shorter value is never a secret by its shape

/// A placeholder: `********`, `<token>`, `${TOKEN}`, `{{ token }}`, `%s`, `xxxx-xxxx`, `your-key-here`,
/// `null`, `string`, or an earlier replacement.
bool is_placeholder(std::string_view value);

/// An absolute path or one below `~` or `.`: the location of a secret.
bool is_path(std::string_view value);

/// An identifier, a type, a slug or a list of words: `oauth2_token`, `Uint8Array`, `required|min:8`.
bool is_made_of_words(std::string_view value);

/// How many of capitals, small letters and digits there are.
int classes_of(std::string_view value);

/// Has a run of eight letters and digits of at least two of these, and is no placeholder.
bool is_token(std::string_view value);

/// The value of a name of NameKind::key that is a secret: 16 bytes or more, a token, not words nor a UUID.
bool is_random_key(std::string_view value);

/// Where a value stands: how far it may be taken for a secret.
enum class Judgement {
  any,      // whatever is no placeholder, with blanks too
  certain,  // an option, a variable of a shell, a password in quotes: whatever is no placeholder
  quoted,   // whatever is not made of words
  data,     // the rest of a line: the same
  code,     // may be the name of a variable: has digits, or is long
};

/// A value assigned to a secret name that has the shape of a secret: at least 8 bytes, no blanks, not a
/// placeholder, path, URL, e-mail address, version, date, ARN, digest, number, colour, regular expression,
/// template or a name such as `access_token`, and what `judgement` requires. For a password six digits are a
/// secret too, and an `@` makes no e-mail address (`P@ssw0rd.com`).
bool is_plausible(std::string_view value, Judgement judgement, bool is_password);

}  // namespace earshot::redact
