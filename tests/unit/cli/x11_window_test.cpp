#include "cli/x11_window.hpp"

#include <catch2/catch.hpp>

namespace x11_window_test {

using namespace earshot::cli;

TEST_CASE("only displays of this machine have a number") {
  CHECK(local_display(":0") == 0U);
  CHECK(local_display(":12.3") == 12U);
  CHECK(local_display("unix:7") == 7U);
  for (const char* display :
       {"", "0", ":", ":x", ":1x", ":-1", ":99999999999", "localhost:10.0", "other:0"}) {
    CAPTURE(display);
    CHECK_FALSE(local_display(display));
  }
}

TEST_CASE("without an X server the reason is returned") {
  const auto reason = [](const std::string& display) {
    const auto result = activate_x11_window({display, ""}, {1}, 0);
    REQUIRE(std::holds_alternative<std::string>(result));
    return std::get<std::string>(result);
  };
  CHECK(reason("other:0") == "the display other:0 is not one of this machine");
  CHECK(reason(":64999") == "no X server can be used at the display :64999");
}

}  // namespace x11_window_test
