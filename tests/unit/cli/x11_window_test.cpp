#include "cli/x11_window.hpp"

#include <catch2/catch.hpp>

namespace x11_window_test {

using namespace earshot::cli;

namespace {

std::string counted(const std::string& text) {
  return std::string{static_cast<char>(text.size() >> 8), static_cast<char>(text.size())} + text;
}
std::string entry(unsigned family, const std::string& address, const std::string& display,
                  const std::string& name, const std::string& data) {
  return std::string{static_cast<char>(family >> 8), static_cast<char>(family)} + counted(address) +
         counted(display) + counted(name) + counted(data);
}

}  // namespace

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

TEST_CASE("the cookie is that of the host and the display") {
  const std::string cookie = "MIT-MAGIC-COOKIE-1";
  const std::string file = entry(256, "other", "3", cookie, "no1") + entry(256, "here", "4", cookie, "no2") +
                           entry(256, "here", "3", "XDM-AUTHORIZATION-1", "no3") +
                           entry(0, "here", "3", cookie, "no4") + entry(256, "here", "3", cookie, "yes") +
                           entry(65535, "", "", cookie, "any");
  CHECK(find_x11_cookie(file, 3, "here") == "yes");
  CHECK(find_x11_cookie(file, 9, "here") == "any");
  CHECK(find_x11_cookie(file.substr(0, file.size() - 2), 9, "here").empty());
  CHECK(find_x11_cookie("", 0, "here").empty());
  CHECK(find_x11_cookie(std::string(3, '\xff'), 0, "here").empty());
}

TEST_CASE("without an X server the reason is returned") {
  const auto reason = [](const std::string& display) {
    const auto result = activate_x11_window({display, ""}, {1}, 0);
    REQUIRE(std::holds_alternative<std::string>(result));
    return std::get<std::string>(result);
  };
  CHECK(reason("other:0") == "the display other:0 is not one of this machine");
  CHECK(reason(":64999") == "no X server answers at the display :64999");
}

}  // namespace x11_window_test
