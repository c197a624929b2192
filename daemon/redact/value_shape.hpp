// Classifies a value by its shape: a secret, a placeholder, or words.
#pragma once
#include <string_view>

namespace earshot::redact {

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
/// ARN,
///   number, colour, regular expression or template;
/// - mix letters and digits; or, if long, capitals and small letters; or, between quotes only, letters and
/// signs
///   such as ! # $ ^;
/// - not be made of words. One word with two digits at its end is a secret (`hunter22`), with one digit only
/// between
///   quotes (`value1` is a variable).
/// A passphrase of plain words is therefore missed, except under a secret JSON key.
bool is_plausible(std::string_view value, bool quoted);

}  // namespace earshot::redact
