// The tables of the index, for the one thread that writes them. The index is derived from the transcripts
// alone: a file that is missing, corrupt, or of another schema, key or set of redaction rules is deleted and
// built again.
//
// A document's id is its time in ms << 20, plus a number that makes it unique: results come newest first
// without sorting, and times are bounds of ids.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/cursor.hpp"
#include "core/stream_usage.hpp"
#include "search/database.hpp"
#include "search/document.hpp"

namespace earshot::search {

constexpr int schema_version = 2;
constexpr int id_time_shift = 20;
constexpr std::int64_t time_ms_max = (std::int64_t{1} << 42) - 1;  // in the year 2109; later times are this

/// One stream, up to `cursor`.
struct StreamRow {
  std::int64_t id = 0;  // 0: not stored yet
  std::string name, session, agent, program, project, directory, title, model;
  Cursor cursor;
  /// Of the file when it had no bytes after `cursor`; empty: unknown. The same stamp is the same content.
  std::string stamp;
  std::int64_t first_ms = 0, last_ms = 0;  // 0: unknown
  std::uint64_t prompts = 0, tools = 0;
  std::uint64_t input = 0, output = 0, cache_read = 0, cache_write = 0;  // tokens
  // What estimates of the cost need (models/session_cost.hpp): prices may change without a new index.
  std::optional<double> cost_usd;  // as recorded
  std::int64_t cost_total_ms = 0, turn_started_ms = 0;
  std::uint32_t turn = 0;
  std::string models;  // encode_models()
  std::uint64_t documents = 0;
};

/// The tokens of each model that no recorded cost covers, as text.
std::string encode_models(const std::vector<ModelUsage>& models);
std::vector<ModelUsage> decode_models(std::string_view text);

/// `title` and so on, for SELECT; read_stream() reads them.
extern const std::string_view stream_columns;
StreamRow read_stream(const Statement& row);

class Store {
 public:
  /// `identity`: of the host's key and the redaction rules. Throws DatabaseError.
  Store(std::string path, std::string identity);

  std::optional<StreamRow> find(std::string_view name);
  std::vector<std::string> names();

  /// Stores a row and adds documents, in one transaction: all changes or, if it throws, none.
  struct Change {
    StreamRow row;
    std::vector<Document> documents;
  };
  void apply(std::span<const Change> changes);
  /// Removes the stream's documents, and the row unless `keep_row`.
  void remove(std::string_view name, bool keep_row = false);
  /// Removes the documents of the stream with the oldest activity; false: there are none.
  bool evict_oldest();

  /// Words of removed streams may still be in the file: FTS5 keeps them until all parts of its index that
  /// were there at the removal are merged.
  bool has_stale_words() const { return has_stale_words_; }
  /// A slice of that. False: no such words are left.
  bool merge_words();

  /// Moves the log into the file, and frees it if no query is running.
  void checkpoint();
  /// Frees cached pages.
  void release_memory();
  std::uint64_t documents() const { return documents_; }
  std::uint64_t bytes();  // of the file's used pages
  /// False: the file was deleted or replaced.
  bool is_in_place() const;
  bool was_created() const { return created_; }
  void interrupt();  // on any thread

 private:
  void open();
  bool is_usable();
  void create();
  void count_documents();
  void remove_documents(std::int64_t stream);

  const std::string path_, identity_;
  std::optional<Database> db_;
  std::uint64_t device_ = 0, inode_ = 0;
  std::uint64_t documents_ = 0;
  bool created_ = false;
  bool has_stale_words_ = false, is_merging_ = false;
  bool removed_again_ = false;  // after that merge began
};

}  // namespace earshot::search
