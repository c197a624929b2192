// The demo's sessions of programs whose sessions are only lines of transcripts: Codex, Copilot CLI, Pi.
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "base/hex.hpp"
#include "base/quantities.hpp"
#include "demo_player.hpp"

namespace earshot::demo {
namespace {

// --- the scripts: tables of lines

using enum Chain;

/// A line is the script's envelope around `body`; without a type it is `body`. Both are JSON with `${…}`
/// placeholders, which are filled in when the step is played.
struct LineStep {
  int after_ms;
  Chain chain;
  std::string_view type, body;
};

/// Paths are relative to the root; all texts have placeholders. `${new turn}` is a fresh id, `${turn}` the
/// last one.
struct Script {
  std::string_view program;
  std::string_view transcripts[2];  // by chain; empty: it has none
  std::string_view envelopes[2];    // by chain
  std::string_view folder;          // of the session alone; empty: it consists of its transcripts
  std::span<const LineStep> steps;
};

// Codex: the chart and the lamp disagree. A message is written as an item, and again as a part of the model's
// own history, which says nothing new.
constexpr LineStep
    codex_steps
        [] =
            {
                {300, main, "session_meta",
                 R"({"session_id":"${session}","id":"${session}","timestamp":"${time}","cwd":"${cwd}","originator":"codex-tui","cli_version":"0.169.0","source":"cli","thread_source":"user","model_provider":"openai","history_mode":"paginated","git":{"branch":"main"}})"},
                {20, main, "event_msg",
                 R"({"type":"task_started","turn_id":"${new turn}","started_at":${seconds},"model_context_window":258400,"collaboration_mode_kind":"default"})"},
                {20, main, "turn_context",
                 R"({"turn_id":"${turn}","cwd":"${cwd}","approval_policy":"on-request","sandbox_policy":{"type":"workspace-write"},"model":"gpt-5.5","collaboration_mode":{"mode":"default"}})"},
                {10, main, "event_msg",
                 R"({"type":"item_completed","thread_id":"${session}","turn_id":"${turn}","item":{"type":"UserMessage","id":"${id}","content":[{"type":"text","text":"The chart says our lamp flashes three times. I count two. Which of us is right?"}]}})"},
                {900, main, "event_msg",
                 R"({"type":"item_completed","thread_id":"${session}","turn_id":"${turn}","item":{"type":"Reasoning","id":"${id}","summary_text":["**Counting the flashes**"],"raw_content":[]}})"},
                {400, main, "event_msg",
                 R"({"type":"item_completed","thread_id":"${session}","turn_id":"${turn}","item":{"type":"AgentMessage","id":"${new message}","content":[{"type":"Text","text":"A chart is hard to argue with, but it can be asked. I begin with the lamp."}],"phase":"commentary"}})"},
                {10, main, "response_item",
                 R"({"type":"message","id":"${message}","role":"assistant","content":[{"type":"output_text","text":"A chart is hard to argue with, but it can be asked. I begin with the lamp."}]})"},
                {200, main, "response_item",
                 R"({"type":"function_call","name":"update_plan","arguments":"{\"plan\":[{\"step\":\"Watch the lamp\",\"status\":\"in_progress\"},{\"step\":\"Read the chart\",\"status\":\"pending\"},{\"step\":\"Mend one of them\",\"status\":\"pending\"}]}","call_id":"${new call}"})"},
                {30, main, "response_item",
                 R"({"type":"function_call_output","call_id":"${call}","output":"Plan updated"})"},
                {500, main, "response_item",
                 R"({"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"make watch FLASHES=3\"}","call_id":"${new call}"})"},
                {900, main, "event_msg",
                 R"({"type":"item_completed","thread_id":"${session}","turn_id":"${turn}","item":{"type":"CommandExecution","id":"${call}","command":["/bin/bash","-lc","make watch FLASHES=3"],"source":"unified_exec_startup","status":"failed","aggregated_output":"watch: expected 3 flashes, counted 2\nmake: *** [watch] Error 1\n","exit_code":2,"duration":{"secs":0,"nanos":890000000}}})"},
                {10, main, "response_item",
                 R"({"type":"function_call_output","call_id":"${call}","output":"Wall time: 0.9 seconds\nProcess exited with code 2\nOutput:\nwatch: expected 3 flashes, counted 2\nmake: *** [watch] Error 1\n"})"},
                {30, main, "event_msg",
                 R"({"type":"token_count","info":{"total_token_usage":{"input_tokens":14200,"cached_input_tokens":9100,"output_tokens":310,"reasoning_output_tokens":120,"total_tokens":14510},"last_token_usage":{"input_tokens":14200,"cached_input_tokens":9100,"output_tokens":310,"reasoning_output_tokens":120,"total_tokens":14510},"model_context_window":258400},"rate_limits":{"limit_id":"codex","primary":{"used_percent":41.0,"window_minutes":300,"resets_at":${in an hour}},"secondary":{"used_percent":12.0,"window_minutes":10080,"resets_at":${in a week}},"plan_type":"plus"}})"},
                {700, main, "response_item",
                 R"({"type":"function_call","name":"spawn_agent","namespace":"collaboration","arguments":"{\"task_name\":\"chart_reader\",\"message\":\"Read the chart: how many flashes does it give this lamp, and since when?\"}","call_id":"${new call}"})"},
                {30, main, "event_msg",
                 R"({"type":"item_completed","thread_id":"${session}","turn_id":"${turn}","item":{"type":"SubAgentActivity","id":"${call}","kind":"started","agent_thread_id":"${agent}","agent_path":"/root/chart_reader"}})"},
                {10, main, "response_item",
                 R"({"type":"function_call_output","call_id":"${call}","output":"{\"task_name\":\"/root/chart_reader\"}"})"},
                {60, agent, "session_meta",
                 R"({"session_id":"${session}","id":"${agent}","parent_thread_id":"${session}","timestamp":"${time}","cwd":"${cwd}","originator":"codex-tui","cli_version":"0.169.0","source":{"subagent":{"thread_spawn":{"parent_thread_id":"${session}","depth":1,"agent_path":"/root/chart_reader"}}},"thread_source":"subagent","agent_path":"/root/chart_reader","model_provider":"openai","history_mode":"paginated","git":{"branch":"main"}})"},
                {20, agent, "event_msg",
                 R"({"type":"task_started","turn_id":"${new agent turn}","started_at":${seconds},"model_context_window":258400})"},
                {20, agent, "turn_context",
                 R"({"turn_id":"${agent turn}","cwd":"${cwd}","approval_policy":"on-request","sandbox_policy":{"type":"read-only"},"model":"gpt-5.5"})"},
                {10, agent, "response_item",
                 R"({"type":"agent_message","id":"${id}","author":"/root","recipient":"/root/chart_reader","content":[{"type":"input_text","text":"Read the chart: how many flashes does it give this lamp, and since when?"}]})"},
                {900, agent, "response_item",
                 R"({"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"grep -n 'Fl(' charts/north.txt\"}","call_id":"${new agent call}"})"},
                {400, agent, "event_msg", R"({"type":"item_completed","thread_id":"${agent}","turn_id":"${agent turn}","item":{"type":"CommandExecution","id":"${agent call}","command":["/bin/bash","-lc","grep -n 'Fl(' charts/north.txt"],"source":"unified_exec_startup","status":"completed","aggregated_output":"7:Fl(3) 20s 41m 18M  * corrected 1911 by hand\n","exit_code":0,"duration":{"secs":0,"nanos":40000000}}})"},
                {10, agent, "response_item",
                 R"({"type":"function_call_output","call_id":"${agent call}","output":"Wall time: 0.0 seconds\nProcess exited with code 0\nOutput:\n7:Fl(3) 20s 41m 18M  * corrected 1911 by hand\n"})"},
                {700, agent, "event_msg",
                 R"({"type":"item_completed","thread_id":"${agent}","turn_id":"${agent turn}","item":{"type":"AgentMessage","id":"${id}","content":[{"type":"Text","text":"Three, since 1911, in another hand and another ink."}],"phase":"final_answer"}})"},
                {20, agent, "event_msg",
                 R"({"type":"task_complete","turn_id":"${agent turn}","last_agent_message":"Three, since 1911, in another hand and another ink.","duration_ms":2080})"},
                {30, main, "event_msg",
                 R"({"type":"item_completed","thread_id":"${session}","turn_id":"${turn}","item":{"type":"SubAgentActivity","id":"${id}","kind":"completed","agent_thread_id":"${agent}","agent_path":"/root/chart_reader"}})"},
                {20, main, "response_item",
                 R"({"type":"agent_message","id":"${id}","author":"/root/chart_reader","recipient":"/root","content":[{"type":"input_text","text":"Three, since 1911, in another hand and another ink."}]})"},
                // The user is asked for permission, which leaves no trace.
                {800, main, "response_item",
                 R"({"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"lamp --rotate --seconds 20\",\"sandbox_permissions\":\"require_escalated\",\"justification\":\"The lamp is outside of the workspace\"}","call_id":"${new call}"})"},
                {8000, main, "event_msg",
                 R"({"type":"item_completed","thread_id":"${session}","turn_id":"${turn}","item":{"type":"CommandExecution","id":"${call}","command":["/bin/bash","-lc","lamp --rotate --seconds 20"],"source":"unified_exec_startup","status":"completed","aggregated_output":"flash flash (shutter 3 sticks)\n","exit_code":0,"duration":{"secs":1,"nanos":200000000}}})"},
                {10, main, "response_item",
                 R"({"type":"function_call_output","call_id":"${call}","output":"Wall time: 1.2 seconds\nProcess exited with code 0\nOutput:\nflash flash (shutter 3 sticks)\n"})"},
                {1200, main, "compacted",
                 R"({"message":"The chart gives three flashes, since 1911. The lamp has three shutters; the third one sticks.","window_id":"${id}","replacement_history":[]})"},
                {20, main, "event_msg",
                 R"({"type":"item_completed","thread_id":"${session}","turn_id":"${turn}","item":{"type":"ContextCompaction","id":"${id}"}})"},
                {900, main, "response_item",
                 R"({"type":"function_call","name":"update_plan","arguments":"{\"plan\":[{\"step\":\"Watch the lamp\",\"status\":\"completed\"},{\"step\":\"Read the chart\",\"status\":\"completed\"},{\"step\":\"Mend one of them\",\"status\":\"in_progress\"}]}","call_id":"${new call}"})"},
                {30, main, "response_item",
                 R"({"type":"function_call_output","call_id":"${call}","output":"Plan updated"})"},
                {700, main, "response_item",
                 R"({"type":"function_call","name":"request_user_input","arguments":"{\"questions\":[{\"id\":\"which\",\"header\":\"Which one\",\"question\":\"The third shutter sticks. Oil the shutter, or correct the chart?\",\"options\":[{\"label\":\"Oil the shutter\",\"description\":\"Three flashes again\"},{\"label\":\"Correct the chart\",\"description\":\"It has been wrong before\"}]}]}","call_id":"${new call}"})"},
                {3500, main, "response_item",
                 R"({"type":"function_call_output","call_id":"${call}","output":"{\"answers\":{\"which\":{\"answers\":[\"Oil the shutter\"]}}}"})"},
                {900, main, "event_msg",
                 R"({"type":"item_completed","thread_id":"${session}","turn_id":"${turn}","item":{"type":"AgentMessage","id":"${new message}","content":[{"type":"Text","text":"You are both right: the chart about the lamp, you about the shutter. A drop of oil, and three it is."}],"phase":"final_answer"}})"},
                {10, main, "response_item",
                 R"({"type":"message","id":"${message}","role":"assistant","content":[{"type":"output_text","text":"You are both right: the chart about the lamp, you about the shutter. A drop of oil, and three it is."}]})"},
                {20, main, "event_msg",
                 R"({"type":"token_count","info":{"total_token_usage":{"input_tokens":31900,"cached_input_tokens":24400,"output_tokens":720,"reasoning_output_tokens":260,"total_tokens":32620},"last_token_usage":{"input_tokens":3900,"cached_input_tokens":1200,"output_tokens":95,"reasoning_output_tokens":30,"total_tokens":3995},"model_context_window":258400},"rate_limits":{"limit_id":"codex","primary":{"used_percent":43.0,"window_minutes":300,"resets_at":${in an hour}},"secondary":{"used_percent":12.0,"window_minutes":10080,"resets_at":${in a week}},"plan_type":"plus"}})"},
                {20, main, "event_msg",
                 R"({"type":"task_complete","turn_id":"${turn}","last_agent_message":"You are both right.","duration_ms":21600})"},
};

