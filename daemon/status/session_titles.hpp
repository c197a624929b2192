// The titles of tracked sessions that a program keeps outside their transcripts, read on the disk thread and
// kept current by change hints.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "agents/roots.hpp"

namespace earshot::status {

constexpr std::size_t title_bytes_max = 512;  // a longer title is cut between characters

class SessionTitles {
 public:
  using OnChange = std::function<void(const std::string& session)>;

  static constexpr std::size_t batch_max = 64;  // files per task on the disk thread

  SessionTitles(boost::asio::io_context& io, boost::asio::any_io_executor disk, OnChange on_change);

  /// Keeps the session's title current from now on. `transcript`: absolute, below the root. Idempotent.
  void track(const std::string& session, const Root& root, const std::string& transcript);
  void untrack(const std::string& session);
  /// `path`: absolute. Paths that are no title file do not matter.
  void on_change(const std::string& path);
  void rescan();
  void stop();

  /// The title that was read last; empty: none is known.
  const std::string& of(const std::string& session) const;

 private:
  struct Tracked {
    std::string file, title;
  };
  struct File {
    const TitleFiles* format = nullptr;
    std::set<std::string> sessions;
  };
  struct Result {
    std::string file;
    std::vector<SessionTitle> titles;
  };

  void read_dirty();
  void apply(const Result& result);

  boost::asio::io_context& io_;
  boost::asio::any_io_executor disk_;
  OnChange on_change_;
  std::unordered_map<std::string, Tracked> tracked_;  // by session
  std::map<std::string, File> files_;                 // by absolute path
  std::set<std::string> dirty_;                       // files
  bool reading_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();  // results from the disk hold it weakly
};

}  // namespace earshot::status
