#include "cli/place.hpp"

#include <algorithm>
#include <filesystem>

#include "base/display_text.hpp"

namespace earshot::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".jsonl";
constexpr std::string_view agent_prefix = "agent-";

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

std::string_view without_suffix(std::string_view name) {
  if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

std::string root_name(const std::string& directory) {
  const std::string_view name = directory;
  return std::string(name.starts_with('.') && name.size() > 1 ? name.substr(1) : name);
}

}  // namespace

bool is_transcript_name(std::string_view name) {
  return name.ends_with(suffix) && name != "journal.jsonl" && name != "history.jsonl" &&
         !name.starts_with("agent-aprompt_suggestion-") && !name.starts_with("agent-acompact-");
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  const auto encode = [&](char c) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += digits[byte >> 4];
    out += digits[byte & 15];
  };
  while (!text.empty()) {
    std::string_view rest = text;
    const char32_t c = take_code_point(rest);
    const std::size_t size = text.size() - rest.size();
    // An invalid byte is decoded as U+FFFD too, but a real U+FFFD has three bytes.
    const bool broken = c == 0xfffd && !(size == 3 && is_continuation(text[1]));
    if (broken || c == ':' || c == '%' || c < 0x20 || (c >= 0x7f && c < 0xa0)) {
      for (const char byte : text.substr(0, size)) encode(byte);
    } else {
      out += text.substr(0, size);
    }
    text = rest;
  }
  return out;
}

Place place_of(std::string_view path_text) {
  Place place;
  if (path_text == "-") {
    place.stream = place.session = "stdin";
    return place;
  }
  const fs::path path = fs::absolute(fs::path(path_text)).lexically_normal();
  std::vector<std::string> parts;
  for (const fs::path& part : path) parts.push_back(part.string());
  const std::string file = parts.empty() ? std::string(path_text) : parts.back();
  const std::string_view stem = without_suffix(file);

  // The last directory of that name: the root itself may be below a directory called projects.
  const auto last = std::find_if(parts.rbegin(), parts.rend(), [](const std::string& part) {
    return part == "projects" || part == "conversations";
  });
  const std::size_t at = static_cast<std::size_t>(parts.rend() - last);  // index of the next part; 0: none
  if (last == parts.rend() || at < 2 || at >= parts.size()) {
    place.stream = percent_encoded(stem);
  } else {
    std::string name = root_name(parts[at - 2]);
    for (std::size_t i = at; i + 1 < parts.size(); ++i) name += "/" + parts[i];
    place.stream = percent_encoded(name + "/" + std::string(stem));
  }

  const bool is_agent = stem.starts_with(agent_prefix) && stem.size() > agent_prefix.size();
  if (!is_agent) {
    place.session = percent_encoded(stem);
    return place;
  }
  place.own_agent = percent_encoded(stem.substr(agent_prefix.size()));
  const auto subagents = std::find(parts.rbegin(), parts.rend(), "subagents");
  if (subagents != parts.rend() && std::next(subagents) != parts.rend())
    place.session = percent_encoded(*std::next(subagents));
  return place;
}

TranscriptSearch transcripts_at(const std::string& path) {
  TranscriptSearch search;
  std::error_code error;
  if (path == "-" || !fs::is_directory(path, error)) {
    search.files.push_back(path);
    return search;
  }
  std::vector<fs::path> open{path};
  while (!open.empty()) {
    const fs::path directory = std::move(open.back());
    open.pop_back();
    fs::directory_iterator entry(directory, error);
    if (error) {
      search.errors.push_back(directory.string() + ": " + error.message());
      continue;
    }
    for (; entry != fs::directory_iterator(); entry.increment(error)) {
      const fs::file_status status = entry->symlink_status(error);
      if (fs::is_directory(status)) {
        open.push_back(entry->path());
      } else if (fs::is_regular_file(status) && is_transcript_name(entry->path().filename().string())) {
        search.files.push_back(entry->path().string());
      }
    }
  }
  std::sort(search.files.begin(), search.files.end());
  return search;
}

}  // namespace earshot::cli
