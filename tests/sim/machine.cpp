#include "machine.hpp"

#include <cerrno>
#include <utility>

namespace earshot::sim {
namespace {

Machine* machine = nullptr;
constexpr std::chrono::nanoseconds start_time{1'767'000'000'000'000'000};  // since 1970

}  // namespace

Node::Node(Machine& owner, FileType of_type) : machine(owner), type(of_type) {
  auto& free = machine.free_inodes_;
  if (!free.empty() && machine.random.percent(70)) {
    inode = free.back();  // as ext4 does half the time
    free.pop_back();
  } else {
    inode = machine.inodes_++;
  }
  born_ns = modified_ns = changed_ns = machine.file_time();
}

Node::~Node() { machine.free_inodes_.push_back(inode); }

Machine::Machine(std::uint64_t seed) : random(seed) {
  machine = this;
  root_ = std::make_shared<Node>(*this, FileType::directory);
}

Machine::~Machine() {
  open_.clear();
  root_ = nullptr;
  machine = nullptr;
}

Machine& Machine::current() { return *machine; }

std::int64_t Machine::file_time() const {
  const std::int64_t date = (start_time + now).count();
  return date - date % tick_ns;
}

std::pair<NodePtr, std::string> Machine::place(std::string_view path) const {
  const auto slash = path.rfind('/');
  return {find(path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

NodePtr Machine::find(std::string_view path) const {
  NodePtr at = root_;
  while (at && !path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(name.size());
    if (name.empty()) continue;
    const auto entry = at->entries.find(name);
    at = entry == at->entries.end() ? nullptr : entry->second;
  }
  return at;
}

void Machine::touched(const NodePtr& node, bool modified) {
  wait(std::chrono::nanoseconds(tick_ns));
  node->changed_ns = file_time();
  if (modified) node->modified_ns = node->changed_ns;
}

void Machine::notify_changed(const NodePtr& node) {
  const NodePtr directory = node->parent.lock();
  if (!directory || !on_change) return;
  for (const auto& [name, entry] : directory->entries)
    if (entry == node) return on_change(directory, name);
}

NodePtr Machine::make_directories(const std::string& path) {
  if (NodePtr there = find(path)) return there;
  const auto [unused, name] = place(path);
  const NodePtr parent = make_directories(path.substr(0, path.rfind('/')));
  const auto node = std::make_shared<Node>(*this, FileType::directory);
  node->parent = parent;
  parent->entries[name] = node;
  touched(parent, true);
  if (on_change) on_change(parent, name);
  return node;
}

NodePtr Machine::create(const std::string& path) {
  if (const NodePtr there = find(path)) {
    resize(there, 0);
    return there;
  }
  const NodePtr parent = make_directories(path.substr(0, path.rfind('/')));
  const std::string name = path.substr(path.rfind('/') + 1);
  touched(parent, true);
  const auto node = std::make_shared<Node>(*this, FileType::regular);
  node->links = 1;
  node->parent = parent;
  parent->entries[name] = node;
  if (on_change) on_change(parent, name);
  return node;
}

void Machine::append(const NodePtr& file, std::string_view bytes) {
  file->bytes += bytes;
  touched(file, true);
  notify_changed(file);
}

void Machine::resize(const NodePtr& file, std::size_t bytes) {
  file->bytes.resize(bytes);
  touched(file, true);
  notify_changed(file);
}

void Machine::overwrite(const NodePtr& file, std::size_t at, std::string_view bytes) {
  file->bytes.replace(at, bytes.size(), bytes);
  file->hidden = true;
  touched(file, true);
  notify_changed(file);
}

bool Machine::rename(const std::string& from, const std::string& to) {
  const NodePtr node = find(from);
  const auto [source, name] = place(from);
  const auto [target, new_name] = place(to);
  if (!node || !target || find(to) == node || target->type != FileType::directory) return false;
  if (to.starts_with(from + '/')) return false;
  if (const NodePtr there = find(to); there && there->type != node->type) return false;
  if (const NodePtr there = find(to); there && !there->entries.empty()) return false;
  remove(to);
  source->entries.erase(name);
  target->entries[new_name] = node;
  node->parent = target;
  touched(node, false);
  touched(source, true);
  touched(target, true);
  if (on_change) on_change(source, name);
  if (on_change) on_change(target, new_name);
  return true;
}

bool Machine::link(const std::string& from, const std::string& to) {
  const NodePtr node = find(from);
  const auto [target, name] = place(to);
  if (!node || !target || node->type != FileType::regular || find(to)) return false;
  target->entries[name] = node;
  ++node->links;
  touched(node, false);
  touched(target, true);
  if (on_change) on_change(target, name);
  return true;
}

void Machine::remove(const std::string& path) {
  const NodePtr node = find(path);
  if (!node) return;
  while (!node->entries.empty()) remove(path + '/' + node->entries.begin()->first);
  const auto [parent, name] = place(path);
  parent->entries.erase(name);
  if (node->links > 0) --node->links;
  touched(node, false);
  touched(parent, true);
  if (on_change) on_change(parent, name);
}

void Machine::deny(const NodePtr& node, bool denied) {
  node->denied = denied;
  touched(node, false);
  notify_changed(node);
}

std::map<std::string, NodePtr> Machine::files(const std::string& directory) const {
  std::map<std::string, NodePtr> all;
  const NodePtr node = find(directory);
  if (!node) return all;
  for (const auto& [name, entry] : node->entries) {
    if (entry->type == FileType::regular)
      all[directory + '/' + name] = entry;
    else
      all.merge(files(directory + '/' + name));
  }
  return all;
}

FileStat Machine::stat(const NodePtr& node) const {
  FileStat stat;
  if (!node) {
    stat.error = ENOENT;
    return stat;
  }
  stat.type = node->type;
  stat.links = node->links;
  stat.device = 1;
  stat.inode = node->inode;
  stat.size = node->bytes.size();
  stat.modified_ns = node->modified_ns;
  stat.changed_ns = node->changed_ns;
  if (has_birth_times) stat.born_ns = node->born_ns;
  return stat;
}

int Machine::open(std::string_view path, bool directory) {
  if (fails(faults.open_error)) return random.percent(50) ? -EMFILE : -EIO;
  const NodePtr node = find(path);
  if (!node) return -ENOENT;
  if (node->denied) return -EACCES;
  if (directory && node->type != FileType::directory) return -ENOTDIR;
  open_[descriptors_] = node;
  return descriptors_++;
}

NodePtr Machine::opened(int fd) const {
  const auto at = open_.find(fd);
  return at == open_.end() ? nullptr : at->second;
}

}  // namespace earshot::sim
