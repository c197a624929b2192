# Homebrew formula for macOS and Linux: builds the committed sources of a checkout.
#
#   brew tap-new you/agents && cp .ci/package/earshot.rb "$(brew --repository you/agents)/Formula"
#   HOMEBREW_EARSHOT_SOURCE=$PWD brew install --HEAD you/agents/earshot
#   brew services start earshot        # run it while you are logged in
#
# A release sets `url` and `sha256` of its source archive (made by `git archive`, which records the commit) and needs no
# environment variable.
class Earshot < Formula
  desc "Daemon that monitors coding agents"
  homepage "https://earshot.dev"
  license "MIT"
  head "file://#{ENV.fetch("HOMEBREW_EARSHOT_SOURCE", File.expand_path("../..", __dir__))}", using: :git, branch: "main"

  depends_on "cli11" => :build
  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "pkg-config" => :build
  depends_on "tomlplusplus" => :build
  depends_on "boost"
  depends_on "cnats"
  depends_on "curl"
  depends_on "fmt"
  depends_on "openssl@3"
  depends_on "re2"
  depends_on "simdjson"
  depends_on "spdlog"
  depends_on "sqlite"
  depends_on "utf8proc"
  depends_on "xxhash"
  depends_on "zstd"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", *std_cmake_args
    system "cmake", "--build", "build", "--target", "programs"
    system "cmake", "--install", "build"
  end

  service do
    run opt_bin/"earshotd"
    keep_alive crashed: true
    log_path var/"log/earshotd.log"
    error_log_path var/"log/earshotd.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/earshot --version") unless head?
    (testpath/"session.jsonl").write <<~LINES
      {"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","cwd":"/p","isSidechain":false,"timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"hello"}}
    LINES
    assert_match "turn.started", shell_output("#{bin}/earshot replay #{testpath}/session.jsonl")
  end
end