// Copilot CLI: the fog signal. Everything is in one file; a subagent's records name it.
constexpr LineStep
    copilot_steps[] =
        {
            {300, main, "session.start",
             R"({"sessionId":"${session}","version":1,"producer":"copilot-agent","copilotVersion":"1.0.102","startTime":"${time}","context":{"cwd":"${cwd}","branch":"main"},"alreadyInUse":false})"},
            {10, main, "session.model_change", R"({"newModel":"gpt-5-mini"})"},
            {20, main, "user.message",
             R"({"content":"The fog signal sounds every 20 seconds, even at noon. Make it wait for fog.","delivery":"idle","attachments":[]})"},
            {20, main, "assistant.turn_start", R"({"turnId":"0"})"},
            {900, main, "session.usage_record",
             R"({"usage":{"model":"gpt-5-mini","inputTokens":10600,"outputTokens":80,"cacheReadTokens":8000,"cacheWriteTokens":0}})"},
            {20, main, "assistant.message",
             R"({"messageId":"${id}","model":"gpt-5-mini","content":"Noon without fog should be quiet. I look for who rings.","reasoningText":"A timer, probably.","toolRequests":[{"toolCallId":"${new call}","name":"bash","arguments":{"command":"grep -rn fog_signal src/"},"type":"function"}],"turnId":"0"})"},
            {10, main, "tool.execution_start",
             R"({"toolCallId":"${call}","toolName":"bash","arguments":{"command":"grep -rn fog_signal src/"},"turnId":"0"})"},
            {500, main, "tool.execution_complete",
             R"({"toolCallId":"${call}","turnId":"0","success":true,"result":{"content":"src/fog.c:12:  every(20, fog_signal);\nsrc/fog.c:19:int visibility(void);"}})"},
            {10, main, "assistant.turn_end", R"({"turnId":"0"})"},
            {10, main, "assistant.turn_start", R"({"turnId":"1"})"},
            {700, main, "session.usage_record",
             R"({"usage":{"model":"gpt-5-mini","inputTokens":11200,"outputTokens":60,"cacheReadTokens":10400,"cacheWriteTokens":0}})"},
            {20, main, "assistant.message",
             R"({"messageId":"${id}","model":"gpt-5-mini","content":"","toolRequests":[{"toolCallId":"${new call}","name":"task","arguments":{"description":"Find out who asks for fog","prompt":"Who calls visibility(), and does anybody listen to its answer?","agent_type":"explore"},"type":"function"}],"turnId":"1"})"},
            {10, main, "tool.execution_start",
             R"({"toolCallId":"${call}","toolName":"task","arguments":{"description":"Find out who asks for fog","prompt":"Who calls visibility(), and does anybody listen to its answer?","agent_type":"explore"},"turnId":"1"})"},
            {60, agent, "subagent.started",
             R"({"toolCallId":"${call}","agentName":"explore","agentDisplayName":"Explore Agent","agentDescription":"Explores"})"},
            {10, agent, "user.message",
             R"({"content":"Who calls visibility(), and does anybody listen to its answer?","delivery":"idle","attachments":[]})"},
            {900, agent, "assistant.message",
             R"({"messageId":"${id}","model":"gpt-5-mini","content":"","toolRequests":[{"toolCallId":"${new agent call}","name":"view","arguments":{"path":"src/fog.c"},"type":"function"}],"turnId":"0","parentToolCallId":"${call}"})"},
            {10, agent, "tool.execution_start",
             R"({"toolCallId":"${agent call}","toolName":"view","arguments":{"path":"src/fog.c"},"turnId":"0"})"},
            {200, agent, "tool.execution_complete",
             R"({"toolCallId":"${agent call}","turnId":"0","success":true,"result":{"content":"10: void start(void) {\n11:   (void)visibility();\n12:   every(20, fog_signal);\n13: }"}})"},
            {700, agent, "assistant.message",
             R"({"messageId":"${id}","model":"gpt-5-mini","content":"It is called once and its answer is thrown away: the most honest kind of weather report.","toolRequests":[],"turnId":"0","parentToolCallId":"${call}"})"},
            {20, main, "tool.execution_complete",
             R"({"toolCallId":"${call}","turnId":"1","success":true,"result":{"content":"It is called once and its answer is thrown away: the most honest kind of weather report."}})"},
            {5, agent, "subagent.completed",
             R"({"toolCallId":"${call}","agentName":"explore","agentDisplayName":"Explore Agent","totalToolCalls":1,"totalTokens":2400,"durationMs":1900})"},
            {10, main, "assistant.turn_end", R"({"turnId":"1"})"},
            {10, main, "assistant.turn_start", R"({"turnId":"2"})"},
            {700, main, "session.usage_record",
             R"({"usage":{"model":"gpt-5-mini","inputTokens":12100,"outputTokens":70,"cacheReadTokens":11100,"cacheWriteTokens":0}})"},
            {20, main, "assistant.message",
             R"({"messageId":"${id}","model":"gpt-5-mini","content":"Then I let the signal ask first.","toolRequests":[{"toolCallId":"${new call}","name":"bash","arguments":{"command":"sed -i 's/every(20, fog_signal)/every(20, fog_signal_in_fog)/' src/fog.c && make test"},"type":"function"}],"turnId":"2"})"},
            {10, main, "tool.execution_start",
             R"({"toolCallId":"${call}","toolName":"bash","arguments":{"command":"sed -i 's/every(20, fog_signal)/every(20, fog_signal_in_fog)/' src/fog.c && make test"},"turnId":"2"})"},
            {40, main, "permission.requested",
             R"({"requestId":"${new request}","permissionRequest":{"kind":"shell","toolCallId":"${call}","fullCommandText":"sed -i … src/fog.c && make test","intention":"Let the signal wait for fog"}})"},
            {3500, main, "permission.completed",
             R"({"requestId":"${request}","toolCallId":"${call}","result":{"kind":"approved"}})"},
            {1200, main, "tool.execution_complete",
             R"({"toolCallId":"${call}","turnId":"2","success":true,"result":{"content":"12 tests, 12 lamps lit, 1 signal silent"}})"},
            {10, main, "assistant.turn_end", R"({"turnId":"2"})"},
            {10, main, "assistant.turn_start", R"({"turnId":"3"})"},
            {600, main, "session.usage_record",
             R"({"usage":{"model":"gpt-5-mini","inputTokens":12700,"outputTokens":40,"cacheReadTokens":12000,"cacheWriteTokens":0}})"},
            {20, main, "assistant.message",
             R"({"messageId":"${id}","model":"gpt-5-mini","content":"","toolRequests":[{"toolCallId":"${new call}","name":"ask_user","arguments":{"question":"How thick is fog?","choices":["I cannot see the sea","I cannot see the stairs"]},"type":"function"}],"turnId":"3"})"},
            {10, main, "tool.execution_start",
             R"({"toolCallId":"${call}","toolName":"ask_user","arguments":{"question":"How thick is fog?","choices":["I cannot see the sea","I cannot see the stairs"]},"turnId":"3"})"},
            {3000, main, "tool.execution_complete",
             R"({"toolCallId":"${call}","turnId":"3","success":true,"result":{"content":"User selected: I cannot see the sea"}})"},
            {10, main, "assistant.turn_end", R"({"turnId":"3"})"},
            {10, main, "assistant.turn_start", R"({"turnId":"4"})"},
            {700, main, "session.usage_record",
             R"({"usage":{"model":"gpt-5-mini","inputTokens":13000,"outputTokens":50,"cacheReadTokens":12600,"cacheWriteTokens":0}})"},
            {20, main, "assistant.message",
             R"({"messageId":"${id}","model":"gpt-5-mini","content":"Done: no sea, a signal; sea, silence. The gulls thank you.","toolRequests":[],"turnId":"4"})"},
            {10, main, "assistant.turn_end", R"({"turnId":"4"})"},
            {1200, main, "session.compaction_start", R"({"currentTokens":13050,"trigger":"manual"})"},
            {1500, main, "session.compaction_complete",
             R"({"success":true,"preCompactionTokens":13050,"postCompactionTokens":1900,"trigger":"manual","systemTokens":1200,"conversationTokens":400,"toolDefinitionsTokens":300,"summaryContent":"The fog signal sounds only while the sea cannot be seen."})"},
            {1500, main, "session.shutdown",
             R"({"shutdownType":"routine","modelMetrics":{"gpt-5-mini":{"usage":{"inputTokens":59600,"outputTokens":300,"cacheReadTokens":54100,"cacheWriteTokens":0}}},"currentTokens":1900})"},
};

