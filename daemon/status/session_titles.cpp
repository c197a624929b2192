#include "status/session_titles.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/display_text.hpp"
#include "base/file.hpp"

namespace earshot::status {

SessionTitles::SessionTitles(boost::asio::io_context& io, boost::asio::any_io_executor disk,
                             OnChange on_change)
    : io_(io), disk_(std::move(disk)), on_change_(std::move(on_change)) {}

void SessionTitles::stop() { alive_.reset(); }

void SessionTitles::track(const std::string& session, const Root& root, const std::string& transcript) {
  const TitleFiles* const format = root.program->title_files();
  if (!format) return;
  const std::string file = format->title_file(std::string_view(transcript).substr(root.path.size() + 1));
  if (file.empty()) return;
  std::string path = root.path + '/' + file;
  if (const auto known = tracked_.find(session); known != tracked_.end()) {
    if (known->second.file == path) return;
    untrack(session);
  }
  File& entry = files_[path];
  entry.format = format;
  entry.sessions.insert(session);
  dirty_.insert(path);
  tracked_[session].file = std::move(path);
  read_dirty();
}

void SessionTitles::untrack(const std::string& session) {
  const auto found = tracked_.find(session);
  if (found == tracked_.end()) return;
  const auto file = files_.find(found->second.file);
  file->second.sessions.erase(session);
  if (file->second.sessions.empty()) {
    dirty_.erase(file->first);
    files_.erase(file);
  }
  tracked_.erase(found);
}

void SessionTitles::on_change(const std::string& path) {
  if (!files_.contains(path)) return;
  dirty_.insert(path);
  read_dirty();
}

void SessionTitles::rescan() {
  for (const auto& [path, file] : files_) dirty_.insert(path);
  read_dirty();
}

void SessionTitles::read_dirty() {
  if (reading_ || dirty_.empty() || !alive_) return;
  reading_ = true;
  std::vector<std::pair<std::string, const TitleFiles*>> files;
  while (!dirty_.empty() && files.size() < batch_max) {
    std::string path = std::move(dirty_.extract(dirty_.begin()).value());
    const TitleFiles* const format = files_.at(path).format;
    files.emplace_back(std::move(path), format);
  }
  auto guard = boost::asio::make_work_guard(io_);
  boost::asio::post(disk_, [this, alive = std::weak_ptr<char>(alive_), files = std::move(files),
                            guard = std::move(guard)]() mutable {
    std::vector<Result> results;
    for (auto& [path, format] : files) {
      const SmallFile file = read_small_file(path, TitleFiles::title_file_bytes_max);
      if (file.ok()) results.push_back({std::move(path), format->parse_titles(file.text)});
    }
    boost::asio::post(guard.get_executor(), [this, alive, results = std::move(results)] {
      if (alive.expired()) return;
      reading_ = false;
      for (const Result& result : results) apply(result);
      read_dirty();
    });
  });
}

void SessionTitles::apply(const Result& result) {
  const auto file = files_.find(result.file);
  if (file == files_.end()) return;
  const std::set<std::string>& sessions = file->second.sessions;
  std::map<std::string, std::string> titles;
  for (const SessionTitle& each : result.titles) {
    const std::string title = replace_controls(each.title, title_bytes_max);
    if (each.session.empty())
      for (const std::string& session : sessions) titles[session] = title;
    else if (sessions.contains(each.session))
      titles[each.session] = title;
  }
  for (const auto& [session, title] : titles) {
    const auto tracked = tracked_.find(session);  // the callback may end the tracking of others
    if (tracked != tracked_.end() && std::exchange(tracked->second.title, title) != title)
      on_change_(session);
  }
}

const std::string& SessionTitles::of(const std::string& session) const {
  static const std::string none;
  const auto found = tracked_.find(session);
  return found == tracked_.end() ? none : found->second.title;
}

}  // namespace earshot::status
