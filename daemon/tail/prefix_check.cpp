#include "tail/prefix_check.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "core/prefix_hash.hpp"

namespace earshot::tail {
namespace {

constexpr std::size_t piece_bytes = 256 << 10;
constexpr std::size_t slice_bytes = 8 << 20;  // then other work of the second thread has its turn

class Check {
 public:
  explicit Check(PrefixCheck claim) : claim_(std::move(claim)), mark_(claim_.hash_key), buffer_(piece_bytes) {
    tail_.begin(claim_.hash_key);
  }

  /// On the second thread. True when the verdict is there.
  bool slice() {
    if (!file_ && !open()) return true;
    for (std::size_t spent = 0; spent < slice_bytes;) {
      const bool in_lines = at_ < claim_.end.offset;
      const std::uint64_t stop = in_lines ? claim_.end.offset : claim_.end.offset + claim_.tail_bytes;
      if (at_ == stop) {
        verdict_.fits = (claim_.end == begin_cursor || mark_.value() == claim_.end.prefix_hash) &&
                        (claim_.tail_bytes == 0 || tail_.end() == claim_.tail_hash);
        return true;
      }
      const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, stop - at_));
      const long got = read_at(file_.get(), buffer_.data(), wanted, at_, false);
      if (got < 0) verdict_.error = static_cast<int>(-got);
      if (got <= 0) return true;  // an end before the claim's: it does not fit
      const std::span<const char> piece(buffer_.data(), static_cast<std::size_t>(got));
      if (in_lines)
        mark_.add(piece);
      else
        tail_.add(piece);
      at_ += piece.size();
      spent += piece.size();
    }
    return false;
  }
  const PrefixCheckResult& verdict() const { return verdict_; }

 private:
  bool open() {
    file_ = open_transcript(claim_.path);
    if (!file_) {
      verdict_.error = errno;
      return false;
    }
    verdict_.facts = facts_of(file_.get());
    verdict_.error = verdict_.facts.error;
    return !verdict_.error && verdict_.facts.kind == Facts::Kind::regular;
  }

  const PrefixCheck claim_;
  PrefixHasher mark_;
  LineHash tail_;
  std::vector<char> buffer_;
  Descriptor file_;
  std::uint64_t at_ = 0;
  PrefixCheckResult verdict_;
};

void go_on(IoThread& disk, std::shared_ptr<Check> checking,
           std::function<void(const PrefixCheckResult&)> done) {
  auto slice = [checking] { return checking->slice(); };
  disk.run(std::move(slice), [&disk, checking, done = std::move(done)](bool finished) mutable {
    if (finished)
      done(checking->verdict());
    else
      go_on(disk, std::move(checking), std::move(done));
  });
}

}  // namespace

void check(IoThread& disk, PrefixCheck claim, std::function<void(const PrefixCheckResult&)> done) {
  go_on(disk, std::make_shared<Check>(std::move(claim)), std::move(done));
}

}  // namespace earshot::tail
