// The browsers that are signed in: their public keys and identities, as STATE/browsers.json keeps them. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/auth/sign_in.hpp"

namespace earshot::serve {

struct Browser {
  static constexpr std::size_t id_digits = 16;
  static constexpr std::size_t name_bytes_max = 64;
  static constexpr std::size_t used_nonces_max = 1024;  // within Challenges::good_for; then it must wait

  std::string id;          // random hex digits
  std::string name;        // chosen by the page: untrusted text
  std::string key;         // see p256.hpp
  std::string user;        // of a hub; empty: the owner
  std::string credential;  // of that identity, see AccessPolicy::credential_of()
  std::string origin;      // of its page: it can sign in there only
  std::string secret;      // 64 hex digits, shared with it: the daemon proves that it has it
  std::int64_t created_ms = 0, used_ms = 0;
  bool is_temporary = false;  // not stored

  /// Once per nonce. False: used before, or too many within Challenges::good_for.
  bool use(std::string_view nonce, Challenges::Time now);

 private:
  struct Used {
    std::string nonce;
    Challenges::Time until;
  };
  std::vector<Used> used_;
};

class Browsers {
 public:
  static constexpr std::size_t per_identity_max = 64;  // one more replaces the longest unused one
  static constexpr std::size_t browsers_max = 1024;    // of all users of a hub; more are refused
  static constexpr std::size_t daemon_id_digits = 32;
  static constexpr std::size_t text_bytes_max = 2 << 20;

  /// None yet, of a new daemon.
  Browsers();
  /// Nothing if it is not what text() returns.
  static std::optional<Browsers> parse(std::string_view text);
  /// JSON, without the temporary ones.
  std::string text() const;

  /// Of the state directory: a browser recognises its daemon by it. Not a secret.
  const std::string& daemon_id() const { return daemon_id_; }
  /// Null: unknown. Valid until it is removed.
  Browser* find(std::string_view id);
  const std::list<Browser>& all() const { return browsers_; }

  /// Whether add() can add another one of this identity.
  bool has_room(std::string_view user) const;
  struct Added {
    Browser* browser;
    std::string replaced;  // the id of a removed one; empty: none
  };
  /// Adds it with a new id. One with the same key and origin is replaced; of the same identity it keeps its
  /// id and connections. Requires has_room().
  Added add(Browser browser);
  /// Returns the ids of the removed ones.
  std::vector<std::string> remove_if(const std::function<bool(const Browser&)>& is_removed);

 private:
  std::string daemon_id_;
  std::list<Browser> browsers_;  // in order of registration
};

}  // namespace earshot::serve
