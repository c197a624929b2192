#include "search/store.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include "base/system.hpp"

namespace earshot::search {
namespace {

constexpr std::string_view schema = R"(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE streams(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, session TEXT NOT NULL, agent TEXT NOT NULL,
  program TEXT NOT NULL, project TEXT NOT NULL, directory TEXT NOT NULL, title TEXT NOT NULL,
  model TEXT NOT NULL, cursor_offset INTEGER NOT NULL, cursor_index INTEGER NOT NULL,
  cursor_hash INTEGER NOT NULL, stamp TEXT NOT NULL, first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL,
  prompts INTEGER NOT NULL, tools INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL,
  cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL, cost_usd REAL, cost_total_ms INTEGER NOT NULL,
  turn_started_ms INTEGER NOT NULL, turn INTEGER NOT NULL, models TEXT NOT NULL, documents INTEGER NOT NULL);
CREATE TABLE documents(
  id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, kind INTEGER NOT NULL, cursor_offset INTEGER NOT NULL,
  cursor_index INTEGER NOT NULL, cursor_hash INTEGER NOT NULL, text TEXT NOT NULL);
CREATE INDEX documents_by_stream ON documents(stream);
CREATE VIRTUAL TABLE words USING fts5(text, content='documents', content_rowid='id',
  tokenize="cjk remove_diacritics 2", prefix='2 3');
)";

constexpr std::string_view insert_stream =
    "INSERT INTO streams(name, session, agent, program, project, directory, title, model, cursor_offset, "
    "cursor_index, cursor_hash, stamp, first_ms, last_ms, prompts, tools, input, output, cache_read, "
    "cache_write, cost_usd, cost_total_ms, turn_started_ms, turn, models, documents) "
    "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) "
    "ON CONFLICT(name) DO UPDATE SET session=excluded.session, agent=excluded.agent, "
    "program=excluded.program, project=excluded.project, directory=excluded.directory, "
    "title=excluded.title, model=excluded.model, cursor_offset=excluded.cursor_offset, "
    "cursor_index=excluded.cursor_index, cursor_hash=excluded.cursor_hash, stamp=excluded.stamp, "
    "first_ms=excluded.first_ms, last_ms=excluded.last_ms, prompts=excluded.prompts, tools=excluded.tools, "
    "input=excluded.input, output=excluded.output, cache_read=excluded.cache_read, "
    "cache_write=excluded.cache_write, cost_usd=excluded.cost_usd, cost_total_ms=excluded.cost_total_ms, "
    "turn_started_ms=excluded.turn_started_ms, turn=excluded.turn, models=excluded.models, "
    "documents=excluded.documents "
    "RETURNING id";

/// Rolls back unless committed.
class Transaction {
 public:
  explicit Transaction(Database& db) : db_(db) { db_.run("BEGIN IMMEDIATE"); }
  ~Transaction() {
    if (!is_done_) sqlite3_exec(db_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  void commit() {
    db_.run("COMMIT");
    is_done_ = true;
  }

 private:
  Database& db_;
  bool is_done_ = false;
};

std::int64_t first_id(const StreamRow& row, const Document& document) {
  const std::int64_t time = std::clamp<std::int64_t>(document.time_ms, 0, time_ms_max);
  // Different documents of one time usually begin at different numbers, in the order of the transcript.
  const std::uint64_t place =
      std::hash<std::string>()(row.name) + document.cursor.offset / 16 + document.cursor.index;
  return (time << id_time_shift) | static_cast<std::int64_t>(place & ((1 << id_time_shift) - 1));
}

}  // namespace

const std::string_view stream_columns =
    "id, name, session, agent, program, project, directory, title, model, cursor_offset, cursor_index, "
    "cursor_hash, stamp, first_ms, last_ms, prompts, tools, input, output, cache_read, cache_write, "
    "cost_usd, cost_total_ms, turn_started_ms, turn, models, documents";

StreamRow read_stream(const Statement& row) {
  int at = 0;
  const auto count = [&] { return static_cast<std::uint64_t>(row.integer(at++)); };
  StreamRow stream;
  stream.id = row.integer(at++);
  for (std::string* text : {&stream.name, &stream.session, &stream.agent, &stream.program, &stream.project,
                            &stream.directory, &stream.title, &stream.model})
    *text = row.text(at++);
  stream.cursor.offset = count();
  stream.cursor.index = static_cast<std::uint32_t>(count());
  stream.cursor.prefix_hash = count();
  stream.stamp = row.text(at++);
  stream.first_ms = row.integer(at++);
  stream.last_ms = row.integer(at++);
  for (std::uint64_t* number : {&stream.prompts, &stream.tools, &stream.input, &stream.output,
                                &stream.cache_read, &stream.cache_write})
    *number = count();
  if (!row.is_null(at)) stream.cost_usd = row.real(at);
  ++at;
  stream.cost_total_ms = row.integer(at++);
  stream.turn_started_ms = row.integer(at++);
  stream.turn = static_cast<std::uint32_t>(row.integer(at++));
  stream.models = row.text(at++);
  stream.documents = count();
  return stream;
}

/// `<input> <output> <cache_read> <cache_write> <cache_write_1h> <model>` a line.
std::string encode_models(const std::vector<ModelUsage>& models) {
  std::string text;
  for (const ModelUsage& each : models) {
    const Usage& tokens = each.all.without_cost;
    if (tokens == Usage{}) continue;
    for (const std::uint64_t number :
         {tokens.input, tokens.output, tokens.cache_read, tokens.cache_write, tokens.cache_write_1h})
      text += std::to_string(number) + ' ';
    text += each.model + '\n';
  }
  return text;
}

std::vector<ModelUsage> decode_models(std::string_view text) {
  std::vector<ModelUsage> models;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ModelUsage& each = models.emplace_back();
    Usage& tokens = each.all.without_cost;
    for (std::uint64_t* number :
         {&tokens.input, &tokens.output, &tokens.cache_read, &tokens.cache_write, &tokens.cache_write_1h}) {
      const auto blank = std::min(line.find(' '), line.size());
      std::from_chars(line.data(), line.data() + blank, *number);
      line.remove_prefix(std::min(blank + 1, line.size()));
    }
    each.model = line;
  }
  return models;
}

