// One daemon a state directory: two would write each other's token and address.
#pragma once
#include <string>
#include <variant>

#include "serve/auth.hpp"
#include "serve/fd.hpp"

namespace earshot::serve {

/// Held as long as this lives; the kernel lets go of it when the process dies, however it does.
class StateLock {
 public:
  static std::variant<StateLock, AuthError> take(const std::string& state_directory);

 private:
  explicit StateLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

enum class Locked { yes, held, error };  // held: by somebody else; error: errno says why

/// Opens (or makes, 0600) the file and locks it; `holder` gets the process number that the one who holds it
/// wrote there, when it can be read.
Locked lock_file(const std::string& path, Fd& fd, std::string& holder);

}  // namespace earshot::serve
