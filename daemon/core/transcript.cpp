#include "core/transcript.hpp"

#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "base/json_rewrite.hpp"
#include "base/text.hpp"
#include "base/work_ahead.hpp"
#include "core/assembler.hpp"
#include "core/cursor.hpp"
#include "core/line_parser.hpp"

namespace earshot {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
static_assert(feed_padding >= scan_padding && feed_padding >= simdjson::SIMDJSON_PADDING);

// The last LF in a chunk's worth of bytes; npos: there is none.
std::size_t last_line_end(std::string_view bytes) {
  return find_last(bytes.substr(0, LineParser::chunk_bytes_max), '\n');
}

}  // namespace

// Records of the format that needed them last.
class RecordBuffer {
 public:
  /// False, and unchanged, for a format whose records cannot be read ahead.
  bool use(const RecordFormat& format) {
    if (format_ == &format) return true;
    auto records = format.make_ahead();
    if (!records) return false;
    format_ = &format;
    records_ = std::move(records);
    return true;
  }
  RecordsAhead* operator->() const { return records_.get(); }
  RecordsAhead& operator*() const { return *records_; }

 private:
  const RecordFormat* format_ = nullptr;
  std::unique_ptr<RecordsAhead> records_;
};

// One chunk of lines; its records are read before it is their turn.
class ChunkAhead final : public WorkAhead {
 public:
  static constexpr std::size_t lines_max = 4096;  // a chunk with more lines is not read ahead

  ChunkAhead() { parser_.keep_values(); }

  /// `lines` stay in place until the chunk is done.
  void start(std::string_view lines, const RecordFormat& format, const Dialect& dialect,
             std::size_t line_bytes_max) {
    lines_ = lines;
    records_.use(format);
    dialect_ = &dialect;
    line_bytes_max_ = line_bytes_max;
    WorkAhead::start();
  }
  using WorkAhead::finish;

  std::string_view lines() const { return lines_; }
  /// Once it is done. False: the lines have to be read one by one.
  bool is_parsed() const { return is_parsed_; }
  const std::vector<std::uint32_t>& line_ends() const { return parser_.line_ends(); }
  LineParser::Kind kind(std::size_t line) const { return kinds_[line]; }
  RecordsAhead& records() { return *records_; }  // by line; unused ones are stale

  std::atomic<bool> is_posted = false;

 private:
  void work() override { is_parsed_ = parse(); }

  bool parse() {
    if (lines_.size() > LineParser::chunk_bytes_max || !parser_.begin_chunk(lines_)) return false;
    const std::size_t count = line_ends().size();
    if (count > lines_max) return false;
    kinds_.assign(count, LineParser::Kind::blank);
    std::size_t begin = 0;
    for (std::size_t n = 0; n < count; ++n) {
      const std::uint32_t end = line_ends()[n];
      const std::string_view line = lines_.substr(begin, end - begin);
      begin = end + 1;
      if (line.size() > line_bytes_max_) {
        parser_.skip_line(end);
        continue;
      }
      const LineParser::Parsed parsed = parser_.next_line(line, end);
      kinds_[n] = parsed.kind;
      if (parsed.kind != LineParser::Kind::object) continue;
      records_->read(n, parsed.value, *dialect_);
    }
    return true;
  }

  std::string_view lines_;
  const Dialect* dialect_ = nullptr;
  std::size_t line_bytes_max_ = 0;
  bool is_parsed_ = false;
  LineParser parser_;
  std::vector<LineParser::Kind> kinds_;
  RecordBuffer records_;
};

struct Workspace::Parts {
  static constexpr std::size_t ahead_max = 4;

  static constexpr std::size_t tail_bytes_kept = 1 << 20;

  // A tail's buffer, for the next one: an idle transcript owns none, and a waiting one at most four times
  // what it needs.
  void take_buffer(std::string& tail, std::size_t bytes) {
    if (spare.capacity() > tail.capacity() && spare.capacity() / 4 <= bytes) tail.swap(spare);
  }
  void keep_buffer(std::string& tail) {
    tail.clear();
    if (tail.capacity() <= tail_bytes_kept && tail.capacity() > spare.capacity()) spare.swap(tail);
    std::string().swap(tail);
  }

  LineParser parser;
  NestedJson nested;
  RecordBuffer records;  // one: that of the current line
  std::string spare;
  Post post;                                       // null: nothing is parsed ahead
  std::vector<std::shared_ptr<ChunkAhead>> ahead;  // used in turn
};

Workspace::Workspace() : parts_(std::make_unique<Parts>()) {}
Workspace::~Workspace() = default;

void Workspace::parse_ahead(Post post) {
  parts_->post = std::move(post);
  while (parts_->ahead.size() < Parts::ahead_max) parts_->ahead.push_back(std::make_shared<ChunkAhead>());
}

