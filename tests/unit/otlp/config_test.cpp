#include "otlp/config.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <string>

#include "unit/support/temporary_directory.hpp"

namespace earshot::otlp {
namespace {

std::string read(const test::TemporaryDirectory& home, std::string_view text, Config& config) {
  home.write("headers", text);
  ::chmod((home / "headers").c_str(), 0600);
  config.headers_file = home / "headers";
  return read_headers_file(config);
}

}  // namespace

TEST_CASE("headers are lines without control characters, comments and empty lines excepted") {
  const test::TemporaryDirectory home;
  Config config;
  CHECK(read(home, "# of the collector\n\nAuthorization: Bearer abc\r\nx-key: k", config).empty());
  CHECK(config.file_headers == std::vector<std::string>{"Authorization: Bearer abc", "x-key: k"});
  CHECK(read(home, "x-key: other\n", config).empty());  // replaces those of before
  CHECK(config.file_headers == std::vector<std::string>{"x-key: other"});
  for (const std::string line : {"no colon", ": no name", "a b: c", "a: b\x01", "a: \xc3\xa4"}) {
    CAPTURE(line);
    const std::string error = read(home, "x: y\n" + line + "\n", config);
    CHECK_THAT(error, Catch::Contains("headers:2: must be"));
    CHECK_THAT(error, !Catch::Contains(line));  // it may be a secret
  }
}

TEST_CASE("a headers file that others can read, or that is missing, is refused") {
  const test::TemporaryDirectory home;
  Config config;
  CHECK(read_headers_file(config).empty());  // none is configured
  read(home, "x: y\n", config);
  ::chmod(config.headers_file.c_str(), 0644);
  CHECK_THAT(read_headers_file(config), Catch::Contains("others can read it"));
  config.headers_file = home / "missing";
  CHECK_THAT(read_headers_file(config), Catch::Contains("no such file"));
}

TEST_CASE("authorities are a file with a certificate in PEM") {
  const test::TemporaryDirectory home;
  CHECK_THAT(check_authorities(home / "missing"), Catch::Contains("No such file"));
  home.write("empty", "");
  home.write("der", std::string("\x30\x82\x01\x00", 4));
  home.write("key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
  home.write("broken", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  for (const char* name : {"empty", "der", "key", "broken"}) {
    CAPTURE(name);
    CHECK_THAT(check_authorities(home / name), Catch::Contains("contains no certificate in PEM"));
  }
}

}  // namespace earshot::otlp
