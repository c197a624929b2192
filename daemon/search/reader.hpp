// Queries over the index, for the one thread that runs them.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/containers.hpp"
#include "base/json_writer.hpp"
#include "models/model_table.hpp"
#include "search/database.hpp"
#include "search/store.hpp"
#include "serve/http/search.hpp"

namespace earshot::search {

/// How much of the streams is indexed.
struct IndexState {
  bool building = false;  // the first pass over all streams is not finished
  std::uint64_t indexed = 0, total = 0;
};

/// The streams of the index, with what is derived from them together.
class StreamTable {
 public:
  explicit StreamTable(std::string host) : host_(std::move(host)) {}
  void load(Database& db);

  const StreamRow* find(std::int64_t id) const;
  const std::vector<StreamRow>& rows() const { return rows_; }
  /// The session's main stream with the latest activity; null: none.
  const StreamRow* main_of(std::string_view session) const;
  /// Where a restricted user's filter lists projects, the directory's name does not count.
  bool matches(const StreamRow& row, const serve::SearchRequest& request) const;
  std::string_view host_of(std::string_view session) const;

 private:
  std::string_view project_of(const StreamRow& row) const;

  const std::string host_;  // empty: the names of sessions have hosts
  std::vector<StreamRow> rows_;
  std::unordered_map<std::int64_t, std::size_t> by_id_;
  std::map<std::string_view, std::size_t> by_name_, main_;  // of rows_
};

/// Places in the results of restricted users. A query that reaches its time limit ends at a document that the
/// user may not see, whose id is its time: the user gets a random name of it instead.
class HiddenPlaces {
 public:
  static constexpr std::size_t names_max = 1024;  // the oldest is dropped

  std::string add(std::int64_t id);
  /// Absent: no place has this name, or it was dropped.
  std::optional<std::int64_t> find(std::string_view name) const;

 private:
  BoundedMap<std::int64_t, names_max> ids_;
};

class Reader {
 public:
  enum class Fault { none, missing, corrupt };                // of the file
  static constexpr std::chrono::milliseconds time_max{2000};  // of a query; then it ends with what it found
  static constexpr std::size_t projects_max = 200;            // listed by a history page

  /// `host`: of all sessions; empty: their names have hosts. `models` outlives the reader.
  Reader(std::string path, std::string host, const ModelTable& models)
      : path_(std::move(path)), table_(std::move(host)), models_(models) {}

  /// Never throws. 503 while there is no file.
  serve::HttpResponse run(const serve::SearchRequest& request, const IndexState& state, Fault& fault);
  /// From any thread: the query that runs, and any later one, ends at once.
  void stop() { stopped_ = true; }
  void set_time_max(std::chrono::milliseconds time) { time_allowed_ = time; }

 private:
  struct Scan;

  void open();
  bool is_in_place() const;
  serve::HttpResponse search(const serve::SearchRequest& request, const IndexState& state);
  serve::HttpResponse history(const serve::SearchRequest& request, const IndexState& state);

  const std::string path_;
  StreamTable table_;
  const ModelTable& models_;
  HiddenPlaces places_;
  std::atomic<bool> stopped_ = false;
  std::optional<Database> db_;
  std::uint64_t device_ = 0, inode_ = 0;
  std::int64_t data_version_ = -1;
  std::chrono::milliseconds time_allowed_ = time_max;
};

}  // namespace earshot::search
