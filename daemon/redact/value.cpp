// The shape of a value decides whether it is a secret, a placeholder, or the words of code and prose.
#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "redact/rules.hpp"

namespace earshot::redact {
namespace {

std::string lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

bool contains(std::string_view list, std::string_view word) {
  return any_word(list, [&](std::string_view one) { return one == word; });
}

// Words that may end in digits or be followed by them: `base64`, `sha256`, `oauth2`, `v1`, …
constexpr std::string_view number_words =
    "aes amd arm base bcp bytes crc ec ecdsa ed erc es f fido float h hmac hs http i int ipv iso k l log md "
    "mp "
    "oauth p pkcs ps py rc rfc rs s secp sha ssl tls u uint utf v web win x";

// How common each letter, by column, is behind each letter, by row: 5 is chance. Of the words of C, C++ and
// Python sources and their documents.
constexpr std::array<std::string_view, 26> followers = {
    "15652350503757050768432230", "74547320741832630664610040", "72537217506532830547520120",
    "64459432810532630563532130", "53674441301557243876142530", "63447710800634730655622040",
    "62328246600646530764510021", "81038210702443720645502040", "54655450001558640466050304",
    "71448210624232740064723010", "62339434701534540474413030", "72348330802711730255530060",
    "85338310701351670153521010", "62666581603324620277441020", "34652441403668550765645110",
    "72337325602622750756511040", "34333020300514210542930000", "72448240703454730566431040",
    "51627226703433561368622040", "61428305800422630765401150", "56545440501668260777000100",
    "72429320801342530343113100", "82547326802436640662312200", "63657513702453481358321630",
    "54536340600666580376224133", "71119204700331620132201024"};

// A value split at signs, digits and capitals into words.
class Words {
 public:
  explicit Words(std::string_view value) {
    std::size_t chunks = 0;
    for (std::size_t at = 0; at < value.size() && made_of_words_;) {
      if (!is_letter(value[at]) && !is_digit(value[at])) {
        made_of_words_ = one_of(value[at], "_-./:|,+=@$*");
        ++at;
        continue;
      }
      std::size_t end = at;
      while (end < value.size() && (is_letter(value[end]) || is_digit(value[end]))) ++end;
      ++chunks;
      chunk(value.substr(at, end - at));
      at = end;
    }
    if (singles_ > 1 + words_ / 6 || digit_words_ > std::max<std::size_t>(1, words_ / 2))
      made_of_words_ = false;
    // Words have 2.5 letters on average, several that only capitals divide 3.5.
    if ((words_ >= 3 && letters_ * 2 < words_ * 5) ||
        (words_ >= 4 && chunks == 1 && letters_ * 2 < words_ * 7))
      made_of_words_ = false;
    // Letters that follow each other as in words; a short value may have an unusual one.
    constexpr std::size_t usual = 5, few_pairs = 7, slack = 2;
    if (score_ + (pairs_ < few_pairs ? slack : 0) < usual * pairs_) made_of_words_ = false;
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
      word(text.substr(at, letters), end - at - letters);
      // After digits only a new capitalised word may follow, or a long one.
      constexpr std::size_t long_letters = 4;
      std::size_t next = end;
      while (next < text.size() && is_lower(text[next])) ++next;
      const bool camel = end + 1 < text.size() && is_upper(text[end]) && is_lower(text[end + 1]);
      if (at + letters < end && end < text.size() && !camel && !last_is_number_word_ &&
          std::min(letters, next - end) < long_letters)
        made_of_words_ = false;
      at = end;
    }
  }
  void word(std::string_view letters, std::size_t digits) {
    constexpr std::size_t judged_max = 15, digits_max = 5;
    const std::string word = lowered(letters.substr(0, judged_max));
    ++words_;
    letters_ += letters.size();
    for (std::size_t i = 0; i + 1 < word.size() && word.size() > 2; ++i, ++pairs_)
      score_ += static_cast<std::size_t>(
          followers[static_cast<std::size_t>(word[i] - 'a')][static_cast<std::size_t>(word[i + 1] - 'a')] -
          '0');
    singles_ += letters.size() == 1;
    digit_words_ += digits > 0;
    last_digits_ = digits;
    last_is_number_word_ = digits > 0 && contains(number_words, word);
    if (!letters.empty() && digits > digits_max) made_of_words_ = false;
  }

