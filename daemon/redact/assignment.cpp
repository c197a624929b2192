// Secrets without a format of their own: the value assigned to a name such as `password`.
#include <algorithm>
#include <string>

#include "redact/rules.hpp"

namespace earshot::redact {
namespace {

constexpr std::size_t blanks_max = 16;         // between a name, its sign and its value
constexpr std::size_t value_bytes_max = 4096;  // searched for a closing quote; a longer value ends at a blank
constexpr std::size_t judged_bytes_max = 128;  // of an unquoted value
constexpr std::size_t backslashes_max = 32;    // before a quote: JSON nested four times as text
constexpr std::size_t type_bytes_max = 40;     // `password: Optional[str] = "…"`
constexpr std::size_t name_bytes_max = 64;     // a longer object key is a sentence

// Endings of names, in small letters without signs.
constexpr std::string_view passwords = "password passwd passphrase passwort pwd psk masterauth";
// `pass` behind a sign but not behind the second list, or behind one of the first: not `bypass`.
constexpr std::string_view before_pass =
    "db user root smtp ftp my sql pg admin store key require ssh login auth proxy mail redis mongo wifi app "
    "ldap bind sudo http web new old imap";
constexpr std::string_view not_pass = "debug render first second multi by single all test";
constexpr std::string_view secrets =
    "secret apikey accesskey secretkey privatekey encryptionkey signingkey masterkey authkey secretkeybase "
    "authorization clientkeydata npmauth";
// Before `token`: a position in a list or a piece of a text, not a secret.
constexpr std::string_view harmless_tokens =
    "page next prev previous continuation continue cursor sync cancel cancellation stop start end eos bos "
    "eot "
    "pad unk sep cls mask max min resume special image input output design color";
// Before `key`: a position in a table, a key of the keyboard, a name.
constexpr std::string_view harmless_keys =
    "primary foreign sort partition cache public group row range hash lookup unique index object storage "
    "translation idempotency natural config host map dict item record entity event message msg query state "
    "shard bucket dedup dedupe order search field column table composite parent node resource document doc "
    "file path s3 blob asset image i18n locale lang label title type name class component module package "
    "metric tag feature setting option property attribute meta json redis topic routing join ordering "
    "secondary cluster hot arrow function modifier checksum content lock version build job task block commit "
    "log memo user project test request trace registry publishable websocket data recv";

bool ends_with_any(std::string_view name, std::string_view list) {
  return !name.empty() && any_word(list, [&](std::string_view one) {
    return one.back() == name.back() && name.ends_with(one);
  });
}

// In small letters, without signs.
std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (is_letter(c) || is_digit(c)) out += lower(c);
  return out;
}

// Without signs and digits at its end, or the name of an environment: `DB_PASSWORD_PROD`, `token2`.
std::string_view without_suffix(std::string_view name) {
  const std::size_t sign = name.find_last_of("_-.");
  if (sign != npos) {
    const std::string last = plain(name.substr(sign));
    if (any_word("prod production live dev staging base64 b64", [&](auto one) { return one == last; }))
      name = name.substr(0, sign);
  }
  for (int digits = 0; digits < 2 && !name.empty() && is_digit(name.back()); ++digits) name.remove_suffix(1);
  if (!name.empty() && one_of(name.back(), "_-")) name.remove_suffix(1);
  return name;
}

// A forward-moving position in a text.
class Reader {
 public:
  Reader(std::string_view text, std::size_t at) : text_(text), at_(at) {}
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  std::size_t at() const { return at_; }
  std::string_view rest() const { return text_.substr(std::min(at_, text_.size())); }
  void skip(std::size_t bytes) { at_ += bytes; }
  std::size_t skip_any(std::string_view set, std::size_t bytes_max = blanks_max) {
    const std::size_t begin = at_;
    while (at_ - begin < bytes_max && at_ < text_.size() && one_of(text_[at_], set)) ++at_;
    return at_ - begin;
  }
  void skip_lines() {
    while (skip_any(" \t") > 0 || take_line_end()) {
    }
  }
  bool take(std::string_view expected) {
    const bool is_there = rest().starts_with(expected);
    if (is_there) at_ += expected.size();
    return is_there;
  }
  /// Takes a quote that may be escaped. Returns its number of backslashes; -1: no quote.
  int take_quote(char& quote) {
    const std::size_t back = backslashes();
    if (!one_of(peek(back), "\"'`")) return -1;
    quote = peek(back);
    skip(back + 1);
    return static_cast<int>(back);
  }
  /// Takes a line break, which may be written `\n`.
  bool take_line_end() {
    if (take("\n") || take("\r\n")) return true;
    const std::size_t back = backslashes();
    if (back == 0 || peek(back) != 'n') return false;
    skip(back + 1);
    return true;
  }

