#include "core/transcript.hpp"

#include <cstring>

#include "base/json_rewrite.hpp"
#include "core/assembler.hpp"
#include "core/cursor.hpp"

namespace earshot {
namespace {

constexpr std::size_t parser_bytes_kept = 1 << 20;  // a parser that grew for a longer line is freed after it

// If the allocation fails, the first parse reports it and the line is skipped.
std::unique_ptr<simdjson::dom::parser> new_parser(std::size_t depth_max) {
  auto parser = std::make_unique<simdjson::dom::parser>();
  [[maybe_unused]] const auto error = parser->allocate(4096, depth_max);
  return parser;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

}  // namespace

struct Workspace::Parts {
  std::unique_ptr<simdjson::dom::parser> parser = new_parser(nesting_max);
  Record record;
};

Workspace::Workspace() : parts_(std::make_unique<Parts>()) {}
Workspace::~Workspace() = default;

struct Transcript::Parts {
  explicit Parts(TranscriptOptions given)
      : options(std::move(given)),
        prefix_hash(options.hash_key),
        assembler(options.own_agent, options.reader ? options.reader->program() : std::string_view{},
                  options.hash_key, options.filter),
        end{0, 0, options.hash_key} {}

  void feed(std::span<const char> bytes, Workspace::Parts& work, EventSink& sink);
  void keep_tail(std::span<const char> bytes);
  void take_line(std::string_view text, std::size_t bytes, Workspace::Parts& work, EventSink& sink);
  void read_line(std::string_view text, std::uint64_t offset, std::size_t bytes, Workspace::Parts& work);
  void salvage_line(std::string_view text, std::uint64_t offset, std::size_t bytes, Workspace::Parts& work);
  void read_record(const simdjson::dom::element& json, std::string_view raw, Record& record);
  void skip(std::uint64_t offset, std::size_t bytes, std::string_view reason);
  void end_run();
  void close_line(std::uint64_t next);

  TranscriptOptions options;
  PrefixHash prefix_hash;
  Assembler assembler;
  const Dialect* dialect = nullptr;  // null: no record has proved one yet
  Cursor end;
  std::string tail;       // the unterminated line, unless it is too long
  bool too_long = false;  // the unterminated line: only its hash and its length are kept
  std::uint64_t long_bytes = 0;
  LineHash long_hash;
  event::LineSkipped run;  // adjacent skipped lines that are not reported yet; lines == 0: none
};

void Transcript::Parts::feed(std::span<const char> bytes, Workspace::Parts& work, EventSink& sink) {
  while (!bytes.empty()) {
    const auto* lf = static_cast<const char*>(std::memchr(bytes.data(), '\n', bytes.size()));
    if (!lf) return keep_tail(bytes);
    const auto piece = bytes.first(static_cast<std::size_t>(lf - bytes.data()) + 1);
    bytes = bytes.subspan(piece.size());
    if (tail.empty() && !too_long && piece.size() - 1 <= options.line_bytes_max) {
      prefix_hash.add_line(piece);
      take_line({piece.data(), piece.size() - 1}, piece.size(), work, sink);
      continue;
    }
    keep_tail(piece.first(piece.size() - 1));
    const std::size_t line_bytes = (too_long ? long_bytes : tail.size()) + 1;
    if (too_long) {
      long_hash.add(piece.last(1));
      prefix_hash = PrefixHash(long_hash.end());
      assembler.begin_line(end.offset, {end.offset + line_bytes, 0, prefix_hash.value()}, sink);
      skip(end.offset, line_bytes, "too long");
      ++assembler.counts().lines;
      close_line(end.offset + line_bytes);
    } else {
      tail += '\n';
      tail.reserve(tail.size() + feed_padding);
      prefix_hash.add_line(tail);
      take_line(std::string_view(tail).substr(0, tail.size() - 1), tail.size(), work, sink);
    }
    // An idle transcript owns no buffer.
    std::string().swap(tail);
    too_long = false;
    long_bytes = 0;
    long_hash = LineHash();
  }
}

void Transcript::Parts::keep_tail(std::span<const char> bytes) {
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
    tail.append(bytes.data(), bytes.size());
  }
}

void Transcript::Parts::take_line(std::string_view text, std::size_t bytes, Workspace::Parts& work,
                                  EventSink& sink) {
  const std::uint64_t offset = end.offset;
  assembler.begin_line(offset, {offset + bytes, 0, prefix_hash.value()}, sink);
  ++assembler.counts().lines;
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (offset == 0 && text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (is_blank(text)) {
    ++assembler.counts().empty_lines;
  } else {
    read_line(text, offset, bytes, work);
  }
  close_line(offset + bytes);
  if (bytes > parser_bytes_kept) work.parser = new_parser(nesting_max);
}

void Transcript::Parts::close_line(std::uint64_t next) {
  end = {next, assembler.index(), prefix_hash.value()};
}

void Transcript::Parts::read_line(std::string_view text, std::uint64_t offset, std::size_t bytes,
                                  Workspace::Parts& work) {
  simdjson::dom::element json;
  // simdjson reads past the end; feed() requires feed_padding.
  if (work.parser->parse(text.data(), text.size(), false).get(json))
    return salvage_line(text, offset, bytes, work);
  end_run();
  read_record(json, text, work.record);
}

// Handles a line that a strict parser refuses: repairs it, splits it into records, or skips it.
void Transcript::Parts::salvage_line(std::string_view text, std::uint64_t offset, std::size_t bytes,
                                     Workspace::Parts& work) {
  SplitLine split = split_line(text);
  if (split.is_too_deep) return skip(offset, bytes, "nested too deeply");
  if (split.is_broken && split.is_salvaged) {
    end_run();
    ++assembler.counts().skipped_lines;
    assembler.skip_lines({offset, 1, bytes, "not JSON", true});
  } else if (split.is_broken) {
    skip(offset, bytes, "not JSON");
  } else {
    end_run();
  }
  // simdjson does not count an empty array or object as a level, so one more level accepts what split_line
  // allows.
  const auto parser = new_parser(nesting_max + 1);
  bool repaired = false;
  for (RepairedJson& record : split.records) {
    record.dom_text.reserve(record.dom_text.size() + feed_padding);
    simdjson::dom::element json;
    if (parser->parse(record.dom_text.data(), record.dom_text.size(), false).get(json)) continue;
    repaired |= record.is_changed;
    read_record(json, record.text, work.record);
  }
  if (repaired) ++assembler.counts().repaired_lines;
}

void Transcript::Parts::read_record(const simdjson::dom::element& json, std::string_view raw,
                                    Record& record) {
  if (!json.is_object()) return assembler.count_type("(not an object)", true);
  const Dialect* current = dialect;
  if (!current && options.reader) {
    dialect = current = options.reader->detect(json);
    if (dialect)
      assembler.set_dialect(dialect->name());
    else
      current = options.reader->metadata_dialect(json);
  }
  if (!current) {
    ++assembler.counts().undecided_records;
    return assembler.count_type(dom::text_of(json, "type"), true);
  }
  record.clear();
  current->read(json, raw, record);
  assembler.record(record);
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
const RecordCounts& Transcript::counts() const { return parts_->assembler.counts(); }
const std::string& Transcript::recorded_session() const { return parts_->assembler.recorded_session(); }
std::size_t Transcript::memory_bytes() const {
  return sizeof(Parts) + parts_->tail.capacity() + parts_->assembler.memory_bytes();
}

}  // namespace earshot
