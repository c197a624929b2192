// Known shapes of secrets, and the user's own, taken out of text: each is replaced by `[redacted:<rule>]`.
//
// How it is fast: nine tenths of all text has nothing that looks like a secret. One pass over it asks of
// every three bytes whether a literal that introduces a secret (`ghp_`, `eyJ`, `password`, …) may stand
// there; see literals.hpp. Only at such a place is that literal's rule tried: RE2, anchored, so that it stops
// at the first byte that does not fit. The user's own rules have no known literal: each is searched for in
// all text, when all of them together, as one expression, occur in it at all.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text_filter.hpp"

namespace earshot::redact {

/// Name: [a-z0-9_]+, none of the built-in rules'. Pattern: RE2 on UTF-8; its group 1, if it has one, is the
/// secret, else all of it. A secret longer than reach() that only its end gives away may be shown in part
/// where a text is cut.
struct UserRule {
  std::string name, pattern;
};

/// One thread at a time. Work is linear in the text for the built-in rules.
class Redactor final : public TextFilter {
 public:
  explicit Redactor(const std::vector<UserRule>& own = {});
  ~Redactor() override;
  Redactor(const Redactor&) = delete;
  Redactor& operator=(const Redactor&) = delete;

  /// What is wrong with the first bad rule of the user's, as a sentence; empty: all are good. A bad rule is
  /// left out, the others work.
  const std::string& error() const;

  using TextFilter::clean;
  std::string_view clean(std::string_view text, std::size_t shown_bytes, std::string& scratch) const override;
  bool is_secret_key(std::string_view key) const override;
  std::string_view replace_whole(std::string_view value, std::string& scratch) const override;
  /// Longer than what the longest built-in rule needs to see before it knows.
  std::size_t reach() const override { return 1024; }

  std::vector<std::string_view> names() const;  // of all rules, each once
  /// By rule, all rules: how often something was replaced. One secret counts each time it is shown: in an
  /// event, in the state that a session's frame tells.
  std::vector<std::pair<std::string_view, std::uint64_t>> counts() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace earshot::redact
