#include "redact/redactor.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstring>
#include <deque>

#include "redact/rules.hpp"

namespace earshot::redact {
namespace {

// Roughly how common a byte is in code and prose.
int commonness(char c, bool any_case) {
  constexpr std::string_view rare_first = "zqjxkvbywgpfmucdlhrsnioate";
  if (is_letter(c) && (any_case || c == lower(c))) return 3 + static_cast<int>(rare_first.find(lower(c)));
  if (c == ' ') return 30;
  return c == '_' ? 12 : c == '-' ? 16 : 6;  // or capitals, digits and other signs
}

// Parts of common words and names that consist of rare bytes.
constexpr std::string_view common =
    "key|log|ock| "
    "by|uff|ryp|ypt|cry|ong|nd_|ttp|htt|in_|ve_|ify|ifi|256|512|tps|hpp|nu_|th_|glo|gli|lim|-cl|mas|riv|pri|"
    "iva|cke|ker|d b|gin|by |vat";

// Finds many short literals in a text in one pass.
//
// Each literal is represented by its three rarest bytes. A table of 256 Ki entries, indexed by a hash of
// three bytes, marks the candidates. Text without candidates costs two loads and a multiplication per byte
// and one untaken branch per eight bytes; literals are compared at candidates only.
class Prefilter {
 public:
  static constexpr std::size_t literal_bytes_min = 3;

  /// `id` is passed to the hits of find(). `any_case`: ASCII letters match in either case.
  void add(std::string_view literal, bool any_case, std::size_t id);

  /// Calls hit(id, position, length) for each occurrence, in the order of the positions of their rarest
  /// bytes.
  template <class Hit>
  void find(std::string_view text, Hit&& hit) const {
    if (text.size() < literal_bytes_min) return;
    const char* const data = text.data();
    const std::uint8_t* const maybe = maybe_.data();
    const std::size_t last = text.size() - literal_bytes_min;  // position of the last three bytes
    const auto is_candidate = [&](std::size_t position) { return maybe[hash(load(data + position))]; };
    std::size_t at = 0;
    for (; at + 8 <= last; at += 8) {  // eight positions a turn; the last load ends inside the text
      const int any = is_candidate(at) | is_candidate(at + 1) | is_candidate(at + 2) | is_candidate(at + 3) |
                      is_candidate(at + 4) | is_candidate(at + 5) | is_candidate(at + 6) |
                      is_candidate(at + 7);
      if (!any) [[likely]]
        continue;
      for (std::size_t position = at; position < at + 8; ++position)
        if (is_candidate(position)) compare(text, position, hit);
    }
    for (; at < last; ++at)
      if (is_candidate(at)) compare(text, at, hit);
    if (maybe[hash(three(data + last))]) compare(text, last, hit);
  }

 private:
  struct Entry {
    std::string text;
    std::size_t id = 0;
    std::uint16_t next = 0;  // with the same head; 0: none
    std::uint8_t rarest = 0;
    bool any_case = false;
  };

  static constexpr unsigned hash_bits = 18, head_shift = 4;

  static std::uint32_t three(const char* bytes) {
    const auto byte = [&](int at) { return std::uint32_t{static_cast<unsigned char>(bytes[at])}; };
    return byte(0) | byte(1) << 8 | byte(2) << 16;
  }
  static std::uint32_t load(const char* bytes) {  // reads four bytes; hash() ignores the fourth
    if constexpr (std::endian::native != std::endian::little) return three(bytes);
    std::uint32_t word;
    std::memcpy(&word, bytes, sizeof word);
    return word;
  }
  // The low three bytes only: the fourth is shifted out by the multiplication.
  static std::uint32_t hash(std::uint32_t bytes) { return bytes * (0x9E3779B1u << 8) >> (32 - hash_bits); }

  template <class Hit>
  [[gnu::noinline]] void compare(std::string_view text, std::size_t position, Hit& hit) const {
    for (std::uint16_t next = heads_[hash(three(text.data() + position)) >> head_shift]; next != 0;) {
      const Entry& entry = entries_[next];
      next = entry.next;
      if (position < entry.rarest) continue;
      const std::size_t begin = position - entry.rarest;
      if (matches(text, begin, entry)) hit(entry.id, begin, entry.text.size());
    }
  }
  static bool matches(std::string_view text, std::size_t begin, const Entry& entry);

