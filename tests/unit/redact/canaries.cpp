#include "canaries.hpp"

namespace earshot::test {
namespace {

const std::string letters =
    "Zk3Qw9Lr7Tn5Xc1Vb8Hj6Mf4Pd2SgYa0RoUeNiBtKv";  // 43 bytes, letters and digits mixed
const std::string lower_hex = "9f3c1e7a5b2d8064c7e19a3f5d0b8264e1c7a93f5b2d8064c7e19a3f5d0b8264";  // 64
const std::string line64 = "MIIEpAIBAAKCAQEA7Zk3Qw9Lr7Tn5Xc1Vb8Hj6Mf4Pd2SgYa0RoUeNiBtKv/x+Qd";

std::string begin_key(const std::string& kind) { return "-----BEGIN " + kind + "PRIVATE" + " KEY-----"; }
std::string end_key(const std::string& kind) { return "-----END " + kind + "PRIVATE" + " KEY-----"; }

std::vector<Canary> make() {
  std::vector<Canary> all = {
      {"private_key", "", begin_key("RSA ") + "\n" + line64 + "\n" + line64 + "\n" + end_key("RSA "), ""},
      {"private_key", "", begin_key("") + "\\n" + line64 + "\\n" + line64 + "\\n" + end_key(""), "\\n"},
      {"private_key", "", begin_key("OPENSSH ") + "\n" + line64 + "\n" + line64.substr(0, 41), ""},  // cut
      {"private_key", "     1\t", begin_key("EC ") + "\n     2\t" + line64 + "\n     3\t" + end_key("EC "),
       ""},
      {"aws_access_key", "",
       "AKIA"
       "Q3EGT5ZK7XWN2LMP",
       ""},
      {"aws_access_key", "aws_access_key_id = ",
       "ASIA"
       "Q3EGT5ZK7XWN2LMP",
       ""},
      {"aws_secret_key", "aws_secret_access_key = ", letters.substr(0, 38) + "/+", ""},
      {"aws_secret_key", "\"SecretAccessKey\": \"", letters.substr(0, 38) + "/+", "\""},
      {"google_api_key", "", "AIza" + letters.substr(0, 35), ""},
      {"google_oauth", "",
       "ya29"
       "." +
           letters,
       ""},
      {"google_oauth", "",
       "GOCSPX"
       "-" +
           letters.substr(0, 28),
       ""},
      {"azure_key", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=", letters + letters + "==",
       ";EndpointSuffix=core.windows.net"},
      {"azure_key", "Endpoint=sb://x/;SharedAccessKeyName=root;SharedAccessKey=", letters + "=", ""},
      {"azure_key", "https://x.blob.core.windows.net/c?sv=2022-11-02&sig=", letters + "%3D", "&se=1"},
      {"github_token", "",
       "ghp"
       "_" +
           letters.substr(0, 36),
       ""},
      {"github_token", "",
       "gho"
       "_" +
           letters.substr(0, 36),
       ""},
      {"github_token", "",
       "ghu"
       "_" +
           letters.substr(0, 36),
       ""},
      {"github_token", "",
       "ghs"
       "_" +
           letters.substr(0, 36),
       ""},
      {"github_token", "",
       "ghr"
       "_" +
           letters.substr(0, 36),
       ""},
      {"github_token", "",
       "github"
       "_pat_" +
           letters.substr(0, 22) + "_" + letters + "ab3d",
       ""},
      {"gitlab_token", "",
       "glpat"
       "-" +
           letters.substr(0, 20),
       ""},
      {"slack_token", "",
       "xoxb"
       "-263594206564-2343594206574-" +
           letters.substr(0, 24),
       ""},
      {"slack_token", "",
       "xoxp"
       "-263594206564-2343594206574-" +
           lower_hex.substr(0, 32),
       ""},
      {"slack_webhook", "https://hooks.slack.com/services/", "T02AB3CDE/B04FG5HIJ/" + letters.substr(0, 24),
       ""},
      {"stripe_key", "",
       "sk"
       "_live_" +
           letters.substr(0, 24),
       ""},
      {"stripe_key", "",
       "rk"
       "_live_" +
           letters.substr(0, 24),
       ""},
      {"stripe_key", "",
       "sk"
       "_test_" +
           letters.substr(0, 24),
       ""},
      {"openai_key", "",
       "sk"
       "-" +
           letters + "Qd9sK",
       ""},
      {"openai_key", "",
       "sk"
       "-proj-" +
           letters + "_-" + letters,
       ""},
      {"anthropic_key", "",
       "sk"
       "-ant-api03-" +
           letters + "-" + letters + "AA",
       ""},
      {"npm_token", "//registry.npmjs.org/:_authToken=",
       "npm"
       "_" +
           letters.substr(0, 36),
       ""},
      {"pypi_token", "",
       "pypi"
       "-AgEIcHlwaS5vcmc" +
           letters + letters,
       ""},
      {"huggingface_token", "",
       "hf"
       "_" +
           letters.substr(0, 34),
       ""},
      {"sendgrid_key", "",
       "SG"
       "." +
           letters.substr(0, 22) + "." + letters,
       ""},
      {"twilio_key", "", "SK" + lower_hex.substr(0, 32), ""},
      {"telegram_token", "",
       "110201543"
       ":AA" +
           letters.substr(0, 33),
       ""},
      {"discord_token", "",
       "MTA5"
       "NDcyMzQ4OTEyMzQ1Njc4.Gh3kLm." +
           letters.substr(0, 38),
       ""},
      {"discord_webhook", "https://discord.com/api/webhooks/", "1094723489123456789/" + letters + letters,
       ""},
      {"digitalocean_token", "",
       "dop"
       "_v1_" +
           lower_hex,
       ""},
      {"vault_token", "",
       "hvs"
       "." +
           letters + letters,
       ""},
      {"groq_key", "",
       "gsk"
       "_" +
           letters + "Qd9sKx3Lm",
       ""},
      {"xai_key", "",
       "xai"
       "-" +
           letters + letters,
       ""},
      {"age_key", "",
       "AGE"
       "-SECRET-KEY-1Q3EGT5ZK7XWN2LMPQ3EGT5ZK7XWN2LMPQ3EGT5ZK7XWN2LMPQ3EGT5ZK7X",
       ""},
      {"jwt", "",
       "eyJ"
       "hbGciOiJIUzI1NiJ9.eyJ"
       "zdWIiOiIxMjM0NTY3ODkwIn0." +
           letters,
       ""},
      {"jwt", "",
       "eyJ"
       "hbGciOiJIUzI1NiJ9.eyJ"
       "zdWIiOiIxMjM0NTY3ODkwIn0",
       ""},  // cut
      {"url_password", "postgres://app:", "w9Lr7Tn5Xc1V", "@db.internal:5432/app"},
      {"url_password", "redis://:", "w9Lr7Tn5-Xc1V", "@cache:6379"},
      {"url_password", "https://user:", "p%40ss!w0rdLong", "@example.com/x"},
      {"url_password", "https://user:", "w9/Lr7?Tn5#Xc,1V", "@example.com/x"},
      {"url_password", "amqp://app:", "/w9Lr7Tn5Xc1V", "@queue"},
      {"curl_password", "curl -sS -u keeper:", "w9Lr7Tn5Xc", " https://api.example/x"},
      {"curl_password", "curl --user 'keeper:", "w9Lr7Tn5Xc", "' https://api.example/x"},
      {"curl_password", "curl -X POST \\\n  --user=keeper:", "w9Lr7Tn5Xc", " \\\n  https://api.example/x"},
      {"private_key", "LC_ALL=C tail key.pem\n", line64 + "\n" + line64 + "\n" + end_key("RSA "), ""},
      {"private_key", "  12\t", line64 + "\n  13\t" + line64 + "\n  14\t" + end_key(""), ""},
      {"private_key", "client-key-data: ", "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt" + letters + letters, ""},
      {"service_token", "",
       "lin"
       "_api_" +
           letters.substr(0, 40),
       ""},
      {"gitlab_token", "", "GR1348941" + letters.substr(0, 20), ""},
      {"teams_webhook", "https://x.webhook.office.com/webhookb2/",
       lower_hex.substr(0, 36) + "/IncomingWebhook/" + lower_hex.substr(0, 32) + "/" +
           lower_hex.substr(0, 36),
       ""},
      {"command_password", "mysql -u root -p", "w9Lr7Tn5Xc", " shop"},
      {"command_password", "sshpass -p '", "w9Lr7Tn5Xc", "' ssh host"},
      {"command_password", "http -a keeper:", "w9Lr7Tn5Xc", " api.example"},
      {"cookie", "Set-Cookie: sessionid=", lower_hex.substr(0, 32), "; Path=/; HttpOnly"},
      {"cookie", "Cookie: theme=dark; sid=", letters, "; lang=en"},
      {"pgpass", "db.internal:5432:shop:keeper:", "w9Lr7Tn5Xc", ""},
      {"password_hash", "root:$6$", "Zk3Qw9Lr$" + letters + letters, ":19000:0:99999:7:::"},
      {"password_hash", "keeper:$2y$", "10$" + letters + "Vb8Hj6Mf4Pd", ""},
      {"url_password", "https://", letters, "@github.com/a/b"},
      {"private_key", "Private-Lines: 2\n", line64 + "\n" + line64 + "\nPrivate", "-MAC: d41d8cd98f"},
      {"authorization", "{\"auths\":{\"r.example\":{\"auth\": \"", "a2VlcGVyOm9pbA==", "\"}}}"},
      {"authorization", "Authorization: ", letters, ""},
      {"authorization", "Authorization: Bearer ", letters, ""},
      {"authorization", "authorization: Basic ", "dXNlcjpwYXNzd29yZA==", ""},
      {"authorization", "-H \"Authorization: token ", letters, "\""},
      {"authorization", "{\"Authorization\": \"Bearer ", letters, "\"}"},
      {"authorization", "{\\\"Authorization\\\":\\\"Bearer ", letters, "\\\"}"},
      {"authorization", "use bearer ", letters, " for it"},
  };
  const std::string value = "w9Lr7Tn5Xc";
  for (const auto& [before, after] :
       std::vector<std::pair<std::string, std::string>>{{"password=", ""},
                                                        {"password: ", ""},
                                                        {"password = \"", "\""},
                                                        {"passwd='", "'"},
                                                        {"DB_PASSWORD=", "\n"},
                                                        {"\"password\": \"", "\""},
                                                        {"{\"user\":\"a\",\"pwd\":\"", "\"}"},
                                                        {"{\\\"password\\\":\\\"", "\\\"}"},
                                                        {"{\\\\\\\"password\\\\\\\":\\\\\\\"", "\\\\\\\"}"},
                                                        {"client_secret: '", "'"},
                                                        {"clientSecret: \"", "\","},
                                                        {"access_token=", "&expires=3600"},
                                                        {"auth_token=", ";"},
                                                        {"export GITHUB_TOKEN=", ""},
                                                        {"api_key=\"", "\""},
                                                        {"apiKey: '", "'"},
                                                        {"X-Api-Key: ", ""},
                                                        {"API key: ", "."},
                                                        {"private_key=", ""},
                                                        {"SECRET_KEY = '", "'"},
                                                        {"const token: string = \"", "\";"},
                                                        {"api_key: Optional[str] = \"", "\""},
                                                        {"'password' => '", "'"},
                                                        {"token := \"", "\""},
                                                        {"os.environ[\"API_TOKEN\"] = \"", "\""},
                                                        {"**Password:** ", ""},
                                                        {"password: `", "`"},
                                                        {"vault login --token ", ""},
                                                        {"mysql --password=", " -u root"},
                                                        {"b\\nPASSWORD=", "\\nUSER=x"},
                                                        {"secret_key_base: ", ""},
                                                        {"_authToken=", ""},
                                                        {"passphrase: b\"", "\""},
                                                        {"{\"api_keys\":[\"", "\"]}"},
                                                        {"password: |\n  ", ""},
                                                        {"define('DB_PASSWORD', '", "');"},
                                                        {"variable \"db_password\" { default = \"", "\" }"},
                                                        {"<password>", "</password>"},
                                                        {"- name: DB_PASSWORD\n  value: ", ""},
                                                        {"wget --http-password ", " x"},
                                                        {"Server=db;Password=", ";"},
                                                        {"https://x.example/?api_key=", "&b=1"}})
    all.push_back({"secret", before, value, after});
  all.push_back(
      {"secret", "password: \"", "correct!horse#battery", "\""});  // letters and signs, between quotes
  all.push_back({"secret", "PASSWORD=", "SuperSecret123", ""});
  all.push_back({"secret", "password=", "P@ssw0rd.com", ""});
  all.push_back({"secret", "\"password\": ", "4711081599", ","});
  all.push_back({"secret", "password: \"", "4711081599", "\""});
  all.push_back({"secret", "password: [", value, "]"});
  all.push_back({"secret", "token = (", value, ")"});
  all.push_back({"secret", "password: \"[", value, "]\""});
  all.push_back({"secret", "client-key-data: ", letters + letters, ""});
  all.push_back({"secret", "machine api.example login keeper password ", value, ""});
  all.push_back({"secret", "default login keeper password ", value, ""});
  all.push_back({"secret", "password: ", "hunter2abc", ""});
  all.push_back({"secret", "export STRIPE_KEY=", letters, ""});
  all.push_back({"secret", "ansible_ssh_pass: ", "gXiPZoWeMeav", ""});  // letters only
  all.push_back({"secret", "tool --password=", "RjMcIFLpuch", " x"});
  all.push_back(
      {"secret", "{\"password\":\"", "w9Lr7Tn5Xc\\\"Vb8Hj6Mf4P", "\"}"});  // an escaped quote is no end
  return all;
}

}  // namespace

const std::vector<Canary>& canaries() {
  static const std::vector<Canary> all = make();
  return all;
}

const std::vector<std::string>& near_misses() {
  static const std::vector<std::string> all = {
      // one a rule, nearly right
      begin_key("RSA ") + " is how such a file begins",
      "if (line == \"" + begin_key("") + "\") inside = true; else if (line == \"" + end_key("") +
          "\") inside = false;",
      "-----BEGIN PUBLIC KEY-----\n" + line64 + "\n-----END PUBLIC KEY-----",
      "-----BEGIN CERTIFICATE-----\n" + line64 + "\n-----END CERTIFICATE-----",
      "AKIA"
      "SHORT",
      "AKIA"
      "q3egt5zk7xwn2lmp",
      "the ASIAN"
      "MARKETSINTHEWEST",
      "aws_secret_access_key = os.getenv('X')",
      "AIza"
      "tooshort",
      "ya29"
      ".short",
      "GOCSPX"
      "-x",
      "AccountKey=<key>", "AccountKey=...", "&sig=abc",
      "ghp"
      "_short",
      "ghp_$TOKEN",
      "github"
      "_pat_xxxxxxxxxxxxxxxxxxxxxxxxxxxx",
      "glpat"
      "-xxxxxxxxxxxxxxxxxxxx",
      "glpat-your-token-goes-here-now",
      "xoxb"
      "-your-bot-token-here",
      "https://hooks.slack.com/services/T0/B0/x",
      "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
      "sk"
      "_live_short",
      "pk"
      "_live_" +
          letters.substr(0, 24),
      "sk"
      "_test_xxxxxxxxxxxxxxxxxxxxxxxx",
      "sk"
      "-short",
      "task-" + letters, "sk-loading-indicator-wrapper-element",
      "sk"
      "-ant-your-key-goes-right-here",
      "sk"
      "-ant-xxxxxxxxxxxxxxxxxxxxxxxx",
      "npm_config_registry_is_what_npm_reads_from_env", "npm_package_version", "pypi-server",
      "hf_hub_download(repo_id)", "SG.short.x", "SKIP0123", "SK" + lower_hex.substr(0, 31),
      "SK" + lower_hex.substr(0, 33), "12345:AA", "MTA5.x.y", "https://discord.com/api/webhooks/123/x",
      "dop_v1_x", "hvs.example", "gsk_short", "xai-grok-2-latest", "eyJ.eyJ.x", "eyJhbGciOiJIUzI1NiJ9",
      "http://localhost:8080/a@b", "git@github.com:a/b.git", "https://user@example.com",
      "https://user:${PASSWORD}@example.com", "https://user:<password>@example.com",
      "https://user:password@example.com", "https://user:***@example.com", "https://[::1]:8080/",
      "http://a:b c@d", "http://localhost:8080/x?mail=a@b", "https://host:443/@scope/pkg",
      "http://host:port/path@x", "mongodb://h1:27017,h2:27017/db?x=a@b", "docker run -u 1000:1000 x",
      "curl -u user:$TOKEN https://x.example", "curl https://x.example | sort -u a:bcdef",
      "curl https://x.example\nid -u root:wheel", "curl -u keeper x:yz1", "the login page password reset",
      "machine learning login page password reset", "login keeper password wick", "password: 12345",
      "tokens: [15496, 995]", "\"auth\": \"required\"", "\"author\": \"dXNlcjpwYXNz\"",
      "password: [hash2Password(x)]", "token = (await fetch2Token())", "api_key: [",
      "secret_ids = (value1, value2)", "api_endpoint_v2_configuration_for_all_tenants",
      "live_streaming_configuration_manager_for_channels", "key-value-store",
      "API-COMPATIBLE-WITH-ALL-CLIENTS", "sha256~short", "pul-request", "EAAMarket", "ssl.create",
      end_key("RSA ") + " ends such a file", "x\n" + end_key("") + "\n", "deploy-us1", "v1.0-rc1", "t1.x.y",
      "sl.close()", "pat.match(x)", "curl --user-agent 'a:bcdefg' https://x.example",
      "Authorization: required-for-all", "Authorization: Bearer $TOKEN", "Authorization: Bearer <token>",
      "Authorization: Bearer ${TOKEN}", "Authorization: Bearer your-token-here",
      "Authorization: Basic authentication", "Bearer authentication is described there",
      "a bearer_token_authentication",
      // code and prose with the words
      "password = get_password()", "password = getPassword2(user)", "token: str",
      "token: Optional[str] = None", "tokens: 1234", "\"max_tokens\": 4096", "max_tokens=100000",
      "input_tokens: 12345678", "if token == expected", "if (token != expected1234) {", "password: ********",
      "password=$PASSWORD", "password=${PASSWORD:-abc123def}", "PASSWORD=\"$DB_PASS1\"",
      "TOKEN=$(cat /run/secrets/t0ken)", "token: <your-token>", "token=YOUR_TOKEN_HERE",
      "token = process.env.API_TOKEN2", "token = os.environ[\"TOKEN_1\"]", "api_key = config.keys.openai2",
      "token: null", "password: true", "password: required", "\"password\": \"required|string|min:8\"",
      "secret: undefined", "password: 'Password is required'", "\"token\": \"Invalid token 1234\"",
      "token: Uint8Array", "secret: bytes32;", "private_key: Ed25519PrivateKey",
      "token = oauth2_client_token", "token = \"oauth2_access_token\"", "token=base64url",
      "token_type: \"bearer\"", "password_hash_rounds = 12", "password: &str", "token: Vec<u8>",
      "secret: arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db",
      "secret: projects/p1/secrets/db/versions/1", "token: https://example.com/oauth2/token1",
      "token_url=https://a.example/t0ken/abc123", "PWD=/home/u1/build-x86_64-a8f7",
      "private_key: ~/.ssh/id_ed25519", "private_key: ./certs/a8f7c9.pem", "private_key: certs/a8f7c9.pem",
      "\"jsonwebtoken\": \"^10.0.2-rc.1\"", "token: 1.2.3-beta4", "token: 2024-01-01T10:00:00Z",
      "--color-token: #aabbcc12", "secret: user1@example.com", "token => token.id2Name",
      "(token) => verify2Fa(token)", "Token::new2Value(x)", "token::Kind2Name", "password := readPassword1()",
      "\"token=\" + t0kenValue1 + \"&x=1\"", "`token=${tok3nValue}`", "f\"token={tok3n_value}\"",
      "'token': '%(tok3n)s'", "\"token\": \"{{ tok3n_value }}\"", "token: !Ref MyS3cretName",
      "password: \"^(?=.*[A-Z])(?=.*[0-9]).{8,}$\"", "pageToken: CAUQAA1xyz9", "next_page_token=abc123def456",
      "nextToken: \"abc123def456\"", "eos_token: \"<|endoftext|>\"", "password: [redacted:secret]",
      "password=[redacted:aws_access_key]", "\"password\": \"hunter2\"", "password: short1",
      "bypass: abc123def", "redis://[[USERNAME:]PASSWORD@]HOST[:PORT]",
      "x.Token = y$google3$z$css$tokens_Token;", "Authorization: Digest username=\"user\"",
      "\"subject_token\": \"subject_token_0\"", "Next page token: eav1OzQB0OM8rL",
      "PASSWORD = '##invalid-password##'", "the password is not here", "secret santa: 12 gifts",
      "--token TOKEN", "--password-stdin", "--token=<t0ken123>", "token: \"value1\"", "password: password1",
      "secret = value1234567890()", "password:\n  x: 1", "api key: see the docs",
      "credentials: 'same-origin'", "type=\"password\" name=\"pw1234567\"", "password: string1 | undefined",
      "token: T | undefined2", "secret-token:latest1", "pass: 12 tests", "s.token = tok;"};
  return all;
}

const redact::Redactor& redactor() {
  static const redact::Redactor one;
  return one;
}

std::string clean(std::string_view text) {
  std::string scratch;
  return std::string(redactor().clean(text, scratch));
}

bool leaks(std::string_view shown, const Canary& canary) {
  constexpr std::size_t distinct = 8;
  // The prefix and context of a kind of secret are not secret.
  constexpr std::size_t base64_header = 24;
  const std::size_t known = canary.rule == "private_key" ? std::min(canary.secret.find("MIIE"), base64_header)
                            : canary.secret.size() > 20  ? 4
                                                         : 0;
  const std::string_view secret = std::string_view(canary.secret).substr(known);
  for (std::size_t at = 0; at + distinct <= secret.size(); ++at) {
    const std::string_view piece = secret.substr(at, distinct);
    if (piece.find_first_of("- \n\\") == std::string_view::npos &&
        shown.find(piece) != std::string_view::npos)
      return true;
  }
  return false;
}

std::string prose(std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += "the keeper lit the lamp and wrote the log, as on every evening; ";
  return text;
}

}  // namespace earshot::test
