// Full-text search and the history of sessions: an index of all transcripts in the state directory, a thread
// that builds it, one that queries it, and what connects them with the event loop.
#pragma once
#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "search/growth.hpp"
#include "search/indexer.hpp"
#include "search/reader.hpp"
#include "serve/http/metrics.hpp"
#include "serve/http/search.hpp"
#include "tail/tail.hpp"

namespace earshot::search {

/// Runs queries on a thread of its own, one after another. Clients alternate: none waits for all queries of
/// another one.
class QueryThread {
 public:
  using Done = std::function<void(serve::HttpResponse, Reader::Fault)>;  // on the thread

  QueryThread(std::string path, std::string host, const ModelTable& models);
  ~QueryThread() { stop(); }
  void stop();
  void run(serve::SearchRequest request, IndexState state, Done done);

 private:
  struct Query {
    serve::SearchRequest request;
    IndexState state;
    Done done;
  };
  void run_all();

  Reader reader_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::deque<Query> queries_;  // bounded by Search::queries_max
  std::thread thread_;
};

struct SearchOptions {
  std::string directory;  // of the file
  std::string identity;   // of the host's key and the redaction rules: another one makes another index
  std::string host;       // of all sessions; empty: their names have hosts
  const ModelTable* models = &ModelTable::built_in();  // prices, for estimates; outlives the search
  /// Called when the index is built, on the loop's thread: what that needed may return to the system.
  std::function<void()> on_built = [] {};
};

/// Removes the index from a state directory.
void remove_index(const std::string& directory);

/// Sits between the tail and the server. All calls are made on the loop's thread.
class Search final : public tail::StreamObserver {
 public:
  static constexpr std::chrono::milliseconds settle_time{2000};  // a stream that grows is indexed so often
  static constexpr std::size_t slice_streams = 256;     // listed or looked up in one turn of the loop
  static constexpr std::size_t queries_max = 32;        // waiting, of all clients: then 503
  static constexpr std::size_t client_queries_max = 8;  // of one client: then 429

  /// `filter` and `next`, which receives all calls of the tail, outlive this object.
  Search(boost::asio::io_context& io, SearchOptions options, const TextFilter& filter,
         tail::StreamObserver& next);
  ~Search() override;

  /// `tail` outlives this object, or stop() is called first. Lists all streams and indexes them.
  void start(tail::Tail& tail);
  void stop();
  void run(serve::SearchRequest request, std::function<void(serve::HttpResponse)> done);

  void fill(serve::MetricsPage& page) const;
  void fill(serve::Health& health) const;

  void on_added(const tail::Stream& stream) override;
  void on_growing(const tail::Stream& stream) override;
  void on_event(const tail::Stream& stream, const Event& event) override;
  void on_changed(const tail::Stream& stream) override;
  void on_reset(const tail::Stream& stream, std::string_view reason) override;
  void on_renamed(const tail::Stream& stream, std::string_view from) override;
  void on_removed(const tail::Stream& stream) override;
  void on_released(const tail::Stream& stream) override;
  void on_compacting(std::string_view session) override { next_.on_compacting(session); }
  void on_flush() override { next_.on_flush(); }
  void on_batch_end() override { next_.on_batch_end(); }

 private:
  void list_all();
  void list_some();
  void resolve(const std::vector<std::string>& names);
  std::optional<IndexJob> job_of(std::string_view name);
  void grew(const tail::Stream& stream);
  void index_grown();
  void post(std::function<void()> task);
  IndexState index_state() const;

  boost::asio::io_context& io_;
  tail::StreamObserver& next_;
  const std::string path_;
  tail::Tail* tail_ = nullptr;  // null: not started, or stopped
  Indexer indexer_;
  QueryThread queries_;
  struct Listing {
    tail::Tail::Place place;
    StreamList streams;
  };
  std::optional<Listing> listing_;  // while all streams are being listed
  GrowthLog growth_;                // since the last index_grown()
  Timer timer_;
  bool timer_runs_ = false;
  std::optional<Clock::time_point> behind_since_;  // of the first of growth_
  std::map<std::string, std::size_t> in_flight_;   // queries by client
  std::size_t all_in_flight_ = 0;
  std::uint64_t answered_ = 0;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace earshot::search
