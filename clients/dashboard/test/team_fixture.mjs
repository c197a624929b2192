// A team: a real nats-server, daemons that publish to it, and a hub.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { Place } from "../../sdk/dist/test/daemon.js";

const server = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin"].map((folder) => join(folder, "nats-server")).find((path) => existsSync(path));
export const no_broker = server ? false : "nats-server is not here (Debian: nats-server)";
const broker_ms_max = 30_000;

function freePort() {
  return new Promise((resolve) => {
    const one = createServer().listen(0, "127.0.0.1", () => {
      const { port } = one.address();
      one.close(() => resolve(port));
    });
  });
}

const answers = (port) => new Promise((resolve) => {
  const one = connect(port, "127.0.0.1", () => (one.destroy(), resolve(true)));
  one.on("error", () => resolve(false));
});

export class Team {
  home = mkdtempSync(join(tmpdir(), "earshot-team-"));
  hosts = new Map();

  async start(names) {
    const port = await freePort();
    this.url = `nats://127.0.0.1:${port}`;
    const config = this.write("nats.conf", `listen: "127.0.0.1:${port}"\nmax_payload: 1MB\njetstream { store_dir: "${this.home}/jetstream", max_mem: 64MB, max_file: 256MB }\n`);
    this.broker = spawn(server, ["-c", config], { stdio: "ignore" });
    const end = Date.now() + broker_ms_max;
    while (!(await answers(port))) {
      if (this.broker.exitCode !== null || Date.now() > end) throw new Error("nats-server did not come up");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    this.hub = new Place("hub", true);
    await this.hub.start("--config", this.write("hub.toml", `[hub]\nurl = "${this.url}"\n`));
    for (const name of names) this.hosts.set(name, new Place(name));
    await Promise.all(names.map((name) => this.begin(name)));
    return this;
  }

  /** Also once more, after it was killed. */
  begin(name) {
    return this.hosts.get(name).start("--config", this.write(`${name}.toml`, `[relay]\nurl = "${this.url}"\nview = "full"\n`));
  }

  root(name) {
    return this.hosts.get(name).root;
  }

  write(name, text) {
    const path = join(this.home, name);
    writeFileSync(path, text);
    return path;
  }

  async end() {
    for (const place of [...this.hosts.values(), this.hub]) await place?.end();
    this.broker?.kill("SIGKILL");
    rmSync(this.home, { recursive: true, force: true });
  }
}