  bool made_of_words_ = true, one_word_ = false, last_is_number_word_ = false;
  std::size_t words_ = 0, letters_ = 0, singles_ = 0, digit_words_ = 0, last_digits_ = 0, pairs_ = 0,
              score_ = 0;
};

constexpr std::string_view placeholder_words =
    "bool boolean changeit changeme disabled empty enabled example false float hidden int integer invalid "
    "key "
    "masked missing n/a nil none null number object off on optional pass passwd password private public pwd "
    "redacted removed required secret str string text token true undefined unknown unset value yes no prompt "
    "username mypassword";
constexpr std::string_view placeholder_beginnings =
    "change-me change_me changeme dummy enter- enter_ example- example_ insert- insert_ my-secret my_secret "
    "placeholder replace-me replace_ replaceme todo your- your_ yourapi yourpass yoursecret yourtoken fake- "
    "fake_";

// Numbers, colours, addresses of accounts, versions, dates, digests and names of resources.
bool is_identifier(std::string_view value, bool is_password) {
  static const Shape shapes[] = {
      Shape("0x{H1-16}"),
      Shape("0X{H1-16}"),
      Shape("0x{H40}"),
      Shape("#{H1-8}"),
      Shape("{V0-3}{d1-9}.{d1}{v0+}"),
      Shape("v{d1-9}.{d1}{v0+}"),
      Shape("{d4}-{v2}-{v0+}"),
      Shape("sha{d1-3}:{v0+}"),
      Shape("sha{d1-3}-{v0+}"),
      Shape("md5:{v0+}"),
      Shape("md5-{v0+}"),
      Shape("arn:{v0+}"),
      Shape("urn:{v0+}"),
      Shape("{p1-64}@{w1-64}.{t1-250}")};  // the last: an e-mail address, not of a password `P@ssw0rd.com`
  Range all;
  return std::any_of(std::begin(shapes), std::end(shapes) - is_password, [&](const Shape& shape) {
    return shape.matches(value, 0, all) && all.end == value.size();
  });
}

// A regular expression, a format or a URL.
bool is_template(std::string_view value) {
  if (value.starts_with('^') && (value.ends_with('$') || value.find('[') != npos)) return true;
  if (any_word("[a- [A- [0- [^ \\d \\w \\s \\S .* .+ (? {8 {6 %s %d ://",
               [&](std::string_view piece) { return value.find(piece) != npos; }))
    return true;
  const std::size_t open = value.find_first_of("{(<[");
  if (open == npos) return false;
  const char close = value[open] == '{' ? '}' : value[open] == '(' ? ')' : value[open] == '<' ? '>' : ']';
  return value.find(close, open) != npos;
}

// `self.password`, `settings.API_KEY`
bool is_attribute(std::string_view value) {
  const std::size_t dot = value.find('.');
  return dot != npos && dot > 1 && dot + 1 < value.size() && is_lower(value[0]) &&
         (is_letter(value[dot + 1]) || value[dot + 1] == '_') && is_made_of_words(value.substr(0, dot));
}

// `projects/12/secrets/db`
bool is_resource(std::string_view value) {
  return std::count(value.begin(), value.end(), '/') >= 2 && is_made_of_words(value);
}

// A name that repeats what it holds: `access_token`, `GITHUB_TOKEN`, `userPassword`.
bool is_echo(std::string_view value) {
  const auto is_sign = [](char c) { return !is_letter(c) && !is_digit(c); };
  while (!value.empty() && is_sign(value.front())) value.remove_prefix(1);
  while (!value.empty() && is_sign(value.back())) value.remove_suffix(1);
  if (value.empty()) return false;
  const bool is_pascal = is_upper(value.front()) && std::any_of(value.begin(), value.end(), is_lower);
  if (is_pascal || std::any_of(value.begin(), value.end(), is_digit)) return false;
  const std::string word = lowered(value);
  return any_word("pass pwd secret token key cred auth user",
                  [&](std::string_view piece) { return word.find(piece) != npos; }) &&
         is_made_of_words(value);
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
  if (any_word("*** xxxx XXXX ... \xE2\x80\xA6 \xE2\x80\xA2\xE2\x80\xA2",
               [&](std::string_view mask) { return value.find(mask) != npos; }))
    return true;
  // Variables of a shell, a template or a formatter.
  const char second = value.size() > 1 ? value[1] : '\0';
  if (value[0] == '$' && (is_letter(second) || one_of(second, "_{(@*?$") || value.size() == 2))
    // `$word` may begin a password too: only a name is a variable.
    return !is_letter(second) || value.find_first_of("!#$^&%~", 1) == npos;
  if (one_of(value[0], "<{") || value.starts_with("%(") || value.starts_with("@{") ||
      value.starts_with("#{") || value.starts_with("(("))
    return true;
  if (value[0] == '%' && (value.size() <= 3 || value.back() == '%')) return true;
  constexpr std::size_t word_bytes_max = 14;  // of the words above
  const std::string word = lowered(value.substr(0, word_bytes_max + 1));
  return contains(placeholder_words, word) ||
         any_word(placeholder_beginnings, [&](std::string_view one) { return word.starts_with(one); });
}

bool is_path(std::string_view value) {
  if (value.starts_with("~/") || value.starts_with("./") || value.starts_with("../")) return true;
  if (value.size() > 2 && is_letter(value[0]) && value[1] == ':' && one_of(value[2], "\\/")) return true;
  if (value.starts_with('/')) return value.find('/', 1) != npos;
  // A file with an ending, below something.
  const std::size_t dot = value.rfind('.'), slash = value.rfind('/');
  if (dot == npos || slash == npos || dot < slash) return false;
  const std::string_view ending = value.substr(dot + 1);
  return !ending.empty() && ending.size() <= 5 && std::all_of(ending.begin(), ending.end(), is_lower);
}

bool is_made_of_words(std::string_view value) { return Words(value).made_of_words(); }

int classes_of(std::string_view value) {
  return std::any_of(value.begin(), value.end(), is_lower) +
         std::any_of(value.begin(), value.end(), is_upper) +
         std::any_of(value.begin(), value.end(), is_digit);
}

bool is_token(std::string_view value) {
  constexpr std::size_t run_bytes_min = 8;
  if (is_placeholder(value)) return false;
  for (std::size_t at = 0; at < value.size(); ++at) {
    std::size_t end = at;
    while (end < value.size() && (is_letter(value[end]) || is_digit(value[end]))) ++end;
    if (end - at >= run_bytes_min && classes_of(value.substr(at, end - at)) >= 2) return true;
    at = end;
  }
  return false;
}

bool is_random_key(std::string_view value) {
  constexpr std::size_t bytes_min = 16, uuid_bytes = 36;
  const bool is_uuid = value.size() == uuid_bytes && value[8] == '-' && value[13] == '-' && value[18] == '-';
  return value.size() >= bytes_min && !is_uuid && is_token(value) && !is_made_of_words(value);
}

bool is_plausible(std::string_view value, Judgement judgement, bool is_password) {
  constexpr std::size_t digits_min = 6;
  if (is_password && !value.empty() && std::all_of(value.begin(), value.end(), is_digit))
    return value.size() >= digits_min && !is_placeholder(value);
  if (judgement == Judgement::any) return value.size() >= secret_bytes_min && !is_placeholder(value);
  if (value.size() < secret_bytes_min || value.find_first_of(" \t\r\n") != npos) return false;
  if (is_placeholder(value) || is_path(value) || is_identifier(value, is_password) || is_template(value) ||
      is_resource(value))
    return false;
  if (!std::any_of(value.begin(), value.end(), is_letter)) return false;
  const auto is_foreign = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
  if (std::count_if(value.begin(), value.end(), is_foreign) * 4 > std::ssize(value))
    return false;  // a sentence
  if (is_echo(value) || (value.find('|') != npos && is_made_of_words(value))) return false;
  if (judgement == Judgement::certain) return true;
  if (judgement != Judgement::quoted && is_attribute(value)) return false;
  const bool has_digit = std::any_of(value.begin(), value.end(), is_digit);
  if (judgement == Judgement::quoted) {
    if (one_of(value.front(), "+,)&;.}]:")) return false;  // "token=" + value + "&…"
    const auto sign = [](char c) { return one_of(c, "!#$^"); };
    if (std::any_of(value.begin() + 1, value.end() - 1, sign)) return true;
  }
  // Letters only
  constexpr std::size_t long_bytes = 20, one_class_bytes = 12;
  const std::size_t bytes_min = judgement == Judgement::code            ? long_bytes
                                : is_password || classes_of(value) >= 2 ? secret_bytes_min
                                                                        : one_class_bytes;
  if (!has_digit && value.size() < bytes_min) return false;
  while (!is_letter(value.front()) && !is_digit(value.front())) value.remove_prefix(1);
  const Words words(value);
  if (has_digit && judgement == Judgement::quoted && words.one_word()) return true;
  return !words.made_of_words();
}

}  // namespace earshot::redact
