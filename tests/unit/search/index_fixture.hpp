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

  search::IndexJob job(const std::string& name) const {
    search::IndexJob job;
    job.name = "r/p/" + name, job.path = path(name), job.session = name, job.directory = "p";
    job.options.hash_key = 42, job.options.reader = &default_program().reader();
    return job;
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
    search::IndexerOptions options;
    options.path = file(), options.identity = identity, options.filter = filter_;
    options.rest_per_work = 0, options.batch_bytes_max = batch_bytes_max, options.bytes_max = bytes_max;
    options.kept_file_bytes_min = kept_file_bytes_min, options.retry = std::chrono::milliseconds(20);
    indexer = std::make_unique<search::Indexer>(
        options, search::Indexer::Callbacks{[this](const std::vector<std::string>& wanted) {
                                              std::vector<search::IndexJob> jobs;
                                              for (const std::string& each : wanted)
                                                jobs.push_back(job(each.substr(4)));
                                              indexer->add_jobs(std::move(jobs));
                                            },
                                            [this] { indexer->scan(listed()); }});
    indexer->start();
  }
  void stop() { indexer.reset(); }

  std::string file() const { return directory.path() + directory_name + "/search.sqlite"; }
  /// `stream cursor kind text` of all documents, sorted.
  std::vector<std::string> documents() const {
    search::Database db(file(), search::Database::Mode::read);
    search::Statement rows(
        db.handle(),
        "SELECT name, d.cursor_offset, d.cursor_index, d.cursor_hash, kind, text, d.id >> 20 "
        "FROM documents d JOIN streams s ON s.id = d.stream ORDER BY 1, 2, 3, 5, 6");
    std::vector<std::string> all;
    while (rows.step()) {
      std::string line;
      for (int column = 0; column < 7; ++column) line += rows.text(column) + ' ';
      all.push_back(line);
    }
    return all;
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
  std::uint64_t kept_file_bytes_min = 0;
  ModelTable models = ModelTable::built_in();
  std::unique_ptr<search::Indexer> indexer;

 private:
  search::StreamList listed() {
    const std::lock_guard lock(mutex_);
    search::StreamList all;
    for (const std::string& name : names_) all.add("r/p/" + name, 0);
    return all;
  }

  FakeFilter fake_;
  const TextFilter* filter_;
  std::mutex mutex_;
  std::vector<std::string> names_;
};

}  // namespace earshot::test
