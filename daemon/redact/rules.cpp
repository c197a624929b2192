#include "redact/rules.hpp"

#include <algorithm>
#include <iterator>

namespace earshot::redact {
namespace {

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_word(char c) { return is_digit(c) || is_letter(c) || c == '_' || c == '-'; }

bool is_not_placeholder(std::string_view value) { return !is_placeholder(value); }

// After `Authorization: Basic`: Base64 need not have a digit.
bool is_credential(std::string_view value) {
  return !is_placeholder(value) && (value.ends_with('=') || !is_made_of_words(value));
}

bool is_base64(char c) { return (is_word(c) && c != '-' && c != '_') || c == '+' || c == '/' || c == '='; }

// The end of the run of token bytes from `at` on, at most `bytes_max` of them.
std::size_t run_end(std::string_view text, std::size_t at, std::size_t bytes_max,
                    std::string_view more = {}) {
  const std::size_t last = std::min(text.size(), at + bytes_max);
  while (at < last && (is_word(text[at]) || more.find(text[at]) != std::string_view::npos)) ++at;
  return at;
}

// A token of at least `bytes_min` bytes behind its prefix.
template <std::size_t bytes_min, bool is_base64 = false>
bool find_token(std::string_view text, std::size_t at, std::size_t length, Range& secret) {
  constexpr std::size_t judged_bytes_max = 256;  // the rest of a longer token is not judged
  constexpr std::string_view more = is_base64 ? "+/=" : ".=~";
  const std::size_t begin = at + length;
  std::size_t end = run_end(text, begin, judged_bytes_max, more);
  while (end > begin && text[end - 1] == '.') --end;
  if (end - begin < bytes_min || !is_token(text.substr(begin, end - begin))) return false;
  secret = {at, end - begin < judged_bytes_max ? end : run_end(text, begin, text.size(), more)};
  return true;
}

// A token around the literal: `before` word bytes before it, and `after` or more behind it.
template <std::size_t before, std::size_t after_min, std::size_t after_max>
bool find_around(std::string_view text, std::size_t at, std::size_t length, Range& secret) {
  if (at < before) return false;
  const std::size_t begin = at - before,
                    end = run_end(text, at + length, after_max + 1, after_max ? ".~" : "");
  if (run_end(text, begin, before, ".~") != at || (begin > 0 && is_word(text[begin - 1]))) return false;
  if (end - at - length < after_min || end - at - length > after_max) return false;
  secret = {begin, end};
  return is_random(text.substr(begin, end - begin));
}

// `-u USER:PASSWORD` of a curl command; the literal is `curl `.
bool find_curl_user(std::string_view text, std::size_t at, std::size_t length, Range& secret) {
  constexpr std::size_t command_bytes_max = 512;
  constexpr std::string_view word_ends = " \t\r\n|;&";
  const std::string_view command = text.substr(0, std::min(text.size(), at + length + command_bytes_max));
  for (std::size_t end = at + length; end < command.size();) {
    const std::size_t word = std::min(command.find_first_not_of(" \t\\\r\n", end), command.size());
    const std::string_view gap = command.substr(end, word - end);
    const bool is_new_line = gap.find('\n') != gap.npos && gap.find('\\') == gap.npos;
    if (is_new_line || (word < command.size() && std::string_view("|;&").find(command[word]) != gap.npos))
      return false;  // the end of the command
    end = std::min(command.find_first_of(word_ends, word), command.size());
    const std::string_view option = command.substr(word, end - word);
    std::size_t value = end;
    for (const std::string_view prefix : {"--user=", "--proxy-user=", "-u"})
      if (option.starts_with(prefix) && option.size() > prefix.size()) value = word + prefix.size();
    const bool is_short = option.size() >= 2 && option[0] == '-' && option[1] != '-' && option.back() == 'u';
    if (value == end) {
      if (!is_short && option != "--user" && option != "--proxy-user") continue;
      value = command.find_first_not_of(" \t", end);
    }
    value = command.find_first_not_of("\\\"'", value);  // quotes, perhaps of JSON as text
    if (value == command.npos) return false;
    const bool is_quoted = command[value - 1] == '"' || command[value - 1] == '\'';
    const std::size_t colon = command.find(':', value);
    if (colon >= std::min(command.find_first_of(word_ends, value), command.size())) return false;
    const std::size_t begin = std::min(command.find_first_not_of("\\\"'", colon + 1), command.size());
    const bool is_quoted_part = begin > colon + 1;
    end = std::min(command.find_first_of(is_quoted || is_quoted_part ? "\\\"'\n" : " \t\r\n|;&\"'", begin),
                   command.size());
    secret = {begin, end};
    return end - begin >= 3 && !is_placeholder(command.substr(begin, end - begin));
  }
  return false;
}

// The password of a URL; the literal is `://`. It may contain any sign: then it ends at the last `@`, and
// must not look like a port with a path.
bool find_url_password(std::string_view text, std::size_t at, std::size_t length, Range& secret) {
  constexpr std::size_t user_bytes_max = 64, password_bytes_max = 256;
  constexpr std::string_view outside = " \t\r\n\"'<>\\`";
  const auto is_outside = [&](char c) {
    return static_cast<unsigned char>(c) < 0x20 || outside.find(c) != outside.npos;
  };
  std::size_t begin = at + length;
  const std::size_t user_end = std::min(text.size(), begin + user_bytes_max + 1);
  while (begin < user_end && text[begin] != ':') {
    if (is_outside(text[begin]) || std::string_view("/?#@[]").find(text[begin]) != std::string_view::npos)
      return false;
    ++begin;
  }
  if (begin >= user_end) return false;
  ++begin;
  std::size_t strict = begin, end = begin;  // the last `@` before a sign that ends a host, and of all
  bool is_strict = true;
  const std::size_t last = std::min(text.size(), begin + password_bytes_max + 1);
  for (std::size_t i = begin; i < last && !is_outside(text[i]); ++i) {
    if (std::string_view("/?#,[]").find(text[i]) != std::string_view::npos) is_strict = false;
    if (text[i] != '@') continue;
    end = i;
    if (is_strict) strict = i;
  }
  if (strict == begin) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789", begin), text.size());
    const bool is_port = digits > begin && digits < end &&
                         std::string_view("/?#,").find(text[digits]) != std::string_view::npos;
    if (is_port || is_made_of_words(text.substr(begin, end - begin))) return false;
    strict = end;
  }
  secret = {begin, strict};
  return strict > begin && !is_placeholder(text.substr(begin, strict - begin));
}

// The sign between a key and its value, with quotes.
#define BETWEEN R"((?:\\*["'`])?\]?[ \t]{0,4}(?:=>|:=|[:=])[ \t]{0,4}(?:\\*["'`])?)"

using enum Rule::Before;

constexpr Rule table[] = {
    {"private_key", "-----BEGIN ", nullptr, false, anything, nullptr, find_private_key},
    {"private_key", "-----END ", nullptr, false, anything, nullptr, find_private_key_end},
    // The same in Base64, as in a kubeconfig: RSA, DSA, EC, OPENSSH, ENCRYPTED, PGP, or no kind.
    {"private_key", "LS0tLS1CRUdJTiB",
     R"(LS0tLS1CRUdJTiB(?:[SE]U0EgUFJJVkFUR|FQyBQUklWQVRF|QUklWQVRF|PUEVOU1NIIFBSSVZBVE|)"
     R"(FTkNSWVBURUQgUFJJVkFUR|QR1AgUFJJVkFUR)[A-Za-z0-9+/]{20,}={0,2})"},
    {"aws_access_key", "AKIA|ASIA|ABIA|ACCA|A3T", R"(([A-Z0-9]{4}[A-Z2-7]{16})(?:[^A-Za-z0-9]|\z))", false,
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
    {"gitlab_token", "glpat-|glptt-|gldt-|glrt-|glcbt-|glft-|glsoat-|glffct-|glimt-|glagent-|gloas-",
     R"(gl[a-z]+-[A-Za-z0-9_.-]{20,})", false, no_token, is_token},
    {"gitlab_token", "GR1348941", nullptr, false, no_token, nullptr, find_token<20>},
    {"gitlab_token", "_gitlab_session=", R"(_gitlab_session=([0-9a-z]{32}))"},
    {"slack_token", "xox[abeoprs]-|xapp-", R"(x(?:ox[a-z]|app)-[A-Za-z0-9.-]{10,})", false, no_token,
     is_token},
    {"slack_webhook", "hooks.slack.com/",
     R"(hooks\.slack\.com/[a-z]+/([A-Z0-9]{5,}/[A-Z0-9]{5,}/[A-Za-z0-9]{16,}))", false, anything, is_token},
    {"stripe_key", "[sr]k_live_|[sr]k_test_|[sr]k_prod_", R"([sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,})",
     false, anything, is_token},
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
    // Tokens of further services, by prefix. README.md has the names.
    {"service_token", "sm_[aps]at_|NRJS-|FLWSECK_TEST-|FLWSECK-", nullptr, false, no_token, nullptr,
     find_token<12>},
    {"service_token", "LTAI|sq0[ac][ts]p-|EAA[ACM]|NRAK-|ATATT3", nullptr, false, no_token, nullptr,
     find_token<20>},
    {"service_token",
     "lin_api_|pscale_tkn_|pscale_oauth_|pscale_pw_|rdme_|rubygems_|shppa_|shpat_|shpca_|shpss_|shippo_live_|"
     "shippo_test_|sntryu_|glsa_|pnu_|ntn_|tfp_|sgp_|sq[pua]_|duffel_live_|duffel_test_|lsv2_pt_|lsv2_sk_|"
     "api_org_|ico-|pplx-|pul-|tk-us-|xkeysib-|fio-u-|p8e-|dnkey-|s-s4t2ud-|s-s4t2af-|PMAK-|NRII-|EZ[AT]K|"
     "HRKU-AA|"
     "AQVN|fo1_|sha256~|AKCp|cmVmd|dp.[psc]t.|dt0[cs]01.|live_|[ps]k.eyJ",
     nullptr, false, no_token, nullptr, find_token<30>},
    {"service_token", "glc_|sntrys_|ops_eyJ|eyJrIjoi|ZXlK|ABSK|fm1[ar]_|fm2_", nullptr, false, no_token,
     nullptr, find_token<32, true>},
    {"service_token", "clojars_", nullptr, true, no_token, nullptr, find_token<58>},
    // Amazon Bedrock, short-lived: the Base64 of `bedrock.amazonaws.com` and of a signed query.
    {"service_token", "bedrock-api-key-",
     R"(bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t[A-Za-z0-9+/]{20,}={0,2})", false, no_token},
    {"service_token", "dapi", R"((dapi[a-f0-9]{32}(?:-[0-9])?)(?:[^A-Za-z0-9]|\z))", false, no_token},
    {"service_token", "key-", R"((key-[a-f0-9]{32})(?:[^A-Za-z0-9]|\z))", false, no_token},
    {"service_token", "API-", R"((API-[A-Z0-9]{26})(?:[^A-Za-z0-9]|\z))", false, no_token, is_random},
    {"service_token", "A3-", R"(A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3})",
     false, no_token},
    {"service_token", "4b1d", R"((4b1d[A-Za-z0-9]{38})(?:[^A-Za-z0-9]|\z))", false, no_token, is_random},
    {"service_token", "v1.0-", R"(v1\.0-[a-f0-9]{24}-[a-f0-9]{146})", false, no_token},
    {"service_token", "[ps]at.", R"([ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20})", false,
     no_token},
    {"service_token", "sl.", R"(sl\.[A-Za-z0-9_=-]{130,})", false, no_token},
    {"service_token", "t1.", R"(t1\.[A-Za-z0-9_=-]{1,512}\.[A-Za-z0-9_-]{86}={0,2})", false, no_token},
    {"service_token", ".acc_|.acc-", R"(\.acc[_-][a-z0-9-]{10,32}\.([A-Za-z0-9+/_=-]{30,120}))"},
    {"service_token", ".atlasv1.", R"(\.atlasv1\.([A-Za-z0-9_=-]{60,}))"},
    {"service_token", "access-sandbox-|access-development-|access-production-",
     R"(access-[a-z]+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", false, no_token},
    {"service_token", "contribsys__com", R"((?i)contribsys__com)" BETWEEN R"(([a-f0-9]{8}:[a-f0-9]{8}))",
     true},
    {"service_token", "[0123456789]Q~", nullptr, false, anything, nullptr, find_around<3, 31, 34>},
    {"service_token", "_mmk", nullptr, false, anything, nullptr, find_around<36, 0, 0>},
    {"service_token", "-us[0123456789]", nullptr, false, anything, nullptr, find_around<32, 0, 1>},
    {"teams_webhook", "webhook.office.com/webhookb2/",
     R"(webhook\.office\.com/webhookb2/([a-z0-9@-]{36,}/IncomingWebhook/[a-z0-9]{32}/[a-z0-9-]{36}))"},
    {"url_password", "://", nullptr, false, anything, nullptr, find_url_password},
    {"curl_password", "curl ", nullptr, false, no_letter, nullptr, find_curl_user},
    {"authorization", "authorization",
     R"((?i)authorization)" BETWEEN R"((?:bearer|basic|token|apikey)[ \t]{1,4}([a-z0-9+/=._~%-]{8,}))", true,
     anything, is_credential},
    {"authorization", "authorization", R"((?i)authorization)" BETWEEN R"(([a-z0-9+/=._~%-]{16,}))", true,
     anything, is_random},
    {"authorization", "bearer", R"((?i)bearer[ \t]{1,4}([a-z0-9+/=._~-]{16,}))", true, no_letter, is_random},
    {"authorization", "\"auth", R"("auth\\*"[ \t]{0,4}:[ \t]{0,4}\\*"([A-Za-z0-9+/]{8,}={0,2})\\*")", false,
     anything, is_credential},  // Docker
    {assignment_rule, "password\" value=", R"re((?i)password" value="([^"\n]{8,256})")re", true, anything,
     is_not_placeholder},                                                      // NuGet
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

bool find_private_key_end(std::string_view text, std::size_t at, std::size_t length, Range& secret) {
  constexpr std::string_view dashes = "-----", margin = " \t|>";
  constexpr std::size_t kind_bytes_max = 60, body_bytes_max = 8192, line_bytes_max = 200,
                        base64_bytes_min = 40;
  constexpr std::size_t line_bytes_min = 16;  // but for the last line
  const std::size_t close =
      text.substr(0, std::min(text.size(), at + length + kind_bytes_max)).find(dashes, at + length);
  if (close == text.npos || text.substr(at + length, close - at - length).find("PRIVATE KEY") == text.npos)
    return false;
  // Back over lines of Base64, which may be numbered or quoted.
  std::size_t begin = at, longest = 0;
  for (std::size_t end = at; at - end < body_bytes_max;) {
    const std::size_t window_begin = end - std::min(end, line_bytes_max);
    const std::string_view window = text.substr(window_begin, end - window_begin);
    const std::size_t line_feed = window.rfind('\n'), escaped = window.rfind("\\n");
    const bool is_escaped = escaped != text.npos && (line_feed == text.npos || escaped > line_feed);
    std::size_t break_at = is_escaped ? escaped : line_feed;
    const bool is_first = break_at == text.npos;
    std::string_view content = window.substr(is_first ? 0 : break_at + (is_escaped ? 2 : 1));
    while (content.ends_with('\r') || content.ends_with(' ')) content.remove_suffix(1);
    // Behind a margin, in which a tab may be escaped.
    const std::size_t tab = content.rfind("\\t"), blank = content.find_last_of(margin);
    std::size_t token_at = blank == text.npos ? 0 : blank + 1;
    if (tab != text.npos) token_at = std::max(token_at, tab + 2);
    const std::string_view token = content.substr(token_at);
    const bool is_margin = !(is_first && window_begin > 0) &&
                           content.substr(0, token_at).find_first_not_of(" \t|>0123456789\\t") == text.npos;
    if (end == at ? !token.empty() : token.empty() || !std::all_of(token.begin(), token.end(), is_base64))
      break;
    if (token.size() < (is_margin ? line_bytes_min : base64_bytes_min) && end != at && begin != at) break;
    if (end != at) {
      longest = std::max(longest, token.size());
      begin = static_cast<std::size_t>(token.data() - text.data());
    }
    if (is_first || !is_margin) break;
    while (is_escaped && break_at > 0 && window[break_at - 1] == '\\') --break_at;
    end = window_begin + break_at;
  }
  if (longest < base64_bytes_min) return false;
  secret = {begin, close + dashes.size()};
  return true;
}

}  // namespace earshot::redact