// Pi: the gulls. The file appears with the first answer, which brings the lines before it.
constexpr LineStep pi_steps[] = {
    {300, main, "",
     R"({"type":"session","version":3,"id":"${session}","timestamp":"${time}","cwd":"${cwd}"})"},
    {0, main, "model_change", R"("provider":"anthropic","modelId":"claude-haiku-4-5")"},
    {0, main, "message",
     R"("message":{"role":"user","content":[{"type":"text","text":"Count the gulls on the railing, every morning, and write it down."}],"timestamp":${ms}})"},
    {0, main, "message",
     R"("message":{"role":"assistant","content":[{"type":"thinking","thinking":"Is there a gull counter?"},{"type":"toolCall","id":"${new call}","name":"bash","arguments":{"command":"which count-gulls"}}],"provider":"anthropic","model":"claude-haiku-4-5","usage":{"input":2100,"output":60,"cacheRead":0,"cacheWrite":1900,"totalTokens":4060,"cost":{"total":0.0041}},"stopReason":"toolUse","timestamp":${ms}})"},
    {0, main, "session_info", R"("name":"Gulls")"},
    {400, main, "message",
     R"("message":{"role":"toolResult","toolCallId":"${call}","toolName":"bash","content":[{"type":"text","text":"Command exited with code 1"}],"isError":true,"timestamp":${ms}})"},
    {800, main, "message",
     R"("message":{"role":"assistant","content":[],"provider":"anthropic","model":"claude-haiku-4-5","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"total":0}},"stopReason":"error","errorMessage":"529 Overloaded","timestamp":${ms}})"},
    {2000, main, "message",
     R"("message":{"role":"assistant","content":[{"type":"text","text":"Nobody has counted them yet. Then I write a counter, and two witnesses."},{"type":"toolCall","id":"${new call}","name":"write","arguments":{"path":"gulls.sh","content":"#!/bin/sh\ncamera railing | grep -c gull >> log/gulls.txt\n"}}],"provider":"anthropic","model":"claude-haiku-4-5","usage":{"input":90,"output":140,"cacheRead":2000,"cacheWrite":0,"totalTokens":2230,"cost":{"total":0.0022}},"stopReason":"toolUse","timestamp":${ms}})"},
    {200, main, "message",
     R"("message":{"role":"toolResult","toolCallId":"${call}","toolName":"write","content":[{"type":"text","text":"Successfully wrote 61 bytes to gulls.sh"}],"isError":false,"timestamp":${ms}})"},
    {900, main, "message",
     R"("message":{"role":"assistant","content":[{"type":"toolCall","id":"${new call}","name":"bash","arguments":{"command":"sh gulls.sh && tail -1 log/gulls.txt"}}],"provider":"anthropic","model":"claude-haiku-4-5","usage":{"input":120,"output":50,"cacheRead":2100,"cacheWrite":0,"totalTokens":2270,"cost":{"total":0.0017}},"stopReason":"toolUse","timestamp":${ms}})"},
    {1800, main, "message",
     R"("message":{"role":"toolResult","toolCallId":"${call}","toolName":"bash","content":[{"type":"text","text":"4"}],"isError":false,"timestamp":${ms}})"},
    {900, main, "message",
     R"("message":{"role":"assistant","content":[{"type":"text","text":"Four gulls this morning. One looked at the camera as if it were counting too."}],"provider":"anthropic","model":"claude-haiku-4-5","usage":{"input":80,"output":45,"cacheRead":2200,"cacheWrite":0,"totalTokens":2325,"cost":{"total":0.0015}},"stopReason":"stop","timestamp":${ms}})"},
    {1500, main, "compaction",
     R"("summary":"gulls.sh counts the gulls on the railing and appends the number to log/gulls.txt.","firstKeptEntryId":${parent},"tokensBefore":2325)"},
    {1200, main, "message",
     R"("message":{"role":"user","content":[{"type":"text","text":"And the puffin?"}],"timestamp":${ms}})"},
    {900, main, "message",
     R"("message":{"role":"assistant","content":[{"type":"text","text":"The puffin is a guest. Guests are not counted."}],"provider":"anthropic","model":"claude-haiku-4-5","usage":{"input":70,"output":20,"cacheRead":900,"cacheWrite":0,"totalTokens":990,"cost":{"total":0.0008}},"stopReason":"stop","timestamp":${ms}})"},
};

