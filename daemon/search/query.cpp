#include "search/query.hpp"

#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "search/tokenizer.hpp"

namespace earshot::search {
namespace {

struct Term {
  std::string text;
  bool is_phrase = false, is_excluded = false;
};

constexpr std::string_view blanks = " \t\r\n";

/// Control characters would be separators of words in any case; NUL would end the expression.
std::string without_controls(std::string_view text) {
  std::string plain(text);
  for (char& c : plain)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return plain;
}

/// Whether the index may contain a word of this text: other ASCII characters only separate words.
bool has_word(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           static_cast<unsigned char>(c) >= 0x80;
  });
}

std::vector<Term> split(std::string_view text) {
  std::vector<Term> terms;
  while (!(text = trim(text, blanks)).empty()) {
    Term term;
    if (text.size() > 1 && text.front() == '-' && blanks.find(text[1]) == blanks.npos) {
      term.is_excluded = true;
      text.remove_prefix(1);
    }
    if (text.front() == '"') {  // without a closing quote: to the end
      text.remove_prefix(1);
      term.is_phrase = true;
      const auto end = text.find('"');
      term.text = text.substr(0, end);
      text.remove_prefix(end == text.npos ? text.size() : end + 1);
    } else {
      const auto end = std::min(text.find_first_of(" \t\r\n\""), text.size());
      term.text = text.substr(0, end);
      text.remove_prefix(end);
      while (term.text.ends_with('*')) term.text.pop_back();  // each word is a beginning in any case
    }
    if (has_word(term.text)) terms.push_back(std::move(term));
  }
  return terms;
}

/// The characters of the last word decide: only it is a beginning. A word of one character, as all are that
/// the tokenizer separates, has no other beginning.
bool is_prefix(const Term& term) {
  if (term.is_phrase || ends_with_cjk(term.text)) return false;
  std::size_t characters = 0;
  for (std::size_t at = term.text.size(); at-- > 0;) {
    const auto c = static_cast<unsigned char>(term.text[at]);
    if (c < 0x80 && !has_word(term.text.substr(at, 1))) break;
    if ((c & 0xC0) != 0x80) ++characters;
  }
  return characters >= prefix_characters_min;
}

void append(std::string& out, const Term& term) {
  if (!out.empty()) out += ' ';
  out += '"';
  out += term.text;  // contains no quote
  out += '"';
  if (is_prefix(term)) out += '*';
}

}  // namespace

ParsedQuery parse_query(std::string_view text) {
  if (text.size() > query_bytes_max) return {{}, "the query is longer than 512 bytes"};
  const std::vector<Term> terms = split(without_controls(text));
  if (terms.empty()) return {{}, "the query has no words"};
  if (terms.size() > query_terms_max) return {{}, "the query has more than 16 words"};
  std::string wanted;
  for (const Term& term : terms)
    if (!term.is_excluded) append(wanted, term);
  if (wanted.empty()) return {{}, "the query only excludes: add a word to search for"};
  ParsedQuery query;
  query.expression = "(" + wanted + ")";
  for (const Term& term : terms) {
    if (!term.is_excluded) continue;
    std::string excluded;
    append(excluded, term);
    query.expression += " NOT " + excluded;
  }
  return query;
}

}  // namespace earshot::search
