#include "notifier/spool.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "notifier/files.hpp"
#include "notifier/json.hpp"

namespace earshot::notifier {
namespace {

constexpr const char* waits = ".json";
constexpr const char* sending = ".sending";
constexpr const char* sending_again = ".again";

std::string written(const Letter& letter) {
  std::string out;
  Object object(out);
  object.add("sink", letter.sink).add("written_ms", letter.written_ms).add("attempts", letter.attempts);
  object.add("again", letter.again);
  append_notice(object.begin("notice"), letter.notice);
  object.close();
  return out;
}

std::optional<Letter> read(const std::string& path) {
  const auto text = read_whole(path, Spool::letter_bytes_max);
  common::FrameParser parser;
  const auto fields = text ? parser.parse(*text) : std::nullopt;
  if (!fields) return std::nullopt;
  auto notice = parse_notice(fields->object("notice"));
  if (!notice || fields->text("sink").empty()) return std::nullopt;
  Letter letter;
  letter.notice = std::move(*notice);
  letter.sink = fields->text("sink");
  letter.written_ms = fields->integer("written_ms").value_or(0);
  letter.attempts = static_cast<int>(fields->count("attempts"));
  letter.again = fields->flag("again");
  return letter;
}

}  // namespace

std::string Spool::path(const Letter& letter, const char* suffix) const {
  return directory_ + "/" + letter.key() + suffix;
}

Spool::Found Spool::load() const {
  Found found;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory_, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string suffix = entry->path().extension().string();
    if (suffix != waits && suffix != sending && suffix != sending_again) continue;
    auto letter = read(entry->path().string());
    if (!letter || path(*letter, suffix.c_str()) != entry->path().string()) continue;
    if (suffix == sending_again) {
      found.interrupted.push_back(std::move(*letter));
      continue;
    }
    letter->again = letter->again || suffix == sending;
    found.letters.push_back(std::move(*letter));
  }
  std::sort(found.letters.begin(), found.letters.end(),
            [](const Letter& a, const Letter& b) { return a.written_ms < b.written_ms; });
  return found;
}

std::string Spool::save(const Letter& letter) const {
  return write_whole(path(letter, waits), written(letter));
}

void Spool::begin(const Letter& letter) const {
  const std::string to = path(letter, letter.again ? sending_again : sending);
  if (std::rename(path(letter, waits).c_str(), to.c_str()) != 0 && letter.again)
    std::rename(path(letter, sending).c_str(), to.c_str());
}

void Spool::failed(const Letter& letter) const {
  save(letter);
  ::unlink(path(letter, sending).c_str());
  ::unlink(path(letter, sending_again).c_str());
}

void Spool::remove(const Letter& letter) const {
  for (const char* suffix : {waits, sending, sending_again}) ::unlink(path(letter, suffix).c_str());
}

}  // namespace earshot::notifier
