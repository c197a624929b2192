// Which requests of which streams count: forks, branches and resumed sessions repeat requests of the stream
// that they continue.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/containers.hpp"
#include "core/stream_usage.hpp"

namespace earshot {

/// Counts each request with an id once: for the stream that has all of its tokens, and of several, for the
/// one that was written first.
class UsageLedger {
 public:
  using Account = std::uint32_t;  // of a stream; never used twice
  /// When the stream's file was born, in ns since 1970, and its name: of two streams the lesser one is first.
  using Origin = std::pair<std::int64_t, std::string>;
  /// Called when models() changes by itself: a request counts for another stream from now on.
  using Changed = std::function<void()>;
  /// What the stream used; null: nothing any more.
  using Source = std::function<const StreamUsage*()>;
  static constexpr std::size_t requests_max = 1 << 20;

  /// Remembers the last `limit` ids at least, and twice as many at most, of some 20 bytes each: copies of
  /// earlier requests count again.
  explicit UsageLedger(std::size_t limit = requests_max) : limit_(limit) {}
  UsageLedger(const UsageLedger&) = delete;
  UsageLedger& operator=(const UsageLedger&) = delete;

  /// `source` must not fail before the account is closed.
  Account open(
      Source source, Origin origin, Changed changed = [] {});
  /// A request of the stream is new or has grown. Returns what no stream had used before, whichever it
  /// counts for.
  Usage update(Account account, const StreamUsage::Grown& grown);
  /// Copies of its requests count from now on.
  void close(Account account);

  /// StreamUsage::models() of the requests that count for this stream. Valid until the next call.
  const std::vector<ModelUsage>& models(Account account);
  /// The same of requests after this time, in ms since 1970. Visits all requests.
  std::vector<ModelUsage> models_after(Account account, std::int64_t ms);
  bool counts(Account account, std::uint64_t id, const StreamUsage::Request& request);

 private:
  struct Entry {
    Source source;
    Origin origin;
    Changed changed;
    bool has_copies = false, is_stale = false;
    bool is_copied = false;          // another stream repeated one of its requests
    std::uint64_t closed = 0;        // copied accounts, when `copied` was summed up
    std::vector<ModelUsage> copied;  // what counts for other streams
    LocalDay day;                    // of `copied`
    std::uint32_t totals = 0;        // likewise
    std::vector<ModelUsage> counted = {};
  };

  static const StreamUsage& usage_of(const Entry& entry);
  struct Known {
    Account owner = 0;
    std::uint32_t tokens = 0;  // the most that any stream used
  };
  void set_stale(Entry& entry);
  Known& known(std::uint64_t id);

  const std::size_t limit_;
  std::unordered_map<Account, Entry> entries_;
  HashMap<Known> known_, earlier_;  // by request
  Account last_ = 0;
  std::uint64_t closed_ = 0;
};

/// A stream's account, which is closed with this object.
class UsageAccount {
 public:
  UsageAccount() = default;  // of a stream that was not read: it used nothing
  UsageAccount(
      UsageLedger& ledger, UsageLedger::Source source, UsageLedger::Origin origin,
      UsageLedger::Changed changed = [] {})
      : ledger_(&ledger), account_(ledger.open(std::move(source), std::move(origin), std::move(changed))) {}
  UsageAccount(UsageAccount&& other) noexcept { *this = std::move(other); }
  UsageAccount& operator=(UsageAccount&& other) noexcept {
    std::swap(ledger_, other.ledger_);
    std::swap(account_, other.account_);
    return *this;
  }
  ~UsageAccount() {
    if (ledger_) ledger_->close(account_);
  }

  Usage update(const StreamUsage::Grown& grown) {
    return ledger_ ? ledger_->update(account_, grown) : Usage{};
  }
  /// As UsageLedger::models(). Valid until the next call.
  const std::vector<ModelUsage>& models() const {
    static const std::vector<ModelUsage> none;
    return ledger_ ? ledger_->models(account_) : none;
  }
  std::vector<ModelUsage> models_after(std::int64_t ms) const {
    return ledger_ ? ledger_->models_after(account_, ms) : std::vector<ModelUsage>();
  }

 private:
  UsageLedger* ledger_ = nullptr;
  UsageLedger::Account account_ = 0;
};

}  // namespace earshot
