#pragma once
#include <stdlib.h>
#include <time.h>

#include <optional>
#include <string>

namespace earshot::test {

/// The local time zone for the lifetime of the object.
class TimeZone {
 public:
  explicit TimeZone(const char* name) {
    if (const char* before = ::getenv("TZ")) before_ = before;
    ::setenv("TZ", name, 1);
    ::tzset();
  }
  ~TimeZone() {
    if (before_)
      ::setenv("TZ", before_->c_str(), 1);
    else
      ::unsetenv("TZ");
    ::tzset();
  }
  TimeZone(const TimeZone&) = delete;
  TimeZone& operator=(const TimeZone&) = delete;

 private:
  std::optional<std::string> before_;
};

}  // namespace earshot::test
