// What a path below a root means: is it a transcript, what is its stream called, whose session and which
// agent's is it.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace earshot::tail {

/// The two directories of a root that hold transcripts.
enum class TranscriptDir { projects, conversations };
std::string_view directory_of(TranscriptDir hall);

/// Bytes that are not plain UTF-8, control characters, `:` and `%` become `%XX`.
std::string percent(std::string_view bytes);
/// Nothing when the text is not what percent() writes.
std::optional<std::string> unpercent(std::string_view text);

/// A name that no two files of a root can have. `below` is the path below the hall, without `.jsonl`. The
/// root's name is put before it by whoever knows it. A file of conversations/ begins with `conversations/`; a
/// project that is really called so is written
/// `%63onversations`.
std::string stream_name(TranscriptDir hall, std::string_view below);

struct Place {
  TranscriptDir hall;
  std::string below;  // without .jsonl
};
/// The other way: nothing when no file has this name.
std::optional<Place> place_of(std::string_view stream_name);

struct Identity {
  std::string session;    // empty: only its lines tell
  std::string agent;      // empty: a session's main stream
  std::string directory;  // its first directory below the hall; empty: none
};
Identity identity_of(std::string_view below);

/// What a file of a hall is to us, by its name alone.
enum class FileKind {
  transcript,
  agent_meta,  // agent-<id>.meta.json
  compaction,  // agent-acompact-*.jsonl: its birth says that a compaction began
  nothing,
};
FileKind kind_of(std::string_view directory, std::string_view name);

/// `name` less its suffix (`.jsonl`, `.meta.json`).
std::string_view stem_of(std::string_view name);

/// False for directories that hold no transcripts, only bulk.
bool worth_entering(std::size_t depth, std::string_view name);

}  // namespace earshot::tail
