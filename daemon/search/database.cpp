#include "search/database.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "search/tokenizer.hpp"

namespace earshot::search {
namespace {

constexpr int busy_ms_max = 5000;  // waits for the other connection's transaction
constexpr int busy_step_ms = 10;

/// A file that ends early is the only extended code that matters.
int primary(int code) { return code == SQLITE_IOERR_SHORT_READ ? code : code & 0xFF; }

[[noreturn]] void fail(sqlite3* db, int code) {
  throw DatabaseError(primary(code), db ? sqlite3_errmsg(db) : sqlite3_errstr(code));
}

}  // namespace

bool DatabaseError::is_corrupt() const {
  return code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_IOERR_SHORT_READ;
}
bool DatabaseError::is_interrupted() const { return code == SQLITE_INTERRUPT; }
bool DatabaseError::is_full() const { return code == SQLITE_FULL; }

Statement::Statement(sqlite3* db, std::string_view sql) : db_(db) {
  const int result =
      sqlite3_prepare_v3(db, sql.data(), static_cast<int>(sql.size()), 0, &statement_, nullptr);
  if (result != SQLITE_OK) fail(db, sqlite3_extended_errcode(db));
}
Statement::~Statement() { sqlite3_finalize(statement_); }

bool Statement::step() {
  const int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  const DatabaseError error(primary(sqlite3_extended_errcode(db_)), sqlite3_errmsg(db_));
  sqlite3_reset(statement_);
  throw error;
}
void Statement::reset() { sqlite3_reset(statement_); }

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }
double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }
bool Statement::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
std::string Statement::text(int column) const {
  const auto* text = sqlite3_column_text(statement_, column);
  const int bytes = sqlite3_column_bytes(statement_, column);
  return text ? std::string(reinterpret_cast<const char*>(text), static_cast<std::size_t>(bytes))
              : std::string();
}

void Statement::bind_at(int at, std::int64_t value) { sqlite3_bind_int64(statement_, at, value); }
void Statement::bind_at(int at, std::string_view value) {
  const char* text = value.data() ? value.data() : "";
  if (sqlite3_bind_text64(statement_, at, text, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8) != SQLITE_OK)
    fail(db_, sqlite3_errcode(db_));
}
void Statement::bind_at(int at, const std::optional<double>& value) {
  value ? sqlite3_bind_double(statement_, at, *value) : sqlite3_bind_null(statement_, at);
}

Database::Database(const std::string& path, Mode mode) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE;  // WAL: a reader writes to `-shm`
  if (mode == Mode::write) {
    // SQLite gives the companions the mode of the file.
    const int fd = ::open(path.c_str(), O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_RDWR, 0600);
    if (fd < 0) throw DatabaseError(SQLITE_CANTOPEN, "cannot create " + path);
    ::fchmod(fd, 0600);
    ::close(fd);
  }
  const int result = sqlite3_open_v2(path.c_str(), &db_, flags, nullptr);
  if (result != SQLITE_OK) {
    const DatabaseError error(primary(result), db_ ? sqlite3_errmsg(db_) : sqlite3_errstr(result));
    sqlite3_close(db_);
    throw error;
  }
  set_busy_timeout();
  try {
    register_tokenizer(db_);
  } catch (...) {
    sqlite3_close(db_);
    throw;
  }
}

Database::~Database() {
  statements_.clear();
  sqlite3_close(db_);
}

/// As sqlite3_busy_timeout(), which an interrupt does not end.
void Database::set_busy_timeout() {
  sqlite3_busy_handler(
      db_,
      [](void* of, int waits) {
        if (static_cast<const Database*>(of)->interrupted_ || waits >= busy_ms_max / busy_step_ms) return 0;
        sqlite3_sleep(busy_step_ms);
        return 1;
      },
      this);
}

void Database::interrupt() {
  interrupted_ = true;
  sqlite3_interrupt(db_);
}

void Database::run(const std::string& sql) {
  const int result = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) fail(db_, sqlite3_extended_errcode(db_));
}

Statement& Database::statement(std::string_view sql) {
  auto found = statements_.find(sql);
  if (found == statements_.end())
    found = statements_.emplace(std::string(sql), std::make_unique<Statement>(db_, sql)).first;
  return *found->second;
}

std::int64_t Database::number(std::string_view sql) {
  Statement statement(db_, sql);
  return statement.step() ? statement.integer(0) : 0;
}

void remove_database(const std::string& path) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) ::unlink((path + suffix).c_str());
}

}  // namespace earshot::search
