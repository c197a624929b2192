// Builds the lines of a session: each record has the next uuid (u1, u2, …) and the next
// second.
#pragma once
#include <cstdio>
#include <string>
#include <string_view>

#include "base/json_writer.hpp"

namespace earshot::test {

/// `"text"` as JSON.
inline std::string as_json(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

/// claude-code records. `extra` has further members, such as R"("isMeta":true)"; a member in it is
/// not written twice.
class Records {
 public:
  std::string user(std::string_view text, std::string_view extra = "") {
    return content("user", as_json(text), extra);
  }
  std::string user_blocks(std::string_view blocks, std::string_view extra = "") {
    return content("user", blocks, extra);
  }
  /// An assistant record with one text block; `stop` as JSON.
  std::string text(std::string_view text, std::string_view stop = "null", std::string_view extra = "") {
    return assistant(R"({"type":"text","text":)" + as_json(text) + "}", stop, extra);
  }
  std::string thinking(std::string_view text, std::string_view stop = "null") {
    return assistant(R"({"type":"thinking","thinking":)" + as_json(text) + R"(,"signature":"c2ln"})", stop);
  }
  std::string call(std::string_view id, std::string_view name, std::string_view input = "{}",
                   std::string_view extra = "") {
    return assistant(R"({"type":"tool_use","id":)" + as_json(id) + R"(,"name":)" + as_json(name) +
                         R"(,"input":)" + std::string(input) + "}",
                     "null", extra);
  }
  /// An assistant record of these content blocks; the message is named m and the record's number.
  std::string assistant(std::string_view blocks, std::string_view stop = "null",
                        std::string_view extra = "") {
    const std::string id = "m" + std::to_string(count_ + 1);
    return record("assistant",
                  R"("message":{"id":")" + id + R"(","role":"assistant","content":[)" + std::string(blocks) +
                      R"(],"stop_reason":)" + std::string(stop) + "}",
                  extra);
  }
  std::string result(std::string_view id, std::string_view text, std::string_view extra = "") {
    return record("user",
                  R"("message":{"role":"user","content":[{"type":"tool_result","tool_use_id":)" +
                      as_json(id) + R"(,"content":)" + as_json(text) + "}]}",
                  extra);
  }
  std::string error(std::string_view id, std::string_view text, std::string_view extra = "") {
    return record("user",
                  R"("message":{"role":"user","content":[{"type":"tool_result","tool_use_id":)" +
                      as_json(id) + R"(,"content":)" + as_json(text) + R"(,"is_error":true}]})",
                  extra);
  }
  std::string system(std::string_view subtype, std::string_view extra = "") {
    return record("system", R"("subtype":)" + as_json(subtype), extra);
  }
  std::string attachment(std::string_view body, std::string_view extra = "") {
    return record("attachment", R"("attachment":)" + std::string(body), extra);
  }
  /// The program's message about an API error, whose text is `text`; `members` such as
  /// R"("error":"rate_limit",)".
  std::string api_error(std::string_view text, std::string_view members = "",
                        std::string_view stop = "null") {
    return record("assistant", "",
                  R"("isApiErrorMessage":true,)" + std::string(members) +
                      R"("message":{"id":"x","model":"<synthetic>","content":[{"type":"text","text":)" +
                      as_json(text) + R"(}],"stop_reason":)" + std::string(stop) + "}");
  }
  /// A record of a subagent's progress with a copy of its `message`.
  std::string progress(std::string_view call, std::string_view agent, std::string_view message) {
    return record("progress", R"("toolUseID":"agent_1","parentToolUseID":)" + as_json(call) +
                                  R"(,"data":{"type":"agent_progress","prompt":"look","agentId":)" +
                                  as_json(agent) + R"(,"message":)" + std::string(message) + "}");
  }
  std::string interruption(std::string_view text = "[Request interrupted by user]") {
    return user_blocks(R"([{"type":"text","text":)" + as_json(text) + "}]");
  }
  std::string notification(std::string_view task, std::string_view status, std::string_view extra = "") {
    return user(notice(task, status), extra);
  }
  std::string queue(std::string_view operation, std::string_view text = "") {
    const std::string content = text.empty() ? "" : R"(,"content":)" + as_json(text);
    return R"({"type":"queue-operation","operation":)" + as_json(operation) + R"(,"timestamp":")" + now() +
           R"(","sessionId":"t")" + content + "}\n";
  }
  /// The text of a task notification; without a status if that is empty.
  static std::string notice(std::string_view task, std::string_view status) {
    const std::string told = status.empty() ? "" : "<status>" + std::string(status) + "</status>\n";
    return "<task-notification>\n<task-id>" + std::string(task) + "</task-id>\n" + told +
           "<summary>the task reports</summary>\n</task-notification>";
  }

  /// Any record of this era. Members that `extra` names replace the usual ones.
  std::string record(std::string_view type, std::string_view members, std::string_view extra = "") {
    ++count_;
    std::string out = R"({"type":)" + as_json(type);
    const auto add = [&](std::string_view name, const std::string& value) {
      const std::string key = '"' + std::string(name) + "\":";
      if (extra.find(key) == std::string_view::npos) out += "," + key + as_json(value);
    };
    add("uuid", uuid());
    add("timestamp", now());
    add("sessionId", "t");
    if (!members.empty()) out.append(",").append(members);
    if (!extra.empty()) out.append(",").append(extra);
    return out + "}\n";
  }

  std::string uuid() const { return "u" + std::to_string(count_); }  // of the record written last
  /// The time of the last record: one second past midnight per record.
  std::string now() const { return at(count_); }
  static std::string at(int second) {
    char text[32];
    std::snprintf(text, sizeof text, "2026-02-03T00:%02d:%02d.000Z", second / 60 % 60, second % 60);
    return text;
  }

 private:
  std::string content(std::string_view role, std::string_view content, std::string_view extra) {
    return record(
        role, R"("message":{"role":)" + as_json(role) + R"(,"content":)" + std::string(content) + "}", extra);
  }

  int count_ = 0;
};

/// "parentUuid":"…" as an extra member.
inline std::string child_of(std::string_view uuid) { return R"("parentUuid":)" + as_json(uuid); }

}  // namespace earshot::test
