// Players of invented sessions: one session of one agent program at a time, step by step, as it would write
// it.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::demo {

class Player {
 public:
  virtual ~Player() = default;
  /// Begins another session. Returns the time until its first step in ms.
  virtual int begin() = 0;
  /// Plays the step that is due. Returns the time until the next one in ms; absent: the session is over.
  /// Throws std::system_error if a file cannot be written.
  virtual std::optional<int> play() = 0;
  /// The files and directories of this session alone.
  virtual std::vector<std::string> files() const = 0;
};

/// A player of this program that writes below the directory `root`; null: there is none.
std::unique_ptr<Player> make_player(std::string_view program, std::string root);
std::unique_ptr<Player> make_claude_code_player(std::string root);
/// For programs whose session is only lines of transcripts; null: there is none.
std::unique_ptr<Player> make_line_player(std::string_view program, std::string root);

// For players.

enum class Chain { main, agent };  // the session itself, and its subagent

constexpr std::string_view working_directory = "/home/keeper/lighthouse";  // of the invented sessions

/// Writes (`flags`: O_APPEND or O_TRUNC) with one call, as the agent programs do. Creates the file, 0600, and
/// its directories.
void write_file(const std::string& path, std::string_view text, int flags);
/// Replaces each `${name}` by value(name).
std::string fill(std::string_view text, const std::function<std::string(std::string_view name)>& value);
std::string random_text(std::string_view alphabet, std::size_t count);
std::string random_uuid();

}  // namespace earshot::demo
