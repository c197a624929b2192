// The description of one agent program. Pure: paths and bytes in, values out; the callers read the
// files. A program is added by one directory and one line in agents.cpp (README.md).
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/event.hpp"
#include "core/record_reader.hpp"

namespace earshot {

/// Reads one environment variable; absent if it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

constexpr std::string_view transcript_suffix = ".jsonl";

/// What a file below a transcript directory is, by its name.
enum class FileKind : std::uint8_t {
  other,
  transcript,
  subagent_meta,      // describes the subagent of the transcript with the same stem
  compaction_marker,  // its creation shows that a compaction has begun
};

/// The session and agent of a transcript, by its path. All parts are percent-encoded.
struct StreamIdentity {
  std::string session;     // empty: only the records name it
  bool is_likely = false;  // the records may name another session, and the subagent
  std::string agent;       // the subagent's id; empty: the session's main transcript
  std::string directory;   // first directory below the transcript directory; empty: none
};

/// The content of a subagent's meta file; every field may be empty.
struct SubagentMeta {
  std::string agent_type, description;
  std::string call;          // the parent's call that started it
  std::string parent_agent;  // the parent, if it is a subagent itself
  int depth = 0;             // 1: started by the session; 0: unknown
  friend bool operator==(const SubagentMeta&, const SubagentMeta&) = default;
};

/// A registry file: what a running process states about its session. Empty or 0: not stated.
struct RegistryEntry {
  std::int64_t pid = 0;
  bool is_spare = false;  // a prepared process, which has no session yet
  std::string session, cwd, version;
  std::string name;             // that the user knows the session by
  std::string process_start;    // field 22 of /proc/<pid>/stat
  std::string pid_domain;       // machine and pid namespace, as status::ProcessTable::pid_domain()
  std::string state;            // of the session: `working`, `waiting`, `idle`; empty: unknown
  std::string reason;           // of that state, as in status::Status; of `waiting` empty: not known
  std::string detail;           // of that state, in a word: `network`; empty: none
  std::int64_t updated_ms = 0;  // when the state was last written, since 1970
  friend bool operator==(const RegistryEntry&, const RegistryEntry&) = default;
};

/// What a title file states.
struct SessionTitle {
  std::string session;  // as StreamIdentity::session; empty: that of the transcript
  std::string title;
};

/// What a program hands to the command of its status line. Absent or empty: not stated, of another type, or
/// out of range.
struct StatusLine {
  std::string session, cwd;
  std::string model, model_name;                // id, and the name for display
  std::optional<std::uint64_t> context_window;  // tokens that fit the model's context
  std::optional<std::uint64_t> context_tokens;  // of those, used
  std::optional<double> cost_usd;               // of the session
  std::string limit;                            // the name of the account's limit; empty: no window is stated
  std::vector<LimitWindow> windows;             // of that limit
};

/// A place where a program keeps a session's list of todos.
struct TodoSource {
  std::string name;           // `todos`, `tasks`: reported with the list
  std::string path;           // relative to the root
  bool is_directory = false;  // one file per todo; otherwise one file for the whole list
};

// What only some programs have. Each is stateless and thread-safe, and lives as long as the process.

/// Files in which running processes state what their sessions do.
class RegistryFiles {
 public:
  static constexpr std::size_t registry_bytes_max = 64 << 10;  // a larger file is not read

  /// Their directory, relative to a root.
  virtual std::string_view registry_directory() const = 0;
  virtual bool is_registry_file(std::string_view file_name) const = 0;
  /// True if every running session of this version has such a file.
  virtual bool keeps_registry(std::string_view version) const = 0;
  /// By file name and content; absent if the content is incomplete (read while it was written). Fields of a
  /// wrong type are ignored.
  virtual std::optional<RegistryEntry> parse_registry_file(std::string_view file_name,
                                                           std::string_view text) const = 0;

 protected:
  ~RegistryFiles() = default;
};

/// Files that describe the subagents of transcripts.
class SubagentFiles {
 public:
  static constexpr std::size_t meta_bytes_max = 64 << 10;  // a larger file is not read

