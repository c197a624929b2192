// Which texts of a frame were cut: its member `truncated`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace earshot {

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
