#include "core/member_table.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "core/line_parser.hpp"

namespace earshot::test {
namespace {

struct Fields {
  Value a, id, type, subtype, parentUuid, cache_creation_input_tokens;
};
constexpr MemberTable<Fields, 32> table({{"a", &Fields::a},
                                         {"id", &Fields::id},
                                         {"type", &Fields::type},
                                         {"subtype", &Fields::subtype},
                                         {"parentUuid", &Fields::parentUuid},
                                         {"cache_creation_input_tokens",
                                          &Fields::cache_creation_input_tokens}});

/// Reads one object; the fields are valid as long as this.
class Object {
 public:
  explicit Object(std::string_view json) : line_(json) {
    const std::size_t bytes = (line_ += '\n').size();
    line_.append(scan_padding, '\0');
    table.read(parser_.parse(std::string_view(line_).substr(0, bytes)).value, fields_);
  }
  const Fields& fields() const { return fields_; }

 private:
  std::string line_;
  LineParser parser_;
  Fields fields_;
};

TEST_CASE("a member table reads each member that has a name") {
  const Object object(R"({"a":"1","id":"2","type":"3","subtype":"4","parentUuid":"5",)"
                      R"("cache_creation_input_tokens":"6","":"7","typ":"8","types":"9","tyqe":"10"})");
  CHECK(object.fields().a.as_text() == "1");
  CHECK(object.fields().id.as_text() == "2");
  CHECK(object.fields().type.as_text() == "3");
  CHECK(object.fields().subtype.as_text() == "4");
  CHECK(object.fields().parentUuid.as_text() == "5");
  CHECK(object.fields().cache_creation_input_tokens.as_text() == "6");
}

TEST_CASE("a member table leaves absent members absent") {
  CHECK(!Object("{}").fields().type);
  CHECK(!Object(R"({"Type":1,"tYpe":2,"typE":3,"parentUuiD":4,"parentUUid":5})").fields().type);
  CHECK(!Object(R"({"parentUuiD":4,"ParentUuid":5,"parentVuid":6})").fields().parentUuid);
  CHECK(!Object(R"({"cache_creation_input_tokenz":1})").fields().cache_creation_input_tokens);
}

TEST_CASE("a member table reads the last of repeated members, however its key is escaped") {
  CHECK(Object(R"({"type":"a","type":"b"})").fields().type.as_text() == "b");
  CHECK(Object(R"({"type":"a","t\u0079pe":"b"})").fields().type.as_text() == "b");
  CHECK(Object(R"({"t\u0079pe":"a","type":"b"})").fields().type.as_text() == "b");
}

}  // namespace
}  // namespace earshot::test