  std::vector<std::uint8_t> maybe_ = std::vector<std::uint8_t>(1 << hash_bits);  // by hash; 1: a candidate
  std::vector<std::uint16_t> heads_ = std::vector<std::uint16_t>(1 << (hash_bits - head_shift));  // 0: none
  std::vector<Entry> entries_ = std::vector<Entry>(1);  // [0] is not used
};

void Prefilter::add(std::string_view literal, bool any_case, std::size_t id) {
  assert(literal.size() >= literal_bytes_min);
  std::size_t rarest = 0;
  int rarest_cost = 1000;
  for (std::size_t at = 0; at + 3 <= literal.size(); ++at) {
    int cost = 0;
    for (std::size_t i = 0; i < 3; ++i) cost += commonness(literal[at + i], any_case);
    const std::string_view bytes = literal.substr(at, 3);
    if (common.find(bytes) != npos) cost += 30;
    if (cost < rarest_cost) rarest = at, rarest_cost = cost;
  }
  std::vector<std::uint32_t> heads;  // one entry each, or the literal would be reported twice
  for (unsigned spelling = 0; spelling < (any_case ? 8u : 1u); ++spelling) {
    char bytes[3];
    for (unsigned i = 0; i < 3; ++i) {
      bytes[i] = literal[rarest + i];
      if (any_case && is_letter(bytes[i]))
        bytes[i] = static_cast<char>(spelling >> i & 1 ? bytes[i] & ~32 : bytes[i] | 32);
    }
    const std::uint32_t h = hash(three(bytes)), head = h >> head_shift;
    maybe_[h] = 1;
    if (std::find(heads.begin(), heads.end(), head) != heads.end()) continue;
    heads.push_back(head);
    assert(entries_.size() < 65535);
    entries_.push_back({std::string(literal), id, heads_[head], static_cast<std::uint8_t>(rarest), any_case});
    heads_[head] = static_cast<std::uint16_t>(entries_.size() - 1);
  }
}

bool Prefilter::matches(std::string_view text, std::size_t begin, const Entry& entry) {
  if (entry.text.size() > text.size() - begin) return false;
  for (std::size_t i = 0; i < entry.text.size(); ++i) {
    const char c = text[begin + i];
    if (c != entry.text[i] && !(entry.any_case && lower(c) == lower(entry.text[i]))) return false;
  }
  return true;
}

constexpr int passes_max = 4;  // a replacement may expose another secret; clean text takes one pass

struct Found {
  Range range;
  std::size_t rank = 0;  // of two at one position the lower one names it
};

// `gh[po]_|hf_` → ghp_, gho_, hf_
void append_literals(std::string list, std::vector<std::string>& all) {
  for (std::size_t end = 0;; list.erase(0, end + 1)) {
    end = list.find('|');
    const std::string one = list.substr(0, end);
    const std::size_t open = one.find('['), close = one.find(']');
    if (open == npos) all.push_back(one);
    for (std::size_t at = open; at != npos && ++at < close;)
      append_literals(one.substr(0, open) + one[at] + one.substr(close + 1), all);
    if (end == npos) return;
  }
}

std::unique_ptr<re2::RE2> compiled(std::string_view pattern) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  return std::make_unique<re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
}

bool is_rule_name(std::string_view name) {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

// The matches in one text.
struct Search {
  std::vector<Found> found;
  std::vector<std::size_t> covered;  // by rule: the end of its last match; the rule is not tried inside it
};

// Sorts the matches and joins overlapping ones. False if there are none.
bool merge(std::vector<Found>& found) {
  if (found.empty()) return false;
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return a.range.begin != b.range.begin ? a.range.begin < b.range.begin : a.rank < b.rank;
  });
  std::size_t last = 0;
  for (std::size_t i = 1; i < found.size(); ++i) {
    if (found[i].range.begin < found[last].range.end)
      found[last].range.end = std::max(found[last].range.end, found[i].range.end);
    else
      found[++last] = found[i];
  }
  found.resize(last + 1);
  return true;
}

}  // namespace

struct Redactor::Parts {
  struct BuiltIn {
    std::size_t name = 0;  // in names
    Shape shape, before;
  };
  struct Pattern {
    std::unique_ptr<re2::RE2> expression;
    std::size_t name = 0;
    int groups = 0;  // 0 or 1
  };

