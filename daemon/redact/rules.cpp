#include "redact/rules.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace earshot::redact {
namespace {

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// The sets of bytes of a shape: a name and its members, where d stands for digits, l and U for small letters
// and capitals, h and H for those of hexadecimal numbers, W for blanks and line ends. u: Base32; b % g p k:
// Base64, … in a URL, … of both kinds, … with more, … in lines; c: crypt(3); Q: quotes.
constexpr std::string_view sets =
    "dd hdh HdhH ldl UdU AlU adlU wdlU-_ tdlU-_. qdlU-_=. xdl-@ uU234567 bdlU+/ %dlU+/% gdlU+/=-_ cdlU./ "
    "pdlU+/=-_.%~ kdlU+/=\\W WW Q\"'`\\ V^~<>= vdlU!#$%&()*+,-./:;<=>?@[]^_{|}~ "
    "fdlU!#$%&()*+,-./;<=>?@^_{|}~";

constexpr unsigned any_case = Rule::any_case, generic = Rule::generic, unproved = Rule::unproved,
                   anywhere = Rule::anywhere, wordless = Rule::wordless;
#define UUID "{h8}-{h4}-{h4}-{h4}-{h12}"
#define PEM "LS0tLS1CRUdJTiB"  // `-----BEGIN `

constexpr Rule table[] = {
    // Keys
    {"private_key", "-----BEGIN ", "", anywhere, "", find_private_key},
    {"private_key", "-----END |Private-MAC: ", "", anywhere, "", find_private_key_end},
    {"private_key", "Private-Lines: ", "{d1-3}{W0-4}!{k40+}", anywhere},  // of PuTTY
    // The same in Base64, as in a kubeconfig: RSA, DSA, EC, OPENSSH, ENCRYPTED, PGP, or no kind.
    {"private_key",
     PEM "SU0EgUFJJVkFUR|" PEM "EU0EgUFJJVkFUR|" PEM "FQyBQUklWQVRF|" PEM "QUklWQVRF|" PEM
         "PUEVOU1NIIFBSSVZBVE|" PEM "FTkNSWVBURUQgUFJJVkFUR|" PEM "QR1AgUFJJVkFUR",
     "{b20+}{=0-2}", anywhere},
    {"age_key", "AGE-SECRET-KEY-1", "{U40+}"},
    {"jwt", "eyJ", "{w5-2048}.eyJ{w5-8192}{.0-1}{w0+}", generic | unproved},
    // Clouds
    {"aws_access_key", "AKIA|ASIA|ABIA|ACCA", "{u16}", unproved},
    {"aws_access_key", "A3T", "{U1}{u16}", unproved},
    {"aws_secret_key", "secret_access_key|secretaccesskey|secret-access-key|aws_secret_key|aws_secret",
     "~!{b40}", any_case | anywhere},
    {"google_api_key", "AIza", "{w35+}", unproved},
    {"google_oauth", "ya29.", "{w20+}"},
    {"google_oauth", "GOCSPX-", "{w24+}"},
    {"google_oauth", "1//0", "{w40+}", generic},
    {"azure_key", "accountkey=|sharedaccesskey=", "!{%20+}{=0-2}", any_case | anywhere},
    {"azure_key", "sig=", "!{%43-200}{=0-1}"},
    {"digitalocean_token", "do[opr]_v1_", "{h64}"},
    {"service_token", "IQoJb3JpZ2lu", "{g100+}"},                                       // AWS session
    {"service_token", "ABSK", "{g80+}"},                                                // Amazon Bedrock
    {"service_token", "bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t", "{b20+}{=0-2}"},  // …, short-lived
    {"service_token", "[0123456789]Q~", "{t31-34}", anywhere, "{t3}"},                  // Azure AD
    {"service_token", "t1.", "{g1-512}.{w86}{=0-2}", generic},                          // Yandex
    {"service_token", "AQVN", "{w35-38}"},                                              // …
    // Code hosting and packages
    {"github_token", "gh[pousr]_", "{a36+}", anywhere},
    {"github_token", "github_pat_", "{w22+}"},
    {"gitlab_token",
     "glpat-|glptt-|gldt-|glrt-|glrtr-|glcbt-|glft-|glsoat-|glffct-|glimt-|glagent-|gloas-|GR1348941",
     "{t20+}"},
    {"gitlab_token", "_gitlab_session=", "!{l32}", anywhere},
    {"npm_token", "npm_", "{a36+}"},
    {"pypi_token", "pypi-AgEI", "{w16+}"},
    {"service_token", "rubygems_", "{h48}"},
    {"service_token", "clojars_", "{a58-62}", any_case},
    {"service_token", "oy2", "{l43}", generic},  // NuGet
    {"service_token", "AKCp", "{a69}"},          // Artifactory
    {"service_token", "cmVmd", "{a59}"},         // …
    {"service_token", "ATATT3|ATCTT3", "{q50+}"},
    {"service_token", "CCIPAT_", "{a22}_{h40}"},
    {"service_token", "sgp_", "{h16}_{h40}"},
    {"service_token", "sq[pua]_", "{l40}", generic},  // SonarQube
    {"service_token", "contribsys__com", "~!{h8}:{h8}", any_case | anywhere | unproved},
    // Services of every kind, by shape
    {"service_token", "bkua_|bkct_|e2b_|sgp_|sbp_|shippo_live_|shippo_test_", "{h40}"},
    {"service_token", "pul-", "{h40}", generic},
    {"service_token", "sntryu_|crsr_|s-s4t2ud-|s-s4t2af-", "{h64}"},
    {"service_token",
     "sk-lf-|waka_|pat-na1-|pat-na2-|pat-eu1-|access-sandbox-|access-development-|access-production-", UUID},
    {"service_token", "cio|ico-|rnd_|ATBB", "{a32}", generic},  // crates.io, Infracost, Render, Bitbucket
    {"service_token", "LTAI", "{a16-24}", generic},             // Alibaba
    {"service_token", "dckr_pat_|dckr_oat_|tvly-|apify_api_|sb_secret_|sq0[ac][ts]p-", "{w20+}"},
    {"service_token", "api_org_|nf[poub]_|pnu_|pnb_", "{a30+}"},
    {"service_token", "pplx-|csk-|phx_|lin_api_|lin_oauth_|ntn_", "{a40+}"},
    {"service_token", "nvapi-|jina_|tgp_v1_|dp.[psc]t.|HRKU-AA", "{w40+}"},
    // Language models
    {"anthropic_key", "sk-ant-", "{w20+}", generic},
    {"openai_key", "sk-proj-|sk-svcacct-|sk-admin-|sk-or-v1-", "{w20+}", generic},
    {"openai_key", "sk-", "{a20+}", generic},
    {"groq_key", "gsk_", "{a40+}"},
    {"xai_key", "xai-", "{a40+}"},
    {"huggingface_token", "hf_", "{a30+}"},
    {"service_token", "r8_", "{a37}", generic},     // Replicate
    {"service_token", "fw_", "{a22-24}", generic},  // Fireworks
    {"service_token", "pcsk_", "{a4-8}_{a40+}"},
    {"service_token", "lsv2_pt_|lsv2_sk_", "{h32}_{h10}"},
    // Messages
    {"slack_token", "xox[abcdeoprs]-|xapp-", "{p10+}", generic},
    {"slack_webhook", "hooks.slack.com/", "{l1-20}/!{U5-20}/{U5-20}/{a16+}", anywhere},
    {"slack_webhook", "hooks.slack.com/workflows/", "!{U5-20}/{U5-20}/{d10-30}/{a16+}", anywhere},
    {"discord_token", "[MNO][DTjz][AEIMQUYcgk]", "{w21-25}.{w6-7}.{w27-40}"},
    {"discord_webhook", "/api/webhooks/", "!{d15-21}/{w40+}", anywhere},
    {"teams_webhook", "webhook.office.com/webhookb2/", "!{x36+}/IncomingWebhook/{l32}/{x36}", anywhere},
    {"telegram_token", ":AA", "{w33}", anywhere, "{d8-10}"},
    {"telegram_token", ":AA", "{w33}", anywhere, "bot{d8-10}"},
    {"sendgrid_key", "SG.", "{w16-32}.{w16-64}"},
    {"twilio_key", "SK[0123456789abcdef]", "{h31}"},
    {"service_token", "[0123456789abcdef]-us[0123456789]", "{d0-1}", anywhere, "{h31}"},  // Mailchimp
    {"service_token", "xkeysib-", "{h64}-{a16}"},
    {"service_token", "re_", "{a8}_{a24}", generic},  // Resend
    // Payments and shops
    {"stripe_key", "[sr]k_live_|[sr]k_test_|[sr]k_prod_", "{a16+}"},
    {"stripe_key", "whsec_", "{b24+}{=0-2}"},
    {"service_token", "EAA[ACM]", "{w56+}"},
    {"service_token", "shppa_|shpat_|shpca_|shpss_|shpua_", "{H32}"},
    {"service_token", "duffel_live_|duffel_test_", "{w43}"},
    {"service_token", "live_", "{w40}", generic},  // GoCardless
    {"service_token", "FLWSECK_TEST-|FLWSECK-", "{l12+}"},
    {"service_token", "EZ[AT]K", "{a54}"},
    // Infrastructure
    {"vault_token", "hv[sbr].", "{w24+}"},
    {"service_token", ".atlasv1.", "{w60-80}", anywhere, "{a14}"},
    {"service_token", "dapi", "{h32}{-0-1}{d0-1}"},
    {"service_token", "tskey-", "{l3-10}-{w16+}"},
    {"service_token", "pscale_tkn_|pscale_oauth_|pscale_pw_", "{q32-64}"},
    {"service_token", "fm1[ar]_|fm2_|glc_|sntrys_|ops_eyJ|eyJrIjoi", "{g32+}"},
    {"service_token", "fo1_|sha256~", "{w43}"},
    {"service_token", "4b1d", "{a38}", generic},  // ClickHouse
    {"service_token", "glsa_", "{a32}_{h8}"},
    {"service_token", "dt0[cs]01.", "{a24}.{a64}"},
    {"service_token", "v1.0-", "{h24}-{h146}"},  // Cloudflare
    {"service_token", "NRJS-", "{h19}"},
    {"service_token", "NRII-", "{w32}"},
    {"service_token", "NRAK-", "{U27}"},
    {"service_token", "dnkey-", "{l26}-{l52}"},
    {"service_token", "tk-us-", "{w48}"},
    {"service_token", "[ps]at.", "{w22}.{a24}.{a20}", generic},  // Harness
    {"service_token", "API-", "{U26}", generic},                 // Octopus
    {"service_token", ".acc_|.acc-", "{x10-32}.!{g30-120}", anywhere},
    {"service_token", "_mmk", "", anywhere, "{a6}_{a29}"},
    // Offices and design
    {"service_token", "secret_", "{a43}", generic},  // Notion
    {"service_token", "figd_", "{w36+}"},
    {"service_token", "sl.", "{q130+}", generic},  // Dropbox
    {"service_token", "A3-", "{U6}-{U11}-{U5}-{U5}-{U5}", generic | unproved},
    {"service_token", "A3-", "{U6}-{U6}-{U5}-{U5}-{U5}-{U5}", generic | unproved},
    {"service_token", "p8e-", "{l32}", generic},
    {"service_token", "PMAK-", "{h24}-{h34}"},
    {"service_token", "tfp_", "{q40-70}"},
    {"service_token", "rdme_", "{l70}"},
    {"service_token", "fio-u-", "{q64}"},
    {"service_token", "[ps]k.eyJ", "{w20+}.{w22}"},  // Mapbox
    {"service_token", "sm_aat_|sm_pat_|sm_sat_", "{a16}"},
    {"service_token", "ZXlK", "{g70+}", generic},  // a JWT in Base64
    // Hashes of passwords
    {"password_hash", "$6$|$5$|$1$|$apr1$", "!{c0-16}${c22-86}", anywhere},
    {"password_hash", "$6$rounds=|$5$rounds=", "{d1-9}$!{c0-16}${c43-86}", anywhere},
    {"password_hash", "$y$|$gy$|$7$", "!{c1-12}${c8-40}${c43}", anywhere},
    {"password_hash", "$2[abxy]$", "!{d2}${c53}", anywhere},
    {"password_hash", "{SHA}|{SSHA}|{SSHA256}|{SSHA512}", "!{b26+}{=0-2}", anywhere},
    {"password_hash", "$argon2id$|$argon2i$|$argon2d$",
     "v={d1-3}$!m={d1-9},t={d1-4},p={d1-4}${b11-64}${b16+}", anywhere},
    {"password_hash",
     "pbkdf2_sha256$|pbkdf2_sha1$|pbkdf2_sha512$|pbkdf2:sha256:|pbkdf2:sha512:|$pbkdf2-sha256$|"
     "$pbkdf2-sha512$|scrypt:32768:8:",
     "{d1-9}$!{c8-64}${p20+}", anywhere},
    // By place
    {"url_password", "://", "", anywhere, "", find_url_password},
    {"curl_password", "curl ", "", 0, "", find_option},
    {"command_password",
     "http |https |httpie |mysql|mariadb|sshpass|redis-cli|docker login|az login|podman login|registry login|"
     "skopeo login|mongo|sqlcmd|zip |mosquitto_|cqlsh|ipmitool|7z "
     "|lftp|smbclient|ldapsearch|ldapmodify|ldapadd",
     "", anywhere, "", find_option},
    {"authorization", "bearer ", "!{p8+}", any_case | wordless},
    {"authorization", "authorization", "~{A1-8} !{p8+}", any_case | anywhere | wordless},
    {"authorization", "authorization", "~!{p16+}", any_case | anywhere | wordless},
    {"authorization", "\"auth", "~!{b8+}{=0-2}", anywhere | wordless},  // Docker
    {"cookie", "cookie|sessionid=|phpsessid=|connect.sid=", "", any_case | anywhere, "", find_cookie},
    {"pgpass", ":543[0123456789]:|:6432:|:*:", "{f1-64}:{A1}{f0-63}:!{v4-128}", anywhere | unproved,
     "{t1-128}"},
    {"pgpass", ":543[0123456789]:|:*:", "{f1-64}:{A1}{f0-63}:!{v4-128}", anywhere | unproved, "*"},
    // .netrc
    {assignment_rule, "password", "{W1-16}!{v4+}", unproved | wordless,
     "machine{W1-16}{v1-128}{W1-16}login{W1-16}{v1-128}{W1-16}"},
    {assignment_rule, "password", "{W1-16}!{v4+}", unproved | wordless,
     "default{W1-16}login{W1-16}{v1-128}{W1-16}"},
    {assignment_rule, "identified by ", "{Q1-8}!{v8+}", any_case | wordless},
    {assignment_rule, "auth=(|BasicAuth(|NetworkCredential(|WiFi.begin(",
     "{Q1-8}{f1-64}{Q1-8},{ 0-1}{Q1-8}!{f8+}", anywhere | wordless},
    {assignment_rule,
     "pass|pwd|psk|masterauth|secret|token|_key|-key|.key|api key|access key|secret key|private "
     "key|encryption "
     "key|signing "
     "key|"
     "master key|auth "
     "key|apikey|accesskey|secretkey|privatekey|encryptionkey|signingkey|masterkey|authkey|_auth",
     "", any_case | anywhere, "", find_assignment},
    {assignment_rule, "Key", "", anywhere, "", find_assignment},
};

#undef UUID
#undef PEM

}  // namespace

