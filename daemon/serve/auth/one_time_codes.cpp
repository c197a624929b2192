#include "serve/auth/one_time_codes.hpp"

#include <algorithm>

#include "base/hex.hpp"
#include "serve/auth/secrets.hpp"

namespace earshot::serve {

namespace {
constexpr std::size_t code_bytes = 32;
}

std::string OneTimeCodes::make(Time now) {
  std::erase_if(codes_, [&](const Code& code) { return code.until <= now; });
  if (codes_.size() == outstanding_max) codes_.pop_front();
  codes_.push_back({random_hex(code_bytes), now + good_for});
  return codes_.back().text;
}

bool OneTimeCodes::take(std::string_view given, Time now) {
  std::erase_if(codes_, [&](const Code& code) { return code.until <= now; });
  auto found = codes_.end();
  for (auto it = codes_.begin(); it != codes_.end(); ++it) {  // constant time
    if (same_secret(given, it->text)) found = it;
  }
  if (found == codes_.end()) return false;
  codes_.erase(found);
  return true;
}

std::size_t OneTimeCodes::outstanding(Time now) const {
  return static_cast<std::size_t>(
      std::count_if(codes_.begin(), codes_.end(), [&](const Code& code) { return code.until > now; }));
}

}  // namespace earshot::serve
