#include "notifier/spool.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/file.hpp"
#include "base/json_writer.hpp"

namespace earshot::notifier {
namespace {

constexpr const char* queued_suffix = ".json";
constexpr const char* sending = ".sending";
constexpr const char* resending = ".resending";

std::string to_json(const QueuedNotice& queued) {
  std::string out;
  JsonWriter writer(out);
  writer.begin_object().member("sink", queued.sink).member("queued_ms", queued.queued_ms);
  writer.member("attempts", queued.attempts).member("is_resend", queued.is_resend).key("notice");
  append_notice(out, queued.notice);
  writer.end_object();
  return out;
}

std::optional<QueuedNotice> read(const std::string& path) {
  const PrivateFile file = read_private_file(path, Spool::file_bytes_max);
  common::FrameParser parser;
  const auto fields = file.text ? parser.parse(*file.text) : std::nullopt;
  if (!fields) return std::nullopt;
  auto notice = parse_notice(fields->object("notice"));
  if (!notice || fields->text("sink").empty()) return std::nullopt;
  QueuedNotice queued;
  queued.notice = std::move(*notice);
  queued.sink = fields->text("sink");
  queued.queued_ms = fields->integer("queued_ms").value_or(0);
  queued.attempts = static_cast<int>(fields->count("attempts"));
  queued.is_resend = fields->flag("is_resend");
  return queued;
}

}  // namespace

std::string Spool::path(const QueuedNotice& queued, const char* suffix) const {
  return directory_ + "/" + queued.key() + suffix;
}

Spool::Contents Spool::load() const {
  Contents found;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory_, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string suffix = entry->path().extension().string();
    if (suffix != queued_suffix && suffix != sending && suffix != resending) continue;
    auto queued = read(entry->path().string());
    if (!queued || path(*queued, suffix.c_str()) != entry->path().string()) continue;
    if (suffix == resending) {
      found.interrupted.push_back(std::move(*queued));
      continue;
    }
    queued->is_resend = queued->is_resend || suffix == sending;
    found.queued_notices.push_back(std::move(*queued));
  }
  std::sort(found.queued_notices.begin(), found.queued_notices.end(),
            [](const QueuedNotice& a, const QueuedNotice& b) { return a.queued_ms < b.queued_ms; });
  return found;
}

std::string Spool::save(const QueuedNotice& queued) const {
  return write_private_file(path(queued, queued_suffix), to_json(queued));
}

void Spool::begin(const QueuedNotice& queued) const {
  const std::string to = path(queued, queued.is_resend ? resending : sending);
  if (std::rename(path(queued, queued_suffix).c_str(), to.c_str()) != 0 && queued.is_resend)
    std::rename(path(queued, sending).c_str(), to.c_str());
}

void Spool::failed(const QueuedNotice& queued) const {
  save(queued);
  ::unlink(path(queued, sending).c_str());
  ::unlink(path(queued, resending).c_str());
}

void Spool::remove(const QueuedNotice& queued) const {
  for (const char* suffix : {queued_suffix, sending, resending}) ::unlink(path(queued, suffix).c_str());
}

}  // namespace earshot::notifier
