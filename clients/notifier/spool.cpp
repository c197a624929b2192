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

std::string written(const QueuedNotice& queued) {
  std::string out;
  Object object(out);
  object.add("sink", queued.sink).add("written_ms", queued.written_ms).add("attempts", queued.attempts);
  object.add("again", queued.again);
  append_notice(object.begin("notice"), queued.notice);
  object.close();
  return out;
}

std::optional<QueuedNotice> read(const std::string& path) {
  const auto text = read_whole(path, Spool::file_bytes_max);
  common::FrameParser parser;
  const auto fields = text ? parser.parse(*text) : std::nullopt;
  if (!fields) return std::nullopt;
  auto notice = parse_notice(fields->object("notice"));
  if (!notice || fields->text("sink").empty()) return std::nullopt;
  QueuedNotice queued;
  queued.notice = std::move(*notice);
  queued.sink = fields->text("sink");
  queued.written_ms = fields->integer("written_ms").value_or(0);
  queued.attempts = static_cast<int>(fields->count("attempts"));
  queued.again = fields->flag("again");
  return queued;
}

}  // namespace

std::string Spool::path(const QueuedNotice& queued, const char* suffix) const {
  return directory_ + "/" + queued.key() + suffix;
}

Spool::Found Spool::load() const {
  Found found;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory_, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string suffix = entry->path().extension().string();
    if (suffix != waits && suffix != sending && suffix != sending_again) continue;
    auto queued = read(entry->path().string());
    if (!queued || path(*queued, suffix.c_str()) != entry->path().string()) continue;
    if (suffix == sending_again) {
      found.interrupted.push_back(std::move(*queued));
      continue;
    }
    queued->again = queued->again || suffix == sending;
    found.queued_notices.push_back(std::move(*queued));
  }
  std::sort(found.queued_notices.begin(), found.queued_notices.end(),
            [](const QueuedNotice& a, const QueuedNotice& b) { return a.written_ms < b.written_ms; });
  return found;
}

std::string Spool::save(const QueuedNotice& queued) const {
  return write_whole(path(queued, waits), written(queued));
}

void Spool::begin(const QueuedNotice& queued) const {
  const std::string to = path(queued, queued.again ? sending_again : sending);
  if (std::rename(path(queued, waits).c_str(), to.c_str()) != 0 && queued.again)
    std::rename(path(queued, sending).c_str(), to.c_str());
}

void Spool::failed(const QueuedNotice& queued) const {
  save(queued);
  ::unlink(path(queued, sending).c_str());
  ::unlink(path(queued, sending_again).c_str());
}

void Spool::remove(const QueuedNotice& queued) const {
  for (const char* suffix : {waits, sending, sending_again}) ::unlink(path(queued, suffix).c_str());
}

}  // namespace earshot::notifier