constexpr Script scripts[] = {
    {"codex",
     {"sessions/${day}/rollout-${local time}-${session}.jsonl",
      "sessions/${day}/rollout-${local time}-${agent}.jsonl"},
     {R"({"timestamp":"${time}","ordinal":${ordinal},"type":"${type}","payload":${body}})",
      R"({"timestamp":"${time}","ordinal":${ordinal},"type":"${type}","payload":${body}})"},
     "",
     codex_steps},
    {"copilot",
     {"session-state/${session}/events.jsonl", "session-state/${session}/events.jsonl"},
     {R"({"type":"${type}","data":${body},"id":"${record}","timestamp":"${time}","parentId":${parent}})",
      R"({"type":"${type}","data":${body},"id":"${record}","timestamp":"${time}","parentId":${parent},)"
      R"("agentId":"${agent}"})"},
     "session-state/${session}",
     copilot_steps},
    {"pi",
     {"sessions/--home-keeper-lighthouse--/${file time}_${session}.jsonl", ""},
     {R"({"type":"${type}","id":"${short record}","parentId":${parent},"timestamp":"${time}",${body}})", ""},
     "",
     pi_steps},
};

// --- playing them

std::string local_time(const char* format) {
  const std::time_t now = now_ms() / 1000;
  std::tm local{};
  char text[64] = {};
  ::localtime_r(&now, &local);
  return {text, std::strftime(text, sizeof text, format, &local)};
}

