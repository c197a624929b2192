#include "search/search.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/system.hpp"
#include "tail/history.hpp"

namespace earshot::search {
namespace {

constexpr std::string_view file_name = "/search.sqlite";

IndexerOptions indexer_options(const SearchOptions& options, const TextFilter& filter) {
  IndexerOptions indexer;
  indexer.path = options.directory + std::string(file_name);
  indexer.identity = options.identity;
  indexer.filter = &filter;
  return indexer;
}

}  // namespace

// --- The query thread ---

QueryThread::QueryThread(std::string path, std::string host, const ModelTable& models)
    : reader_(std::move(path), std::move(host), models) {}

void QueryThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  reader_.stop();
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void QueryThread::run(serve::SearchRequest request, IndexState state, Done done) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  if (!thread_.joinable()) thread_ = std::thread([this] { run_all(); });
  queries_.push_back({std::move(request), state, std::move(done)});
  wake_.notify_all();
}

void QueryThread::run_all() {
  std::string last_client;
  while (true) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stopped_ || !queries_.empty(); });
    if (stopped_) return;
    auto next = std::find_if(queries_.begin(), queries_.end(),
                             [&](const Query& each) { return each.request.client != last_client; });
    if (next == queries_.end()) next = queries_.begin();
    const Query query = std::move(*next);
    queries_.erase(next);
    lock.unlock();
    last_client = query.request.client;
    Reader::Fault fault{};
    serve::HttpResponse response = reader_.run(query.request, query.state, fault);
    query.done(std::move(response), fault);
  }
}

// --- The loop ---

void remove_index(const std::string& directory) { remove_database(directory + std::string(file_name)); }

Search::Search(boost::asio::io_context& io, SearchOptions options, const TextFilter& filter,
               tail::StreamObserver& next)
    : io_(io),
      next_(next),
      path_(options.directory + std::string(file_name)),
      indexer_(indexer_options(options, filter),
               {[this](std::vector<std::string> names) {
                  post([this, names = std::move(names)] { resolve(names); });
                },
                [this] { post([this] { list_all(); }); }, [this, built = options.on_built] { post(built); }}),
      queries_(path_, options.host, *options.models),
      growth_(filter),
      timer_(io) {}

Search::~Search() { stop(); }

void Search::start(tail::Tail& tail) {
  tail_ = &tail;
  indexer_.start();
  list_all();
}

void Search::stop() {
  tail_ = nullptr;
  timer_.cancel();
  indexer_.stop();
  queries_.stop();
  alive_.reset();
}

/// From any thread.
void Search::post(std::function<void()> task) {
  boost::asio::post(io_, [weak = std::weak_ptr<char>(alive_), task = std::move(task)] {
    if (!weak.expired()) task();
  });
}

void Search::list_all() {
  const bool is_listing = listing_.has_value();
  listing_.emplace();
  if (!is_listing) list_some();
}

void Search::list_some() {
  if (!tail_) return;
  const auto add = [this](const tail::Stream& stream) {
    listing_->streams.add(stream.name(), stream.modified_ms());
  };
  if (tail_->for_some(listing_->place, slice_streams, add)) return post([this] { list_some(); });
  indexer_.scan(std::move(listing_->streams));
  listing_.reset();
}

void Search::resolve(const std::vector<std::string>& names) {
  if (!tail_) return;
  std::vector<IndexJob> jobs;
  for (const std::string& name : names)
    if (auto job = job_of(name)) jobs.push_back(std::move(*job));
  indexer_.add_jobs(std::move(jobs));
}

/// Takes the stream's growth.
std::optional<IndexJob> Search::job_of(std::string_view name) {
  const tail::Stream* stream = tail_->find(name);
  const auto history = stream ? tail_->history(*stream) : nullptr;
  if (!history) {
    growth_.drop(name);
    return std::nullopt;
  }
  const StreamIdentity& identity = stream->path_identity();
  return IndexJob{stream->name(),     stream->path(), history->options(), identity.session,
                  identity.is_likely, identity.agent, identity.directory, growth_.take(*stream)};
}

void Search::grew(const tail::Stream& stream) {
  if (!tail_) return;  // the first list has it
  growth_.mark(stream);
  if (!behind_since_) behind_since_ = Clock::now();
  if (std::exchange(timer_runs_, true)) return;
  timer_.expires_after(settle_time);
  timer_.async_wait([this, weak = std::weak_ptr<char>(alive_)](const boost::system::error_code& failed) {
    if (!failed && !weak.expired()) index_grown();
  });
}

void Search::index_grown() {
  if (!tail_) return;
  for (std::size_t left = slice_streams; left > 0 && !growth_.empty(); --left) {
    const std::string name = growth_.first();
    if (auto job = job_of(name)) indexer_.changed(std::move(*job));
  }
  if (!growth_.empty()) return post([this] { index_grown(); });
  timer_runs_ = false;
  behind_since_.reset();
}

void Search::on_growing(const tail::Stream& stream) {
  next_.on_growing(stream);
  if (tail_) growth_.begin_feed(stream);
}

