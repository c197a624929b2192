// What a value looks like: a secret, what stands for one, or a name that someone chose.
#pragma once
#include <string_view>

namespace earshot::redact {

constexpr std::size_t secret_bytes_min = 8;  // a shorter value is never taken for a secret by its looks

/// Stands for a secret: `********`, `<token>`, `${TOKEN}`, `{{ token }}`, `%s`, `xxxx-xxxx`, `your-key-here`,
/// `null`, `string`, or what was replaced already.
bool is_placeholder(std::string_view value);

/// An absolute path or one below `~` or `.`: where a secret lies, not what it is.
bool is_path(std::string_view value);

/// Could be an identifier, a type, a slug or a list of words: `oauth2_token`, `Uint8Array`, `required|min:8`.
bool is_made_of_words(std::string_view value);

/// Capitals, small letters and digits, two kinds of them at least, in an order that no person chose: neither
/// a placeholder nor words.
bool is_random(std::string_view value);

/// What stands behind a prefix that names a kind of token, the prefix included: with some digits, or random.
bool is_token(std::string_view value);

/// A value beside a word such as `password` or `token` that looks like a secret. Code and prose are full of
/// such words, so it is demanded that the value
/// - has at least 8 bytes, no blanks, and is no placeholder, path, URL, e-mail address, version, date, ARN,
///   number, colour, regular expression or template;
/// - mixes letters and digits, or is long and mixes capitals and small letters, or, only between quotes,
/// letters
///   and signs such as ! # $ ^;
/// - is not made of words. One word with two digits at its end is taken for a secret (`hunter22`),
///   with one digit only between quotes (`value1` is a variable).
/// A passphrase of plain words is therefore missed, unless it stands under a JSON key that says what it is.
bool is_plausible(std::string_view value, bool quoted);

}  // namespace earshot::redact