/// As a part of a file name: `2026-11-22T22-15-49-313Z`.
std::string file_time() {
  std::string time = format_time(now_ms());
  std::replace_if(
      time.begin(), time.end(), [](char c) { return c == ':' || c == '.'; }, '-');
  return time;
}

class LinePlayer final : public Player {
 public:
  LinePlayer(const Script& script, std::string root) : script_(script), root_(std::move(root)) {}

  int begin() override {
    session_ = Session{};
    session_.ids["session"] = random_uuid();
    session_.ids["agent"] = random_uuid();
    session_.ids["day"] = local_time("%Y/%m/%d");
    session_.ids["local time"] = local_time("%Y-%m-%dT%H-%M-%S");
    session_.ids["file time"] = file_time();
    return script_.steps.front().after_ms;
  }

  /// The due step, and those that follow it at once in the same file: one write.
  std::optional<int> play() override {
    const auto chain = script_.steps[session_.step].chain;
    std::string lines;
    do {
      lines += line_of(script_.steps[session_.step++]) + '\n';
    } while (session_.step < script_.steps.size() && script_.steps[session_.step].after_ms == 0);
    write_file(path_of(script_.transcripts[index(chain)]), lines, O_APPEND);
    if (session_.step < script_.steps.size()) return script_.steps[session_.step].after_ms;
    return std::nullopt;
  }