 private:
  std::size_t backslashes() const {
    std::size_t back = 0;
    while (back < backslashes_max && peek(back) == '\\') ++back;
    return back;
  }

  std::string_view text_;
  std::size_t at_;
};

struct Name {
  std::size_t begin = 0;
  std::string_view text;
  SecretName kind;
  bool is_flag = false;      // `--token`
  bool is_variable = false;  // of a shell: `export TOKEN`
  bool is_quoted = false;
  bool is_password() const { return kind.kind == NameKind::password; }
};

// What stands between a name and its value. Behind `arrow` and `comma` a quote must follow; `comma` is also a
// parenthesis or `||`.
enum class Sign { none, equals, colon, arrow, comma, blank, element };

// Takes the sign. `has_blanks`: around it.
Sign take_sign(const Name& name, std::string_view text, Reader& reader, bool& has_blanks) {
  char quote = 0;
  const bool is_quoted = reader.take_quote(quote) >= 0;
  const char before = name.begin > 0 ? text[name.begin - 1] : ' ';
  reader.take("]");
  reader.skip_any("*", 2);  // Markdown's bold
  const std::size_t blanks = reader.skip_any(" \t");
  if (before == '<' && blanks > 0) {  // `<password type="plain">`
    const std::size_t end = reader.rest().substr(0, type_bytes_max).find('>');
    if (end != npos) reader.skip(end);
  }
  Sign sign = Sign::none;
  if (reader.take("=>")) {
    sign = Sign::arrow;
  } else if (reader.take(":=") || (blanks > 0 && reader.take("string = "))) {
    sign = Sign::equals;
  } else if (one_of(reader.peek(), "=:")) {
    if (one_of(reader.peek(1), "=~:")) return Sign::none;
    sign = reader.peek() == ':' ? Sign::colon : Sign::equals;
    reader.skip(1);
  } else if (is_quoted && reader.peek() == ',') {  // `define('DB_PASSWORD', '…')`
    const std::size_t open = text.find_last_not_of(" \\\"'`", name.begin - (name.begin > 0));
    if (name.begin == 0 || open == npos || text[open] != '(') return Sign::none;
    reader.skip(1);
    sign = Sign::comma;
  } else if (reader.peek() == '>' && (is_quoted || one_of(before, "<:"))) {
    reader.skip(1);
    reader.take("<![CDATA[");
    return Sign::element;
  } else if (!is_quoted && (reader.take("||") || reader.take("??") || (blanks == 0 && reader.take("(")))) {
    sign = Sign::comma;
  } else {
    return blanks > 0 && !is_quoted ? Sign::blank : Sign::none;
  }
  reader.skip_any("*", 2);
  has_blanks = reader.skip_any(" \t") + blanks > 0;
  if (sign != Sign::colon) return sign;
  // After a type annotation the value must be quoted.
  Reader typed = reader;
  const std::size_t type =
      typed.skip_any("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_&'.[]| ", type_bytes_max);
  if (type == 0 || typed.peek() != '=' || typed.peek(1) == '=') return sign;
  typed.skip(1);
  typed.skip_any(" \t");
  if (one_of(typed.peek(), "\"'\\")) reader = typed;
  return sign;
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
  return npos;
}

// An unquoted value ends at a blank or at a delimiter of code and data.
std::size_t bare_end(std::string_view text, std::size_t at,
                     std::string_view ends = " \t\r\n\"'`,;&<>(){}[]|\\") {
  while (at < text.size() && static_cast<unsigned char>(text[at]) >= 0x20 && !one_of(text[at], ends)) ++at;
  return at;
}

bool is_secret(std::string_view value, const Name& name, Judgement judgement) {
  if (!is_plausible(value, judgement, name.is_password() || name.is_flag)) return false;
  // `SET_PASSWORD = "SetPassword"`, `#define hash_with_secret my_hash_with_secret`
  constexpr std::size_t long_name_bytes = 12;
  if (plain(name.text).ends_with(plain(value))) return false;
  if (name.text.size() >= long_name_bytes && value.find(name.text) != npos) return false;
  return name.kind.kind != NameKind::key || is_random_key(value);
}

bool find_bare(std::string_view text, std::size_t begin, const Name& name, Judgement judgement,
               Range& secret) {
  const std::size_t bracket = std::string_view("[(").find(begin < text.size() ? text[begin] : '\0');
  if (bracket != npos) {  // `password: [value]`
    const std::size_t close = begin + 1 < text.size() ? bare_end(text, begin + 1) : text.size();
    return close < text.size() && text[close] == "])"[bracket] &&
           !text.substr(begin).starts_with("[redacted:") && !one_of(text[begin + 1], "[(") &&
           find_bare(text.substr(0, close), begin + 1, name, Judgement::code, secret);
  }
  if (begin >= text.size() || one_of(text[begin], "=$%{<&|-#@*")) return false;
  std::size_t end = bare_end(text.substr(0, std::min(text.size(), begin + judged_bytes_max)), begin);
  const bool is_longer = end == begin + judged_bytes_max;
  if (!is_longer && end < text.size() && one_of(text[end], "([{<") && !text.substr(end).starts_with("</"))
    return false;  // a call, a subscript, a type
  if (judgement == Judgement::code) {
    Reader after(text, end);
    const bool is_password_word = after.skip_any(" \t") > 0 && name.is_password();
    char quote = 0;
    if (is_password_word || after.at() >= text.size() || after.peek() == '#' || after.take_line_end() ||
        after.take_quote(quote) >= 0)
      judgement = Judgement::data;
  }
  while (end > begin && one_of(text[end - 1], ".,:;!?*")) --end;
  if (!is_secret(text.substr(begin, end - begin), name, judgement)) return false;
  secret = {begin, is_longer ? bare_end(text, end) : end};
  return true;
}

// The value at the reader, between quotes or not.
bool find_value(std::string_view text, Reader reader, const Name& name, Judgement bare, Judgement quoted,
                Range& secret) {
  if (is_letter(reader.peek()) && one_of(reader.peek(1), "\"'\\")) reader.skip(1);  // b"…", r'…'
  char quote = 0;
  const int backslashes = reader.take_quote(quote);
  const std::size_t begin = reader.at();
  const std::size_t close = backslashes < 0 ? npos : closing_quote(text, begin, quote, backslashes);
  if (close == npos) return find_bare(text, begin, name, bare, secret);
  std::string_view value = text.substr(begin, close - begin);
  value = value.substr(0, value.find("[redacted:"));
  const bool is_bracketed = value.size() > 2 && ((value.front() == '[' && value.back() == ']') ||
                                                 (value.front() == '(' && value.back() == ')'));
  if (is_bracketed) value = value.substr(1, value.size() - 2);
  if (!is_secret(value, name, quoted)) return false;
  const auto value_begin = static_cast<std::size_t>(value.data() - text.data());
  secret = {value_begin, value_begin + value.size()};
  return true;
}

// `name: DB_PASSWORD`, `value: …` on the next line or behind a comma; `<add key="password" value="…" />`;
// `variable "db_password" { default = "…" }`
struct Described {
  std::size_t at = npos;  // of the value; npos: the name is not described so
  bool is_block = false, is_attribute = false;
};

Described described_value(Reader reader) {
  constexpr std::size_t block_bytes_max = 512;
  char quote = 0;
  reader.take_quote(quote);
  reader.take(",");
  reader.skip_lines();
  Described found{npos, reader.peek() == '{'};
  if (found.is_block) {
    const std::string_view block = reader.rest().substr(0, block_bytes_max);
    const std::size_t at = block.substr(0, block.find('}')).find("default");
    if (at == npos) return {};
    reader.skip(at + 7);
  } else {
    reader.take_quote(quote);
    if (!reader.take("value") && !reader.take("Value")) return {};
    reader.take_quote(quote);
  }
  const bool is_apart = reader.skip_any(" \t") > 0;
  found.is_attribute = !found.is_block && !is_apart && reader.peek() == '=';
  if (!one_of(reader.peek(), ":=")) return {};
  reader.skip(1);
  reader.skip_any(" \t");
  found.at = reader.at();
  return found;
}

bool find_described(std::string_view text, const Described& found, const Name& name, Range& secret) {
  const Judgement quoted = found.is_attribute && name.is_password() ? Judgement::any
                           : found.is_block || name.is_variable     ? Judgement::certain
                                                                    : Judgement::quoted;
  return found.at != npos && find_value(text, Reader(text, found.at), name,
                                        found.is_block ? Judgement::code : Judgement::data, quoted, secret);
}

// Several values, from the first secret to the last: `["…", "…"]`, `{"a": "…"}`, lines of YAML with `-`, or
// only divided by commas.
bool find_list(std::string_view text, Reader reader, const Name& name, Judgement quoted, Range& secret) {
  const std::size_t begin = reader.at();
  secret = {};
  const bool is_object = reader.take("{"), is_array = !is_object && reader.take("[");
  const bool has_lines = !is_object && !is_array && reader.take_line_end();
  while (reader.at() - begin < value_bytes_max) {
    char quote = 0;
    if (!has_lines) reader.skip_lines();
    if (has_lines && (reader.skip_any(" \t"), !reader.take("- "))) break;
    if (is_object) {
      reader.take_quote(quote);
      reader.skip(bare_end(reader.rest().substr(0, name_bytes_max), 0, " :\"'\\\n"));
      reader.take_quote(quote);
      if (!reader.take(":")) break;
      reader.skip_any(" \t");
    }
    Reader item = reader;
    const int backslashes = item.take_quote(quote);
    const bool is_quoted = backslashes >= 0;
    std::size_t end =
        is_quoted ? closing_quote(text, item.at(), quote, backslashes) : bare_end(text, item.at());
    if (end == npos) break;
    if (is_quoted) end += static_cast<std::size_t>(backslashes) + 1;
    Range one;
    if ((is_quoted || name.is_password() || !is_array) &&
        find_value(text.substr(0, end), reader, name, Judgement::code, quoted, one))
      secret = {secret.end == 0 ? one.begin : secret.begin, one.end};
    reader = Reader(text, end);
    if (is_object || is_array) reader.skip_lines();
    if (has_lines ? !reader.take_line_end() : !reader.take(",")) break;
  }
  return secret.end > 0;
}

// A block of YAML: the lines behind `password: |` that are indented.
bool find_block(std::string_view text, Reader reader, const Name& name, Range& secret) {
  reader.skip(1);
  reader.skip_any("+-0123456789", 2);
  reader.skip_any(" ");
  if (!reader.take_line_end()) return false;
  const std::size_t indent = reader.skip_any(" \t", name_bytes_max);
  if (indent == 0 || !find_bare(text, reader.at(), name, Judgement::data, secret)) return false;
  for (reader = Reader(text, secret.end); secret.end - secret.begin < value_bytes_max;) {
    if (!reader.take_line_end() || reader.skip_any(" ", indent) < indent) break;
    const std::size_t end = bare_end(text, reader.at());
    if (end == reader.at() || (end < text.size() && one_of(text[end], " \t"))) break;
    secret.end = end;
    reader = Reader(text, end);
  }
  return true;
}

// Behind a blank: `--token VALUE`, `ENV API_KEY VALUE`, `PASSWORD 'VALUE'`, a line `requirepass VALUE`, `the
// password is VALUE`.
bool find_behind_blank(std::string_view text, Reader reader, const Name& name, Range& secret) {
  if (name.is_flag) {  // `--token option`, `--destroy-token DESTROY-project` may be words
    const std::string_view value =
        reader.rest().substr(0, std::min(bare_end(reader.rest(), 0), judged_bytes_max));
    const bool is_word = value.find_first_of("-_") != npos || classes_of(value) < 2;
    return find_value(text, reader, name, is_word ? Judgement::data : Judgement::certain,
                      name.is_password() ? Judgement::certain : Judgement::quoted, secret);
  }
  bool is_stated = reader.take("is ") || reader.take("| ") || name.is_variable;
  char quote = 0;
  Reader item = reader;
  if (item.take_quote(quote) >= 0)
    return (name.is_password() || name.is_variable) &&
           find_value(text, reader, name, Judgement::code, Judgement::quoted, secret);
  if (one_of(reader.peek(), "([") || !find_bare(text, reader.at(), name, Judgement::data, secret))
    return false;
  Reader after(text, secret.end);
  const bool is_line = name.begin == 0 || one_of(text[name.begin - 1], "\n\"");
  is_stated |= is_line && (after.at() >= text.size() || after.peek() == '"' || after.take_line_end());
  is_stated |= !name.kind.is_plural && !any_word("pass password passwd passphrase passwort pwd psk",
                                                 [&](auto one) { return one == plain(name.text); });
  const std::string_view value = text.substr(secret.begin, secret.end - secret.begin);
  return name.is_password() ? is_stated && is_token(value) && !is_made_of_words(value)
                            : is_random_key(value) && (name.is_variable || classes_of(value) == 3);
}

// The name around `at`, up to `end`; its kind is not known yet.
Name name_around(std::string_view text, std::size_t at, std::size_t end) {
  Name name;
  name.begin = at;
  while (name.begin > 0 && at - name.begin < name_bytes_max &&
         (is_word(text[name.begin - 1]) || text[name.begin - 1] == '.'))
    --name.begin;
  const char before = name.begin > 0 ? text[name.begin - 1] : ' ';
  if (before == '\\' && one_of(text[name.begin], "nrt") && name.begin < at) ++name.begin;  // `\nTOKEN`
  name.text = text.substr(name.begin, end - name.begin);
  name.is_quoted = one_of(before, "\"'`") && end < text.size() && one_of(text[end], "\"'`\\");
  name.is_flag = name.text[0] == '-' && one_of(before, " \t\n'\"`=,[(");
  const std::string_view line = text.substr(0, name.begin - (name.begin > 0));
  const bool is_exported = before == ' ' && !line.empty() && one_of(line.back(), "tVGv") &&
                           ends_with_any(line, "export set ENV ARG --env setenv");
  name.is_variable =
      !name.is_quoted && (is_exported || std::none_of(name.text.begin(), name.text.end(), is_lower));
  return name;
}

// Most values are short numbers, words and calls, and need no look at the name.
bool is_harmless_at_once(std::string_view text, Reader reader, Sign sign, bool is_password, bool is_listed) {
  constexpr std::size_t password_bytes_min = 6;  // digits
  if (sign == Sign::arrow || sign == Sign::comma) return !one_of(reader.peek(), "\"'`\\brf");
  const std::size_t end =
      bare_end(text.substr(0, std::min(text.size(), reader.at() + judged_bytes_max)), reader.at());
  const std::string_view word = text.substr(reader.at(), end - reader.at());
  if (!is_letter(reader.peek()) && !is_digit(reader.peek())) return false;
  if (end < text.size() && one_of(text[end], "\"'`\\")) return false;  // b"…"
  if (sign == Sign::equals || sign == Sign::colon)
    return (end < text.size() && one_of(text[end], "([{")) ||
           word.size() < (is_password ? password_bytes_min : secret_bytes_min);
  return sign == Sign::blank && !is_listed && word != "is" &&
         std::none_of(word.begin(), word.end(), is_digit);
}

bool is_pass(std::string_view name, std::string_view word) {
  if (!word.ends_with("pass")) return false;
  const std::string_view of = word.substr(0, word.size() - 4);
  if (name.size() > 4 && one_of(name[name.size() - 5], "_-.")) return !ends_with_any(of, not_pass);
  return of.empty() || ends_with_any(of, before_pass);
}

}  // namespace

