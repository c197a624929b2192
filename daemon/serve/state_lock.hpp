// One daemon a state directory: two would write each other's token and address.
#pragma once
#include <string>
#include <variant>

#include "base/fd.hpp"
#include "serve/auth/secrets.hpp"

namespace earshot::serve {

/// Held as long as this lives; the kernel lets go of it when the process dies, however it does.
class StateLock {
 public:
  /// Where nothing can be written (a full disk, a read-only one) no other daemon writes either: then there is
  /// no lock, and `trouble()` says why.
  static std::variant<StateLock, AuthError> take(const std::string& state_directory);
  const std::string& trouble() const { return trouble_; }  // for people; empty: it is held

 private:
  explicit StateLock(Fd fd, std::string trouble = {}) : fd_(std::move(fd)), trouble_(std::move(trouble)) {}
  Fd fd_;
  std::string trouble_;
};

enum class Locked { yes, held, error };  // held: by somebody else; error: errno says why

/// Opens (or makes, 0600) the file and locks it; `holder` gets the process number that the one who holds it
/// wrote there, when it can be read.
Locked lock_file(const std::string& path, Fd& fd, std::string& holder);

}  // namespace earshot::serve