struct Transcript::Parts {
  explicit Parts(TranscriptOptions given)
      : options(std::move(given)),
        prefix_hash(options.hash_key),
        assembler(options.own_agent, options.format ? options.format->program() : std::string_view{},
                  options.hash_key, options.filter),
        end{0, 0, options.hash_key} {
    assembler.mutable_state().used.split_sums(options.split_usage_ms);
    if (options.format) reader = options.format->make_reader(options.reads_internal);
  }

  void feed(std::span<const char> bytes, Workspace::Parts& work, EventSink& sink);
  void keep_tail(std::string_view bytes, Workspace::Parts& work, std::size_t room = 0);
  void finish_tail(Workspace::Parts& work, EventSink& sink);
  std::string_view feed_ahead(std::string_view bytes, Workspace::Parts& work, EventSink& sink);
  void take_chunk(ChunkAhead& chunk, Workspace::Parts& work, EventSink& sink);
  void take_lines(std::string_view lines, Workspace::Parts& work, EventSink& sink);
  void take_line(std::string_view line, Workspace::Parts& work, EventSink& sink);
  void begin_line(std::size_t bytes, EventSink& sink);
  void read_line(const LineParser::Parsed& parsed, std::string_view line, Workspace::Parts& work);
  void salvage_line(std::string_view line, Workspace::Parts& work);
  void read_record(const LineParser::Parsed& parsed, Workspace::Parts& work);
  void skip_long_line(std::size_t bytes, EventSink& sink);
  void skip(std::uint64_t offset, std::size_t bytes, std::string_view reason);
  void end_run();
  void close_line(std::uint64_t next);

  TranscriptOptions options;
  PrefixHash prefix_hash;
  Assembler assembler;
  std::unique_ptr<RecordReader> reader;
  const Dialect* dialect = nullptr;  // null: no record has proved one yet
  Cursor end;
  std::size_t line_bytes = 0;  // of the current line, with its LF
  std::string tail;            // the unterminated line, unless it is too long
  bool too_long = false;       // the unterminated line: only its hash and its length are kept
  std::uint64_t long_bytes = 0;
  LineHash long_hash;
  event::LineSkipped run;  // adjacent skipped lines that are not reported yet; lines == 0: none
};

void Transcript::Parts::feed(std::span<const char> given, Workspace::Parts& work, EventSink& sink) {
  std::string_view bytes(given.data(), given.size());
  if (bytes.empty()) return;
  if (!tail.empty() || too_long) {
    const std::size_t lf = bytes.find('\n');
    if (lf == bytes.npos) return keep_tail(bytes, work);
    keep_tail(bytes.substr(0, lf), work, 1 + feed_padding);
    bytes.remove_prefix(lf + 1);
    finish_tail(work, sink);
  }
  while (!bytes.empty()) {
    if (work.post && dialect && work.records.use(*options.format)) bytes = feed_ahead(bytes, work, sink);
    // As many whole lines as fit a chunk; a longer line alone.
    std::size_t lf = last_line_end(bytes);
    if (lf == bytes.npos) lf = bytes.find('\n', LineParser::chunk_bytes_max);
    if (bytes.empty()) return;
    if (lf == bytes.npos) return keep_tail(bytes, work);
    take_lines(bytes.substr(0, lf + 1), work, sink);
    bytes.remove_prefix(lf + 1);
  }
}

// Returns what is left: nothing, a line that is longer than a chunk, or the beginning of one.
std::string_view Transcript::Parts::feed_ahead(std::string_view bytes, Workspace::Parts& work,
                                               EventSink& sink) {
  const std::size_t ring = work.ahead.size();
  std::size_t folded = 0, started = 0;
  while (true) {
    for (; started < folded + ring; ++started) {
      const std::size_t lf = last_line_end(bytes);
      if (lf == bytes.npos) break;
      const std::shared_ptr<ChunkAhead>& chunk = work.ahead[started % ring];
      chunk->start(bytes.substr(0, lf + 1), *options.format, *dialect, options.line_bytes_max);
      bytes.remove_prefix(lf + 1);
      // The first one is parsed here. A task that was late runs whatever its chunk contains then.
      if (started == 0 || chunk->is_posted.exchange(true)) continue;
      work.post([chunk] {
        chunk->is_posted = false;
        chunk->run();
      });
    }
    if (folded == started) return bytes;
    ChunkAhead& chunk = *work.ahead[folded % ring];
    // Parses later ones instead of waiting.
    for (std::size_t next = folded; next < started && !chunk.is_done(); ++next)
      work.ahead[next % ring]->run();
    ++folded;
    chunk.finish();
    take_chunk(chunk, work, sink);
  }
}

