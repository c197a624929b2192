// Kinds of secrets by their places, and texts that resemble them. The templates are those of samples.hpp.
#include <catch2/catch.hpp>

#include "base/json_rewrite.hpp"
#include "base/json_writer.hpp"
#include "canaries.hpp"
#include "samples.hpp"

namespace earshot::test {
namespace {

// Each random part is hidden, whether the text is shown as it is or is a string in JSON, nested twice.
constexpr std::string_view secrets[] = {
    // Names
    "export STRIPE_KEY={a32}", "STRIPE_KEY={h32}", "MAPS_KEY: {a24}", "SEGMENT_WRITE_KEY=\"{a40}\"",
    "const stripeKey = \"{a32}\";", "{\"OPENAI_KEY\": \"{a40}\"}", "license-key: {a32}", "APP_KEY = '{a24}'",
    "DBPASS={a12}", "dbpass={m12}", "DB_PASS={s12}", "[db]\\npass = {a12}\\nuser = app",
    "[db]\\npassword={m12}\\n", "smtp_password = {a12}", "ansible_ssh_pass: {m12}",
    "  ansible_become_pass: {a12}\\n", "db_password: {m16}", "spring.datasource.password={m12}",
    "spring:\\n  datasource:\\n    password: {m12}\\n", "passwd: {a12}", "wpa_psk={a16}", "psk=\"{m12}\"",
    "requirepass={a16}", "DB_PASSWORD_PROD={a12}", "admin_password2 = \"{a12}\"",
    "PGPASSWORD={s12} psql -h db", "MYSQL_PWD={m12} mysql", "set PASSWORD={s12}", "ENV API_TOKEN={s16}",
    "docker run -e POSTGRES_PASSWORD={s12} postgres", "export CLIENT_SECRET={s16}", "$password = '{s12}';",
    "password = \"{s12}\"", "password: '{m12}'", "\"password\": \"{m10}\"", "password=`{m12}`",
    "os.environ[\"DB_PASSWORD\"] = \"{m12}\"", "connect(user=\"a\", password=\"{m12}\")",
    "api_key: \"{m12}\"", "apiKey = '{m16}'", "'secret' => '{a16}'", "token := \"{a16}\"",
    "- name: DB_PASSWORD\\n  value: {m12}", "{\"name\": \"API_TOKEN\", \"value\": \"{a16}\"}",
    "HEROKU_API_KEY={uuid}", "secret_key_base: {h64}",
    // Lists and blocks
    "{\"api_keys\":[\"{a24}\",\"{a24}\"]}", "{\"passwords\":[\"{a10}\", \"{a12}\"]}",
    "{\"tokens\":[\"{a32}\"]}", "{\"access_tokens\": [\\n  \"{a32}\",\\n  \"{a32}\"\\n]}",
    "{\"passwords\":[{d8}]}", "{\"secrets\": ['{a24}']}",
    "{\"credentials\":{\"user\":\"app\",\"pass\":\"{a11}\"}}", "{\"credentials\":{\"pass\":\"{m11}\"}}",
    "password: |\\n  {m12}\\nuser: app", "db:\\n  password: >-\\n    {a16}\\n", "token: |-\\n  {a40}\\n",
    "<password>{m12}</password>", "<dbPassword>{a12}</dbPassword>", "<c:password>{s12}</c:password>",
    "<apiKey>{a24}</apiKey>", "<property name=\"password\" value=\"{m12}\"/>",
    "<entry key=\"password\">{a12}</entry>", "define('DB_PASSWORD', '{m12}');",
    "define( \"AUTH_SECRET\", \"{a32}\" );", "config.set('password', '{a12}')",
    "variable \"db_password\" {\\n  type    = string\\n  default = \"{m12}\"\\n}",
    "variable \"api_token\" { default = \"{a24}\" }",
    // Options
    "tool --password={m12}", "tool --password={s12}", "tool --db-password {a12} x",
    "wget --http-password {m12} x", "tool -password {m12}", "tool --token={s16}", "tool --api-key {a16} x",
    "keytool -storepass {m12} -list", "mysql -u root -p{m12} shop", "mysql -uroot -p'{a12}'",
    "mysqldump -h db -p{s12} --all", "mariadb -p\"{a12}\"", "sshpass -p {s12} ssh a@b",
    "sshpass -p '{m12}' scp x y", "sshpass -p{a12} ssh a@b", "redis-cli -h c -a {s12} ping",
    "docker login -u me -p {m12} registry.example", "podman login -p {s12} quay.example",
    "curl -u keeper:{s12} https://api.example", "curl -sSu \"keeper:{m12}\" https://api.example",
    "curl --proxy-user keeper:{a12} x", "http -a keeper:{m12} api.example",
    "https --auth keeper:{s12} GET api.example", "mongosh -u app -p {m12} db", "unzip -P {a12} a.zip",
    // Places
    "https://{a40}@github.com/o/r.git", "git clone https://{h40}@git.example/o/r",
    "https://{a36}:x-oauth-basic@github.com", "https://oauth2:{a20}@gitlab.example/a",
    "SENTRY_DSN=https://{h32}@o45.ingest.sentry.io/12", "dsn: 'https://{h32}:{h32}@sentry.example/4'",
    "https://x.example/?api_key={m12}&b=1", "GET /a?b=1&token={a16}",
    "jdbc:postgresql://h/d?user=a&password={m12}", "Server=db;User=sa;Password={m12};",
    "postgres://app:{s12}@db/x", "Cookie: sessionid={a32}", "Set-Cookie: session={h32}; Path=/; HttpOnly",
    "Cookie: theme=dark; sid={a24}; lang=en", "curl -H 'Cookie: PHPSESSID={l26}' x",
    "curl --cookie \"connect.sid=s%3A{a32}\" x", "JSESSIONID={U32}", "root:$6${c8}${c86}:19000:0:99999:7:::",
    "app:$6$rounds=5000${c16}${c86}:1:", "app:$y$j9T${c22}${c43}:19000:", "keeper:$2y$10${c53}",
    "keeper:$apr1${c8}${c22}", "\"hash\": \"$2b$12${c53}\"",
    "keeper:{SHA}{b27}=", "$argon2id$v=19$m=65536,t=3,p=4${b22}${b43}",
    "pbkdf2_sha256$600000${a22}${b43}=", "db.example:5432:shop:app:{m12}", "*:*:*:app:{a12}",
    "localhost:5433:*:app:{s12}",
    "PuTTY-User-Key-File-3: ssh-ed25519\\nPrivate-Lines: 1\\n{b64}\\nPrivate-MAC: 00\\n",
    "{b64}\\n{b48}\\nPrivate-MAC: 00\\n", "machine api.example login keeper password {m12}",
    // Tokens with a shape
    "xoxc-{d12}-{d12}-{d12}-{h64}", "xoxd-{a40}%2B{a40}%3D", "dckr_pat_{a27}", "sbp_{h40}", "r8_{a37}",
    "figd_{a40}", "pcsk_{a5}_{a63}", "tskey-auth-{a11}CNTRL-{a32}", "tskey-api-{a11}CNTRL-{a32}", "nfp_{a36}",
    "cio{a32}", "secret_{a43}", "fw_{a24}", "rnd_{a32}", "re_{a8}_{a24}", "nvapi-{a64}", "tvly-{a32}",
    "e2b_{h40}", "bkua_{h40}", "CCIPAT_{a22}_{h40}", "pat-na1-{uuid}", "sk-lf-{uuid}", "crsr_{h64}",
    "apify_api_{a36}", "tgp_v1_{a43}", "gsk_{a52}", "sb_secret_{a31}", "ATBB{a32}", "oy2{l43}", "phx_{a43}",
    "lin_oauth_{h64}", "waka_{uuid}",
    // SQL, files of settings, statements, code, commands
    "encryption.key={h64}", "<password type=\"plain\">{m12}</password>", "<ns:Password>{a12}</ns:Password>",
    "ALTER USER app WITH PASSWORD '{m12}';", "CREATE USER 'app'@'%' IDENTIFIED BY '{a12}';",
    "SET PASSWORD FOR 'root'@'localhost' = PASSWORD('{a12}');", "psql \"host=db user=app password={m12}\"",
    "ENV DB_PASSWORD {a12}", "ENV API_KEY {a32}", "setx API_TOKEN {a32}", "#define WIFI_PASSWORD \"{a12}\"",
    "#define API_KEY \"{a32}\"", "auth_pass {a10}\\n", "requirepass {a16}", "masterauth {a16}\\nport 1",
    "npm config set //registry.npmjs.org/:_authToken {a36}", "aws configure set aws_secret_access_key {b40}",
    "The password is {a12}.", "Password is `{a12}`", "the API key is {a32}", "| password | {a12} |",
    "**Password:** {a12}", "api_keys:\\n  - {a32}\\n  - {a32}\\n", "passwords:\\n  - {a12}\\n  - '{m12}'\\n",
    "{\"apiKeys\": {\"prod\": \"{a32}\", \"dev\": \"{a32}\"}}", "{\"encryption_keys\": [\"{h64}\"]}",
    "API_KEYS={a32},{a32}", "secrets = [\"{a32}\", \"{a32}\"]",
    "stringData:\\n  password: {m12}\\n  token: {a24}", "PRIVATE_KEY=0x{h64}",
    "var dbPassword string = \"{a12}\"", "user.setPassword(\"{m12}\")",
    "process.env.DB_PASSWORD || \"{m12}\"", "os.getenv(\"DB_PASSWORD\", \"{m12}\")",
    "requests.get(url, auth=(\"admin\", \"{a12}\"))", "new NetworkCredential(\"admin\", \"{a12}\")",
    "WiFi.begin(\"ssid\", \"{a12}\");", "<password><![CDATA[{a12}]]></password>", "+  password: \"{m12}\"",
    "-DB_PASSWORD={a12}", "https://api.telegram.org/bot{d10}:AA{a33}/sendMessage",
    "redis://:{a16}@cache:6379/0", "mongodb+srv://app:{m12}@cluster0.abc.example/x", "httpie -a user:{a12} x",
    "smbclient //h/s -U user%{a12}", "lftp -u user,{a12} sftp://h",
    "ldapsearch -x -D cn=admin -w {a12} -b dc=x", "openssl rsa -passin pass:{m12}",
    "mount -o username=a,password={a12} //h/s /mnt", "helm registry login -u me -p {a12} reg.example",
    "kubectl create secret generic x --from-literal=password={m12}",
    "ansible-playbook -e ansible_become_pass={s12} x", "curl -H \"X-API-Key: {a32}\" https://x",
    "curl -H 'PRIVATE-TOKEN: {a20}' https://x",
    "Proxy-Authorization: Basic {b20}==", "set-cookie: __Secure-next-auth.session-token={a100}; Path=/",
    "Cookie: laravel_session={b80}", "$pbkdf2-sha256$29000${c22}${c43}", "scrypt:32768:8:1${a16}${h128}",
    "pbkdf2:sha256:600000${a16}${h64}", "*:5432:*:app:{s12}"};

constexpr std::string_view harmless[] = {
    // Prefixes of tokens in names
    "live_migration_20240115_customer_orders_backfill", "ico-arrow-left-24px-filled-rounded-2x-dark",
    "cache.get(\"key-9e107d9d372bb6826bd81d3542a419d6\")", "4b1d9e107d9d372bb6826bd81d3542a419d69e1073",
    "re_compiled_patterns_for_everything", "secret_manager_client_for_all_the_projects_1",
    "fw_version_2024_01_15", "r8_unorm_texture_format_for_the_gpu_pass",
    "cio_read_whole_file_into_buffer_2024x", "tskey-not-a-key", "rnd_seed_2024_generator_for_test_1",
    "pul-request-template", "sbp_add_page_to_the_list", "nfp_total_of_2024",
    "sk-loadingIndicatorWrapperElementName", "xoxc-token-goes-here", "figd_your_token_goes_right_here_please",
    // Names of keys
    "access key = Ctrl+Alt+F12", "PRIMARY_KEY=id", "sort_key: created_at", "PARTITION_KEY=customer#42",
    "primary_key=True", "cache_key = f\"user:{id}\"", "cacheKey = \"user-profile-1234567890abcdef\"",
    "key={item.id}", "\"sortKey\": \"createdAt#2024\"", "translation_key: errors.password.too_short2",
    "hotkey: ctrl+shift+p", "foreign_key: users_id", "index_key = \"idx_users_2024_01_15_email\"",
    "event.key === 'Enter'",
    "public_key: \"AAAAC3NzaC1lZDI1NTE5AAAAIJ8n4k2vYt1Qw9Lr7Tn5Xc1Vb8Hj6Mf4Pd2SgYa0RoUe\"",
    "SSH_KEY=~/.ssh/id_ed25519", "sort_key = 3f2504e0-4f89-41d3-9a0c-0305e82c3301", "KeyError: 'token'",
    "RegEnumKey = win32api.RegEnumKey", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    // Digests, identifiers, data
    "secret: sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
    "commit 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12", "id: 3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    "\"integrity\": "
    "\"sha512-XlCmHk1LrV0YzM6eZPp1aG7D2uQ9nq3f8vB0sWc5kTtRjIhYgEoFdNaUwKxSbLyPmCqHzV4r7J2lO6i9n8M3uA==\"",
    "image: app@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "image: app:v1.2.3-20240101-abcdef1", "md5: 9e107d9d372bb6826bd81d3542a419d6",
    "data:image/"
    "png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5Er",
    // Code
    "the token: authentication2024flow", "const token = getToken()", "password: string",
    "if (password.length < 8)", "api_key=os.environ[\"API_KEY\"]", "password = os.getenv(\"DB_PASSWORD\")",
    "password = user.password", "pwd = self.pwd", "self.token = token", "token = someVariableName",
    "token = response.data.accessToken;", "const { password } = req.body", "password: ${DB_PASSWORD}",
    "password: {{ vault_password }}", "password: <your-password>", "password: your-password-here",
    "token: None,", "password=None, token=None",
    "def login(user: str, password: str, token: Optional[str] = None) -> bool:", "  password: SecretStr",
    "interface A { token: AccessToken; secret: Buffer }", "x.snapshotEncryptionKey = snap_key_or_none",
    "\"password\": \"required|string|min:8|confirmed\"", "SET_PASSWORD = 'SetPassword'",
    "<input type=\"password\" name=\"password\" autocomplete=\"current-password\">", "<password></password>",
    "<label for=\"password\">Password</label>", "Map<Password, String> passwords = new HashMap<>();",
    "bd login --email <email> --password '<password>'\\n\\nIt's done, don't repeat",
    "define('DB_HOST', 'localhost');", "define('DB_PASSWORD', getenv('DB_PASSWORD'));",
    "$request->only('password', 'password_confirmation')", "getItem(\"token\", \"default-value\")",
    "t(\"password\", \"Password\")", "variable \"db_password\" { type = string }",
    "variable \"db_password\" { default = null }", "tokens: 5120", "max_tokens: 4096", "\"tokens\": 1234",
    "\"tokens\": [101, 2023, 2003, 102]", "{\"input_tokens\": 12345678, \"output_tokens\": 5123}",
    "\"tokens\": [\"the\", \"cat\", \"sat\"]", "\"secrets\": [\"db-password\", \"api-token\"]",
    "{\"type\":\"token\",\"value\":\"identifier\"}", "token : \"constant.language.escape\"",
    "lastSignificantToken = \"?InterpolationInJSX\";", "secretName: wildcard-example-com-tls",
    "existingSecret: postgres-auth", "secretKeyRef:\\n  name: db-credentials\\n  key: password",
    "P.Minipass=P.isWritable=P.isReadable=void 0;var ds=1", "bypass: true", "compass = north42west",
    "test pass: 12, fail: 3", "all tests pass = good", "renderPass: \"shadow-map\"",
    "#define TOKEN_IDENT 258", "TOKEN=258", "\"pass\": \"すべての必須のARIA属性が存在します\"",
    "password: |\\n", "description: |\\n  some text here", "echo \"password: $password\"",
    "Password: ********", "password: (hidden)",
    // Commands and places
    "docker run -p 8080:80 x", "docker run --name mysql -p 3306:3306 mysql",
    "docker run --name mongo -p 27017:27017 mongo", "ssh -p 22 host", "mkdir -p dir/sub", "redis-cli -a",
    "redis-cli -h host -p 6379 ping", "sort -u file", "git push -u origin main",
    "curl https://x.example -o file", "mysql -u root -p", "mysql -u root -p shop",
    "mysqldump -u root --password shop > x.sql", "sshpass -p \"$PASS\" ssh x",
    "docker login -u me --password-stdin", "curl -u \"$USER:$PASS\" https://x", "curl -u user https://x",
    "http -a user api.example", "http GET api.example a=b", "wget --http-password=\"$PW\" x",
    "tool --password <password>", "tool --token TOKEN",
    "use --token to pass the token, and --password for the password",
    "--sasl-password=projects/12345/secrets/db/versions/1", "https://user@host/x", "git@github.com:a/b.git",
    "ssh://git@github.com/a/b", "https://john.smith@example.com/x", "https://cdn.example/pkg@1.2.3/dist",
    "https://example.com/reset?token=${token}", "?page_token=abc123def456ghi", "Cookie: lang=en; theme=dark",
    "Set-Cookie: lang=en; Path=/; Max-Age=31536000", "cookie = SimpleCookie()", "$1$2$3",
    "sed 's/\\(.*\\)/$1$6$/'", "localhost:5432", "- \"127.0.0.1:5432:5432\"", "arn:aws:iam:*:*:role",
    "root:*:19000:0:99999:7:::", "user:x:1000:1000::/home/user:/bin/sh", "PuTTY-User-Key-File-3: ssh-ed25519",
    "Private-Lines: 1",
    // Prose, code, logs
    "secret_arn = \"arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-AbCdEf\"",
    "Password: required, minimum length 8", "The secret: never commit credentials to the repository.",
    "the key: configuration2024 is fine", "- **token**: identifies-the-request-uniquely",
    "| password | string | The user's password |", "Set `STRIPE_KEY` to your key.",
    "password: same as the username", "machine learning login page password reset",
    "token = tokenizer.next_token2(stream)", "key = f\"{prefix}:user:{user_id}:v2\"",
    "private_key = serialization.load_pem_private_key(data, password=None)",
    "secret = hashlib.sha256(data).hexdigest()", "expect(res.body.token).toBeDefined()",
    "const tokenRegex = /^[a-z0-9]{32}$/;",
    "PASSWORD_HASHERS = [\"django.contrib.auth.hashers.Argon2PasswordHasher\"]",
    "password: ${{ secrets.DOCKERHUB_TOKEN }}", "password = random_password.db.result",
    "password: !Ref DBPassword2", "apiKey: options.provider?.apiKey,",
    "\"tokens\": {\"$ref\": \"common.schema.json#/$defs/count\"}", "#define SSL_TXT_kECDHEPSK \"kECDHEPSK\"",
    "# define XXH3_64bits_withSecret XXH3_64bits_withSecret_dispatch",
    "env.GITHUB_APP_PRIVATE_KEY (d38c6b7fbcc143dba27208fa1c044e37/CI_APP)",
    "gpg --recv-keys 7C1E93F2A8B45D6079E3C1F2B8A4D56E90F7C3B1", "connected to sessionId=${sessionId}",
    "\"password_too_short\": \"Password is too short\"", "\"tokenizer\": \"cl100k_base\"",
    "nextPageToken: \"CAUQAA9sdkfjh2342sdfsdf\"", "<meta name=\"csrf-token\" content=\"{{ csrf_token() }}\">",
    "ALTER TABLE users ADD COLUMN password_hash VARCHAR(255);",
    "SELECT password, token FROM users WHERE token = ?;", "object_key = \"2024/01/15/report-final-v2.pdf\"",
    "\"keyId\": \"a1b2c3d4e5f6a7b8\"", "docker run --rm -p 127.0.0.1:6379:6379 redis:7",
    "mysql -h localhost -P 3307 -u app", "https://example.com/@scope/package@1.2.3",
    "WARN invalid password attempt 3 for admin2024", "PASS src/auth/password.test.ts (5.123 s)",
    "\"id\":\"msg_01XFDUDYJgAACzvnptvVoYEL\"", "\"sessionId\":\"9e107d9d-372b-4682-8bd8-1d3542a419d6\"",
    "daemon:*:19000:0:99999:7:::", "data-key=\"item-1234567890abcdef\"",
    "token0 = 0xB1c97AA2d7329c47d2E20E5b3fAc1dF4717Fc59D", "authority: AuthorityKeyV2",
    "secret_santa_2024_participants_list_for_office_a1", "SKU12345678901234567890123456789012"};

std::string as_json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST_CASE("fault 143: each kind of secret is hidden where it stands, and in JSON in JSON") {
  for (const std::string_view written : secrets) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const Sample sample = expanded(written, seed);
      REQUIRE_FALSE(sample.parts.empty());
      const std::string nested = as_json_string("{\"text\":" + as_json_string(sample.text) + "}");
      bool is_json = false;
      for (const std::string& shown :
           {clean(sample.text), clean("run: " + sample.text + "\nx"), clean(as_json_string(sample.text)),
            clean(nested), redact_record(nested, &redactor(), is_json)})
        for (const std::string& part : sample.parts) {
          INFO(sample.text << " → " << shown);
          CHECK(shown.find(part) == shown.npos);
        }
    }
  }
}

