#include "notifier/session_cache.hpp"

#include <catch2/catch.hpp>

using namespace earshot;
using namespace earshot::notifier;

TEST_CASE("the meta view of a frame omits text at all levels") {
  const std::string frame =
      R"({"type":"session","status":{"state":"waiting","detail":"secret"},"turn":{"number":1,"prompt":"secret"},"tools":[{"tool":"Bash","input":{"command":"secret"}}],"usage":{"input":20},"truncated":{"turn/prompt":9000}})";
  CHECK(
      frame_for(frame, View::meta) ==
      R"({"type":"session","status":{"state":"waiting"},"turn":{"number":1},"tools":[{"tool":"Bash"}],"usage":{"input":20}})");
  CHECK(frame_for(frame, View::full) == frame);
  CHECK(frame_for("[]", View::meta) == "{}");
}
