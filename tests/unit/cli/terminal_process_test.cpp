#include "cli/terminal_process.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>

namespace terminal_process_test {

using namespace earshot::cli;

TEST_CASE("a process is read from its stat line, whatever its name is") {
  const auto process = parse_process_stat("42 (a) b (c) S 7 42 42 0 -1 4194560 0");
  REQUIRE(process);
  CHECK(process->pid == 42);
  CHECK(process->parent == 7);
  CHECK(process->name == "a) b (c");
  CHECK(process->tty.empty());
  for (const char* text :
       {"", "42", "42 (sh", "42 (sh)", "42 (sh) S", "42 (sh) S 7 42", "x (sh) S 7 42 42 0"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_process_stat(text));
  }
}

TEST_CASE("the ancestors begin with the process and end before process 1") {
  const auto chain = process_and_ancestors(::getpid());
  REQUIRE(chain.size() >= 1);
  CHECK(chain.front().pid == ::getpid());
  CHECK(chain.front().parent == ::getppid());
  for (std::size_t n = 1; n < chain.size(); ++n) CHECK(chain[n].pid == chain[n - 1].parent);
  CHECK(chain.back().pid > 1);
  CHECK(process_and_ancestors(0).empty());
  CHECK(process_and_ancestors(-5).empty());
}

TEST_CASE("the environment of a process is read") {
  const auto variables = read_process_environment(::getpid());
  const auto path = variables.find("PATH");
  REQUIRE(path != variables.end());
  CHECK(path->second == std::string(::getenv("PATH")));
  CHECK(read_process_environment(-1).empty());
}

}  // namespace terminal_process_test
