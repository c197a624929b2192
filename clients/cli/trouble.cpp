#include "cli/trouble.hpp"

#include "cli/terminal.hpp"

namespace earshot::cli {
namespace {

constexpr int close_bad_token = 4501;

bool is_about_token(const Outcome& outcome) {
  return outcome.http_status == 401 || outcome.close_code == close_bad_token;
}

std::string advice(const Outcome& outcome, const DaemonAddress& address) {
  if (outcome.ending == Ending::unreachable) {
    return "Is the daemon running? Start it with:  earshotd --root ~/.claude";
  }
  if (is_about_token(outcome)) {
    if (address.token.empty())
      return "The daemon wants its token: name its state directory with --state, or the file with "
             "--token-file.";
    return "The token is not this daemon's: it lies in the daemon's own state directory (--state DIR or "
           "--token-file FILE).";
  }
  if (outcome.http_status == 503) return "The daemon has as many connections as it takes: try again later.";
  if (outcome.http_status != 0) return "Something listens there, but it does not take us: is it earshotd?";
  return {};
}

}  // namespace

bool is_final(const Outcome& outcome) {
  if (outcome.ending == Ending::refused) return outcome.http_status != 503;
  return outcome.close_code >= 4500 && outcome.close_code <= 4999;
}

std::string explain(const Outcome& outcome, const DaemonAddress& address) {
  const char* what = outcome.ending == Ending::unreachable              ? "cannot reach the daemon at "
                     : is_about_token(outcome) && address.token.empty() ? "the daemon wants a token at "
                     : is_about_token(outcome)                          ? "the daemon refused the token at "
                     : outcome.ending == Ending::refused                ? "no earshot daemon answers at "
                                                                        : "lost the daemon at ";
  std::string text = what + address.endpoint.url() + ": " + for_stderr(outcome.text) + "\n";
  text += "  address: " + for_stderr(address.address_from) + "\n";
  text += "  token:   " + for_stderr(address.token_from);
  if (!address.token_trouble.empty()) text += " (" + for_stderr(address.token_trouble) + ")";
  const std::string next = advice(outcome, address);
  return next.empty() ? text : text + "\n  " + next;
}

}  // namespace earshot::cli
