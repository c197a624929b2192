// What a transcript's path says, by the same rules as the daemon's discovery. Nothing is opened.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace earshot::cli {

struct Place {
  std::string stream;  // <root>/<path below projects/, without .jsonl>, percent-encoded; else the file's stem
  std::string session;    // empty: only the lines know (an agent's file beside its session)
  std::string own_agent;  // of agent-<id>.jsonl; empty: a session's own file; both percent-encoded
};

/// `path` may be relative; `-` is stdin.
Place place_of(std::string_view path);

/// A name that discovery takes: *.jsonl, but no journal, no history, no agent that only suggests or compacts.
bool is_transcript_name(std::string_view file_name);

/// Bytes that are not plain UTF-8, and `:` and `%`, percent-encoded.
std::string percent_encoded(std::string_view text);

struct Walk {
  std::vector<std::string> files;   // sorted
  std::vector<std::string> errors;  // "DIR: Permission denied"
};

/// A directory's transcripts, however deep. Links are not followed. A path that is no directory is itself.
Walk transcripts_at(const std::string& path);

}  // namespace earshot::cli
