// The demo's session of Claude Code: a transcript, a subagent's transcript, a registry file and task files.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/hex.hpp"
#include "base/quantities.hpp"
#include "demo_player.hpp"
#include "status/process_table.hpp"

namespace earshot::demo {

namespace fs = std::filesystem;

namespace {

// --- the script: a table of steps, and the transcript line of each kind of step

enum class Act {
  prompt,  // text
  brief,   // the first line of the subagent's file: text
  think,
  say,     // text
  call,    // name: the tool; text: its input, JSON
  result,  // of the oldest open call; name: source of the permission; text: output; more: toolUseResult, JSON
           // or empty
  finish,  // the last text of a turn, or of the subagent
  turn_duration,  // text, in ms
  title,          // text
  cost,           // total of the session: text, in dollars
  retry,          // an API error; name: the attempt, text: delay until the next one, in ms
  compacting,     // the internal call of a compaction, in a file of its own
  boundary,       // the context was compacted
  summary,        // text
  meta,           // the subagent's meta file; name: its type, text: its description
  registry,       // the registry file; name: status, text: waitingFor; no name: without a status
  leave,          // removes the registry file
  task,           // a task file; name: number, text: content, JSON
};

/// Texts are escaped JSON string contents; `${…}` placeholders are filled in when the step is played.
struct Step {
  int after_ms;
  Chain chain;
  Act act;
  std::string_view name, text, more;
};

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

/// The template of a transcript line, without LF; empty for acts that write another file.
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

/// The members that end every line: `${tail}`.
std::string_view line_tail() {
  return R"("userType":"external","entrypoint":"cli","cwd":"${cwd}","sessionId":"${session}","version":"2.1.330",)"
         R"("gitBranch":"main")";
}

// Templates of the other files.

std::string_view meta_file() {
  return R"({"agentType":"${name}","isBuiltIn":true,"description":"${text}","toolUseId":"${call}","spawnDepth":1,)"
         R"("requestShape":"foreground","model":"claude-opus-5-5"})";
}

std::string_view registry_file() {
  return R"({"pid":${pid},"sessionId":"${session}","cwd":"${cwd}","startedAt":${started_ms},"procStart":"${process_start}",)"
         R"("version":"2.1.330","peerProtocol":1,"kind":"interactive","entrypoint":"cli","pidDomain":"${domain}",)"
         R"("name":"lighthouse","nameSource":"derived"${status}})";
}

// --- playing it

constexpr std::string_view cwd = working_directory;
constexpr std::string_view project = "projects/-home-keeper-lighthouse";

/// Registry members of a step; empty without a status, as older versions write it.
std::string status_fields(const Step& step) {
  if (step.name.empty()) return {};
  const std::string now = std::to_string(now_ms());
  std::string fields =
      R"(,"status":")" + std::string(step.name) + R"(","updatedAt":)" + now + R"(,"statusUpdatedAt":)" + now;
  if (!step.text.empty()) fields += R"(,"waitingFor":")" + std::string(step.text) + "\"";
  return fields;
}

class ClaudeCodePlayer final : public Player {
 public:
  explicit ClaudeCodePlayer(std::string root) : root_(std::move(root)) {}

  int begin() override {
    session_ = Session{};
    session_.id = random_uuid();
    session_.agent = "a" + random_hex(8);
    session_.compaction = "acompact-" + random_hex(8);
    session_.started_ms = now_ms();
    return steps[0].after_ms;
  }

  std::optional<int> play() override {
    play(steps[session_.step++]);
    if (session_.step < std::size(steps)) return steps[session_.step].after_ms;
    return std::nullopt;
  }

  std::vector<std::string> files() const override {
    return {folder() + ".jsonl", folder(), at("tasks/" + session_.id)};
  }

 private:
  /// A chain of records: each names the one before it as its parent.
  struct Thread {
    struct Call {
      std::string id, caller;
    };
    std::string parent = "null";   // JSON
    std::deque<Call> open;         // calls without a result, oldest first
    std::string message, request;  // of the current message; empty: the next block starts a new one
    int index = 0;                 // of its block
    int lines = 0, context = 0;
  };

