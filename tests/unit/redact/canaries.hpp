// Invented secrets, one or more per rule, and lookalikes. They are written in pieces, so that no
// scanner takes this file for a leak.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "redact/redactor.hpp"

namespace earshot::test {

struct Canary {
  std::string rule;
  std::string before, secret, after;  // the secret alone is replaced
  std::string text() const { return before + secret + after; }
};
const std::vector<Canary>& canaries();

/// Text that must stay as it is.
const std::vector<std::string>& near_misses();

/// One Redactor for a test program that asks it a million times.
const redact::Redactor& redactor();
std::string clean(std::string_view text);

/// Whether eight bytes of the secret, anywhere in it, stand in `shown`.
bool leaks(std::string_view shown, const Canary& canary);

/// Words without any secret, at least `bytes` long, ending in a blank.
std::string prose(std::size_t bytes);

}  // namespace earshot::test
