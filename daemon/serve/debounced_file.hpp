// A small file of the state directory. Changes are written after a while, and until they are stored.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace earshot::serve {

/// All calls on the thread that runs `io`, which also outlives this object; the file is written on `disk`,
/// one task after another.
class DebouncedFile {
 public:
  struct Settings {
    std::string path;
    std::string what;                      // the file remembers, for users: "what was exported"
    std::string if_damaged;                // what follows then, for users: "all sessions count as seen"
    bool is_private = false;               // one that others could have read or written counts as damaged
    std::chrono::milliseconds delay{500};  // of a write: changes within it are one write
    std::chrono::milliseconds retry_delay{10'000};  // after one that failed, as on a full disk
  };
  /// Called on `disk`: the text of thousands of entries takes milliseconds.
  using Text = std::function<std::string()>;
  using Done = std::function<void(const std::string& error)>;  // for users; empty: stored

  /// `copy` is called on the loop when the file is written, and returns what makes the text.
  DebouncedFile(boost::asio::io_context& io, boost::asio::any_io_executor disk, Settings settings,
                std::function<Text()> copy);

  /// Before the loop runs. Nothing: there is no file, or it was damaged and is renamed to `<path>.torn`.
  template <class Value>
  std::optional<Value> read(std::size_t bytes_max, std::optional<Value> (*parse)(std::string_view)) const {
    const std::optional<std::string> text = read_text(bytes_max);
    std::optional<Value> value = text ? parse(*text) : std::nullopt;
    if (text && !value) set_aside(settings_.path + " is unreadable");
    return value;
  }
  void changed();
  /// Writes at once, then calls `done` on the loop. After an error it is written later.
  void store(Done done);
  /// After the loop and the disk threads: writes what is not stored yet.
  void flush();
  const std::string& path() const { return settings_.path; }
  /// Why changes are not remembered, for users; empty: they are.
  const std::string& problem() const { return problem_; }

 private:
  std::optional<std::string> read_text(std::size_t bytes_max) const;
  void set_aside(const std::string& reason) const;
  void write_after(std::chrono::milliseconds wait);
  void write(Done done);
  void on_written(std::uint64_t revision, const std::string& error);

  const boost::asio::any_io_executor disk_;
  const Settings settings_;
  const std::function<Text()> copy_;
  Timer timer_;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();
  std::uint64_t revision_ = 0, stored_ = 0;  // of the content
  std::string problem_;
  bool is_scheduled_ = false;
};

}  // namespace earshot::serve
