#include "search/tokenizer.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/text.hpp"
#include "search/database.hpp"

namespace earshot::search {
namespace {

struct Range {
  char32_t first, last;
};
constexpr Range cjk[] = {
    {0x1100, 0x11FF},    // Hangul Jamo
    {0x2E80, 0x2FDF},    // radicals
    {0x3005, 0x3007},    // iteration mark, closing mark, zero
    {0x3041, 0x3096},    // Hiragana
    {0x309D, 0x309F},    //
    {0x30A1, 0x30FA},    // Katakana
    {0x30FC, 0x30FF},    //
    {0x3105, 0x318E},    // Bopomofo, Hangul compatibility Jamo
    {0x31A0, 0x31BF},    // Bopomofo extended
    {0x31F0, 0x31FF},    // Katakana extended
    {0x3400, 0x4DBF},    // Han
    {0x4E00, 0x9FFF},    //
    {0xA960, 0xA97C},    // Hangul Jamo extended
    {0xAC00, 0xD7FB},    // Hangul
    {0xF900, 0xFAFF},    // Han, compatibility
    {0xFF66, 0xFF9D},    // Katakana, half width
    {0x1AFF0, 0x1B16F},  // kana, supplements
    {0x20000, 0x3FFFF},  // Han, supplementary planes
};
constexpr unsigned char lead_min = 0xE1;  // of the UTF-8 of all of them

/// Bidirectional isolates are newer than the Unicode tables of SQLite, which take them for letters.
constexpr bool is_isolate(char32_t character) { return character >= 0x2066 && character <= 0x2069; }

/// The character at the front of well-formed UTF-8.
char32_t decode(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character.front());
  char32_t code = character.size() == 1 ? lead : lead & (0x7Fu >> character.size());
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  return code;
}

/// The first character from `at` on that is no part of a longer word: its place and size; its place is
/// text.size() if there is none.
struct Found {
  std::size_t at, size;
  bool is_word;
};
Found find_single(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < lead_min) {
      ++at;
      continue;
    }
    std::size_t bad = 0;
    const std::size_t size = utf8_length(text.substr(at), bad);
    const char32_t character = size > 0 ? decode(text.substr(at, size)) : U'\0';
    if (is_cjk(character) || is_isolate(character)) return {at, size, is_cjk(character)};
    at += std::max<std::size_t>({size, bad, 1});
  }
  return {text.size(), 0, false};
}

using OnToken = int (*)(void*, int, const char*, int, int, int);

struct Tokenizer {
  fts5_tokenizer words{};
  Fts5Tokenizer* instance = nullptr;
};

/// Passes tokens of a part of the text on, with their places in the whole.
struct Part {
  void* context;
  OnToken on_token;
  int offset;
  static int pass(void* of, int flags, const char* token, int size, int start, int end) {
    const Part& part = *static_cast<Part*>(of);
    return part.on_token(part.context, flags, token, size, part.offset + start, part.offset + end);
  }
};

int create(void* api_of, const char** arguments, int count, Fts5Tokenizer** out) {
  auto* const api = static_cast<fts5_api*>(api_of);
  auto tokenizer = std::make_unique<Tokenizer>();
  void* context = nullptr;
  int result = api->xFindTokenizer(api, "unicode61", &context, &tokenizer->words);
  if (result == SQLITE_OK) result = tokenizer->words.xCreate(context, arguments, count, &tokenizer->instance);
  if (result == SQLITE_OK) *out = reinterpret_cast<Fts5Tokenizer*>(tokenizer.release());
  return result;
}

void destroy(Fts5Tokenizer* of) {
  const std::unique_ptr<Tokenizer> tokenizer(reinterpret_cast<Tokenizer*>(of));
  tokenizer->words.xDelete(tokenizer->instance);
}

int tokenize(Fts5Tokenizer* of, void* context, int flags, const char* bytes, int size, OnToken on_token) {
  const Tokenizer& tokenizer = *reinterpret_cast<Tokenizer*>(of);
  const std::string_view text(bytes ? bytes : "", bytes ? static_cast<std::size_t>(size) : 0);
  for (std::size_t at = 0; at < text.size();) {
    const Found found = find_single(text, at);
    const auto begin = static_cast<int>(found.at);
    if (found.at > at) {
      Part part{context, on_token, static_cast<int>(at)};
      const int result = tokenizer.words.xTokenize(tokenizer.instance, &part, flags, bytes + at,
                                                   begin - part.offset, Part::pass);
      if (result != SQLITE_OK) return result;
    }
    if (found.size == 0) break;
    const auto length = static_cast<int>(found.size);
    const int result =
        found.is_word ? on_token(context, 0, bytes + found.at, length, begin, begin + length) : SQLITE_OK;
    if (result != SQLITE_OK) return result;
    at = found.at + found.size;
  }
  return SQLITE_OK;
}

}  // namespace

bool is_cjk(char32_t character) {
  if (character < cjk[0].first) return false;
  const auto* const range =
      std::lower_bound(std::begin(cjk), std::end(cjk), character,
                       [](const Range& each, char32_t value) { return each.last < value; });
  return range != std::end(cjk) && range->first <= character;
}

bool ends_with_cjk(std::string_view text) {
  std::size_t begin = text.size();
  while (begin > 0 && (static_cast<unsigned char>(text[begin - 1]) & 0xC0) == 0x80) --begin;
  if (begin == 0) return false;
  const Found found = find_single(text, begin - 1);
  return found.is_word && found.at + found.size == text.size();
}

void register_tokenizer(sqlite3* db) {
  fts5_api* api = nullptr;
  {
    Statement statement(db, "SELECT fts5(?1)");
    sqlite3_bind_pointer(statement.handle(), 1, static_cast<void*>(&api), "fts5_api_ptr", nullptr);
    statement.run();
  }
  if (!api) throw DatabaseError(SQLITE_ERROR, "SQLite has no FTS5");
  fts5_tokenizer functions{create, destroy, tokenize};
  const int result =
      api->xCreateTokenizer(api, std::string(tokenizer_name).c_str(), api, &functions, nullptr);
  if (result != SQLITE_OK) throw DatabaseError(result & 0xFF, "cannot register the tokenizer");
}

}  // namespace earshot::search
