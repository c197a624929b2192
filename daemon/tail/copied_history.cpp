#include "tail/copied_history.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/system.hpp"
#include "tail/followed_file.hpp"

namespace earshot::tail {
namespace {

constexpr std::size_t search_bytes = 1 << 20;  // at a time: both threads can do other work between

struct Search {
  std::shared_ptr<NewFileReader> reader;
  std::function<bool(const RecordPlace&)> is_known;
  std::function<void(std::uint64_t, bool)> done;
  std::uint64_t end = 0;
};

void go_on(IoThread& disk, std::shared_ptr<Search> search, const std::vector<RecordPlace>& records) {
  for (const RecordPlace& each : records) {
    if (!search->is_known(each)) return search->done(search->end, false);
    search->end = each.line_end;
  }
  if (search->reader->is_at_end()) return search->done(search->end, true);
  auto work = [reader = search->reader] { return reader->read(search_bytes); };
  disk.run(std::move(work),
           [&disk, search](const std::vector<RecordPlace>& more) { go_on(disk, search, more); });
}

}  // namespace

std::vector<RecordPlace> NewFileReader::read(std::size_t bytes) { return *read(bytes, ReadMode::wait); }

std::optional<std::vector<RecordPlace>> NewFileReader::read_first(std::size_t bytes) {
  return read(bytes, ReadMode::no_wait);
}

std::optional<std::vector<RecordPlace>> NewFileReader::read(std::size_t bytes, ReadMode mode) {
  std::vector<RecordPlace> records;
  is_at_end_ = true;
  const Fd fd = open_for_reading(path_);
  if (!fd) {
    error_ = errno;
    return records;
  }
  const FileStat now = stat_file(fd.get());
  if (offset_ == 0) stat_ = now;
  if (now.error || !now.is_same_file(stat_)) {
    error_ = now.error ? now.error : ESTALE;
    return records;
  }
  const auto buffer = std::make_unique_for_overwrite<char[]>(bytes + feed_padding);
  const long got = mode == ReadMode::wait ? read_fully(fd.get(), buffer.get(), bytes, offset_)
                                          : read_at(fd.get(), buffer.get(), bytes, offset_, mode);
  const auto wanted = std::min<std::uint64_t>(bytes, now.size - std::min(now.size, offset_));
  if (mode == ReadMode::no_wait && (got < 0 || static_cast<std::uint64_t>(got) < wanted)) return std::nullopt;
  if (got < 0) error_ = static_cast<int>(-got);
  if (got <= 0) return records;
  is_at_end_ = static_cast<std::size_t>(got) < bytes;
  offset_ += static_cast<std::uint64_t>(got);
  Workspace workspace;
  transcript_.list_records(&records);
  transcript_.feed({buffer.get(), static_cast<std::size_t>(got)}, workspace, *this);
  transcript_.list_records(nullptr);
  return records;
}

void find_copied_end(IoThread& disk, std::shared_ptr<NewFileReader> reader, std::vector<RecordPlace> records,
                     std::function<bool(const RecordPlace&)> is_known,
                     std::function<void(std::uint64_t end, bool is_all)> done) {
  go_on(disk, std::make_shared<Search>(Search{std::move(reader), std::move(is_known), std::move(done)}),
        records);
}

}  // namespace earshot::tail