  std::vector<std::string> files() const override {
    if (!script_.folder.empty()) return {path_of(script_.folder)};
    std::vector<std::string> paths;
    for (const std::string_view transcript : script_.transcripts)
      if (!transcript.empty()) paths.push_back(path_of(transcript));
    return paths;
  }

 private:
  struct Session {
    std::size_t step = 0;
    std::map<std::string, std::string, std::less<>> ids;  // and other texts, by placeholder
    std::array<int, 2> ordinals{};                        // of the next line, by chain
    std::string parent = "null";                          // JSON: the record before
  };

  static std::size_t index(Chain chain) { return static_cast<std::size_t>(chain); }

  /// Paths name only what begin() set.
  std::string path_of(std::string_view path) const {
    return root_ + '/' + fill(path, [&](std::string_view name) { return known(name); });
  }
  std::string known(std::string_view name) const {
    const auto found = session_.ids.find(name);
    assert(found != session_.ids.end());  // the scripts are part of the program
    return found != session_.ids.end() ? found->second : std::string();
  }

  std::string line_of(const LineStep& step) {
    std::string record;
    const std::string_view line = step.type.empty() ? step.body : script_.envelopes[index(step.chain)];
    std::string text = fill(line, [&](std::string_view name) { return value_of(name, step, record); });
    if (!record.empty()) session_.parent = '"' + record + '"';
    return text;
  }