std::span<const Rule> rules() { return table; }

Shape::Shape(std::string_view written) {
  for (std::size_t at = 0; at < written.size(); ++at) {
    if (written[at] != '{') {
      pieces_.push_back({written[at], one_of(written[at], "~!") ? "~" : ""});
      continue;
    }
    const char* const end = written.data() + written.find('}', at);
    Piece piece{written[at + 1]};
    any_word(sets, [&](std::string_view one) {
      if (one[0] == piece.name) piece.members = one.substr(1);
      return one[0] == piece.name;
    });
    const char* next = std::from_chars(written.data() + at + 2, end, piece.min).ptr;
    piece.max = next < end && *next == '+' ? endless : piece.min;
    if (next < end && *next == '-') std::from_chars(next + 1, end, piece.max);
    pieces_.push_back(piece);
    at = static_cast<std::size_t>(end - written.data());
  }
}

bool Shape::Piece::has(char c) const {
  if (members.empty()) return c == name;
  if (is_letter(c))
    return one_of(is_lower(c) ? 'l' : 'U', members) ||
           (is_hex(c) && one_of(is_lower(c) ? 'h' : 'H', members));
  return one_of(c, members) || one_of(is_digit(c) ? 'd' : one_of(c, " \t\r\n") ? 'W' : c, members);
}

