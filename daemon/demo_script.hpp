// What the demo plays: a table of steps, and the line of a transcript that each kind of step becomes.
#pragma once
#include <span>
#include <string_view>

namespace earshot::demo {

enum class Chain { main, agent };  // the session itself, and the subagent that it sends out

enum class Act {
  prompt,  // a person asks: text
  brief,   // the first line of the subagent's file: text
  think,
  say,     // text
  call,    // name: the tool; text: its input, JSON
  result,  // of the oldest open call: name: who permitted it, text; more: what the program knows of it, JSON,
           // or empty
  finish,  // the last text of a turn, or of the subagent
  took,    // how long the turn took: text, in ms
  title,   // text
  cost,    // of the session so far: text, in dollars
  retry,   // the API said no for a moment: name: the attempt, text: until the next one, in ms
  compacting,  // an internal call of the program, in a file of its own
  boundary,    // the context was compacted
  summary,     // text
  meta,        // the subagent's meta file; name: its type, text: its description
  registry,    // what the program says about itself; name: its status, text: what it waits for; no name: it
               // says nothing
  leave,       // the registry file goes
  task,        // name: number, text: its file, JSON
};

/// Texts are JSON string contents (escaped already); `${…}` stands for what is known only when it is played.
struct Step {
  int after_ms;
  Chain chain;
  Act act;
  std::string_view name, text, more;
};

std::span<const Step> script();

/// The transcript line, without its LF; empty for acts that write another file.
std::string_view line_of(Act act);

/// What all lines end with: `${tail}`.
std::string_view line_tail();

/// Texts of the files beside the transcript, in the same manner.
std::string_view meta_file();
std::string_view registry_file();

}  // namespace earshot::demo
