#include "demo.hpp"

namespace earshot::demo {

namespace {

constexpr std::string_view prompt_line =
    R"({"parentUuid":${parent},"isSidechain":false,"promptId":"${prompt}","type":"user","message":{"role":"user",)"
    R"("content":"${text}"},"uuid":"${uuid}","timestamp":"${time}","permissionMode":"default","origin":{"kind":"human"},)"
    R"("promptSource":"typed","turnOrigin":"human","turnPosition":{"promptIndex":${turn},"turnIndex":${turn}},${tail}})";

constexpr std::string_view brief_line =
    R"({"parentUuid":null,"isSidechain":true,"promptId":"${prompt}","agentId":"${agent}","type":"user",)"
    R"("message":{"role":"user","content":"${text}"},"uuid":"${uuid}","timestamp":"${time}",${tail}})";

// One content block per line; the lines of a message share its id.
constexpr std::string_view assistant_line =
    R"({"parentUuid":${parent},"isSidechain":${sidechain},${agent_field}"message":{"id":"${message}","type":"message",)"
    R"("role":"assistant","model":"claude-opus-5-5","content":[${block}],"stop_reason":"${stop}","stop_sequence":null,)"
    R"("usage":{"input_tokens":12,"cache_creation_input_tokens":1700,"cache_read_input_tokens":${context},)"
    R"("output_tokens":${output},"service_tier":"standard"},"stop_details":null},"apiBlockIndex":${index},)"
    R"("requestId":"${request}","requestedModel":"claude-opus-5-5","type":"assistant","uuid":"${uuid}",)"
    R"("timestamp":"${time}","effort":"medium","madeBy":"model",${tail}})";

constexpr std::string_view result_line =
    R"({"parentUuid":${parent},"isSidechain":${sidechain},"promptId":"${prompt}",${agent_field}"type":"user",)"
    R"("message":{"role":"user","content":[{"tool_use_id":"${call}","type":"tool_result","content":"${text}",)"
    R"("is_error":false}]},"uuid":"${uuid}","timestamp":"${time}",${tool_use_result}"sourceToolAssistantUUID":"${caller}",)"
    R"("permissionDecision":{"decision":"accept","source":"${name}"},${tail}})";

constexpr std::string_view turn_duration_line =
    R"({"parentUuid":${parent},"isSidechain":false,"type":"system","subtype":"turn_duration","durationMs":${text},)"
    R"("messageCount":${lines},"timestamp":"${time}","uuid":"${uuid}","isMeta":false,${tail}})";

constexpr std::string_view retry_line =
    R"({"parentUuid":${parent},"isSidechain":false,"type":"system","subtype":"api_error","level":"error","error":)"
    R"({"message":"529 Overloaded","status":529,"requestId":"${request}","formatted":"529 Overloaded","connection":null,)"
    R"("isNetworkDown":false},"retryInMs":${text},"retryAttempt":${name},"maxRetries":10,"source":"request_retry",)"
    R"("timestamp":"${time}","uuid":"${uuid}",${tail}})";

constexpr std::string_view compacting_line =
    R"({"parentUuid":null,"isSidechain":true,"agentId":"${compaction}","type":"user","message":{"role":"user",)"
    R"("content":"${text}"},"uuid":"${uuid}","timestamp":"${time}",${tail}})";

constexpr std::string_view boundary_line =
    R"({"parentUuid":null,"logicalParentUuid":${parent},"isSidechain":false,"type":"system","subtype":"compact_boundary",)"
    R"("content":"Conversation compacted","isMeta":false,"timestamp":"${time}","uuid":"${uuid}","level":"info",)"
    R"("compactMetadata":{"trigger":"auto","preTokens":${context},"durationMs":2400,"postTokens":2600},${tail}})";

constexpr std::string_view summary_line =
    R"({"parentUuid":${parent},"isSidechain":false,"promptId":"${prompt}","type":"user","message":{"role":"user",)"
    R"("content":"${text}"},"isVisibleInTranscriptOnly":true,"isCompactSummary":true,"uuid":"${uuid}",)"
    R"("timestamp":"${time}","turnPosition":{"promptIndex":${turn},"turnIndex":${turn}},${tail}})";

constexpr std::string_view title_line = R"({"type":"ai-title","aiTitle":"${text}","sessionId":"${session}"})";

constexpr std::string_view cost_line =
    R"({"type":"cost-state","sessionId":"${session}","totalCostUSD":${text},"hasUnknownModelCost":false})";

using enum Chain;
using enum Act;

// The keeper's log of a lighthouse gives dates with a thirteenth month.
constexpr Step steps[] = {
    {200, main, registry, "", "", ""},
    {150, main, registry, "idle", "", ""},
    {700, main, registry, "busy", "", ""},
    {120, main, prompt, "",
     R"(The keeper's log says the lamp was lit on 1893-13-02. Find out why, and fix it, please.)", ""},
    {60, main, title, "", R"(The thirteenth month)", ""},
    {840, main, think, "",
     R"(A thirteenth month. Something adds one to a month that was already counted from one.)", ""},
    {300, main, say, "",
     R"(A thirteenth month would please the union, but not the almanac. I will look where dates are written.)",
     ""},
    {100, main, call, "Bash",
     R"({"command":"grep -n month src/*.c","description":"Find where months are written"})", ""},
    {600, main, result, "rule",
     R"(src/log.c:31:  int month = today.month + 1;\nsrc/log.c:32:  print_date(year, month, day);\nsrc/date.c:12:  printf(\"%d-%02d-%02d\", year, month + 1, day);)",
     R"({"stdout":"src/log.c:31: …","stderr":"","interrupted":false,"isImage":false,"noOutputExpected":false})"},

    {500, main, call, "TaskCreate",
     R"({"subject":"Ask the old logs","description":"Which dates are wrong?","activeForm":"Asking the old logs"})",
     ""},
    {60, main, call, "TaskCreate",
     R"({"subject":"Mend the month","description":"Count it once","activeForm":"Mending the month"})", ""},
    {80, main, task, "1",
     R"({"id":"1","subject":"Ask the old logs","description":"Which dates are wrong?","activeForm":"Asking the old logs","status":"pending","blocks":[],"blockedBy":[]})",
     ""},
    {20, main, task, "2",
     R"({"id":"2","subject":"Mend the month","description":"Count it once","activeForm":"Mending the month","status":"pending","blocks":[],"blockedBy":[]})",
     ""},
    {30, main, result, "rule", R"(Task #1 created successfully: Ask the old logs)",
     R"({"task":{"id":"1","subject":"Ask the old logs","description":"Which dates are wrong?"}})"},
    {20, main, result, "rule", R"(Task #2 created successfully: Mend the month)",
     R"({"task":{"id":"2","subject":"Mend the month","description":"Count it once"}})"},
    {400, main, call, "TaskUpdate", R"({"taskId":"1","status":"in_progress"})", ""},
    {40, main, task, "1",
     R"({"id":"1","subject":"Ask the old logs","description":"Which dates are wrong?","activeForm":"Asking the old logs","status":"in_progress","blocks":[],"blockedBy":[]})",
     ""},
    {30, main, result, "rule", R"(Updated task #1 status)",
     R"({"success":true,"taskId":"1","updatedFields":["status"],"statusChange":{"from":"pending","to":"in_progress"}})"},

    {500, main, say, "", R"(Forty years of logs are much reading. I send somebody with good eyes.)", ""},
    {100, main, call, "Agent",
     R"({"description":"Read the old logs","prompt":"Read logs/ and say from which day on the months are wrong.","subagent_type":"Explore","run_in_background":false})",
     ""},
    {80, agent, meta, "Explore", R"(Read the old logs)", ""},
    {20, agent, brief, "", R"(Read logs/ and say from which day on the months are wrong.)", ""},
    {700, agent, say, "", R"(I begin at the bottom of the stairs.)", ""},
    {100, agent, call, "Bash",
     R"({"command":"grep -n -- '-13-' logs/*.txt | head -3","description":"Find impossible months"})", ""},
    {900, agent, result, "rule", R"(logs/1893.txt:2:1893-13-02 lamp lit, fog)", ""},
    {800, agent, finish, "",
     R"(Every January since 1893 is a thirteenth month: the keeper changed his pen that day, and his arithmetic.)",
     ""},
    {150, main, result, "rule",
     R"(Every January since 1893 is a thirteenth month: the keeper changed his pen that day, and his arithmetic.)",
     R"({"status":"completed","prompt":"Read logs/ and say from which day on the months are wrong.","agentId":"${agent}","agentType":"Explore","content":[{"type":"text","text":"Every January since 1893 is a thirteenth month."}],"totalDurationMs":2500,"totalTokens":1840,"totalToolUseCount":1})"},
    {300, main, call, "TaskUpdate", R"({"taskId":"1","status":"completed"})", ""},
    {40, main, task, "1",
     R"({"id":"1","subject":"Ask the old logs","description":"Which dates are wrong?","activeForm":"Asking the old logs","status":"completed","blocks":[],"blockedBy":[]})",
     ""},
    {30, main, result, "rule", R"(Updated task #1 status)",
     R"({"success":true,"taskId":"1","updatedFields":["status"],"statusChange":{"from":"in_progress","to":"completed"}})"},

    {400, main, retry, "1", "520", ""},
    {520, main, retry, "2", "1040", ""},

    {1040, main, say, "",
     R"(The month is counted twice: once in the log, once more in the printer. I take out the first.)", ""},
    {60, main, registry, "waiting", "permission prompt", ""},
    {90, main, call, "Edit",
     R"({"file_path":"${cwd}/src/log.c","old_string":"today.month + 1","new_string":"today.month"})", ""},
    {3000, main, registry, "busy", "", ""},
    {60, main, result, "user_temporary", R"(The file ${cwd}/src/log.c has been updated successfully.)",
     R"({"filePath":"${cwd}/src/log.c","oldString":"today.month + 1","newString":"today.month","originalFile":"","structuredPatch":[{"oldStart":31,"oldLines":1,"newStart":31,"newLines":1,"lines":["-  int month = today.month + 1;","+  int month = today.month;"]}],"userModified":false,"replaceAll":false})"},
    {500, main, call, "Bash", R"({"command":"make test","description":"Run the tests"})", ""},
    {1500, main, result, "rule", R"(12 tests, 12 lamps lit)",
     R"({"stdout":"12 tests, 12 lamps lit","stderr":"","interrupted":false,"isImage":false,"noOutputExpected":false})"},
    {300, main, call, "TaskUpdate", R"({"taskId":"2","status":"completed"})", ""},
    {40, main, task, "2",
     R"({"id":"2","subject":"Mend the month","description":"Count it once","activeForm":"Mending the month","status":"completed","blocks":[],"blockedBy":[]})",
     ""},
    {30, main, result, "rule", R"(Updated task #2 status)",
     R"({"success":true,"taskId":"2","updatedFields":["status"],"statusChange":{"from":"pending","to":"completed"}})"},

    {500, main, compacting, "", R"(Tell what was done so far, for one who has to go on from there.)", ""},
    {2400, main, boundary, "", "", ""},
    {20, main, summary, "",
     R"(This session is being continued from a previous conversation that ran out of context. The month was counted twice, in src/log.c and in src/date.c; the first is taken out, and the tests pass.)",
     ""},
    {900, main, finish, "",
     R"(Mended: the month is now counted once, and all twelve tests keep their lamps lit. The old pages I left as they are; history should be allowed its thirteenth months.)",
     ""},
    {60, main, turn_duration, "", "19000", ""},
    {40, main, registry, "idle", "", ""},

    {1500, main, registry, "busy", "", ""},
    {100, main, prompt, "", R"(Lovely. And what does the last page say?)", ""},
    {900, main, finish, "", R"(\"Fog. Lamp lit. A ship answered.\")", ""},
    {60, main, turn_duration, "", "1000", ""},
    {40, main, registry, "idle", "", ""},
    {900, main, cost, "", "0.0713", ""},
    {20, main, leave, "", "", ""},
};

}  // namespace

std::span<const Step> script() { return steps; }

std::string_view line_of(Act act) {
  switch (act) {
    case prompt:
      return prompt_line;
    case brief:
      return brief_line;
    case think:
    case say:
    case call:
    case finish:
      return assistant_line;
    case result:
      return result_line;
    case turn_duration:
      return turn_duration_line;
    case title:
      return title_line;
    case cost:
      return cost_line;
    case retry:
      return retry_line;
    case compacting:
      return compacting_line;
    case boundary:
      return boundary_line;
    case summary:
      return summary_line;
    case meta:
    case registry:
    case leave:
    case task:
      return {};
  }
  return {};
}

std::string_view line_tail() {
  return R"("userType":"external","entrypoint":"cli","cwd":"${cwd}","sessionId":"${session}","version":"2.1.330",)"
         R"("gitBranch":"main")";
}

std::string_view meta_file() {
  return R"({"agentType":"${name}","isBuiltIn":true,"description":"${text}","toolUseId":"${call}","spawnDepth":1,)"
         R"("requestShape":"foreground","model":"claude-opus-5-5"})";
}

std::string_view registry_file() {
  return R"({"pid":${pid},"sessionId":"${session}","cwd":"${cwd}","startedAt":${started_ms},"procStart":"${process_start}",)"
         R"("version":"2.1.330","peerProtocol":1,"kind":"interactive","entrypoint":"cli","pidDomain":"${domain}",)"
         R"("name":"lighthouse","nameSource":"derived"${status}})";
}

}  // namespace earshot::demo
