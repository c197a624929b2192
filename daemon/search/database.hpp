// SQLite as values: a connection and its statements. One thread uses a connection at a time.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace earshot::search {

/// An error of SQLite. `code` is the primary result code, or SQLITE_IOERR_SHORT_READ.
struct DatabaseError : std::runtime_error {
  DatabaseError(int result, const std::string& what) : std::runtime_error(what), code(result) {}
  /// The file is no sound database: delete it.
  bool is_corrupt() const;
  /// The query was interrupted.
  bool is_interrupted() const;
  /// The file or its disk is full.
  bool is_full() const;
  int code;
};

/// A prepared statement. Parameters are bound from 1 on; text is copied.
class Statement {
 public:
  Statement(sqlite3* db, std::string_view sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  /// Resets the statement and binds all parameters.
  template <class... Values>
  Statement& bind(const Values&... values) {
    reset();
    int at = 0;
    (bind_at(++at, values), ...);
    return *this;
  }
  /// True: there is a row. Throws DatabaseError.
  bool step();
  /// Steps to the end.
  void run() {
    while (step()) {
    }
    reset();
  }
  void reset();
  sqlite3_stmt* handle() const { return statement_; }

  std::int64_t integer(int column) const;
  double real(int column) const;
  bool is_null(int column) const;
  std::string text(int column) const;

 private:
  void bind_at(int at, std::int64_t value);
  void bind_at(int at, int value) { bind_at(at, static_cast<std::int64_t>(value)); }
  void bind_at(int at, std::uint64_t value) { bind_at(at, static_cast<std::int64_t>(value)); }
  void bind_at(int at, std::uint32_t value) { bind_at(at, static_cast<std::int64_t>(value)); }
  void bind_at(int at, std::string_view value);
  void bind_at(int at, const std::string& value) { bind_at(at, std::string_view(value)); }
  void bind_at(int at, const std::optional<double>& value);

  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
};

class Database {
 public:
  enum class Mode { write, read };

  /// `write` creates the file, with mode 0600. The connection has the tokenizer of the index. Throws
  /// DatabaseError.
  Database(const std::string& path, Mode mode);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void set_busy_timeout();  // the default one
  /// From any thread: what runs, and anything later that would wait for another connection, fails.
  void interrupt();
  void run(const std::string& sql);
  /// Prepared once; valid as long as the connection. Not for use while it is being stepped elsewhere.
  Statement& statement(std::string_view sql);
  std::int64_t number(std::string_view sql);
  sqlite3* handle() const { return db_; }

 private:
  sqlite3* db_ = nullptr;
  std::atomic<bool> interrupted_ = false;
  std::map<std::string, std::unique_ptr<Statement>, std::less<>> statements_;
};

/// Deletes a database with its companions `-wal`, `-shm` and `-journal`.
void remove_database(const std::string& path);

}  // namespace earshot::search