  std::size_t name_of(std::string_view name) {
    const auto known = std::find(names.begin(), names.end(), name);
    if (known != names.end()) return static_cast<std::size_t>(known - names.begin());
    names.emplace_back(name);
    counts.emplace_back(0);
    return names.size() - 1;
  }
  void add(const Rule& rule);
  std::string add(const UserRule& rule);
  void join_user_rules();
  void search(std::string_view text, Search& search) const;
  void try_rule(std::string_view text, std::size_t which, std::size_t at, std::size_t length,
                Search& search) const;
  void search_user_rules(std::string_view text, std::vector<Found>& found) const;
  bool replace(std::string_view text, const std::vector<Found>& found, std::size_t& shown, std::string& out);

  std::vector<std::string> names;
  std::deque<std::atomic<std::uint64_t>> counts;  // by name
  std::vector<BuiltIn> built_in;                  // as rules() has them
  std::vector<Pattern> user_rules;
  std::unique_ptr<re2::RE2> any_user_rule;  // null: fewer than two rules, or too large
  Prefilter literals;
  std::string error;
};

void Redactor::Parts::add(const Rule& rule) {
  std::vector<std::string> all;
  append_literals(std::string(rule.literals), all);
  for (const std::string& one : all) literals.add(one, rule.flags & Rule::any_case, built_in.size());
  built_in.push_back({name_of(rule.name), Shape(rule.shape), Shape(rule.before)});
}

// The error; empty: the rule is used.
std::string Redactor::Parts::add(const UserRule& rule) {
  const std::string subject = "the redaction rule `" + rule.name + "` ";
  if (!is_rule_name(rule.name)) return subject + "has a bad name: use a to z, 0 to 9 and _";
  if (std::find(names.begin(), names.end(), rule.name) != names.end())
    return subject + "has the name of another rule: choose a new one";
  auto expression = compiled(rule.pattern);
  if (!expression->ok())
    return subject + "is not a regular expression that RE2 accepts: " + expression->error() + " in `" +
           rule.pattern + "`";
  if (re2::RE2::FullMatch("", *expression))
    return subject + "matches the empty text: require at least one character";
  Pattern pattern;
  pattern.name = name_of(rule.name);
  pattern.groups = std::min(1, expression->NumberOfCapturingGroups());
  pattern.expression = std::move(expression);
  user_rules.push_back(std::move(pattern));
  return {};
}

void Redactor::Parts::join_user_rules() {
  if (user_rules.size() < 2) return;
  std::string all;
  for (const Pattern& one : user_rules)
    all += (all.empty() ? "(?:" : "|(?:") + one.expression->pattern() + ")";
  any_user_rule = compiled(all);
  if (!any_user_rule->ok()) any_user_rule.reset();  // too large: each rule is searched
}

void Redactor::Parts::search(std::string_view text, Search& search) const {
  search.found.clear();
  bool is_first = true;  // `covered` is of an earlier text
  literals.find(text, [&](std::size_t which, std::size_t at, std::size_t length) {
    if (is_first) search.covered.assign(built_in.size(), 0);
    is_first = false;
    try_rule(text, which, at, length, search);
  });
  if (!user_rules.empty()) search_user_rules(text, search.found);
}

void Redactor::Parts::try_rule(std::string_view text, std::size_t which, std::size_t at, std::size_t length,
                               Search& search) const {
  const Rule& rule = rules()[which];
  if (at < search.covered[which] || !may_begin(text, at, rule.flags)) return;
  Range secret;
  if (!(rule.find
            ? rule.find(text, at, length, secret)
            : find_shape(rule, built_in[which].shape, built_in[which].before, text, at, length, secret)))
    return;
  search.covered[which] = secret.end;
  search.found.push_back({secret, which});
}

void Redactor::Parts::search_user_rules(std::string_view text, std::vector<Found>& found) const {
  const re2::StringPiece all(text.data(), text.size());
  if (any_user_rule && !any_user_rule->Match(all, 0, all.size(), re2::RE2::UNANCHORED, nullptr, 0)) return;
  for (std::size_t which = 0; which < user_rules.size(); ++which) {
    const Pattern& pattern = user_rules[which];
    re2::StringPiece groups[2];
    for (std::size_t at = 0; at <= text.size();) {
      if (!pattern.expression->Match(all, at, all.size(), re2::RE2::UNANCHORED, groups, 1 + pattern.groups))
        break;
      const std::size_t end = static_cast<std::size_t>(groups[0].data() - text.data()) + groups[0].size();
      // A group that did not take part: the whole match.
      const re2::StringPiece& group = groups[groups[pattern.groups].data() ? pattern.groups : 0];
      if (!group.empty()) {
        const auto begin = static_cast<std::size_t>(group.data() - text.data());
        found.push_back({{begin, begin + group.size()}, built_in.size() + which});
      }
      at = std::max(end, at + 1);
    }
  }
}

