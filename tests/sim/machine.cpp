#include "machine.hpp"

#include <cerrno>
#include <utility>

namespace earshot::sim {
namespace {

Machine* machine = nullptr;
constexpr std::chrono::nanoseconds switched_on{1'767'000'000'000'000'000};  // since 1970

}  // namespace

Node::Node(Machine& of, Kind is) : machine(of), kind(is) {
  auto& free = machine.free_inodes_;
  if (!free.empty() && machine.dice.percent(70)) {
    inode = free.back();  // as ext4 does half the time
    free.pop_back();
  } else {
    inode = machine.inodes_++;
  }
  born_ns = modified_ns = changed_ns = machine.file_time();
}

Node::~Node() { machine.free_inodes_.push_back(inode); }

Machine::Machine(std::uint64_t seed) : dice(seed) {
  machine = this;
  root_ = std::make_shared<Node>(*this, Node::Kind::directory);
}

Machine::~Machine() {
  open_.clear();
  root_ = nullptr;
  machine = nullptr;
}

Machine& Machine::the() { return *machine; }

std::int64_t Machine::file_time() const {
  const std::int64_t date = (switched_on + now).count();
  return date - date % tick_ns;
}

std::pair<File, std::string> Machine::place(std::string_view path) const {
  const auto slash = path.rfind('/');
  return {find(path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

File Machine::find(std::string_view path) const {
  File at = root_;
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

void Machine::touched(const File& node, bool modified) {
  wait(std::chrono::nanoseconds(tick_ns));
  node->changed_ns = file_time();
  if (modified) node->modified_ns = node->changed_ns;
}

void Machine::told(const File& node) {
  const File directory = node->above.lock();
  if (!directory || !on_change) return;
  for (const auto& [name, entry] : directory->entries)
    if (entry == node) return on_change(directory, name);
}

File Machine::make_directories(const std::string& path) {
  if (File there = find(path)) return there;
  const auto [unused, name] = place(path);
  const File above = make_directories(path.substr(0, path.rfind('/')));
  const auto node = std::make_shared<Node>(*this, Node::Kind::directory);
  node->above = above;
  above->entries[name] = node;
  touched(above, true);
  if (on_change) on_change(above, name);
  return node;
}

File Machine::create(const std::string& path) {
  if (const File there = find(path)) {
    resize(there, 0);
    return there;
  }
  const File above = make_directories(path.substr(0, path.rfind('/')));
  const std::string name = path.substr(path.rfind('/') + 1);
  touched(above, true);
  const auto node = std::make_shared<Node>(*this, Node::Kind::regular);
  node->links = 1;
  node->above = above;
  above->entries[name] = node;
  if (on_change) on_change(above, name);
  return node;
}

void Machine::append(const File& file, std::string_view bytes) {
  file->bytes += bytes;
  touched(file, true);
  told(file);
}

void Machine::resize(const File& file, std::size_t bytes) {
  file->bytes.resize(bytes);
  touched(file, true);
  told(file);
}

void Machine::overwrite(const File& file, std::size_t at, std::string_view bytes) {
  file->bytes.replace(at, bytes.size(), bytes);
  file->hidden = true;
  touched(file, true);
  told(file);
}

bool Machine::rename(const std::string& from, const std::string& to) {
  const File node = find(from);
  const auto [source, name] = place(from);
  const auto [target, new_name] = place(to);
  if (!node || !target || find(to) == node || target->kind != Node::Kind::directory) return false;
  if (to.starts_with(from + '/')) return false;
  if (const File there = find(to); there && there->kind != node->kind) return false;
  if (const File there = find(to); there && !there->entries.empty()) return false;
  remove(to);
  source->entries.erase(name);
  target->entries[new_name] = node;
  node->above = target;
  touched(node, false);
  touched(source, true);
  touched(target, true);
  if (on_change) on_change(source, name);
  if (on_change) on_change(target, new_name);
  return true;
}

bool Machine::link(const std::string& from, const std::string& to) {
  const File node = find(from);
  const auto [target, name] = place(to);
  if (!node || !target || node->kind != Node::Kind::regular || find(to)) return false;
  target->entries[name] = node;
  ++node->links;
  touched(node, false);
  touched(target, true);
  if (on_change) on_change(target, name);
  return true;
}

void Machine::remove(const std::string& path) {
  const File node = find(path);
  if (!node) return;
  while (!node->entries.empty()) remove(path + '/' + node->entries.begin()->first);
  const auto [above, name] = place(path);
  above->entries.erase(name);
  if (node->links > 0) --node->links;
  touched(node, false);
  touched(above, true);
  if (on_change) on_change(above, name);
}

void Machine::deny(const File& node, bool denied) {
  node->denied = denied;
  touched(node, false);
  told(node);
}

std::map<std::string, File> Machine::files(const std::string& directory) const {
  std::map<std::string, File> all;
  const File node = find(directory);
  if (!node) return all;
  for (const auto& [name, entry] : node->entries) {
    if (entry->kind == Node::Kind::regular)
      all[directory + '/' + name] = entry;
    else
      all.merge(files(directory + '/' + name));
  }
  return all;
}

tail::Facts Machine::facts(const File& node) const {
  tail::Facts facts;
  if (!node) {
    facts.error = ENOENT;
    return facts;
  }
  facts.kind = node->kind;
  facts.links = node->links;
  facts.device = 1;
  facts.inode = node->inode;
  facts.size = node->bytes.size();
  facts.modified_ns = node->modified_ns;
  facts.changed_ns = node->changed_ns;
  if (tells_births) facts.born_ns = node->born_ns;
  return facts;
}

int Machine::open(std::string_view path, bool directory) {
  if (fails(faults.open_error)) return dice.percent(50) ? -EMFILE : -EIO;
  const File node = find(path);
  if (!node) return -ENOENT;
  if (node->denied) return -EACCES;
  if (directory && node->kind != Node::Kind::directory) return -ENOTDIR;
  open_[descriptors_] = node;
  return descriptors_++;
}

File Machine::opened(int fd) const {
  const auto at = open_.find(fd);
  return at == open_.end() ? nullptr : at->second;
}

}  // namespace earshot::sim
