#include "tail/history.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "tail/files.hpp"
#include "tail/prefix_check.hpp"

namespace earshot::tail {
namespace {

/// Opened where a regular file stands; otherwise why not.
int open_regular(const std::string& path, Descriptor& file) {
  file = open_transcript(path);
  if (!file) return errno;
  const Facts facts = facts_of(file.get());
  if (facts.error) return facts.error;
  return facts.kind == Facts::Kind::regular ? 0 : EINVAL;
}

class FileHistory final : public History {
 public:
  FileHistory(IoThread& disk, std::string path, TranscriptOptions options)
      : disk_(disk), options_(std::move(options)), reading_(std::make_shared<Reading>()) {
    reading_->path = std::move(path);
  }
  const TranscriptOptions& options() const override { return options_; }

  void next(std::size_t bytes_max, std::function<void(const Piece&)> then) override {
    const std::size_t wanted = std::min(bytes_max, piece_bytes_max);
    auto read = [reading = reading_, wanted] { return reading->next(wanted); };
    disk_.run(std::move(read),
              [weak = std::weak_ptr<Reading>(reading_), then = std::move(then), wanted](long got) {
                const auto reading = weak.lock();
                if (!reading) return;
                Piece piece;
                piece.error = got < 0 ? static_cast<int>(-got) : 0;
                const auto bytes = static_cast<std::size_t>(std::max(got, 0L));
                piece.bytes = {reading->buffer.get(), bytes};
                piece.end = !piece.error && bytes < wanted;
                const auto buffer = std::move(reading->buffer);  // one at rest owns none
                then(piece);
              });
  }

 private:
  struct Reading {  // by one thread at a time
    std::string path;
    Descriptor file;
    std::uint64_t at = 0;
    std::unique_ptr<char[]> buffer;

    long next(std::size_t wanted) {
      if (!file && at > 0) return -EBADF;
      if (!file)
        if (const int error = open_regular(path, file)) return -error;
      buffer = std::make_unique_for_overwrite<char[]>(wanted + feed_padding);
      std::size_t have = 0;
      while (have < wanted) {
        const long got = read_at(file.get(), buffer.get() + have, wanted - have, at, false);
        if (got < 0) return got;
        if (got == 0) break;
        have += static_cast<std::size_t>(got);
        at += static_cast<std::uint64_t>(got);
      }
      std::fill_n(buffer.get() + have, feed_padding, '\0');
      return static_cast<long>(have);
    }
  };

  IoThread& disk_;
  const TranscriptOptions options_;
  std::shared_ptr<Reading> reading_;
};

/// The line that ends at `end`: found backwards from there.
RecordText line_before(const std::string& path, std::uint64_t end, std::size_t line_bytes_max) {
  constexpr std::size_t piece_bytes = 64 << 10;
  RecordText result;
  Descriptor file;
  result.error = open_regular(path, file);
  if (result.error) return result;
  std::string text;
  std::uint64_t begin = end;
  while (begin > 0 && text.size() <= line_bytes_max) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, begin));
    std::string piece(wanted, '\0');
    const long got = read_at(file.get(), piece.data(), wanted, begin - wanted, false);
    if (got != static_cast<long>(wanted)) {
      result.error = got < 0 ? static_cast<int>(-got) : 0;
      if (!result.error) result.found = RecordText::Found::differs;
      return result;
    }
    const bool first = begin == end;
    const auto lf = first && wanted > 0 ? piece.rfind('\n', wanted - 2) : piece.rfind('\n');
    const bool whole = lf != std::string::npos && !(first && wanted == 1);
    text.insert(0, whole ? piece.substr(lf + 1) : piece);
    if (whole) break;
    begin -= wanted;
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  if (!text.empty() && text.back() == '\r') text.pop_back();
  if (text.size() > line_bytes_max) {
    result.error = EFBIG;
    return result;
  }
  result.found = RecordText::Found::yes;
  result.text = std::move(text);
  return result;
}

}  // namespace

std::unique_ptr<History> read_again(IoThread& disk, std::string path, TranscriptOptions options) {
  return std::make_unique<FileHistory>(disk, std::move(path), std::move(options));
}

void read_record(IoThread& disk, std::string path, std::uint64_t hash_key, const Cursor& end,
                 std::size_t line_bytes_max, std::function<void(RecordText)> then) {
  if (end.offset == 0) return disk.soon([then] { then({RecordText::Found::differs, 0, {}}); });
  check(disk, {path, hash_key, end, 0, 0},
        [&disk, path, end, line_bytes_max, then](const PrefixCheckResult& verdict) {
          if (verdict.error) return then({RecordText::Found::error, verdict.error, {}});
          if (!verdict.fits) return then({RecordText::Found::differs, 0, {}});
          auto read = [path, offset = end.offset, line_bytes_max] {
            return line_before(path, offset, line_bytes_max);
          };
          disk.run(std::move(read), then);
        });
}

}  // namespace earshot::tail