SecretName secret_name(std::string_view name) {
  while (!name.empty() && name[0] == '-') name.remove_prefix(1);
  if (name.size() < 2 || name.size() > name_bytes_max) return {};
  name = without_suffix(name);
  if (std::any_of(name.begin(), name.end(), [](char c) { return !is_word(c) && c != '.' && c != ':'; }))
    return {};
  std::string word = plain(name);
  SecretName found;
  found.is_plural = word.ends_with('s') && !word.ends_with("pass");
  if (found.is_plural) word.pop_back();
  if (ends_with_any(word, passwords) || is_pass(name, word)) {
    found.kind = NameKind::password;
  } else if (ends_with_any(word, secrets) || name == "_auth") {
    found.kind = NameKind::secret;
  } else if (word.ends_with("token")) {
    if (!ends_with_any(word.substr(0, word.size() - 5), harmless_tokens)) found.kind = NameKind::secret;
  } else if (word.ends_with("key") && word.size() > 3) {
    const std::string of = word.substr(0, word.size() - 3);
    const std::size_t last = name.size() - 3 - found.is_plural;
    const bool is_apart = one_of(name[last - 1], "_-.") || (is_upper(name[last]) && is_lower(name[last - 1]));
    if (is_apart && !ends_with_any(of, harmless_keys)) found.kind = NameKind::key;
  }
  return found;
}