  /// `record`: set to the line's own id.
  std::string value_of(std::string_view name, const LineStep& step, std::string& record) {
    constexpr std::string_view fresh = "new ";
    if (name == "type") return std::string(step.type);
    if (name == "body")
      return fill(step.body, [&](std::string_view inner) { return value_of(inner, step, record); });
    if (name == "cwd") return std::string(working_directory);
    if (name == "time") return format_time(now_ms());
    if (name == "ms") return std::to_string(now_ms());
    if (name == "seconds") return std::to_string(now_ms() / 1000);
    if (name == "in an hour") return std::to_string(now_ms() / 1000 + 3600);
    if (name == "in a week") return std::to_string(now_ms() / 1000 + 7 * 86400);
    if (name == "ordinal") return std::to_string(session_.ordinals[index(step.chain)]++);
    if (name == "parent") return session_.parent;
    if (name == "record") return record = random_uuid();
    if (name == "short record") return record = random_hex(4);
    if (name == "id") return random_uuid();
    if (!name.starts_with(fresh)) return known(name);
    name.remove_prefix(fresh.size());
    return session_.ids[std::string(name)] =
               name.ends_with("call") ? "call_" + random_hex(12) : random_uuid();
  }

  const Script& script_;
  std::string root_;
  Session session_;
};

}  // namespace

std::unique_ptr<Player> make_line_player(std::string_view program, std::string root) {
  const auto script = std::find_if(std::begin(scripts), std::end(scripts),
                                   [&](const Script& each) { return each.program == program; });
  return script == std::end(scripts) ? nullptr : std::make_unique<LinePlayer>(*script, std::move(root));
}

}  // namespace earshot::demo
