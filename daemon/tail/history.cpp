#include "tail/history.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agents/transcript_file.hpp"
#include "base/system.hpp"
#include "tail/followed_file.hpp"

namespace earshot::tail {
namespace {

class FileHistory final : public History {
 public:
  FileHistory(IoThread& disk, std::string path, std::uint64_t known, TranscriptOptions options)
      : disk_(disk), options_(std::move(options)), reader_(std::make_shared<Reader>()) {
    reader_->path = std::move(path);
    reader_->known = known;
  }
  const TranscriptOptions& options() const override { return options_; }

  void next(std::size_t bytes_max, std::function<void(Piece)> then) override {
    const std::size_t wanted = std::min(bytes_max, piece_bytes_max);
    auto work = [reader = reader_, wanted] { return reader->read(wanted); };
    disk_.run(std::move(work),
              [weak = std::weak_ptr<Reader>(reader_), then = std::move(then), wanted](long got) {
                const auto reader = weak.lock();
                if (!reader) return;
                Piece piece;
                piece.error = got < 0 ? static_cast<int>(-got) : 0;
                const auto bytes = static_cast<std::size_t>(std::max(got, 0L));
                piece.bytes = {reader->buffer.get(), bytes};
                piece.end = !piece.error && bytes < wanted;
                piece.buffer = std::move(reader->buffer);  // an idle history has no buffer
                then(std::move(piece));
              });
  }

 private:
  struct Reader {  // used by one thread at a time
    std::string path;
    std::uint64_t known = 0;  // bytes
    TranscriptFile file;
    std::uint64_t offset = 0;
    std::unique_ptr<char[]> buffer;

    long read(std::size_t wanted) {
      if (!file.is_open() && offset > 0) return -EBADF;
      if (!file.is_open())
        if (const int error = file.open(path, known)) return -error;
      buffer = std::make_unique_for_overwrite<char[]>(wanted + feed_padding);
      const long filled = file.read_fully(buffer.get(), wanted, offset);
      if (filled < 0) return filled;
      offset += static_cast<std::uint64_t>(filled);
      std::fill_n(buffer.get() + filled, feed_padding, '\0');
      // The end that is wanted is that of the file that has this name now. The old one may go on growing by
      // another name.
      const FileStat now = stat_transcript(path, known), read = file.stat();
      if (!now.error && read.links > 0 && !now.is_same_file(read)) return -ESTALE;
      return filled;
    }
  };

  IoThread& disk_;
  const TranscriptOptions options_;
  std::shared_ptr<Reader> reader_;
};

/// The line that ends at `end`, searched backwards from there.
RecordText line_before(const std::string& path, std::uint64_t end, std::size_t line_bytes_max) {
  constexpr std::size_t first_chunk_bytes = TranscriptFile::kept_bytes_max;  // of a compressed one
  RecordText result;
  TranscriptFile file;
  result.error = file.open(path, end);
  if (result.error) return result;
  std::string text;
  std::uint64_t begin = end;
  while (begin > 0 && text.size() <= line_bytes_max) {
    // Twice as much each time: before its last bytes a compressed file is unpacked again.
    const std::uint64_t chunk_bytes = std::max(first_chunk_bytes, text.size());
    const auto wanted = static_cast<std::size_t>(std::min(chunk_bytes, begin));
    std::string chunk(wanted, '\0');
    const long got = file.read_fully(chunk.data(), wanted, begin - wanted);
    if (got != static_cast<long>(wanted)) {
      result.error = got < 0 ? static_cast<int>(-got) : 0;
      if (!result.error) result.found = RecordText::Found::differs;
      return result;
    }
    const bool is_first = begin == end;  // it ends with the line's own LF
    const auto lf = is_first ? chunk.rfind('\n', wanted - 2) : chunk.rfind('\n');
    const bool is_complete = lf != std::string::npos && !(is_first && wanted == 1);
    text.insert(0, is_complete ? chunk.substr(lf + 1) : chunk);
    if (is_complete) break;
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

std::unique_ptr<History> open_history(IoThread& disk, std::string path, std::uint64_t known,
                                      TranscriptOptions options) {
  return std::make_unique<FileHistory>(disk, std::move(path), known, std::move(options));
}

void read_record(IoThread& disk, std::string path, std::uint64_t hash_key, const Cursor& end,
                 std::size_t line_bytes_max, std::function<void(RecordText)> then) {
  if (end.offset == 0) return disk.soon([then] { then({RecordText::Found::differs, 0, {}}); });
  check_prefix(disk, {path, hash_key, end, 0, 0},
               [&disk, path, end, line_bytes_max, then](const PrefixCheck::Result& result) {
                 if (result.error) return then({RecordText::Found::error, result.error, {}});
                 if (!result.matches) return then({RecordText::Found::differs, 0, {}});
                 auto work = [path, offset = end.offset, line_bytes_max] {
                   return line_before(path, offset, line_bytes_max);
                 };
                 disk.run(std::move(work), then);
               });
}

}  // namespace earshot::tail