  struct Session {
    std::string id, agent, compaction, prompt;
    std::int64_t started_ms = 0;
    int turn = 0;
    std::array<Thread, 2> threads;
    std::size_t step = 0;
  };

  void play(const Step& step);
  void write_line(const Step& step);
  void write_registry(const Step& step);

  std::string fill(std::string_view text, const Step& step, Thread& thread, const std::string& uuid);
  struct Context;
  struct Placeholder;
  static const Placeholder placeholders[];
  std::string block_of(const Step& step, Thread& thread, const std::string& uuid);

  std::string at(std::string_view below) const { return root_ + "/" + std::string(below); }
  std::string folder() const { return at(project) + "/" + session_.id; }
  std::string registry_path() const { return at("sessions/" + std::to_string(::getpid()) + ".json"); }

  std::string root_;
  status::ProcessTable processes_;
  Session session_;
};

void ClaudeCodePlayer::play(const Step& step) {
  Thread& thread = session_.threads[static_cast<std::size_t>(step.chain)];
  switch (step.act) {
    case Act::registry:
      return write_registry(step);
    case Act::leave:
      fs::remove(registry_path());
      return;
    case Act::task: {
      const std::string path = at("tasks/" + session_.id + "/" + std::string(step.name) + ".json");
      write_file(path + ".tmp", step.text, O_TRUNC);
      return fs::rename(path + ".tmp", path);
    }
    case Act::meta: {
      Thread& parent = session_.threads[0];
      const std::string path = folder() + "/subagents/agent-" + session_.agent + ".meta.json";
      return write_file(path, fill(meta_file(), step, parent, {}), O_TRUNC);
    }
    case Act::prompt:
      ++session_.turn;
      session_.prompt = random_uuid();
      break;
    default:
      break;
  }
  const bool assistant =
      step.act == Act::think || step.act == Act::say || step.act == Act::call || step.act == Act::finish;
  if (!assistant) thread.message.clear();
  if (assistant && thread.message.empty()) {
    constexpr std::string_view letters = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    thread.message = "msg_01" + random_text(letters, 22);
    thread.request = "req_011" + random_text(letters, 21);
    thread.index = 0;
    thread.context += 1700;
  }
  write_line(step);
}

void ClaudeCodePlayer::write_line(const Step& step) {
  Thread& thread = session_.threads[static_cast<std::size_t>(step.chain)];
  const std::string id = random_uuid();
  const std::string line = fill(line_of(step.act), step, thread, id) + "\n";
  if (step.act == Act::compacting)
    return write_file(folder() + "/subagents/agent-" + session_.compaction + ".jsonl", line, O_APPEND);
  const bool is_main = step.chain == Chain::main;
  write_file(is_main ? folder() + ".jsonl" : folder() + "/subagents/agent-" + session_.agent + ".jsonl", line,
             O_APPEND);
  if (step.act == Act::result) thread.open.pop_front();
  if (step.act == Act::title || step.act == Act::cost) return;  // not part of the parent chain
  thread.parent = "\"" + id + "\"";
  ++thread.index;
  ++thread.lines;
}

void ClaudeCodePlayer::write_registry(const Step& step) {
  write_file(registry_path(), fill(registry_file(), step, session_.threads[0], {}), O_TRUNC);
}

std::string ClaudeCodePlayer::block_of(const Step& step, Thread& thread, const std::string& uuid) {
  const std::string text = fill(step.text, step, thread, uuid);
  if (step.act == Act::think) return R"({"type":"thinking","thinking":")" + text + R"(","signature":""})";
  if (step.act != Act::call) return R"({"type":"text","text":")" + text + "\"}";
  thread.open.push_back(
      {"toolu_01" + random_text("abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", 22), uuid});
  return R"({"type":"tool_use","id":")" + thread.open.back().id + R"(","name":")" + std::string(step.name) +
         R"(","input":)" + text + "}";
}