bool Shape::matches(std::string_view text, std::size_t at, Range& secret) const {
  constexpr std::size_t endless_bytes = 256;
  for (const Piece& piece : pieces_) {
    if (piece.members == "~" && piece.name == '!') {
      secret.begin = at;
    } else if (piece.members == "~") {
      at = value_behind(text, at);
      if (at == text.npos) return false;
    } else {
      const std::size_t max = piece.max == endless ? piece.min + endless_bytes : piece.max;
      const std::size_t begin = at, last = std::min(text.size(), at + max);
      while (at < last && piece.has(text[at])) ++at;
      if (at - begin < piece.min) return false;
    }
  }
  secret.end = at;
  return true;
}

bool Shape::matches_before(std::string_view text, std::size_t at, Range& secret) const {
  for (auto piece = pieces_.rbegin(); piece != pieces_.rend(); ++piece) {
    const std::size_t end = at, first = end - std::min<std::size_t>(end, piece->max);
    while (at > first && piece->has(text[at - 1])) --at;
    if (end - at < piece->min) return false;
  }
  secret.begin = at;
  return pieces_.empty() || may_begin(text, at, generic);
}

std::size_t Shape::extend(std::string_view text, std::size_t end) const {
  while (!is_exact() && end < text.size() && pieces_.back().has(text[end])) ++end;
  return end;
}