void Search::on_event(const tail::Stream& stream, const Event& event) {
  next_.on_event(stream, event);
  if (tail_) growth_.add(stream, event);
}

void Search::on_added(const tail::Stream& stream) {
  next_.on_added(stream);
  if (listing_) listing_->streams.add(stream.name(), stream.modified_ms());  // else it would be removed
  grew(stream);
}

void Search::on_changed(const tail::Stream& stream) {
  next_.on_changed(stream);
  grew(stream);
}

void Search::on_reset(const tail::Stream& stream, std::string_view reason) {
  next_.on_reset(stream, reason);
  if (tail_) growth_.drop(stream.name()), indexer_.dropped(stream.name());
  grew(stream);
}

/// It is indexed under its new name.
void Search::on_renamed(const tail::Stream& stream, std::string_view from) {
  next_.on_renamed(stream, from);
  if (tail_) indexer_.dropped(std::string(from));
  growth_.drop(from);
  if (listing_) listing_->streams.add(stream.name(), stream.modified_ms());
  if (stream.transcript())
    grew(stream);
  else if (auto job = job_of(stream.name()))
    indexer_.changed(std::move(*job));
}

void Search::on_removed(const tail::Stream& stream) {
  if (tail_) indexer_.dropped(stream.name());
  growth_.drop(stream.name());
  next_.on_removed(stream);
}

/// What it has grown by is read from its file.
void Search::on_released(const tail::Stream& stream) {
  growth_.forget(stream.name());
  next_.on_released(stream);
}

IndexState Search::index_state() const {
  const Indexer::State state = indexer_.state();
  const std::uint64_t total = tail_ ? tail_->counters().known_files : 0;
  const std::uint64_t waiting = state.waiting + growth_.size();
  return {state.building || listing_.has_value(), total - std::min(total, waiting), total};
}

void Search::run(serve::SearchRequest request, std::function<void(serve::HttpResponse)> done) {
  const auto refuse = [&](unsigned status, std::string_view text) {
    boost::asio::post(io_, [done, response = serve::text_response(status, text)] { done(response); });
  };
  if (!tail_) return refuse(503, "the index is not available at the moment: retry later");
  const std::string client = request.client;
  const auto known = in_flight_.find(client);
  if (known != in_flight_.end() && known->second >= client_queries_max)
    return refuse(429, "too many searches at once: wait for their answers");
  if (all_in_flight_ >= queries_max) return refuse(503, "too many searches are waiting: retry later");
  ++in_flight_[client], ++all_in_flight_;
  queries_.run(std::move(request), index_state(),
               [this, weak = std::weak_ptr<char>(alive_), client, done = std::move(done)](
                   serve::HttpResponse response, Reader::Fault fault) {
                 boost::asio::post(io_, [this, weak, client, done, response = std::move(response), fault] {
                   if (weak.expired()) return;
                   if (--in_flight_[client] == 0) in_flight_.erase(client);
                   --all_in_flight_, ++answered_;
                   if (fault != Reader::Fault::none) indexer_.check_file(fault == Reader::Fault::corrupt);
                   done(response);
                 });
               });
}

void Search::fill(serve::Health& health) const {
  const Indexer::State state = indexer_.state();
  const IndexState index = index_state();
  health.search.on = true;
  health.search.building = index.building;
  health.search.indexed = index.indexed;
  health.search.total = index.total;
  health.search.documents = state.documents;
  health.search.bytes = state.bytes;
  health.search.problem = state.problem;
  if (behind_since_)
    health.search.lag_ms = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - *behind_since_).count());
}

void Search::fill(serve::MetricsPage& page) const {
  serve::Health health;
  fill(health);
  const Indexer::State state = indexer_.state();
  const serve::Health::Search& search = health.search;
  page.add("earshot_search_building", "1 while the first pass over all transcripts is not finished.",
           search.building ? 1 : 0);
  page.add("earshot_search_problem", "1 if the index cannot be written.", search.problem.empty() ? 0 : 1);
  page.add("earshot_search_indexed_streams", "Transcripts that are indexed completely.", search.indexed);
  page.add("earshot_search_pending_streams", "Transcripts that are not.", search.total - search.indexed);
  page.add("earshot_search_documents", "Documents in the index.", search.documents);
  page.add("earshot_search_file_bytes", "Size of the index.", search.bytes);
  page.add("earshot_search_lag_seconds", "For how long a transcript's new lines have waited to be indexed.",
           static_cast<double>(search.lag_ms) / 1000);
  page.add("earshot_search_evicted_total",
           "Transcripts whose documents were removed because of the size limit.", state.evicted);
  page.add("earshot_search_rebuilt_total", "Times that the index was lost or corrupt.", state.rebuilt);
  page.add("earshot_search_read_bytes_total", "Bytes of transcripts read for the index.", state.read_bytes);
  page.add("earshot_search_queries_total", "Queries answered.", answered_);
}

}  // namespace earshot::search
