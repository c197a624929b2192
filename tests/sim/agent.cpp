#include "agent.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/event_json.hpp"

namespace earshot::sim {
namespace {

constexpr std::size_t files_max = 24;

}  // namespace

std::string Agent::lines(std::uint64_t count) {
  std::string all;
  while (count-- > 0) all += records_.line(machine_.random);
  return all;
}

std::string Agent::new_place() {
  std::string path = records_.path(machine_.random);
  machine_.make_directories(path.substr(0, path.rfind('/')));
  return path;
}

NodePtr Agent::any(std::string& path) {
  const auto files = machine_.files(root_);
  if (files.empty()) return nullptr;
  auto at = files.begin();
  std::advance(at, machine_.random.below(files.size()));
  path = at->first;
  return at->second;
}

/// Appends a random part of what the writer of this file has not written yet.
std::string Agent::write_on(std::string& path, const NodePtr& file) {
  std::string& unwritten = file->unwritten;
  if (unwritten.empty())
    unwritten =
        lines(machine_.random.percent(10) ? machine_.random.between(20, 60) : machine_.random.between(1, 4));
  const std::size_t n =
      machine_.random.percent(40) ? unwritten.size() : machine_.random.between(1, unwritten.size());
  machine_.append(file, std::string_view(unwritten).substr(0, n));
  unwritten.erase(0, n);
  return "append " + std::to_string(n) + " to " + path + " → " + std::to_string(file->bytes.size());
}

std::string Agent::act() {
  Random& random = machine_.random;
  const auto files = machine_.files(root_);
  const auto what = random.below(100);
  std::string path;
  if (files.size() < 2 || (what < 6 && files.size() < files_max)) {
    path = records_.path(machine_.random);
    if (const NodePtr there = machine_.find(path); there) return write_on(path, there);
    const NodePtr file = machine_.create(path);
    if (random.percent(80)) machine_.append(file, lines(random.between(1, 3)));
    return "create " + path + " with " + std::to_string(file->bytes.size());
  }
  const NodePtr file = any(path);
  if (what < 60) return write_on(path, file);
  const std::size_t size = file->bytes.size();
  const std::string short_of = path.substr(0, path.size() - 6);
  switch (what) {
    case 60:
    case 61:
    case 62: {  // truncated and rewritten
      machine_.resize(file, 0);
      file->unwritten.clear();
      const std::string fresh = lines(random.between(0, 8));
      if (!fresh.empty()) machine_.append(file, fresh);
      return "rewrite " + path + " with " + std::to_string(fresh.size());
    }
    case 63:
    case 64: {  // truncated anywhere, then possibly grown past its old size
      const std::size_t to = random.below(size + 1);
      machine_.resize(file, to);
      if (random.percent(60)) machine_.append(file, lines(random.between(1, 20)));
      return "truncate " + path + " from " + std::to_string(size) + " to " + std::to_string(to) + ", then " +
             std::to_string(file->bytes.size());
    }
    case 65:
    case 66: {  // only the first line kept
      const std::size_t first = file->bytes.find('\n') + 1;
      machine_.resize(file, first);
      machine_.append(file, lines(random.between(1, 10)));
      return "keep the first line of " + path + ", then " + std::to_string(file->bytes.size());
    }
    case 67:
    case 68: {  // one byte
      if (size == 0) return "nothing";
      const std::size_t at = random.below(size);
      machine_.overwrite(file, at, file->bytes[at] == 'x' ? "y" : "x");
      return "edit " + path + " at " + std::to_string(at);
    }
    case 69:
    case 70:
    case 71: {  // as rsync and editors do
      const std::string temporary = short_of + ".tmp";
      const NodePtr copy = machine_.create(temporary);
      copy->hidden = file->hidden;
      copy->bytes = file->bytes + (random.percent(50) ? lines(random.below(3)) : "");
      machine_.rename(temporary, path);
      return "copy and rename over " + path + " → " + std::to_string(copy->bytes.size());
    }
    case 72:
    case 73: {
      std::string other;
      any(other);
      if (!machine_.rename(path, other)) return "nothing";
      return "rename " + path + " over " + other;
    }
    case 74:
    case 75:
    case 76: {
      const std::string to = new_place();
      return machine_.rename(path, to) ? "rename " + path + " to " + to : "nothing";
    }
    case 77:
    case 78:
    case 79: {  // removed and often replaced at once by a file with its inode
      machine_.remove(path);
      if (random.percent(30)) unlinked_.push_back(file);
      if (random.percent(50)) return "remove " + path;
      const NodePtr fresh = machine_.create(path);
      machine_.append(fresh, lines(random.between(1, 10)));
      return "remove and recreate " + path + " with " + std::to_string(fresh->bytes.size());
    }
    case 80:
    case 81: {
      if (unlinked_.empty()) return "nothing";
      machine_.append(unlinked_.back(), lines(2));
      if (random.percent(50)) unlinked_.pop_back();
      return "write to an unlinked file";
    }
    case 82:
    case 83: {
      const std::string to = new_place();
      return machine_.link(path, to) ? "link " + path + " as " + to : "nothing";
    }
    case 84:
    case 85: {
      machine_.deny(file, !file->denied);
      return (file->denied ? "deny " : "allow ") + path;
    }
    case 86: {
      const std::string directory = records_.directory(machine_.random);
      machine_.remove(directory);
      return "remove " + directory;
    }
    case 87:
    case 88: {
      const std::string from = records_.directory(machine_.random), to = records_.directory(machine_.random);
      return machine_.rename(from, to) ? "rename " + from + " to " + to : "nothing";
    }
    case 89: {  // moved out of the root
      const std::string from = records_.directory(machine_.random),
                        to = "/away/d" + std::to_string(away_.size());
      machine_.make_directories("/away");
      if (!machine_.rename(from, to)) return "nothing";
      away_.push_back(to);
      return "move away " + from;
    }
    case 90: {  // and back
      if (away_.empty()) return "nothing";
      const std::string to = records_.directory(machine_.random);
      if (!machine_.rename(away_.back(), to)) return "nothing";
      away_.pop_back();
      return "move back as " + to;
    }
    case 91: {
      machine_.remove(root_);
      return "remove the root";
    }
    case 92: {
      machine_.append(file, std::string(random.between(1, 40), '\0'));
      return "zeros at the end of " + path;
    }
    case 93: {  // large append
      machine_.append(file, lines(random.between(100, 400)));
      return "much to " + path + " → " + std::to_string(file->bytes.size());
    }
    default:
      return write_on(path, file);
  }
}

}  // namespace earshot::sim
