// The rules that are always there.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace earshot::redact {

/// Bytes of a text: from `begin` up to `end`.
struct Range {
  std::size_t begin = 0, end = 0;
};

/// A rule is tried only where one of its literals stands. Several rows may share a name.
struct Rule {
  std::string_view name;
  /// `|` between; [abc] is one of these bytes. Each has at least three.
  std::string_view literals;
  /// RE2 on bytes, from the literal's first byte on. Group 1, if there is one, is the secret. Null: `find`.
  const char* pattern = nullptr;
  bool any_case = false;  // of the literals; the pattern says it for itself
  /// What may not stand before the literal: letters and digits, or any byte of a token, `-` and `_` as well.
  /// A rule that may look far and then find nothing needs the latter, or its work grows with the square.
  enum class Before { anything, no_letter, no_token } before = Before::anything;
  /// Whether what was found is one; null: it is.
  bool (*judge)(std::string_view secret) = nullptr;
  /// Instead of a pattern: the secret that the literal at `at` introduces. Work is bounded by what is found,
  /// or by a constant.
  bool (*find)(std::string_view text, std::size_t at, std::size_t length, Range& secret) = nullptr;
};

/// In order of rank: of two that begin at one place the first gives the name.
std::span<const Rule> rules();

constexpr std::string_view assignment_rule = "secret";  // also of strings under a secret key

/// `password = "…"`, `"api_key": "…"`, `TOKEN=…`, `--token …`: see is_plausible for what is demanded.
bool find_assignment(std::string_view text, std::size_t at, std::size_t length, Range& secret);
/// The words that find_assignment() is tried at, in any case.
std::string_view assignment_words();
/// A member's or variable's name that ends in such a word: `api_key`, `clientSecret`, `GITHUB_TOKEN`.
bool is_secret_name(std::string_view name);

/// A private key in PEM, from its first line to its END line, to the next BEGIN line or to the end of the
/// text; line ends may be written `\n`, lines may be numbered or quoted. Only with a line of Base64 in it.
bool find_private_key(std::string_view text, std::size_t at, std::size_t length, Range& secret);

/// Whether what stands before `at` lets a token begin there. The letters of an escape (`\n`, `%3D`, a
/// terminal's colour) do.
bool may_begin(std::string_view text, std::size_t at, Rule::Before before);

}  // namespace earshot::redact
