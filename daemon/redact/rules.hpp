// The built-in rules, and how a value is classified by its shape: a secret, a placeholder, or words.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace earshot::redact {

inline bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
inline bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
inline bool is_letter(char c) { return is_lower(c) || is_upper(c); }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline char lower(char c) { return is_upper(c) ? static_cast<char>(c + 32) : c; }

/// Bytes of a text: from `begin` up to `end`.
struct Range {
  std::size_t begin = 0, end = 0;
};

/// A rule is tried only at its literals. Several rows may share a name.
struct Rule {
  std::string_view name;
  /// Separated by `|`; [abc] is one of these bytes. At least three bytes each.
  std::string_view literals;
  /// RE2 on bytes, from the literal's first byte on. Group 1, if present, is the secret. Null: `find`.
  const char* pattern = nullptr;
  bool any_case = false;  // for the literals; the pattern has its own flag
  /// Bytes that may not precede the literal: letters and digits, or any byte of a token (`-` and `_` too). A
  /// rule that can scan far without a match needs the latter, or its work is quadratic.
  enum class Before { anything, no_letter, no_token } before = Before::anything;
  /// Accepts or rejects a match; null: accepts.
  bool (*is_secret)(std::string_view match) = nullptr;
  /// Instead of a pattern: finds the secret that the literal at `at` introduces. Work is bounded by the
  /// length of the match or by a constant.
  bool (*find)(std::string_view text, std::size_t at, std::size_t length, Range& secret) = nullptr;
};

/// In order of rank: of two matches at one position the first names it.
std::span<const Rule> rules();

constexpr std::string_view assignment_rule = "secret";  // also for strings under a secret key

/// `password = "…"`, `"api_key": "…"`, `TOKEN=…`, `--token …`: see is_plausible for the conditions.
bool find_assignment(std::string_view text, std::size_t at, std::size_t length, Range& secret);
/// The literals of find_assignment(), in any case.
std::string_view assignment_words();
/// True for the name of a member or variable that ends in such a word: `api_key`, `clientSecret`,
/// `GITHUB_TOKEN`.
bool is_secret_name(std::string_view name);

/// Finds a private key in PEM, from its first line to its END line, the next BEGIN line or the end of the
/// text. Line ends may be written `\n`, lines may be numbered or quoted. Requires a line of Base64.
bool find_private_key(std::string_view text, std::size_t at, std::size_t length, Range& secret);

/// Finds a private key whose BEGIN line was cut off: the lines of Base64 before the END line at `at`, at most
/// 8 KiB.
bool find_private_key_end(std::string_view text, std::size_t at, std::size_t length, Range& secret);

/// True if a token may begin at `at`. The letters of an escape (`\n`, `%3D`, a terminal colour) may precede
/// it.
bool may_begin(std::string_view text, std::size_t at, Rule::Before before);

constexpr std::size_t secret_bytes_min = 8;  // a shorter value is never a secret by its shape

/// A placeholder: `********`, `<token>`, `${TOKEN}`, `{{ token }}`, `%s`, `xxxx-xxxx`, `your-key-here`,
/// `null`, `string`, or an earlier replacement.
bool is_placeholder(std::string_view value);

/// An absolute path or one below `~` or `.`: the location of a secret.
bool is_path(std::string_view value);

/// An identifier, a type, a slug or a list of words: `oauth2_token`, `Uint8Array`, `required|min:8`.
bool is_made_of_words(std::string_view value);

/// At least two of capitals, small letters and digits, and neither a placeholder nor words.
bool is_random(std::string_view value);

/// A value with the prefix of a token: it has some digits or is random.
bool is_token(std::string_view value);

/// A value assigned to a word such as `password` or `token` that has the shape of a secret. Such words are
/// common in code and prose, so the value must
/// - have at least 8 bytes and no blanks, and not be a placeholder, path, URL, e-mail address, version, date,
///   ARN, number, colour, regular expression or template;
/// - mix letters and digits; or, if long, capitals and small letters; or, between quotes only, letters and
/// signs
///   such as ! # $ ^;
/// - not be made of words. One word with two digits at its end is a secret (`hunter22`), with one digit only
///   between quotes (`value1` is a variable).
/// `is_password`: assigned to `password` or the like. Then six digits are a secret too, and an `@` makes no
/// e-mail address (`P@ssw0rd.com`). A passphrase of plain words is missed, except under a secret JSON key.
bool is_plausible(std::string_view value, bool quoted, bool is_password);

}  // namespace earshot::redact