Store::Store(std::string path, std::string identity)
    : path_(std::move(path)), identity_(std::move(identity)) {
  open();
}

void Store::open() {
  try {
    db_.emplace(path_, Database::Mode::write);
    if (!is_usable()) throw DatabaseError(SQLITE_CORRUPT, "another schema");
    count_documents();
  } catch (const DatabaseError& error) {
    db_.reset();
    // Without a table, or of a format that this version of SQLite does not know: the file is not an index.
    if (!error.is_corrupt() && error.code != SQLITE_ERROR) throw;
    remove_database(path_);
    db_.emplace(path_, Database::Mode::write);
    create();
  }
  // The index is derived: after a power failure the last transactions may be missing. The log is limited.
  // The text of removed transcripts is overwritten.
  db_->run(
      "PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=16777216; PRAGMA temp_store=MEMORY; "
      "PRAGMA secure_delete=ON");
  const FileStat stat = stat_file(path_);
  device_ = stat.device, inode_ = stat.inode;
}

void Store::count_documents() {
  has_stale_words_ = db_->number("SELECT count(*) FROM meta WHERE key = 'stale_words'") > 0;
  documents_ = static_cast<std::uint64_t>(db_->number("SELECT coalesce(sum(documents), 0) FROM streams"));
}

bool Store::is_usable() {
  const std::int64_t version = db_->number("PRAGMA user_version");
  if (version == 0 && db_->number("SELECT count(*) FROM sqlite_master") == 0) {
    create();
    return true;
  }
  if (version != schema_version) return false;
  Statement statement(db_->handle(), "SELECT value FROM meta WHERE key = 'identity'");
  return statement.step() && statement.text(0) == identity_;
}

void Store::create() {
  created_ = true;
  db_->run("PRAGMA journal_mode=WAL");
  Transaction transaction(*db_);
  db_->run(std::string(schema));
  db_->statement("INSERT INTO meta VALUES('identity', ?)").bind(identity_).run();
  db_->run("PRAGMA user_version=" + std::to_string(schema_version));
  transaction.commit();
}

std::optional<StreamRow> Store::find(std::string_view name) {
  Statement& statement =
      db_->statement("SELECT " + std::string(stream_columns) + " FROM streams WHERE name = ?");
  if (!statement.bind(name).step()) return std::nullopt;
  StreamRow row = read_stream(statement);
  statement.reset();
  return row;
}

std::vector<std::string> Store::names() {
  std::vector<std::string> names;
  Statement& statement = db_->statement("SELECT name FROM streams");
  statement.reset();
  while (statement.step()) names.push_back(statement.text(0));
  return names;
}

