#include "base/text_filter.hpp"

#include <algorithm>

#include "base/json_writer.hpp"

namespace earshot {

void append_path_name(std::string& path, std::string_view name) {
  if (!path.empty()) path += '/';
  for (const char c : name) {
    if (c == '~')
      path += "~0";
    else if (c == '/')
      path += "~1";
    else
      path += c;
  }
}

TruncatedPaths::Scope::Scope(TruncatedPaths& paths, std::string_view name)
    : paths_(paths), outer_bytes_(paths.prefix_.size()) {
  append_path_name(paths_.prefix_, name);
}

TruncatedPaths::Scope::Scope(TruncatedPaths& paths, std::size_t index)
    : paths_(paths), outer_bytes_(paths.prefix_.size()) {
  if (!paths_.prefix_.empty()) paths_.prefix_ += '/';
  append_json_number(paths_.prefix_, index);
}

void TruncatedPaths::add(std::string_view path, std::uint64_t bytes) {
  if (list_.size() >= paths_max || prefix_.size() + 1 + path.size() > path_bytes_max) return;
  std::string absolute = prefix_;
  if (!absolute.empty() && !path.empty()) absolute += '/';
  absolute += path;
  const auto known = std::find_if(list_.begin(), list_.end(),
                                  [&](const TruncatedPath& each) { return each.path == absolute; });
  if (known == list_.end()) list_.push_back({std::move(absolute), bytes});
}

void TruncatedPaths::append_member(std::string& out) const {
  if (list_.empty()) return;
  out += ",\"truncated\":{";
  for (const TruncatedPath& each : list_) {
    append_json_string(out, each.path);
    out += ':';
    append_json_number(out, each.bytes);
    out += ',';
  }
  out.back() = '}';
}

}  // namespace earshot
