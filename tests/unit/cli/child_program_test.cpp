#include "cli/child_program.hpp"

#include <catch2/catch.hpp>

namespace child_program_test {

using namespace earshot::cli;

TEST_CASE("a program gets its words as they are, and its outputs are kept apart") {
  const ProgramResult result = run_program(
      {"sh", "-c", "printf %s \"$1\"; echo bad >&2; echo \"$EARSHOT_X\"; exit 3", "sh", "a; $(touch x) '\n"},
      {"EARSHOT_X=one=two"});
  CHECK(result.started);
  CHECK(result.exit_code == 3);
  CHECK(result.out == "a; $(touch x) '\none=two\n");
  CHECK(result.err == "bad\n");
  CHECK_FALSE(result.ok());
  CHECK(run_program({"true"}).ok());
}

TEST_CASE("a program that is missing is not started, one that is killed has no exit code") {
  CHECK_FALSE(run_program({"earshot-no-such-program"}).started);
  CHECK_FALSE(run_program({}).started);
  const ProgramResult killed = run_program({"sh", "-c", "kill -9 $$"});
  CHECK(killed.started);
  CHECK(killed.exit_code == -1);
}

TEST_CASE("the output is bounded, and stdin is empty") {
  const ProgramResult result = run_program({"sh", "-c", "cat; head -c 3000000 /dev/zero"});
  CHECK(result.ok());
  CHECK(result.out.size() >= output_bytes_max);
  CHECK(result.out.size() < output_bytes_max + (64 << 10));
}

}  // namespace child_program_test
