#include "tail/followed_file.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "tail/io_thread.hpp"

namespace earshot::tail {
namespace {

std::uint64_t hash_of(std::uint64_t key, std::span<const char> bytes) {
  PrefixHash prefix_hash(key);
  prefix_hash.add_line(bytes);
  return prefix_hash.value();
}

}  // namespace

FollowedFile::FollowedFile(std::string name, std::string path, Identity identity, TranscriptOptions options,
                           const Facts& now)
    : facts(now),
      name_(std::move(name)),
      path_(std::move(path)),
      identity_(std::move(identity)),
      options_(std::move(options)),
      transcript_(options_) {}

const std::string& FollowedFile::session() const {
  return identity_.session.empty() ? transcript_.recorded_session() : identity_.session;
}

std::size_t FollowedFile::before() const {
  return static_cast<std::size_t>(std::min<std::uint64_t>(read(), ReadPool::before_bytes));
}

bool FollowedFile::continues(std::span<const char> bytes) const {
  return bytes.size() == before() && (bytes.empty() || hash_of(options_.hash_key, bytes) == before_hash_);
}

bool FollowedFile::feed(std::span<const char> bytes, std::size_t before_fresh, Workspace& workspace,
                        EventSink& sink) {
  const std::uint64_t lines_end = transcript_.end().offset;
  const auto fresh = bytes.subspan(before_fresh);
  transcript_.feed(fresh, workspace, sink);
  before_hash_ = hash_of(options_.hash_key, bytes.last(before()));

  // The unterminated line is in no mark yet: its own hash stands for it.
  const std::uint64_t unterminated = read() - transcript_.end().offset;
  if (unterminated == 0) {
    tail_.reset();
  } else if (unterminated <= fresh.size()) {
    tail_.emplace();
    tail_->begin(options_.hash_key);
    tail_->add(fresh.last(static_cast<std::size_t>(unterminated)));
  } else {
    assert(tail_);
    tail_->add(fresh);
  }
  return transcript_.end().offset != lines_end;
}

void FollowedFile::restart() {
  transcript_ = Transcript(options_);
  tail_.reset();
  before_hash_ = 0;
  misses = 0;
  unproven = doubted = false;
}

PrefixCheck FollowedFile::claim() const {
  const Cursor end = transcript_.end();
  return {path_, options_.hash_key, end, read() - end.offset, tail_ ? tail_->end() : 0};
}

}  // namespace earshot::tail