void Store::apply(std::span<const Change> changes) {
  struct Entry {
    std::int64_t id, stream;
    const Document* document;
  };
  Transaction transaction(*db_);
  std::vector<Entry> entries;
  std::uint64_t added = 0;
  for (const Change& change : changes) {
    const StreamRow& row = change.row;
    const std::uint64_t documents = row.documents + change.documents.size();
    added += change.documents.size();
    Statement& statement = db_->statement(insert_stream);
    statement.bind(row.name, row.session, row.agent, row.program, row.project, row.directory, row.title,
                   row.model, row.cursor.offset, row.cursor.index, row.cursor.prefix_hash, row.stamp,
                   row.first_ms, row.last_ms, row.prompts, row.tools, row.input, row.output, row.cache_read,
                   row.cache_write, row.cost_usd, row.cost_total_ms, row.turn_started_ms, row.turn,
                   row.models, documents);
    statement.step();
    const std::int64_t stream = statement.integer(0);
    statement.run();
    for (const Document& document : change.documents)
      entries.push_back({first_id(row, document), stream, &document});
  }
  // In the order of ids, so that FTS5 collects them in one segment.
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.id < b.id; });
  Statement& exists = db_->statement("SELECT 1 FROM documents WHERE id = ?");
  Statement& insert = db_->statement("INSERT INTO documents VALUES(?,?,?,?,?,?,?)");
  Statement& words = db_->statement("INSERT INTO words(rowid, text) VALUES(?,?)");
  std::int64_t last = -1;
  for (Entry& entry : entries) {
    entry.id = std::max(entry.id, last + 1);
    while (exists.bind(entry.id).step()) ++entry.id;
    exists.reset();
    last = entry.id;
    const Document& document = *entry.document;
    insert
        .bind(entry.id, entry.stream, static_cast<int>(document.kind), document.cursor.offset,
              document.cursor.index, document.cursor.prefix_hash, document.text)
        .run();
    words.bind(entry.id, document.text).run();
  }
  transaction.commit();
  documents_ += added;
}

void Store::remove_documents(std::int64_t stream) {
  Statement& select = db_->statement("SELECT id, text FROM documents WHERE stream = ?");
  Statement& forget = db_->statement("INSERT INTO words(words, rowid, text) VALUES('delete', ?, ?)");
  select.bind(stream);
  while (select.step()) forget.bind(select.integer(0), select.text(1)).run();
  select.reset();
  db_->statement("DELETE FROM documents WHERE stream = ?").bind(stream).run();
}

void Store::remove(std::string_view name, bool keep_row) {
  const auto row = find(name);
  if (!row) return;
  Transaction transaction(*db_);
  remove_documents(row->id);
  db_->statement(keep_row ? "UPDATE streams SET documents = 0 WHERE id = ?"
                          : "DELETE FROM streams WHERE id = ?")
      .bind(row->id)
      .run();
  const bool leaves_words = !keep_row && row->documents > 0;
  if (leaves_words) db_->run("INSERT OR REPLACE INTO meta VALUES('stale_words', '')");
  transaction.commit();
  if (leaves_words) has_stale_words_ = removed_again_ = true;
  documents_ -= std::min(documents_, row->documents);
}

bool Store::evict_oldest() {
  Statement& oldest = db_->statement("SELECT name FROM streams WHERE documents > 0 ORDER BY last_ms LIMIT 1");
  oldest.reset();
  if (!oldest.step()) return false;
  const std::string name = oldest.text(0);
  oldest.reset();
  remove(name, true);
  db_->run("INSERT INTO words(words, rank) VALUES('merge', 500)");  // frees pages of removed words
  return true;
}

/// As FTS5 documents an incremental `optimize`: a negative number of pages begins it, positive ones go on
/// until they change nothing. Parts that are added meanwhile are not included.
bool Store::merge_words() {
  if (!has_stale_words_) return false;
  if (!is_merging_) removed_again_ = false;
  const int before = sqlite3_total_changes(db_->handle());
  Transaction transaction(*db_);
  db_->run(is_merging_ ? "INSERT INTO words(words, rank) VALUES('merge', 32)"
                       : "INSERT INTO words(words, rank) VALUES('merge', -32)");
  constexpr int changes_without_work = 2;  // fewer: only the command itself
  is_merging_ = sqlite3_total_changes(db_->handle()) - before >= changes_without_work;
  const bool is_done = !is_merging_ && !removed_again_;
  if (is_done) db_->run("DELETE FROM meta WHERE key = 'stale_words'");
  transaction.commit();
  has_stale_words_ = !is_done;
  return has_stale_words_;
}

void Store::checkpoint() {
  sqlite3_wal_checkpoint_v2(db_->handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  sqlite3_busy_timeout(db_->handle(), 0);
  sqlite3_wal_checkpoint_v2(db_->handle(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  db_->set_busy_timeout();
}

void Store::release_memory() { sqlite3_db_release_memory(db_->handle()); }

std::uint64_t Store::bytes() {
  const std::int64_t pages = db_->number("PRAGMA page_count") - db_->number("PRAGMA freelist_count");
  return static_cast<std::uint64_t>(pages * db_->number("PRAGMA page_size"));
}

bool Store::is_in_place() const {
  const FileStat stat = stat_file(path_);
  return stat.ok() && stat.device == device_ && stat.inode == inode_;
}

void Store::interrupt() {
  if (db_) db_->interrupt();
}

}  // namespace earshot::search
