// Secrets that a place identifies, not a shape: private keys, URLs, options of commands, headers.
#include <algorithm>
#include <iterator>
#include <string>

#include "redact/rules.hpp"

namespace earshot::redact {
namespace {

constexpr std::size_t margin_bytes_max = 16;
constexpr std::string_view word_ends = " \t\r\n|;&";

bool is_base64(char c) { return is_letter(c) || is_digit(c) || one_of(c, "+/="); }

// The end of a text without the line breaks behind it, which may be written `\n`.
std::size_t without_line_end(std::string_view text) {
  for (std::size_t size = 0; size != text.size();) {
    size = text.size();
    while (!text.empty() && one_of(text.back(), " \t\r\n|>")) text.remove_suffix(1);
    if (text.ends_with("\\n") || text.ends_with("\\r")) text.remove_suffix(1);
    while (!text.empty() && text.back() == '\\') text.remove_suffix(1);
  }
  return text.size();
}

// The first of these bytes; the end of the text if there is none.
std::size_t find_first(std::string_view text, std::string_view set, std::size_t at) {
  return std::min(text.find_first_of(set, at), text.size());
}

struct Command {
  std::string_view names;    // what the names begin with
  std::string_view letters;  // of the options with a password
  std::string_view option;   // the same as a long option
  std::string_view divider;  // between the user and the password; `-`: only `-pX`, not `-p X`
};
constexpr Command commands[] = {{"docker az podman registry skopeo mongo cqlsh", "p", "password", ""},
                                {"mysql mariadb 7z", "p", "", "-"},
                                {"sshpass", "p", "", ""},
                                {"redis-cli", "a", "pass", ""},
                                {"sqlcmd zip ipmitool", "P", "", ""},
                                {"mosquitto_", "P", "pw", ""},
                                {"ldap", "w", "", ""},
                                {"curl", "uU", "user", ":"},
                                {"http", "a", "auth", ":"},
                                {"lftp", "u", "user", ","},
                                {"smbclient", "U", "user", "%"}};

// Where the value of an option with a password begins, if the word from `word` to `end` is one; else npos.
std::size_t option_value(const Command& command, std::string_view text, std::size_t word, std::size_t end) {
  const std::string_view option = text.substr(word, end - word);
  if (option.size() < 2 || option[0] != '-') return npos;
  const auto next_word = [&] { return text.find_first_not_of(" \t", end); };
  if (option[1] == '-') {
    std::string_view name = option.substr(2, option.find('=') - 2);
    if (command.divider == ":" && name.starts_with("proxy-")) name.remove_prefix(6);
    if (command.option.empty() || name != command.option) return npos;
    return option.find('=') == npos ? next_word() : word + option.find('=') + 1;
  }
  const std::string_view rest = option.substr(2);
  if (any_word("ort assw rot rompt rint", [&](auto one) { return rest.starts_with(one); }))
    return npos;  // `-port`
  if (!one_of(option[1], command.letters) || rest.empty()) {
    const bool is_cluster = one_of(option.back(), command.letters) &&  // `-sSu`
                            std::all_of(option.begin() + 1, option.end(), is_letter);
    return is_cluster && command.divider != "-" ? next_word() : npos;
  }
  return word + 2;
}

}  // namespace

bool find_option(std::string_view text, std::size_t at, std::size_t length, Range& secret) {
  constexpr std::size_t command_bytes_max = 512, password_bytes_min = 3;
  const auto* command = std::find_if(std::begin(commands), std::end(commands), [&](const Command& one) {
    return any_word(one.names, [&](auto name) { return text.substr(at).starts_with(name); });
  });
  if (command == std::end(commands) || (!may_begin(text, at, 0) && text[at - 1] != 'n')) return false;
  text = text.substr(0, std::min(text.size(), at + length + command_bytes_max));
  std::size_t end = text[at + length - 1] == ' ' ? at + length - 1 : at + length;
  while (end < text.size() && (is_letter(text[end]) || text[end] == '_')) ++end;  // `mysqldump`
  if (end < text.size() && !one_of(text[end], " \t\\")) return false;
  while (end < text.size()) {
    const std::size_t word = std::min(text.find_first_not_of(" \t\\\r\n", end), text.size());
    const std::string_view gap = text.substr(end, word - end);
    const bool is_new_line = gap.find('\n') != npos && gap.find('\\') == npos;
    if (is_new_line || (word < text.size() && one_of(text[word], "|;&")))
      return false;  // the end of the command
    end = find_first(text, word_ends, word);
    std::size_t value = option_value(*command, text, word, end);
    if (value == npos) continue;
    value = text.find_first_not_of("\\\"'", value);  // quotes, perhaps of JSON as text
    if (value == npos) return false;
    bool is_quoted = one_of(text[value - 1], "\"'");
    if (!command->divider.empty() && command->divider != "-") {
      const std::size_t divider = text.find(command->divider, value);
      if (divider >= find_first(text, word_ends, value)) return false;
      value = std::min(text.find_first_not_of("\\\"'", divider + 1), text.size());
      is_quoted |= value > divider + 1;
    }
    end = find_first(text, is_quoted ? "\\\"'\n" : " \t\r\n|;&\"'", value);
    secret = {value, end};
    const std::string_view password = text.substr(value, end - value);
    const bool is_port = (password.size() <= 5 || password.find(':') != npos) &&
                         password.find_first_not_of("0123456789:") == npos;
    return password.size() >= password_bytes_min && !is_port && password[0] != '-' &&
           !is_placeholder(password) && !is_path(password);
  }
  return false;
}

bool find_url_password(std::string_view text, std::size_t at, std::size_t length, Range& secret) {
  constexpr std::size_t user_bytes_max = 256, password_bytes_max = 256, token_bytes_min = 20;
  const auto is_outside = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || one_of(c, " \"'<>\\`");
  };
  const std::size_t user = at + length;
  std::size_t begin = user;
  const std::size_t user_end = std::min(text.size(), begin + user_bytes_max + 1);
  while (begin < user_end && !one_of(text[begin], ":@")) {
    if (is_outside(text[begin]) || one_of(text[begin], "/?#[]")) return false;
    ++begin;
  }
  if (begin >= user_end) return false;
  // A token in place of the user: `https://TOKEN@host`, `https://TOKEN:x-oauth-basic@host`
  const std::string_view name = text.substr(user, begin - user);
  const bool is_user_token = name.size() >= token_bytes_min && is_token(name) && !is_made_of_words(name);
  if (text[begin] == '@') {
    secret = {user, begin};
    return is_user_token;
  }
  ++begin;
  std::size_t strict = begin, end = begin;  // the last `@` before a sign that ends a host, and of all
  bool is_strict = true;
  const std::size_t last = std::min(text.size(), begin + password_bytes_max + 1);
  for (std::size_t i = begin; i < last && !is_outside(text[i]); ++i) {
    if (one_of(text[i], "/?#,[]")) is_strict = false;
    if (text[i] != '@') continue;
    end = i;
    if (is_strict) strict = i;
  }
  if (strict == begin && end > begin) {
    // The password may contain any sign, but must not look like a port with a path.
    const std::size_t digits = std::min(text.find_first_not_of("0123456789", begin), text.size());
    const bool is_port = digits > begin && digits < end && one_of(text[digits], "/?#,");
    if (is_port || is_made_of_words(text.substr(begin, end - begin))) return false;
    strict = end;
  }
  secret = {is_user_token ? user : begin, strict};
  return end > user &&
         (is_user_token ? end >= begin && text[strict] == '@'
                        : strict > begin && !is_placeholder(text.substr(begin, strict - begin)));
}

