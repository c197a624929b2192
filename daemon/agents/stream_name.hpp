// Names of streams: the path of a transcript as text that is safe on the wire, and back.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "agents/agent.hpp"

namespace earshot {

/// Replaces bytes that are not UTF-8, control characters, `:` and `%` by `%XX`.
std::string percent_encode(std::string_view bytes);
/// Absent if the text is not a result of percent_encode().
std::optional<std::string> percent_decode(std::string_view text);

/// A transcript below a root.
struct TranscriptPath {
  std::size_t directory = 0;  // index into AgentProgram::transcript_directories()
  std::string below;          // path below that directory, without `.jsonl`
};

/// The stream's name without `<root>/`, unique within a root. Streams of the first transcript directory are
/// named by the path below it; names of the others begin with their directory (`conversations/`). A directory
/// of that name in the first one is written with its first character encoded (`%63onversations`).
std::string stream_name(const AgentProgram& program, std::size_t directory, std::string_view below);
/// The inverse; absent if no transcript has this name.
std::optional<TranscriptPath> parse_stream_name(const AgentProgram& program, std::string_view name);

/// True for the first component of stream names that begin with their transcript directory, in any program.
bool is_directory_prefix(std::string_view component);

/// Stream name, session and agent of a transcript anywhere in the file system, by its path alone. All parts
/// are percent-encoded.
struct TranscriptPlace {
  std::string stream;      // `<root>/<name>`, or the file's stem if the path has no transcript directory
  std::string session;     // empty: only the records name it
  std::string agent;       // empty: a session's main transcript
  bool is_likely = false;  // as StreamIdentity::is_likely
};
/// `path`: absolute, without `.` and `..`. The root is the directory above the last transcript directory, or
/// above the outermost of adjacent ones.
TranscriptPlace place_transcript(const AgentProgram& program, std::string_view path);
/// The same for a file that a command line names: `path` may be relative; `-` is stdin.
TranscriptPlace place_of(std::string_view path, const AgentProgram& program = default_program());
/// The first program with a transcript of this path below one of its directories; the default one if there is
/// none.
const AgentProgram& program_of_path(std::string_view path);
/// True if discovery follows a file of this path.
bool is_transcript_path(const AgentProgram& program, std::string_view path);

// Names of hosts and streams as one token that is valid as a file name and as a token of a NATS subject, and
// the sessions of relayed streams.

constexpr std::size_t escaped_bytes_max = 160;  // of a result of escape_token(); longer ones end in a hash

/// Keeps letters, digits, `-` and `_`; replaces every other byte by `=XX`. Different texts have different
/// results: one that would be too long is cut and ends in `==` and a 128-bit hash; that of the empty text is
/// `=`.
std::string escape_token(std::string_view text);
/// Absent if `text` is no result of escape_token(), or one that was cut.
std::optional<std::string> unescape_token(std::string_view text);

/// Separates a session's name from its host's.
constexpr char host_separator = '@';
std::string session_on_host(std::string_view session, std::string_view host);

/// The identity of a file `<escaped host>/<escaped stream>`. The session is empty where only the records name
/// it, and where the path means different sessions to different programs.
StreamIdentity relayed_identity(std::string_view below);

}  // namespace earshot
