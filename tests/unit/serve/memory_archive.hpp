// An archive of the bytes of fake streams.
#pragma once
#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agents/claude_code/reader.hpp"
#include "core/cursor.hpp"
#include "tail/history.hpp"
#include "unit/serve/support.hpp"

namespace earshot::test {

class MemoryArchive final : public tail::Archive {
 public:
  explicit MemoryArchive(boost::asio::io_context& io) : io_(io) {}

  void add(FakeStream& stream) { streams_.push_back(&stream); }
  void remove(FakeStream& stream) { std::erase(streams_, &stream); }

  const tail::Stream* find(std::string_view name) const override {
    for (const FakeStream* stream : streams_)
      if (stream->name() == name) return stream;
    return nullptr;
  }
  void fold(std::string_view name, std::function<void(const tail::Stream*)> then) override {
    then(find(name));
  }
  void request_verify(const tail::Stream& stream) override { doubted.insert(stream.name()); }
  void mark_published(const tail::Stream& stream, const Cursor& end) override {
    told_of[stream.name()] = end;
  }
  std::unique_ptr<tail::History> history(const tail::Stream& stream) override {
    ++opened;
    const auto& fake = static_cast<const FakeStream&>(stream);
    TranscriptOptions options;
    options.own_agent = fake.agent();
    options.format = &claude_code::format();
    return std::make_unique<Bytes>(*this, fake, std::move(options));
  }
  void record(const tail::Stream& stream, const Cursor& end,
              std::function<void(tail::RecordText)> then) override {
    const std::string_view text = static_cast<const FakeStream&>(stream).text();
    tail::RecordText record;
    record.found = tail::RecordText::Found::differs;
    PrefixHasher prefix_hash(TranscriptOptions().hash_key);
    prefix_hash.add(text.substr(0, end.offset));
    if (end.offset > 0 && end.offset <= text.size() && text[end.offset - 1] == '\n' &&
        prefix_hash.value() == end.prefix_hash) {
      const std::string_view before = text.substr(0, end.offset - 1);
      record.found = tail::RecordText::Found::yes;
      record.text = before.substr(before.rfind('\n') + 1);
    }
    then(std::move(record));
  }

  std::size_t opened = 0, bytes_read = 0;
  std::set<std::string> unreadable, doubted;
  std::map<std::string, Cursor> told_of;
  std::size_t piece_bytes = tail::History::piece_bytes_max;

 private:
  class Bytes final : public tail::History {
   public:
    Bytes(MemoryArchive& archive, const FakeStream& stream, TranscriptOptions options)
        : archive_(archive), stream_(stream), options_(std::move(options)) {}
    const TranscriptOptions& options() const override { return options_; }
    void next(std::size_t bytes_max, std::function<void(Piece)> then) override {
      boost::asio::post(
          archive_.io_, [this, alive = std::weak_ptr<char>(alive_), bytes_max, then = std::move(then)] {
            if (alive.expired()) return;
            if (archive_.unreadable.contains(stream_.name())) return then({nullptr, {}, EIO, false});
            const std::size_t wanted = std::min(bytes_max, archive_.piece_bytes);
            const std::string bytes = at_ < stream_.text().size() ? stream_.text().substr(at_, wanted) : "";
            at_ += bytes.size();
            archive_.bytes_read += bytes.size();
            auto buffer = std::make_unique<char[]>(bytes.size() + feed_padding);
            std::copy(bytes.begin(), bytes.end(), buffer.get());
            const std::span<const char> all(buffer.get(), bytes.size());
            then({std::move(buffer), all, 0, bytes.size() < wanted});
          });
    }

   private:
    MemoryArchive& archive_;
    const FakeStream& stream_;
    TranscriptOptions options_;
    std::size_t at_ = 0;
    std::shared_ptr<char> alive_ = std::make_shared<char>();
  };

  boost::asio::io_context& io_;
  std::vector<FakeStream*> streams_;
};

}  // namespace earshot::test
