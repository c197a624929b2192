// A filter for tests: every `lamp` becomes a row of stars; the key `oil` has a secret value.
#pragma once
#include "base/text_filter.hpp"

namespace earshot::test {

class FakeFilter final : public TextFilter {
 public:
  static constexpr std::string_view word = "lamp", stars = "******";

  using TextFilter::clean;
  std::string_view clean(std::string_view text, std::size_t shown_bytes,
                         std::string& scratch) const override {
    const std::string_view shown = cut_utf8(text, shown_bytes);
    std::string out;
    std::size_t done = 0;
    for (std::size_t at = text.find(word); at < shown.size(); at = text.find(word, done)) {
      out.append(text, done, at - done).append(stars);
      done = at + word.size();
    }
    if (done == 0) return shown;
    if (done < shown.size()) out += shown.substr(done);
    scratch = std::move(out);
    return scratch;
  }
  std::optional<SecretPlace> secret_place(std::string_view key) const override {
    return key == "oil" ? std::optional(SecretPlace::value) : std::nullopt;
  }
  std::string_view replace_whole(std::string_view value, SecretPlace, std::string& scratch) const override {
    if (value.empty()) return {};
    scratch = stars;
    return scratch;
  }
  std::size_t reach() const override { return word.size(); }
};

}  // namespace earshot::test
