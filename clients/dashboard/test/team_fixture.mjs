// A team: a real nats-server, daemons that publish to it, and a hub daemon.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { TestDaemon, patient_limits } from "../../sdk/dist/test/harness.js";

const nats_server = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin"].map((folder) => join(folder, "nats-server")).find((path) => existsSync(path));
/** Reason to skip the team's tests, or false. */
export const no_broker = nats_server ? false : "nats-server is not installed";
const start_ms_max = 120_000;

export class Team {
  home = mkdtempSync(join(tmpdir(), "earshot-team-"));
  hosts = new Map();

  async start(names) {
    const config = this.write("nats.conf", `listen: "127.0.0.1:-1"\nmax_payload: 1MB\njetstream { store_dir: "${this.home}/jetstream", max_mem: 64MB, max_file: 256MB }\n`);
    this.broker = spawn(nats_server, ["-c", config, "--ports_file_dir", this.home], { stdio: "ignore" });
    const end = Date.now() + start_ms_max;
    const listening = () => { // it writes the file when it listens
      const name = readdirSync(this.home).find((each) => each.endsWith(".ports"));
      const text = name ? readFileSync(join(this.home, name), "utf8") : "";
      return text ? JSON.parse(text).nats[0] : undefined;
    };
    while (!(this.url = listening())) {
      if (this.broker.exitCode !== null || Date.now() > end) throw new Error("nats-server did not start");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    this.hub = new TestDaemon("hub", true);
    await this.hub.start("--config", this.write("hub.toml", `${patient_limits}[hub]\nurl = "${this.url}"\n`));
    for (const name of names) this.hosts.set(name, new TestDaemon(name));
    await Promise.all(names.map((name) => this.startHost(name)));
    return this;
  }

  /** Starts a host's daemon, also after it was killed. */
  startHost(name) {
    return this.hosts.get(name).start("--config", this.write(`${name}.toml`, `${patient_limits}[relay]\nurl = "${this.url}"\nview = "full"\n`));
  }

  root(name) {
    return this.hosts.get(name).root;
  }

  write(name, text) {
    const path = join(this.home, name);
    writeFileSync(path, text);
    return path;
  }

  async remove() {
    for (const daemon of [...this.hosts.values(), this.hub]) await daemon?.remove();
    if (this.broker && this.broker.exitCode === null) {
      const exit = once(this.broker, "exit");
      this.broker.kill("SIGKILL");
      await exit;
    }
    rmSync(this.home, { recursive: true, force: true });
  }
}
