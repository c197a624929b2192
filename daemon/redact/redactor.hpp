// Redacts known secret formats and those of the user's rules: each secret becomes `[redacted:<rule>]`.
//
// Nine tenths of all text has no candidate. One pass finds the literals that introduce a secret (`ghp_`,
// `eyJ`, `password`, …; class Prefilter). Only there is the literal's rule tried: the shape of its token, or
// a function. User rules are RE2 expressions without a known literal: if all of them joined into one match
// somewhere, each is searched in the whole text.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text_filter.hpp"

namespace earshot::redact {

/// Name: [a-z0-9_]+, different from the built-in rules. Pattern: RE2 on UTF-8; group 1, if present, is the
/// secret, otherwise the whole match. Where a text is cut, a secret longer than reach() may be shown in part
/// if only its end identifies it.
struct UserRule {
  std::string name, pattern;
};

/// Thread-safe. The built-in rules take time linear in the text.
class Redactor final : public TextFilter {
 public:
  explicit Redactor(const std::vector<UserRule>& user_rules = {});
  ~Redactor() override;
  Redactor(const Redactor&) = delete;
  Redactor& operator=(const Redactor&) = delete;

  /// The error of the first invalid user rule, as a sentence; empty: all are valid. Invalid rules are not
  /// used.
  const std::string& error() const;

  using TextFilter::clean;
  std::string_view clean(std::string_view text, std::size_t shown_bytes, std::string& scratch) const override;
  std::optional<SecretPlace> secret_place(std::string_view key) const override;
  std::string_view replace_whole(std::string_view value, SecretPlace place,
                                 std::string& scratch) const override;
  /// More than any built-in rule needs to recognise a secret.
  std::size_t reach() const override { return 1024; }

  std::vector<std::string_view> names() const;  // of all rules, each once
  /// Replacements per rule, all rules included. A secret counts each time it is sent, in events and in
  /// session frames.
  std::vector<std::pair<std::string_view, std::uint64_t>> counts() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace earshot::redact
