#include "watch/watcher.hpp"

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <utility>

namespace earshot::watch {

bool at_or_below(std::string_view path, std::string_view directory) {
  if (directory == "/") return path.starts_with('/');
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

class WatchMux::Client final : public Watcher {
 public:
  Client(WatchMux& mux, std::size_t number, std::vector<std::string> prefixes, ChangeCallback on_change)
      : mux_(mux), number_(number), prefixes_(std::move(prefixes)), on_change_(std::move(on_change)) {}

  void watch(const std::string& directory) override { mux_.watch(number_, directory, &Watcher::watch); }
  void watch_before_listing(const std::string& directory) override {
    mux_.watch(number_, directory, &Watcher::watch_before_listing);
  }
  void watch_links(const std::string& path) override { mux_.watch_links(number_, path); }
  DirectoryLister lister() const override { return mux_.lister(); }
  void unwatch(const std::string& directory) override { mux_.unwatch(number_, directory); }
  std::string problem() const override { return mux_.problem(); }

  void notify(const ChangeHint& hint) const {
    if (hint.where == ChangeHint::Where::everything ||
        std::any_of(prefixes_.begin(), prefixes_.end(), [&](const auto& prefix) {
          return at_or_below(hint.path, prefix) || at_or_below(prefix, hint.path);
        }))
      on_change_(hint);
  }

 private:
  WatchMux& mux_;  // owns this client
  std::size_t number_;
  std::vector<std::string> prefixes_;
  ChangeCallback on_change_;
};

WatchMux::WatchMux() = default;
WatchMux::~WatchMux() = default;

void WatchMux::add_backend(Watcher& backend) { backends_.push_back(&backend); }

Watcher& WatchMux::add_client(std::vector<std::string> prefixes, ChangeCallback on_change) {
  assert(clients_.size() < clients_max);
  clients_.push_back(
      std::make_unique<Client>(*this, clients_.size(), std::move(prefixes), std::move(on_change)));
  return *clients_.back();
}

bool WatchMux::notify(const ChangeHint& hint) const {
  for (const auto& client : clients_) client->notify(hint);
  const auto link = links_.find(hint.path);
  if (link == links_.end()) return false;
  for (const std::string& path : std::set<std::string>(link->second))  // a copy: clients watch again
    for (const auto& client : clients_) client->notify({ChangeHint::Where::path, path});
  return true;
}

std::string WatchMux::problem() const {
  std::string all;
  for (const Watcher* backend : backends_) {
    const std::string one = backend->problem();
    if (one.empty()) continue;
    if (!all.empty()) all += "; ";
    all += one;
  }
  return all;
}

void WatchMux::watch(std::size_t client, const std::string& directory,
                     void (Watcher::*how)(const std::string&)) {
  watched_[directory] |= std::uint32_t{1} << client;
  // Watch again even if the path is known: it may name a different directory now.
  for (Watcher* backend : backends_) (backend->*how)(directory);
}

void WatchMux::watch_links(std::size_t client, const std::string& path) {
  for (auto& [link, paths] : links_) paths.erase(path);
  std::erase_if(links_, [](const auto& link) { return link.second.empty(); });
  for (const std::string& link : links_of(path)) {
    const std::filesystem::path name = link, parent = name.parent_path();
    links_[parent.string() + '/' + name.filename().string()].insert(path);  // as a backend reports it
    watch(client, parent, &Watcher::watch);
  }
}

DirectoryLister WatchMux::lister() const {
  DirectoryLister only;
  for (const Watcher* backend : backends_)
    if (DirectoryLister lister = backend->lister()) {
      assert(!only);
      only = std::move(lister);
    }
  return only;
}

void WatchMux::unwatch(std::size_t client, const std::string& directory) {
  const std::uint32_t bit = std::uint32_t{1} << client;
  std::vector<std::string> kept;  // at or below `directory`, and wanted by other clients
  const auto release = [&](auto at) {
    at->second &= ~bit;
    if (at->second == 0) return watched_.erase(at);
    kept.push_back(at->first);
    return std::next(at);
  };
  if (auto at = watched_.find(directory); at != watched_.end()) release(at);
  const std::string below = directory + '/';
  for (auto at = watched_.lower_bound(below); at != watched_.end() && at->first.starts_with(below);)
    at = release(at);
  for (Watcher* backend : backends_) {
    backend->unwatch(directory);
    for (const auto& each : kept) backend->watch(each);
  }
}

}  // namespace earshot::watch
