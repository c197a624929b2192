// What of a text may leave the daemon: the view of its reader, the interface of redaction, and the list of
// the texts that were cut.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"

namespace earshot {

/// How much a reader may see.
enum class View {
  full,
  meta,  // names, times and numbers; no texts, inputs, outputs or file names
};

/// Where a value stands in relation to a secret key.
enum class SecretPlace {
  value,        // the key's string, or a string in its list
  number,       // the key's number, as it is written
  list_number,  // a number in the key's list
  member,       // a string in the object that is the key's value, or in a list of several: may be none
  random,       // the key's string, a secret if it looks random
};

/// Replaces secrets in decoded text. The result depends on the text alone; text without secrets is returned
/// unchanged. Thread-safe.
class TextFilter {
 public:
  virtual ~TextFilter() = default;

  /// The first `shown_bytes` of `text`, cut between characters, with every secret that begins there replaced;
  /// the result may be longer than `shown_bytes`. The text behind the cut is examined, to recognize a secret
  /// that the cut divides, but not returned. A view of `text` if nothing was replaced, else of `scratch`.
  virtual std::string_view clean(std::string_view text, std::size_t shown_bytes,
                                 std::string& scratch) const = 0;
  std::string_view clean(std::string_view text, std::string& scratch) const {
    return clean(text, text.size(), scratch);
  }

  /// What strings under this object key are: `value`, secrets whatever their format, `member` or `random`.
  /// Nothing: the key is not that of a secret.
  virtual std::optional<SecretPlace> secret_place(std::string_view key) const = 0;
  /// The replacement of a value under a secret key, a view of `scratch`. Empty if the value is not itself a
  /// secret (empty, a placeholder, already replaced): then clean() applies.
  virtual std::string_view replace_whole(std::string_view value, SecretPlace place,
                                         std::string& scratch) const = 0;

  /// How many bytes behind a cut clean() needs.
  virtual std::size_t reach() const = 0;
};

/// The beginning of a text, redacted.
struct Beginning {
  std::string_view text;  // cut between characters
  bool cut = false;       // the text is longer
};
/// At most `bytes_max` bytes, a view of the text or of `scratch`. Without a filter nothing is replaced.
inline Beginning clean_beginning(const TextFilter* filter, std::string_view text, std::size_t bytes_max,
                                 std::string& scratch) {
  bool cut = text.size() > bytes_max;
  if (filter) {
    if (cut && text.size() - bytes_max > filter->reach()) text = cut_utf8(text, bytes_max + filter->reach());
    text = filter->clean(text, bytes_max, scratch);
    cut |= text.size() > bytes_max;
  }
  return {cut_utf8(text, bytes_max), cut};
}

struct TruncatedPath {
  std::string path;         // names and indices joined by `/`; `~` in a name is `~0`, `/` is `~1`
  std::uint64_t bytes = 0;  // of the complete text
  friend bool operator==(const TruncatedPath&, const TruncatedPath&) = default;
};

/// Collects the paths of texts that are cut while one frame is encoded. Allocates only when a text is cut or
/// a Scope is open.
class TruncatedPaths {
 public:
  static constexpr std::size_t paths_max = 64;            // further paths are not listed
  static constexpr std::size_t path_bytes_max = 1 << 10;  // longer paths are not listed

  /// Prefixes the paths that are added during its lifetime. Scopes nest.
  class Scope {
   public:
    Scope(TruncatedPaths& paths, std::string_view name);
    Scope(TruncatedPaths& paths, std::size_t index);
    ~Scope() { paths_.prefix_.resize(outer_bytes_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    TruncatedPaths& paths_;
    const std::size_t outer_bytes_;
  };

  /// `path` is relative to the open scopes; empty: their own path. The first size given for a path is kept.
  void add(std::string_view path, std::uint64_t bytes);

  const std::vector<TruncatedPath>& list() const { return list_; }
  /// Forgets the paths added since the list had this size.
  void shrink(std::size_t size) { list_.resize(size); }

  /// Appends `,"truncated":{…}`, the last member of the frame; nothing if no text was cut.
  void append_member(std::string& out) const;

 private:
  std::string prefix_;
  std::vector<TruncatedPath> list_;
};

/// Appends a `/` (if `path` is not empty) and a member's name as in a JSON Pointer.
void append_path_name(std::string& path, std::string_view name);

}  // namespace earshot