void Transcript::Parts::take_chunk(ChunkAhead& chunk, Workspace::Parts& work, EventSink& sink) {
  if (!chunk.is_parsed()) return take_lines(chunk.lines(), work, sink);
  std::size_t begin = 0, number = 0;
  for (const std::uint32_t line_end : chunk.line_ends()) {
    const std::string_view line = chunk.lines().substr(begin, line_end + 1 - begin);
    const std::size_t n = number++;
    begin = line_end + 1;
    prefix_hash.add_line(line);
    if (line.size() - 1 > options.line_bytes_max) {
      skip_long_line(line.size(), sink);
      continue;
    }
    begin_line(line.size(), sink);
    if (chunk.kind(n) == LineParser::Kind::object) {
      end_run();
      reader->assemble(chunk.records(), n, assembler);
    } else {
      read_line({chunk.kind(n)}, line, work);
    }
    close_line(end.offset + line.size());
  }
}

// The unterminated line ends here.
void Transcript::Parts::finish_tail(Workspace::Parts& work, EventSink& sink) {
  if (too_long) {
    long_hash.add(std::string_view("\n"));
    prefix_hash = PrefixHash(long_hash.end());
    skip_long_line(long_bytes + 1, sink);
  } else {
    tail += '\n';
    prefix_hash.add_line(tail);
    take_line(tail, work, sink);
  }
  work.keep_buffer(tail);
  too_long = false;
  long_bytes = 0;
  long_hash = LineHash();
}

// `room`: behind the bytes.
void Transcript::Parts::keep_tail(std::string_view bytes, Workspace::Parts& work, std::size_t room) {
  if (!too_long && tail.size() + bytes.size() > options.line_bytes_max) {
    too_long = true;
    long_bytes = tail.size();
    long_hash.begin(prefix_hash.value());
    long_hash.add(tail);
    std::string().swap(tail);
  }
  if (too_long) {
    long_hash.add(bytes);
    long_bytes += bytes.size();
  } else {
    if (tail.empty()) work.take_buffer(tail, bytes.size());
    if (room > 0) tail.reserve(tail.size() + bytes.size() + room);
    tail.append(bytes);
  }
}

void Transcript::Parts::take_lines(std::string_view lines, Workspace::Parts& work, EventSink& sink) {
  std::size_t begin = 0;
  const bool has_mark = end.offset == 0 && lines.starts_with(byte_order_mark);
  if (!has_mark && lines.size() <= LineParser::chunk_bytes_max && work.parser.begin_chunk(lines)) {
    for (const std::uint32_t line_end : work.parser.line_ends()) {
      const std::string_view line = lines.substr(begin, line_end + 1 - begin);
      begin = line_end + 1;
      prefix_hash.add_line(line);
      if (line.size() - 1 > options.line_bytes_max) {
        work.parser.skip_line(line_end);
        skip_long_line(line.size(), sink);
        continue;
      }
      begin_line(line.size(), sink);
      read_line(work.parser.next_line(line, line_end), line, work);
      close_line(end.offset + line.size());
    }
    return;
  }
  for (; begin < lines.size();) {
    const std::string_view line = lines.substr(begin, lines.find('\n', begin) + 1 - begin);
    begin += line.size();
    prefix_hash.add_line(line);
    if (line.size() - 1 > options.line_bytes_max)
      skip_long_line(line.size(), sink);
    else
      take_line(line, work, sink);
  }
}

