#include "redact/rules.hpp"

#include <algorithm>
#include <iterator>

namespace earshot::redact {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

bool is_not_placeholder(std::string_view value) { return !is_placeholder(value); }

bool has_digits(std::string_view value) {
  return std::count_if(value.begin(), value.end(), is_digit) >= 4 && !is_placeholder(value);
}

// After `Authorization: Basic`: Base64 need not have a digit.
bool is_credential(std::string_view value) {
  return !is_placeholder(value) && (value.ends_with('=') || !is_made_of_words(value));
}

// The sign between a key and its value, with quotes.
#define BETWEEN R"((?:\\*["'`])?\]?[ \t]{0,4}(?:=>|:=|[:=])[ \t]{0,4}(?:\\*["'`])?)"

using enum Rule::Before;

constexpr Rule table[] = {
    {"private_key", "-----BEGIN ", nullptr, false, anything, nullptr, find_private_key},
    {"aws_access_key", "AKIA|ASIA|ABIA|ACCA", R"(([A-Z]{4}[A-Z2-7]{16})(?:[^A-Za-z0-9]|\z))", false,
     no_letter},
    {"aws_secret_key", "secret_access_key|secretaccesskey|secret-access-key|aws_secret",
     R"((?i)[a-z_-]{6,24})" BETWEEN R"(([a-z0-9/+]{40})(?:[^a-z0-9/+=]|\z))", true, anything,
     is_not_placeholder},
    {"google_api_key", "AIza", R"(AIza[A-Za-z0-9_-]{35,})"},
    {"google_oauth", "ya29.", R"(ya29\.[A-Za-z0-9_-]{20,})", false, no_letter, is_token},
    {"google_oauth", "GOCSPX-", R"(GOCSPX-[A-Za-z0-9_-]{24,})"},
    {"azure_key", "accountkey|sharedaccesskey", R"((?i)(?:account|sharedaccess)key=([a-z0-9+/%]{20,}={0,2}))",
     true},
    {"azure_key", "sig=", R"(sig=([A-Za-z0-9%/+]{40,}(?:%3[dD]|=)))", false, no_letter},
    {"github_token", "gh[pousr]_", R"(gh[pousr]_[A-Za-z0-9]{36,})"},
    {"github_token", "github_pat_", R"(github_pat_[A-Za-z0-9_]{22,})", false, no_token, is_token},
    {"gitlab_token", "glpat-|glptt-|gldt-|glrt-|glcbt-|glft-|glsoat-", R"(gl[a-z]+-[A-Za-z0-9_.-]{20,})",
     false, no_token, is_token},
    {"slack_token", "xox[abeoprs]-|xapp-", R"(x(?:ox[a-z]|app)-[A-Za-z0-9.-]{10,})", false, no_token,
     has_digits},
    {"slack_webhook", "hooks.slack.com/",
     R"(hooks\.slack\.com/[a-z]+/([A-Z0-9]{5,}/[A-Z0-9]{5,}/[A-Za-z0-9]{16,}))", false, anything, is_token},
    {"stripe_key", "[sr]k_live_|[sr]k_test_", R"([sr]k_(?:live|test)_[A-Za-z0-9]{16,})", false, anything,
     is_token},
    {"stripe_key", "whsec_", R"(whsec_[A-Za-z0-9+/]{24,}={0,2})", false, anything, is_token},
    {"anthropic_key", "sk-ant-", R"(sk-ant-[A-Za-z0-9_-]{20,})", false, no_token, is_token},
    {"openai_key", "sk-proj-|sk-svcacct-|sk-admin-|sk-or-v1-",
     R"(sk-(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,})", false, no_token, is_token},
    {"openai_key", "sk-", R"(sk-[A-Za-z0-9]{20,})", false, no_token, is_token},
    {"npm_token", "npm_", R"(npm_[A-Za-z0-9]{36,})"},
    {"pypi_token", "pypi-AgEI", R"(pypi-AgEI[A-Za-z0-9_-]{16,})"},
    {"huggingface_token", "hf_", R"(hf_[A-Za-z0-9]{30,})", false, no_letter},
    {"sendgrid_key", "SG.", R"(SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64})", false, no_letter},
    {"twilio_key", "SK[0123456789abcdef]", R"((SK[0-9a-f]{32})(?:[^A-Za-z0-9]|\z))", false, no_letter},
    {"telegram_token", ":AA", nullptr, false, anything, nullptr,
     [](std::string_view text, std::size_t at, std::size_t, Range& secret) {
       // The bot's number precedes it; the secret has 35 bytes.
       std::size_t digits = at;
       while (digits > 0 && at - digits <= 10 && is_digit(text[digits - 1])) --digits;
       std::size_t end = at + 1;
       while (end < text.size() && end - at <= 36 && is_word(text[end])) ++end;
       secret = {digits, end};
       return at - digits >= 8 && at - digits <= 10 && end - at - 1 == 35;
     }},
    {"discord_token", "[MNO][DTjz][AEIMQUYcgk]",
     R"([MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,40})", false, no_letter},
    {"discord_webhook", "/api/webhooks/", R"(/api/webhooks/([0-9]{15,21}/[A-Za-z0-9_-]{40,}))"},
    {"digitalocean_token", "do[opr]_v1_", R"(do[opr]_v1_[a-f0-9]{64})"},
    {"vault_token", "hv[sbr].", R"(hv[sbr]\.[A-Za-z0-9_-]{24,})", false, no_token, is_token},
    {"groq_key", "gsk_", R"(gsk_[A-Za-z0-9]{40,})", false, no_letter},
    {"xai_key", "xai-", R"(xai-[A-Za-z0-9]{40,})", false, no_token, is_token},
    {"age_key", "AGE-SECRET-KEY-", R"(AGE-SECRET-KEY-1[0-9A-Z]{40,})"},
    {"jwt", "eyJ", R"(eyJ[A-Za-z0-9_-]{5,}\.eyJ[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?)", false, no_token},
    {"url_password", "://", R"(://[^\s/?#:@"'<>\\`\[\]]{0,64}:([^\s/?#"'<>\\`,\[\]]{1,256})@)", false,
     anything, is_not_placeholder},
    {"authorization", "authorization",
     R"((?i)authorization)" BETWEEN R"((?:bearer|basic|token|apikey)[ \t]{1,4}([a-z0-9+/=._~%-]{8,}))", true,
     anything, is_credential},
    {"authorization", "bearer", R"((?i)bearer[ \t]{1,4}([a-z0-9+/=._~-]{16,}))", true, no_letter, is_random},
    {assignment_rule, "", nullptr, true, anything, nullptr, find_assignment},  // literals: assignment_words()
};

#undef BETWEEN

}  // namespace

std::span<const Rule> rules() { return table; }

bool may_begin(std::string_view text, std::size_t at, Rule::Before forbidden) {
  if (at == 0 || forbidden == anything) return true;
  const char before = text[at - 1];
  if (!is_word(before) || (forbidden == no_letter && (before == '_' || before == '-'))) return true;
  if (at >= 2 && text[at - 2] == '\\' && std::string_view("nrtbfv").find(before) != std::string_view::npos)
    return true;
  if (at >= 3 && text[at - 3] == '%' && is_hex(text[at - 2]) && is_hex(before)) return true;
  if (at >= 6 && text[at - 6] == '\\' && text[at - 5] == 'u' &&
      std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at) - 4,
                  text.begin() + static_cast<std::ptrdiff_t>(at), is_hex))
    return true;
  if (before != 'm') return false;
  // ESC [ digits and semicolons m
  std::size_t begin = at - 1;
  while (begin > 0 && at - begin < 16 && (is_digit(text[begin - 1]) || text[begin - 1] == ';')) --begin;
  return begin > 0 && text[begin - 1] == '[';
}

bool find_private_key(std::string_view text, std::size_t at, std::size_t length, Range& secret) {
  constexpr std::string_view dashes = "-----", end_mark = "-----END ";
  constexpr std::size_t kind_bytes_max = 60, proof_within_bytes = 512;
  constexpr std::size_t base64_bytes_min = 40,
                        closed_base64_bytes_min = 12;  // if the block has an end
  // The kind, up to its dashes, names a private key.
  const std::size_t kind_end =
      text.substr(0, std::min(text.size(), at + length + kind_bytes_max)).find(dashes, at + length);
  if (kind_end == std::string_view::npos) return false;
  const std::string_view kind = text.substr(at + length, kind_end - at - length);
  if (kind.find("PRIVATE KEY") == std::string_view::npos || kind.find('\n') != std::string_view::npos)
    return false;
  const std::size_t body = kind_end + dashes.size();
  std::size_t end = text.find(dashes, body);
  const std::size_t body_end = std::min(end, text.size());
  std::size_t wanted = base64_bytes_min;
  if (end == std::string_view::npos) {
    end = text.size();
  } else if (text.compare(end, end_mark.size(), end_mark) == 0) {
    wanted = closed_base64_bytes_min;
    const std::size_t close = text.find(dashes, end + end_mark.size());
    end = close == std::string_view::npos
              ? text.size()
              : std::min(close + dashes.size(), end + end_mark.size() + kind_bytes_max + dashes.size());
  }
  // Without a line of Base64 the text only mentions a key.
  std::size_t run = 0;
  for (std::size_t i = body; i < body_end && i < body + proof_within_bytes; ++i) {
    const char c = text[i];
    run = is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '/' || c == '='
              ? run + 1
              : 0;
    const bool cut_here = i + 1 == text.size() && run >= base64_bytes_min / 2;
    if (run < wanted && !cut_here) continue;
    secret = {at, end};
    return true;
  }
  return false;
}

}  // namespace earshot::redact