// Replaces all matches, as another pass may find more in the rest. `shown`: the end of the shown part, in
// `text` and then in `out`; a replacement that begins before it is shown whole. True if one was replaced in
// the shown part.
bool Redactor::Parts::replace(std::string_view text, const std::vector<Found>& found, std::size_t& shown,
                              std::string& out) {
  const std::size_t end = shown;
  std::size_t done = 0;
  bool is_shown = false;
  for (const Found& one : found) {
    const std::size_t name =
        one.rank < built_in.size() ? built_in[one.rank].name : user_rules[one.rank - built_in.size()].name;
    out.append(text, done, one.range.begin - done);
    out.append("[redacted:").append(names[name]) += ']';
    done = one.range.end;
    if (one.range.begin >= end) continue;
    ++counts[name];
    is_shown = true;
    shown = out.size() + (end > done ? end - done : 0);
  }
  out.append(text, done);
  return is_shown;
}

Redactor::Redactor(const std::vector<UserRule>& user_rules) : parts_(std::make_unique<Parts>()) {
  for (const Rule& rule : rules()) parts_->add(rule);
  for (const UserRule& rule : user_rules) {
    const std::string why = parts_->add(rule);
    if (parts_->error.empty()) parts_->error = why;
  }
  parts_->join_user_rules();
}

Redactor::~Redactor() = default;

const std::string& Redactor::error() const { return parts_->error; }

std::string_view Redactor::clean(std::string_view text, std::size_t shown_bytes, std::string& scratch) const {
  shown_bytes = std::min(shown_bytes, text.size());
  std::size_t shown = shown_bytes;
  bool is_shown = false;
  std::string out;
  thread_local Search search;
  for (int pass = 0; pass < passes_max; ++pass) {
    const std::string_view now = pass == 0 ? text : std::string_view(out);
    parts_->search(now, search);
    if (!merge(search.found)) break;
    std::string next;
    is_shown |= parts_->replace(now, search.found, shown, next);
    out = std::move(next);
  }
  if (!is_shown) return cut_utf8(text, shown_bytes);
  out.resize(cut_utf8(out, shown).size());
  scratch = std::move(out);
  return scratch;
}

std::optional<SecretPlace> Redactor::secret_place(std::string_view key) const {
  const SecretName name = secret_name(key);
  if (name.kind == NameKind::none) return std::nullopt;
  if (name.kind == NameKind::key) return SecretPlace::random;
  return name.is_plural && name.kind != NameKind::password ? SecretPlace::member : SecretPlace::value;
}

std::string_view Redactor::replace_whole(std::string_view value, SecretPlace place,
                                         std::string& scratch) const {
  // Shorter numbers are counts and positions, those in a list may be of a tokenizer.
  constexpr std::size_t number_bytes_min = 4, list_number_bytes_min = 7;
  if (is_placeholder(value) || is_path(value)) return {};
  if (place == SecretPlace::number && value.size() < number_bytes_min) return {};
  if (place == SecretPlace::list_number && value.size() < list_number_bytes_min) return {};
  if (place == SecretPlace::member && !is_plausible(value, Judgement::quoted, false)) return {};
  if (place == SecretPlace::random && !is_random_key(value)) return {};
  const auto name = std::find(parts_->names.begin(), parts_->names.end(), assignment_rule);
  ++parts_->counts[static_cast<std::size_t>(name - parts_->names.begin())];
  scratch.assign("[redacted:").append(assignment_rule) += ']';
  return scratch;
}

std::vector<std::string_view> Redactor::names() const { return {parts_->names.begin(), parts_->names.end()}; }

std::vector<std::pair<std::string_view, std::uint64_t>> Redactor::counts() const {
  std::vector<std::pair<std::string_view, std::uint64_t>> all;
  for (std::size_t i = 0; i < parts_->names.size(); ++i)
    all.emplace_back(parts_->names[i], parts_->counts[i]);
  return all;
}

}  // namespace earshot::redact