  /// The meta file of a transcript, given by its path without `.jsonl`. Empty: it has none.
  virtual std::string meta_file(std::string_view stem) const = 0;
  /// Text that is not JSON and fields of other types are ignored.
  virtual SubagentMeta parse_subagent_meta(std::string_view text) const = 0;

 protected:
  ~SubagentFiles() = default;
};

/// Lists of todos that are kept outside the transcripts.
class TodoFiles {
 public:
  static constexpr std::size_t todo_bytes_max = 256 << 10;  // a larger file is not read
  static constexpr std::size_t todos_max = 512;             // of a session; more are left out

  /// Directories relative to a root that contain the sources of all sessions.
  virtual std::span<const std::string_view> todo_directories() const = 0;
  /// The sources of a session; empty if its name cannot be a file name.
  virtual std::vector<TodoSource> todo_sources(std::string_view session) const = 0;
  /// The session whose list a path below a root belongs to; empty: none.
  virtual std::string session_of_todo_path(std::string_view path) const = 0;
  /// Absent if the text is not a list (read while it was written).
  virtual std::optional<std::vector<Todo>> parse_todo_list(std::string_view text) const = 0;
  /// The number of a file in a source that is a directory; absent: not a todo.
  virtual std::optional<std::uint64_t> todo_number(std::string_view file_name) const = 0;
  /// Absent if the text is not a todo.
  virtual std::optional<Todo> parse_todo(std::string_view text) const = 0;

 protected:
  ~TodoFiles() = default;
};

/// Titles that are kept outside the transcripts.
class TitleFiles {
 public:
  static constexpr std::size_t title_file_bytes_max = 1 << 20;  // a larger file is not read

  /// Relative to a root; the title files are there or below it.
  virtual std::string_view title_path() const = 0;
  /// The title file of a transcript, both relative to the root; empty: none.
  virtual std::string title_file(std::string_view transcript) const = 0;
  /// The titles in such a file, a later one replaces an earlier one. Text that cannot be read is left out.
  virtual std::vector<SessionTitle> parse_titles(std::string_view text) const = 0;

 protected:
  ~TitleFiles() = default;
};

/// Evidence of which process writes a transcript. By default there is none.
class Writers {
 public:
  virtual ~Writers() = default;
  /// True if a process that runs a session has its transcript open: its working directory proves nothing.
  virtual bool keeps_transcript_open() const { return false; }
  /// A file, relative to the root, that the writer of a transcript holds a flock() on; empty: none. The
  /// argument is the transcript's path.
  virtual std::string writer_lock(std::string_view) const { return {}; }
  /// The directory of those files, relative to the root; empty: there is none.
  virtual std::string_view lock_directory() const { return {}; }
  /// True if files in a transcript's directory name its writer; then writer_of().
  virtual bool names_writers() const { return false; }
  /// The process that a file in a transcript's directory names as its writer, by the file's name; 0: none.
  virtual std::int64_t writer_of(std::string_view) const { return 0; }
};

/// Requests that only a person can answer: questions, plans, permissions. By default any call may need a
/// permission, and asks for nothing else.
class Requests {
 public:
  virtual ~Requests() = default;
  static constexpr std::size_t prompt_bytes_max = 800;  // of the text in a description

  /// What a call of this tool asks the user: `question`, `plan`; empty: nothing.
  virtual std::string_view prompt_reason(std::string_view) const { return {}; }
  /// False for tools that never wait for the user's permission, and for those that start subagents, whose own
  /// calls are listed too.
  virtual bool may_need_permission(std::string_view) const { return true; }
  /// True for tools that may ask the user something while they run: an MCP server's, by an elicitation.
  virtual bool may_ask(std::string_view) const { return false; }
  /// By tool and input (JSON, possibly shortened): `approve Bash: <command>`, the question's text, `plan:
  /// <first line>`. At most about prompt_bytes_max bytes; may contain control characters.
  virtual std::string describe_prompt(std::string_view tool, std::string_view) const {
    return "approve " + std::string(tool);
  }
  /// True if a question for the user's permission may be asked in this permission mode, and leaves no trace
  /// on disk.
  virtual bool hides_permissions(std::string_view) const { return false; }
};

/// What a program writes to the command of its status line.
class StatusLines {
 public:
  static constexpr std::size_t status_line_bytes_max = 64 << 10;  // a longer one is not read