/// The context of a placeholder.
struct ClaudeCodePlayer::Context {
  ClaudeCodePlayer& player;
  const Step& step;
  Thread& thread;
  const std::string& uuid;

  Thread::Call call() const { return thread.open.empty() ? Thread::Call{} : thread.open.front(); }
  bool agent() const { return step.chain == Chain::agent; }
  std::string text(std::string_view of) const { return player.fill(of, step, thread, uuid); }
};

struct ClaudeCodePlayer::Placeholder {
  std::string_view name;
  std::string (*fill)(Context&);
};

const ClaudeCodePlayer::Placeholder ClaudeCodePlayer::placeholders[] = {
    {"parent", [](Context& at) { return at.thread.parent; }},
    {"uuid", [](Context& at) { return at.uuid; }},
    {"time", [](Context&) { return format_time(now_ms()); }},
    {"session", [](Context& at) { return at.player.session_.id; }},
    {"cwd", [](Context&) { return std::string(cwd); }},
    {"agent", [](Context& at) { return at.player.session_.agent; }},
    {"compaction", [](Context& at) { return at.player.session_.compaction; }},
    {"prompt", [](Context& at) { return at.player.session_.prompt; }},
    {"sidechain", [](Context& at) { return std::string(at.agent() ? "true" : "false"); }},
    {"agent_field",
     [](Context& at) {
       return at.agent() ? R"("agentId":")" + at.player.session_.agent + "\"," : std::string();
     }},
    {"turn", [](Context& at) { return std::to_string(at.player.session_.turn); }},
    {"lines", [](Context& at) { return std::to_string(at.thread.lines); }},
    {"message", [](Context& at) { return at.thread.message; }},
    {"request", [](Context& at) { return at.thread.request; }},
    {"index", [](Context& at) { return std::to_string(at.thread.index); }},
    {"stop", [](Context& at) { return std::string(at.step.act == Act::finish ? "end_turn" : "tool_use"); }},
    {"context", [](Context& at) { return std::to_string(at.thread.context); }},
    {"output", [](Context& at) { return std::to_string(40 + at.step.text.size() / 4); }},
    {"block", [](Context& at) { return at.player.block_of(at.step, at.thread, at.uuid); }},
    {"call", [](Context& at) { return at.call().id; }},
    {"caller", [](Context& at) { return at.call().caller; }},
    {"name", [](Context& at) { return std::string(at.step.name); }},
    {"text", [](Context& at) { return at.text(at.step.text); }},
    {"tool_use_result",
     [](Context& at) {
       return at.step.more.empty() ? "" : R"("toolUseResult":)" + at.text(at.step.more) + ",";
     }},
    {"tail", [](Context& at) { return at.player.fill(line_tail(), at.step, at.thread, at.uuid); }},
    {"pid", [](Context&) { return std::to_string(::getpid()); }},
    {"started_ms", [](Context& at) { return std::to_string(at.player.session_.started_ms); }},
    {"process_start", [](Context& at) { return at.player.processes_.start_of(::getpid()); }},
    {"domain", [](Context& at) { return at.player.processes_.pid_domain(); }},
    {"status", [](Context& at) { return status_fields(at.step); }},
};

std::string ClaudeCodePlayer::fill(std::string_view text, const Step& step, Thread& thread,
                                   const std::string& uuid) {
  return demo::fill(text, [&](std::string_view name) {
    const auto found = std::find_if(std::begin(placeholders), std::end(placeholders),
                                    [&](const Placeholder& one) { return one.name == name; });
    assert(found != std::end(placeholders));  // the script is part of the program
    Context context{*this, step, thread, uuid};
    return found != std::end(placeholders) ? found->fill(context) : std::string();
  });
}

}  // namespace

std::unique_ptr<Player> make_claude_code_player(std::string root) {
  return std::make_unique<ClaudeCodePlayer>(std::move(root));
}

}  // namespace earshot::demo