bool find_cookie(std::string_view text, std::size_t at, std::size_t length, Range& secret) {
  constexpr std::size_t header_bytes_max = 1024, long_bytes_min = 16;
  const bool is_value = text[at + length - 1] == '=';  // `sessionid=`
  std::size_t next = is_value ? at : value_behind(text, at + length);
  if (next == npos && text.substr(0, at).ends_with("--"))
    next = text.find_first_not_of(" \\\"'", at + length);
  if (next == npos) return false;
  const std::string_view header =
      text.substr(0, find_first(text.substr(0, next + header_bytes_max), "\r\n\"'`\\", next));
  secret = {};
  while (next < header.size()) {
    const std::size_t end = find_first(header, is_value ? "; &,)<>" : ";", next);
    const std::size_t sign = std::min(header.find('=', next), end);
    const std::string_view value = header.substr(sign, end - sign).substr(sign < end);
    std::string name(header.substr(next, sign - next));
    std::transform(name.begin(), name.end(), name.begin(), lower);
    const bool is_session = any_word("sess sid auth token jwt csrf xsrf",
                                     [&](std::string_view one) { return name.find(one) != npos; });
    if (value.find_first_of(" \t(") == npos && is_token(value) && !is_made_of_words(value) &&
        (is_session || value.size() >= long_bytes_min))
      secret = {secret.end == 0 ? sign + 1 : secret.begin, end};
    if (is_value) break;
    next = std::min(header.find_first_not_of("; ", end), header.size());
  }
  return secret.end > 0;
}