  /// Absent unless it is a JSON object.
  virtual std::optional<StatusLine> parse_status_line(std::string_view json) const = 0;

 protected:
  ~StatusLines() = default;
};

/// Stateless and thread-safe; lives as long as the process.
class AgentProgram {
 public:
  virtual ~AgentProgram() = default;

  /// The name on the wire and in configuration: `claude-code`.
  virtual std::string_view program() const = 0;

  // records
  virtual const RecordFormat& format() const = 0;

  // roots
  /// Absolute directories this program writes to by default; they need not exist.
  virtual std::vector<std::string> default_roots(const Environment&) const { return {}; }
  /// A file in a default root that may name another directory of transcripts; empty: there is none.
  virtual std::string_view settings_file() const { return {}; }
  /// The directory that the text of that file names, as it is written; empty: none.
  virtual std::string moved_transcripts(std::string_view) const { return {}; }
  /// True if an entry of a directory proves that this program writes there: a path of one or two components.
  virtual bool is_root_entry(std::string_view path) const = 0;
  /// The name of a root in this directory if it is not the last component; empty: it is.
  virtual std::string_view root_name(std::string_view) const { return {}; }

  // layout
  /// Directories with transcripts, relative to a root. Streams of the first one are named by the path below
  /// it (stream_name.hpp). Empty, and not the first: those directly in the root.
  virtual std::span<const std::string_view> transcript_directories() const = 0;
  /// First argument: the directory's path below the transcript directory, with a leading slash; empty: that
  /// directory itself.
  virtual FileKind classify(std::string_view, std::string_view file_name) const {
    const bool is_transcript =
        file_name.ends_with(transcript_suffix) && file_name.size() > transcript_suffix.size();
    return is_transcript ? FileKind::transcript : FileKind::other;
  }
  /// False for directories that contain no transcripts, by depth (0: entries of a transcript directory) and
  /// name.
  virtual bool may_contain_transcripts(std::size_t, std::string_view) const { return true; }
  /// `below`: path below the transcript directory, without `.jsonl`; the absolute path of a file elsewhere.
  virtual StreamIdentity identify(std::string_view below) const = 0;
  /// The transcript stem that a transcript or meta file name belongs to.
  virtual std::string_view stem_of(std::string_view file_name) const {
    if (file_name.ends_with(transcript_suffix)) file_name.remove_suffix(transcript_suffix.size());
    return file_name;
  }

  // process
  /// The words of the command that continues a session in its working directory; its id follows. Empty: there
  /// is none.
  virtual std::span<const std::string_view> resume_command() const { return {}; }
  /// True for the command line of a running instance; the first argument is the executable.
  virtual bool matches_process(std::span<const std::string>) const { return false; }
  /// True if such a process runs one prompt without a person at a terminal, as `copilot -p`.
  virtual bool is_headless(std::span<const std::string>) const { return false; }

  // status evidence; null: the program has none
  virtual const Writers& writers() const;
  virtual const Requests& requests() const;
  virtual const RegistryFiles* registry() const { return nullptr; }
  virtual const SubagentFiles* subagent_files() const { return nullptr; }
  virtual const TodoFiles* todo_files() const { return nullptr; }
  virtual const TitleFiles* title_files() const { return nullptr; }
  virtual const StatusLines* status_lines() const { return nullptr; }
};

/// All programs, in the order in which they are probed.
std::span<const AgentProgram* const> agent_programs();

/// The program of a root whose program is not configured.
const AgentProgram& default_program();

/// The program that wrote these first bytes of a transcript: the first that a record proves; null: none does.
const AgentProgram* detect_program(std::string_view beginning);

/// The program of this name; null: unknown.
const AgentProgram* find_agent_program(std::string_view program);

}  // namespace earshot
