// An index over transcripts that the test writes, without a tail: the fixture answers for it.
#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "agents/agent.hpp"
#include "search/indexer.hpp"
#include "search/reader.hpp"
#include "unit/search/live_stream.hpp"
#include "unit/serve/support.hpp"
#include "unit/support/fake_filter.hpp"
#include "unit/support/temporary_directory.hpp"

namespace earshot::test {

class IndexFixture {
 public:
  explicit IndexFixture(const TextFilter* filter = nullptr) : filter_(filter ? filter : &fake_) {}
  ~IndexFixture() { stop(); }

  /// Stream `r/p/<name>`, session `<name>`.
  std::string path(const std::string& name) const { return directory / (name + ".jsonl"); }
  void append(const std::string& name, std::string_view text) const {
    directory.append(name + ".jsonl", text);
  }
  void write(const std::string& name, std::string_view text) const { directory.write(name + ".jsonl", text); }

  search::IndexJob job(const std::string& name) {
    search::IndexJob job;
    job.name = "r/p/" + name, job.path = path(name), job.session = name, job.directory = "p";
    job.options.hash_key = 42, job.options.format = &default_program().format();
    const std::lock_guard lock(mutex_);
    if (const auto found = live_.find(name); found != live_.end()) job.growth = log_.take(*found->second);
    return job;
  }
  /// From now on the stream is live. What its file has is folded, or with `is_new` read as new.
  LiveStream& follow(const std::string& name, bool is_new = false) {
    auto options = job(name).options;
    const std::lock_guard lock(mutex_);
    log_.drop("r/p/" + name);
    auto& stream = live_[name];
    stream = std::make_unique<LiveStream>("r/p/" + name, path(name), options, log_);
    is_new ? stream->read() : stream->fold();
    return *stream;
  }
  /// The loop reads what a live stream's file has more.
  void read(const std::string& name, std::size_t bytes_max = SIZE_MAX) {
    const std::lock_guard lock(mutex_);
    live_.at(name)->read(bytes_max);
  }
  /// As if it had grown by more than is kept.
  void forget_growth(const std::string& name) {
    const std::lock_guard lock(mutex_);
    log_.forget("r/p/" + name);
  }
  /// Indexes these streams, and removes others. Returns when that is done.
  void index(const std::vector<std::string>& names) {
    {
      const std::lock_guard lock(mutex_);
      names_ = names;
    }
    if (!indexer) start();
    indexer->scan(listed());
    settle();
  }
  void grow(const std::string& name) {
    indexer->changed(job(name));
    settle();
  }
  void settle() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (std::chrono::steady_clock::now() < end) {
      const auto state = indexer->state();
      if (!state.building && state.waiting == 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    throw std::runtime_error("the index is not built");
  }
  void start() {
    make();
    indexer->start();
  }
  /// What is requested before start() waits.
  void make() {
    search::IndexerOptions options;
    options.path = file(), options.identity = identity, options.filter = filter_;
    options.rest_per_work = 0, options.batch_bytes_max = batch_bytes_max, options.bytes_max = bytes_max;
    options.retry = std::chrono::milliseconds(20);
    indexer = std::make_unique<search::Indexer>(
        options, search::Indexer::Callbacks{[this](const std::vector<std::string>& wanted) {
                                              std::vector<search::IndexJob> jobs;
                                              for (const std::string& each : wanted)
                                                jobs.push_back(job(each.substr(4)));
                                              indexer->add_jobs(std::move(jobs));
                                            },
                                            [this] { indexer->scan(listed()); }});
  }
  void stop() { indexer.reset(); }

  std::string file() const { return directory.path() + directory_name + "/search.sqlite"; }
  /// All columns of the streams except ids and stamps, sorted.
  std::vector<std::string> rows() const {
    search::Database db(file(), search::Database::Mode::read);
    search::Statement rows(
        db.handle(),
        "SELECT name, session, agent, program, project, title, model, cursor_offset, cursor_index, "
        "cursor_hash, first_ms, last_ms, prompts, tools, input, output, cache_read, cache_write, cost_usd, "
        "cost_total_ms, turn_started_ms, turn, models, documents FROM streams ORDER BY 1");
    return texts(rows, 24);
  }
  /// `stream cursor kind text` of all documents, sorted.
  std::vector<std::string> documents() const {
    search::Database db(file(), search::Database::Mode::read);
    search::Statement rows(
        db.handle(),
        "SELECT name, d.cursor_offset, d.cursor_index, d.cursor_hash, kind, text, d.id >> 20 "
        "FROM documents d JOIN streams s ON s.id = d.stream ORDER BY 1, 2, 3, 5, 6");
    return texts(rows, 7);
  }
  /// `integrity-check` of FTS5 fails unless the words are those of the documents.
  void check_words() const {
    search::Database db(file(), search::Database::Mode::write);
    db.run("INSERT INTO words(words, rank) VALUES('integrity-check', 1)");
  }
  serve::HttpResponse ask(serve::SearchRequest request) const {
    if (request.limit == 0) request.limit = 50;
    search::Reader reader(file(), "h", models);
    reader.set_time_max(std::chrono::minutes(10));
    search::Reader::Fault fault{};
    return reader.run(request, {}, fault);
  }
  serve::HttpResponse find(const std::string& text) const {
    serve::SearchRequest request;
    request.text = text;
    return ask(request);
  }

  TemporaryDirectory directory;
  std::string directory_name;  // of the index, below `directory`
  std::string identity = "one";
  std::size_t batch_bytes_max = 4 << 20;
  std::uint64_t bytes_max = std::uint64_t{1} << 30;
  ModelTable models = ModelTable::built_in();
  std::unique_ptr<search::Indexer> indexer;

 private:
  static std::vector<std::string> texts(search::Statement& rows, int columns) {
    std::vector<std::string> all;
    while (rows.step()) {
      std::string line;
      for (int column = 0; column < columns; ++column) line += rows.text(column) + ' ';
      all.push_back(line);
    }
    return all;
  }
  search::StreamList listed() {
    const std::lock_guard lock(mutex_);
    search::StreamList all;
    for (const std::string& name : names_) all.add("r/p/" + name, 0);
    return all;
  }

  FakeFilter fake_;
  const TextFilter* filter_;
  std::mutex mutex_;  // the indexer's thread asks for jobs
  std::vector<std::string> names_;
  search::GrowthLog log_{*filter_};
  std::map<std::string, std::unique_ptr<LiveStream>> live_;
};

}  // namespace earshot::test
