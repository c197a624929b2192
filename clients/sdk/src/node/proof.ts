// Proof that the daemon has the token, before the token is sent: any local user may listen on a TCP port.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { Agent, request } from "node:http";
import { isIPv6, type Socket } from "node:net";

const nonce_bytes = 16;
const answer_bytes_max = 1024;
const proof_ms_max = 10_000;
/** For request(): `localhost` may first be ::1, where the daemon need not listen. The default only since Node 20. */
export const every_address = { autoSelectFamily: true };

/** An agent with one connection: what follows the proof reaches the process that gave it, or fails. */
export function singleConnection(): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const connect = agent.createConnection.bind(agent);
  let used = false;
  agent.createConnection = (options, done) => {
    if (!used) {
      used = true;
      return connect(options, done);
    }
    done?.(new Error("the daemon closed the connection after its proof: the token was not sent"), undefined!);
    return undefined;
  };
  return agent;
}

/** The answer of a daemon with this token that listens on this address: `127.0.0.1:7717`, `[::1]:7717`. */
export function expectedProof(token: string, nonce: string, address: string): string {
  return createHmac("sha256", token).update(nonce + address).digest("hex");
}

/** Asks for the proof. Resolves to false if the answer is another token's; rejects if there is no answer of this form. */
export function proveDaemon(url: URL, token: string, agent: Agent): Promise<boolean> {
  const nonce = randomBytes(nonce_bytes).toString("hex");
  return new Promise((resolve, reject) => {
    const asked = request({ host: url.hostname.replace(/^\[|\]$/g, ""), port: url.port || 80, path: `/v1/proof?nonce=${nonce}`, agent, ...every_address, timeout: proof_ms_max, headers: { Host: url.host } });
    asked.on("timeout", () => asked.destroy(new Error(`no proof from ${url.host} for ${proof_ms_max / 1000} s`)));
    asked.on("error", reject);
    asked.on("response", (response) => {
      let body = "";
      const peer = addressOf(response.socket); // not available after `end`
      response.setEncoding("latin1");
      response.on("error", reject);
      response.on("data", (text: string) => {
        body += text;
        if (body.length > answer_bytes_max) asked.destroy(new Error(`${url.host} is not an earshot daemon: no proof`));
      });
      response.on("end", () => {
        if (response.statusCode !== 200 || !/^[0-9a-f]{64}\n?$/.test(body)) {
          return reject(new Error(`${url.host} did not prove that it has the token, which was not sent (HTTP ${response.statusCode}): another program listens on the port, or the daemon is older than this SDK`));
        }
        resolve(timingSafeEqual(Buffer.from(body.trimEnd()), Buffer.from(expectedProof(token, nonce, peer))));
      });
    });
    asked.end();
  });
}

function addressOf({ remoteAddress = "", remotePort }: Socket): string {
  return `${isIPv6(remoteAddress) ? `[${remoteAddress}]` : remoteAddress}:${remotePort}`;
}
