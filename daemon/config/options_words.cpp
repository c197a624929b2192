#include "config/options_words.hpp"

#include <filesystem>

#include "config/options.hpp"

namespace earshot {
namespace {

std::string whole(const std::string& path) {
  if (path.starts_with('/')) return path;
  std::error_code ignored;
  return (std::filesystem::current_path(ignored) / path).lexically_normal().string();
}

/// `[NAME=]DIR`; `~/` is understood when it is read.
std::string whole_root(const std::string& word) {
  const std::size_t equals = word.find('=');
  const bool named = equals != word.npos && word.find('/') > equals;
  const std::string path = named ? word.substr(equals + 1) : word;
  const std::string name = named ? word.substr(0, equals + 1) : "";
  return name + (path == "~" || path.starts_with("~/") ? path : whole(path));
}

}  // namespace

std::vector<std::string> words_of(const RawOptions& line, const std::optional<std::string>& config,
                                  const Options& options) {
  struct Word {
    const char* name;
    std::optional<std::string> RawOptions::*field;
  };
  constexpr Word plain[] = {
      {"--recent", &RawOptions::recent},       {"--watch", &RawOptions::watch},
      {"--listen", &RawOptions::listen},       {"--host", &RawOptions::host},
      {"--log-level", &RawOptions::log_level},
  };
  std::vector<std::string> words;
  const auto say = [&](const char* name, std::string value) {
    words.emplace_back(name);
    words.push_back(std::move(value));
  };
  for (const std::string& root : line.roots) say("--root", whole_root(root));
  for (const auto& [name, field] : plain)
    if (line.*field) say(name, *(line.*field));
  if (line.state || !options.state.starts_with('/')) say("--state", whole(options.state));
  if (options.socket_given && (line.socket || !options.socket.starts_with('/')))
    say("--socket", whole(options.socket));
  if (config) say("--config", whole(*config));
  if (line.demo.value_or(false)) words.emplace_back("--demo");
  if (line.redact) words.emplace_back(*line.redact ? "--redact" : "--no-redact");
  return words;
}

}  // namespace earshot