TEST_CASE("fault 143: text that resembles a kind of secret is unchanged, and in JSON") {
  for (const std::string_view written : harmless) {
    const std::string text = expanded(written, 1).text;
    INFO(text);
    CHECK(clean(text) == text);
    CHECK(clean(as_json_string(text)) == as_json_string(text));
    CHECK(clean("x " + text + "\ny") == "x " + text + "\ny");
    CHECK(clean("x\n" + text + "\ny") == "x\n" + text + "\ny");
  }
}

// What stands under a key of JSON.
std::string rewritten(std::string_view json) {
  std::string out;
  rewrite_json(out, json, {.filter = &redactor()});
  return out;
}

TEST_CASE("fault 143: keys of several secrets, and keys that may hold one") {
  const std::string secret = expanded("{a24}", 1).text, hidden = "\"[redacted:secret]\"";
  for (const std::string key :
       {"api_keys", "tokens", "secrets", "passwords", "accessTokens", "STRIPE_KEY", "stripeKey"}) {
    CHECK(rewritten("{\"" + key + "\":[\"" + secret + "\",1234]}") ==
          "{\"" + key + "\":[" + hidden + ",1234]}");
    CHECK(rewritten("{\"" + key + "\":{\"a\":\"" + secret + "\"}}") ==
          "{\"" + key + "\":{\"a\":" + hidden + "}}");
  }
  CHECK(rewritten(R"({"passwords":[48213377,"lamp"]})") ==
        R"({"passwords":["[redacted:secret]","[redacted:secret]"]})");
  CHECK(rewritten(R"({"credentials":{"pass":"lamp oil"}})") ==
        R"({"credentials":{"pass":"[redacted:secret]"}})");
  for (const char* json :
       {R"({"tokens":1234})", R"({"tokens":[101,2023,100257]})", R"({"tokens":["the","cat"]})",
        R"({"max_tokens":100000})", R"({"primary_key":"id"})", R"({"STRIPE_KEY":"lamp"})",
        R"({"cache_key":"9e107d9d372bb6826bd81d3542a419d6"})", R"({"passwords":[12,13]})",
        R"({"secrets":["db-password"]})", R"({"key":"9e107d9d372bb6826bd81d3542a419d6"})"})
    CHECK(rewritten(json) == json);
}

}  // namespace
}  // namespace earshot::test