bool Shape::is_long_mixed() const {
  constexpr std::uint16_t long_bytes = 30;
  return !pieces_.empty() && one_of(pieces_.back().name, "aw") && pieces_.back().min >= long_bytes;
}

bool find_shape(const Rule& rule, const Shape& shape, const Shape& before, std::string_view text,
                std::size_t at, std::size_t length, Range& secret) {
  if (!before.matches_before(text, at, secret) || !shape.matches(text, at + length, secret)) return false;
  const std::size_t from = rule.before.empty() ? std::max(secret.begin, at + length) : secret.begin;
  while (secret.end > from && text[secret.end - 1] == '.') --secret.end;
  const std::string_view judged = text.substr(from, secret.end - from);
  const char next = secret.end < text.size() ? text[secret.end] : ' ';
  if (shape.is_exact() && (is_letter(next) || is_digit(next) || ((rule.flags & generic) && is_word(next))))
    return false;
  if (!(rule.flags & unproved) && !is_token(judged)) return false;
  if ((rule.flags & wordless) && is_made_of_words(judged) &&
      (!(rule.flags & unproved) || std::all_of(judged.begin(), judged.end(), is_lower)))
    return false;
  if (rule.flags & generic) {
    const bool has_digit = std::any_of(judged.begin(), judged.end(), is_digit);
    if (has_digit ? shape.is_long_mixed() && classes_of(judged) < 3 : is_made_of_words(judged)) return false;
  }
  secret.end = shape.extend(text, secret.end);
  return !is_placeholder(judged);
}

bool may_begin(std::string_view text, std::size_t at, unsigned flags) {
  if (at == 0 || (flags & anywhere)) return true;
  const char before = text[at - 1];
  if (!is_word(before) || (!(flags & generic) && (before == '_' || before == '-'))) return true;
  if (at >= 2 && text[at - 2] == '\\' && one_of(before, "nrtbfv")) return true;
  if (at >= 3 && text[at - 3] == '%' && is_hex(text[at - 2]) && is_hex(before)) return true;
  if (at >= 6 && text.substr(at - 6, 2) == "\\u" && std::all_of(&text[at - 4], text.data() + at, is_hex))
    return true;
  if (before != 'm') return false;
  // ESC [ digits and semicolons m
  std::size_t begin = at - 1;
  while (begin > 0 && at - begin < 16 && (is_digit(text[begin - 1]) || text[begin - 1] == ';')) --begin;
  return begin > 0 && text[begin - 1] == '[';
}

}  // namespace earshot::redact