bool find_private_key(std::string_view text, std::size_t at, std::size_t length, Range& secret) {
  constexpr std::string_view dashes = "-----", end_mark = "-----END ";
  constexpr std::size_t kind_bytes_max = 60, proof_within_bytes = 512;
  constexpr std::size_t base64_bytes_min = 40,
                        closed_base64_bytes_min = 12;  // if the block has an end
  // The kind, up to its dashes, names a private key.
  const std::size_t kind_end =
      text.substr(0, std::min(text.size(), at + length + kind_bytes_max)).find(dashes, at + length);
  if (kind_end == npos) return false;
  const std::string_view kind = text.substr(at + length, kind_end - at - length);
  if (kind.find("PRIVATE KEY") == npos || kind.find('\n') != npos) return false;
  const std::size_t body = kind_end + dashes.size();
  std::size_t end = text.find(dashes, body);
  const std::size_t body_end = std::min(end, text.size());
  std::size_t wanted = base64_bytes_min;
  if (end == npos) {
    end = text.size();
  } else if (text.compare(end, end_mark.size(), end_mark) == 0) {
    wanted = closed_base64_bytes_min;
    const std::size_t close = text.find(dashes, end + end_mark.size());
    end = close == npos
              ? text.size()
              : std::min(close + dashes.size(), end + end_mark.size() + kind_bytes_max + dashes.size());
  }
  // Without a line of Base64 the text only mentions a key.
  std::size_t run = 0;
  for (std::size_t i = body; i < body_end && i < body + proof_within_bytes; ++i) {
    run = is_base64(text[i]) ? run + 1 : 0;
    const bool cut_here = i + 1 == text.size() && run >= base64_bytes_min / 2;
    if (run < wanted && !cut_here) continue;
    secret = {at, end};
    return true;
  }
  return false;
}

bool find_private_key_end(std::string_view text, std::size_t at, std::size_t length, Range& secret) {
  constexpr std::string_view dashes = "-----";
  constexpr std::size_t kind_bytes_max = 60, body_bytes_max = 8192, line_bytes_max = 200,
                        base64_bytes_min = 40, line_bytes_min = 16;  // but for the last line
  const bool is_pem = text[at] == '-';
  const std::size_t close =
      text.substr(0, std::min(text.size(), at + length + kind_bytes_max)).find(dashes, at + length);
  if (is_pem && (close == npos || text.substr(at + length, close - at - length).find("PRIVATE KEY") == npos))
    return false;
  // Back over lines of Base64, which may be numbered or quoted.
  std::size_t begin = at, end = at, longest = 0;
  while (at - begin < body_bytes_max) {
    // The margin, from the right: it ends at a line break.
    const std::size_t margin = end;
    if (text.substr(0, end).ends_with("\\t")) end = text.find_last_not_of('\\', end - 2) + 1;
    while (end > 0 && margin - end < margin_bytes_max && one_of(text[end - 1], " \t|>0123456789")) --end;
    std::size_t line = without_line_end(text.substr(0, end));
    if (line == end && begin != at) break;
    std::size_t token = line;
    while (token > 0 && line - token < line_bytes_max && is_base64(text[token - 1])) --token;
    // `\n` and `\t` before it
    if (token > 0 && token < line && text[token - 1] == '\\' && one_of(text[token], "ntr")) ++token;
    if (line - token < (begin == at ? 1 : line_bytes_min)) break;
    longest = std::max(longest, line - token);
    begin = end = token;
  }
  if (longest < base64_bytes_min) return false;
  secret = {begin, is_pem ? close + dashes.size() : without_line_end(text.substr(0, at))};
  return true;
}

}  // namespace earshot::redact