std::size_t value_behind(std::string_view text, std::size_t at) {
  Reader reader(text, at);
  bool has_blanks = false;
  char quote = 0;
  const Sign sign = take_sign({}, text, reader, has_blanks);
  if (sign == Sign::none || sign == Sign::blank || sign == Sign::comma) return npos;
  reader.take_quote(quote);
  return reader.at();
}

bool find_assignment(std::string_view text, std::size_t at, std::size_t length, Range& secret) {
  // Most names are mentioned, not assigned.
  std::size_t end = at + length;
  while (end < text.size() && end - at < name_bytes_max && is_word(text[end])) ++end;
  if (end >= text.size() || !one_of(text[end], " \t\r\n\"'`\\:=*>],(")) return false;
  const std::string_view next = text.substr(end, blanks_max + 8);  // `"input_tokens": 512`
  const std::size_t number = next.find_first_not_of("\"\\: "),
                    stop = next.find_first_not_of("0123456789", number);
  if (number != npos && stop != npos && stop > number && stop - number < 6 && one_of(next[stop], ",} \n"))
    return false;
  Name name = name_around(text, at, end);
  Reader reader(text, end);
  bool has_blanks = false;
  const Sign sign = take_sign(name, text, reader, has_blanks);
  const bool is_listed = name.is_variable || name.is_quoted;
  const Described described = is_listed && (sign == Sign::none || sign == Sign::blank)
                                  ? described_value(Reader(text, end))
                                  : Described{};
  if (described.at == npos &&
      (sign == Sign::none ||
       is_harmless_at_once(text, reader, sign, lower(text[at]) == 'p', name.is_variable || name.is_flag)))
    return false;
  std::string literal(text.substr(at, length));
  const std::size_t blank = literal.find(' ');
  if (blank != npos) literal[blank] = '_';
  name.kind = secret_name(blank != npos ? literal : name.text);
  if (name.kind.kind == NameKind::none) return false;
  if (length > 3 && lower(text[at]) == 't') {  // `next page token: …`
    std::string_view before = text.substr(0, at);
    while (!before.empty() && one_of(before.back(), "_- ")) before.remove_suffix(1);
    const std::size_t begin = before.size() - std::min<std::size_t>(before.size(), 14);
    if (ends_with_any(plain(before.substr(begin)), harmless_tokens)) return false;
  }
  const bool is_password = name.is_password();
  if (find_described(text, described, name, secret)) return true;
  if (sign == Sign::none) return false;
  if (sign == Sign::blank) return find_behind_blank(text, reader, name, secret);
  if (sign == Sign::colon && !has_blanks && name.begin > 0 && text[name.begin - 1] == ':')
    return false;  // `arn:…:secret:name`
  if (sign == Sign::colon && one_of(reader.peek(), "|>")) return find_block(text, reader, name, secret);
  const bool is_query = name.begin > 0 && one_of(text[name.begin - 1], "?&;") && name.text.find('.') == npos;
  const bool is_certain =
      sign == Sign::equals && !has_blanks && (name.is_flag || name.is_variable || is_query);
  if (sign == Sign::comma && !name.is_quoted && !is_password) name.kind.kind = NameKind::key;
  const bool is_defined =
      sign == Sign::comma
          ? name.is_quoted && text.substr(0, text.find_last_of('(', name.begin)).ends_with("define")
          : is_password;
  const Judgement quoted = is_certain || is_defined ? Judgement::certain : Judgement::quoted;
  Judgement bare = is_certain ? Judgement::certain : Judgement::code;
  if (sign == Sign::element) {
    const std::string_view content = reader.rest().substr(0, value_bytes_max);
    const std::size_t close = content.find_first_of("<]\n ");
    if (close == npos ||
        !(content.substr(close).starts_with("</") || content.substr(close).starts_with("]]>")))
      return false;
    bare = is_password ? Judgement::certain : Judgement::data;
  }
  if (name.kind.is_plural) {
    Reader list = reader;
    if (reader.peek() == '{' && !is_password) name.kind.kind = NameKind::key;
    if (one_of(reader.peek(), "[{") || list.take_line_end() || (name.is_variable && sign == Sign::equals))
      return find_list(text, reader, name, quoted, secret);
    return false;
  }
  return find_value(text, reader, name, bare, quoted, secret);
}

}  // namespace earshot::redact