void Transcript::Parts::take_line(std::string_view line, Workspace::Parts& work, EventSink& sink) {
  const std::size_t bytes = line.size();
  begin_line(bytes, sink);
  if (end.offset == 0 && line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
  read_line(work.parser.parse(line), line, work);
  close_line(end.offset + bytes);
  work.parser.release_long();
}

void Transcript::Parts::skip_long_line(std::size_t bytes, EventSink& sink) {
  begin_line(bytes, sink);
  skip(end.offset, bytes, "too long");
  close_line(end.offset + bytes);
}

// `prefix_hash` is already that of the line's end.
void Transcript::Parts::begin_line(std::size_t bytes, EventSink& sink) {
  assembler.begin_line(end.offset, {end.offset + bytes, 0, prefix_hash.value()}, sink);
  line_bytes = bytes;
  ++assembler.counts().lines;
}

void Transcript::Parts::close_line(std::uint64_t next) {
  end = {next, assembler.index(), prefix_hash.value()};
}

void Transcript::Parts::read_line(const LineParser::Parsed& parsed, std::string_view line,
                                  Workspace::Parts& work) {
  line.remove_suffix(line.ends_with("\r\n") ? 2 : 1);
  switch (parsed.kind) {
    case LineParser::Kind::blank:
      ++assembler.counts().empty_lines;
      return;
    case LineParser::Kind::refused:
      return salvage_line(line, work);
    case LineParser::Kind::object:
    case LineParser::Kind::other:
      end_run();
      return read_record(parsed, work);
  }
}

// Handles a line that a strict parser refuses: repairs it, splits it into records, or skips it.
void Transcript::Parts::salvage_line(std::string_view line, Workspace::Parts& work) {
  SplitLine split = split_line(line);
  if (split.is_too_deep) return skip(end.offset, line_bytes, "nested too deeply");
  if (split.is_broken && split.is_salvaged) {
    end_run();
    ++assembler.counts().skipped_lines;
    assembler.skip_lines({end.offset, 1, line_bytes, "not JSON", true});
  } else if (split.is_broken) {
    skip(end.offset, line_bytes, "not JSON");
  } else {
    end_run();
  }
  bool repaired = false;
  for (RepairedJson& record : split.records) {
    record.text.reserve(record.text.size() + 1 + feed_padding);
    record.text += '\n';
    const LineParser::Parsed parsed = work.parser.parse_repaired(record.text);
    if (parsed.kind == LineParser::Kind::refused) continue;
    repaired |= record.is_changed;
    read_record(parsed, work);
  }
  if (repaired) ++assembler.counts().repaired_lines;
  work.parser.release_long();
}

void Transcript::Parts::read_record(const LineParser::Parsed& parsed, Workspace::Parts& work) {
  if (parsed.kind != LineParser::Kind::object) return assembler.count_type("(not an object)", true);
  const Value& json = parsed.value;
  const Dialect* current = dialect;
  if (!current && options.format) {
    dialect = current = options.format->detect(json);
    if (dialect)
      assembler.set_dialect(dialect->name);
    else
      current = options.format->metadata_dialect(json);
  }
  if (!current) {
    ++assembler.counts().undecided_records;
    return assembler.count_type(json.text_of("type"), true);
  }
  if (!work.records.use(*options.format)) {
    reader->read(json, work.nested, assembler);
    return work.nested.release_long();
  }
  work.records->read(0, json, *current);
  reader->assemble(*work.records, 0, assembler);
}

// Adds the line to the run of lines skipped for the same reason.
void Transcript::Parts::skip(std::uint64_t offset, std::size_t bytes, std::string_view reason) {
  if (run.lines > 0 && run.reason != reason) end_run();
  if (run.lines == 0) run = {offset, 0, 0, reason, false};
  ++run.lines;
  run.bytes += bytes;
  ++assembler.counts().skipped_lines;
}

void Transcript::Parts::end_run() {
  if (run.lines > 0) assembler.skip_lines(run);
  run = {};
}

Transcript::Transcript(TranscriptOptions options) : parts_(std::make_unique<Parts>(std::move(options))) {}
Transcript::~Transcript() = default;
Transcript::Transcript(Transcript&&) noexcept = default;
Transcript& Transcript::operator=(Transcript&&) noexcept = default;

void Transcript::feed(std::span<const char> bytes, Workspace& workspace, EventSink& sink) {
  parts_->feed(bytes, *workspace.parts_, sink);
}

Cursor Transcript::end() const { return parts_->end.offset == 0 ? begin_cursor : parts_->end; }
Cursor Transcript::last_event() const { return parts_->assembler.last_event(); }
std::size_t Transcript::pending_bytes() const {
  return parts_->too_long ? parts_->long_bytes : parts_->tail.size();
}
std::uint64_t Transcript::bytes_read() const { return parts_->end.offset + pending_bytes(); }
const StreamState& Transcript::state() const { return parts_->assembler.state(); }
const std::string& Transcript::project() const { return parts_->assembler.raw_state().project; }
const std::string& Transcript::program() const { return parts_->assembler.raw_state().program; }
bool Transcript::has_records() const { return parts_->assembler.has_records(); }
bool Transcript::has_record(const RecordPlace& record) const { return parts_->assembler.has_record(record); }
void Transcript::list_records(std::vector<RecordPlace>* records) { parts_->assembler.list_records(records); }
const StreamUsage& Transcript::used() const { return parts_->assembler.raw_state().used; }
std::int64_t Transcript::last_activity_ms() const { return parts_->assembler.raw_state().last_activity_ms; }
StreamUsage Transcript::take_usage() { return std::move(parts_->assembler.mutable_state().used); }
const RecordCounts& Transcript::counts() const { return parts_->assembler.counts(); }
const std::string& Transcript::recorded_session() const { return parts_->assembler.recorded_session(); }
const std::string& Transcript::recorded_agent() const { return parts_->assembler.own_agent(); }
void Transcript::fit_memory() { parts_->assembler.fit_memory(); }
std::size_t Transcript::memory_bytes() const {
  const std::size_t read = parts_->reader ? parts_->reader->memory_bytes() : 0;
  return sizeof(Parts) + parts_->tail.capacity() + parts_->assembler.memory_bytes() + read;
}

}  // namespace earshot
