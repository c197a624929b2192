// The stream, session and subagent that a transcript's path names, by the same rules as the daemon. Opens no
// file.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace earshot::cli {

struct Place {
  std::string stream;  // <root>/<path below projects/, without .jsonl>, percent-encoded; else the file's stem
  std::string session;    // empty: only the records name it (a subagent's file beside its session)
  std::string own_agent;  // of agent-<id>.jsonl; empty: the session's main file; both are percent-encoded
};

/// `path` may be relative; `-` is stdin.
Place place_of(std::string_view path);

/// Whether the daemon reads a file of this name: *.jsonl, but no journal, history, or agent that only
/// suggests or compacts.
bool is_transcript_name(std::string_view file_name);

/// Percent-encodes `:`, `%`, control characters and bytes that are not UTF-8.
std::string percent_encoded(std::string_view text);

struct TranscriptSearch {
  std::vector<std::string> files;   // sorted
  std::vector<std::string> errors;  // "DIR: Permission denied"
};

/// The transcripts below a directory, without following links. Another path is returned as it is.
TranscriptSearch transcripts_at(const std::string& path);

}  // namespace earshot::cli
