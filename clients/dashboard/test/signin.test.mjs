// Signing in and out, and what other servers on the same machine get from the page.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { TestDaemon, until } from "../../sdk/dist/test/harness.js";
import { browsersOf, click, launch, launchProfile, openTab, post, signIn, signInUrl } from "./browser.mjs";
import { ScriptedSession } from "./fixtures.mjs";
import { test, withBrowser } from "./harness.mjs";
import { recordingServer, send, tryHello } from "./raw_socket.mjs";

const plain_page = fileURLToPath(new URL("../../../daemon/serve/page", import.meta.url));
const address = (daemon) => `http://127.0.0.1:${daemon.port}/`;
const codeOf = async (daemon) => (await signInUrl(daemon)).split("code=")[1];

async function paste(page, text) {
  await page.getByRole("textbox", { name: "Link or code" }).fill(text);
  await click(page.getByRole("button", { name: "Sign in" }));
}

/** Records the hellos that the page sends. */
async function recordHellos(page) {
  const hellos = [];
  await page.routeWebSocket(/\/v1\/ws/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((text) => socket.send(text));
    socket.onMessage((text) => {
      if (JSON.parse(text).type === "hello") hellos.push(text);
      server.send(text);
    });
  });
  return hellos;
}

withBrowser("signing in", (env) => {
  /** Another daemon of the test, which is stopped after it. */
  function anotherDaemon() {
    const daemon = new TestDaemon();
    env.cleanups.push(() => daemon.remove());
    return daemon;
  }

  test("a bookmark works after a restart of the browser and of the daemon", async () => {
    const profile = mkdtempSync(join(tmpdir(), "earshot-profile-"));
    env.cleanups.push(() => rmSync(profile, { recursive: true, force: true, maxRetries: 10 }));
    await env.daemon.start();
    const start = async () => {
      const context = await launchProfile(profile);
      env.cleanups.push(() => context.close());
      return context;
    };
    const first = await start();
    const page = await first.newPage();
    await signIn(page, env.daemon);
    await env.waitForState(page, "Live.");
    await page.reload();
    await env.waitForState(page, "Live.");
    await first.close();
    await env.daemon.stop();
    await env.daemon.start();
    const second = await start();
    const bookmark = await second.newPage();
    await bookmark.goto(address(env.daemon));
    await env.waitForState(bookmark, "Live.");
    const [registered, ...others] = await browsersOf(env.daemon);
    assert.deepEqual(others, []);
    assert.match(registered.name, /^Chrome on Linux$/);
    assert.equal(registered.origin, address(env.daemon).slice(0, -1));
    assert.equal(registered.temporary, undefined);
  });

  test("another tab is signed in too; forgetting the browser signs out all tabs", async () => {
    await env.daemon.start();
    const { page, context, errors } = await env.openPage();
    await env.waitForState(page, "Live.");
    const tab = await context.newPage();
    await tab.goto(address(env.daemon));
    await env.waitForState(tab, "Live.");
    assert.equal((await browsersOf(env.daemon)).length, 1);
    assert.deepEqual(errors, []);
    await signIn(tab, env.daemon); // again, as from a notification
    await env.waitForState(tab, "Live.");
    await env.waitForState(page, "Live.");
    assert.equal((await browsersOf(env.daemon)).length, 1);
    await click(tab.getByRole("button", { name: "Keys" }));
    await click(tab.getByRole("button", { name: "Forget this browser" }));
    for (const each of [tab, page]) await env.waitForState(each, "Not signed in.");
    assert.deepEqual(await browsersOf(env.daemon), []);
    await page.reload();
    await env.waitForState(page, "Not signed in.");
    await paste(page, await codeOf(env.daemon)); // and signs both in again
    for (const each of [page, tab]) await env.waitForState(each, "Live.");
  });

  test("a revoked browser is disconnected at once, shows nothing more, and is told why", async () => {
    new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt("Mend the lamp").finishTurn("Mended.");
    await env.daemon.start();
    const { page } = await env.openPage();
    await env.waitForState(page, "Live.");
    await page.locator("#sessions .row").waitFor();
    const [{ browser }] = await browsersOf(env.daemon);
    assert.equal((await post(env.daemon, "/v1/browsers/revoke", { browser })).status, 200);
    await env.waitForState(page, "This browser was signed out.");
    await page.locator("#help code", { hasText: "earshot open" }).waitFor();
    assert.doesNotMatch(await page.locator("body").textContent(), /lamp|Mended/);
    await page.reload();
    await env.waitForState(page, "This browser was signed out.");
    await env.daemon.stop();
    await env.daemon.start();
    await page.reload();
    await env.waitForState(page, "This browser was signed out.");
    await paste(page, await signInUrl(env.daemon));
    await env.waitForState(page, "Live.");
  });

  test("codes are refused in words", async () => {
    await env.daemon.start();
    const { page } = await env.openPage({}, address(env.daemon));
    await env.waitForState(page, "Not signed in.");
    await paste(page, "open sesame");
    await env.waitForState(page, "This is not a link of earshot open.");
    await paste(page, "0".repeat(64));
    await env.waitForState(page, "This link is not of the daemon that runs now.");
    const answers = [
      [401, { code: "code_expired" }, "This link is older than a minute."],
      [503, { code: "limit" }, "Too many browsers are signed in."],
      [400, { code: "wrong_origin" }, "Browsers cannot sign in at this address."],
      [200, { browser: "0123456789abcdef", proof: "0".repeat(64) }, "did not prove that it is your daemon"],
      [500, {}, "The daemon did not respond."],
    ];
    for (const [status, json, text] of answers) {
      await page.route("**/v1/browsers/register", (route) => route.fulfill({ status, json }));
      await page.reload();
      await env.waitForState(page, "Not signed in."); // nothing was stored
      await paste(page, "0".repeat(64));
      await env.waitForState(page, text);
      await page.unroute("**/v1/browsers/register");
    }
    await page.reload();
    await env.waitForState(page, "Not signed in.");
    await paste(page, `  ${await signInUrl(env.daemon)} `);
    await env.waitForState(page, "Live.");
  });

  test("a browser that stores nothing is signed in for one tab, and told so", async () => {
    await env.daemon.start();
    const { page, context } = await env.openPage({}, undefined, (fresh) => fresh.context().addInitScript(() => {
      IDBFactory.prototype.open = () => {
        throw new DOMException("private", "SecurityError");
      };
    }));
    await env.waitForState(page, "Live. Signed in for this tab only: another tab or a reload needs a new link.");
    assert.equal((await browsersOf(env.daemon))[0].temporary, true);
    const tab = await context.newPage();
    await tab.goto(address(env.daemon));
    await env.waitForState(tab, "Not signed in.");
    await page.reload();
    await env.waitForState(page, "Not signed in.");
    await paste(page, await codeOf(env.daemon));
    await env.waitForState(page, "Live. Signed in for this tab only");
    await env.daemon.stop(); // which keeps no temporary browsers
    assert.deepEqual(JSON.parse(readFileSync(join(env.daemon.state, "browsers.json"), "utf8")).browsers, []);
    await env.daemon.start();
    await env.waitForState(page, "This browser was signed out.");
  });

  test("the plain page, too, takes a pasted link or code", async () => {
    new ScriptedSession(env.daemon.root, "/home/ada/api").addPrompt("Fix the lamp");
    await env.daemon.start();
    const browser = await launch(true);
    env.cleanups.push(() => browser.close());
    const { page } = await openTab(browser);
    await page.route(/\/(?:app\.js|style\.css)?$/, async (route) => {
      const name = new URL(route.request().url()).pathname.slice(1) || "index.html";
      const type = { html: "text/html", js: "text/javascript", css: "text/css" }[name.slice(name.lastIndexOf(".") + 1)];
      await route.fulfill({ response: await route.fetch(), contentType: `${type}; charset=utf-8`, body: readFileSync(join(plain_page, name)) }); // with the daemon's headers
    });
    await page.goto(address(env.daemon));
    await env.waitForState(page, "Not signed in.");
    await paste(page, "not a code");
    await page.locator("#help", { hasText: "A code has 64 digits" }).waitFor();
    await paste(page, "0".repeat(64));
    await env.waitForState(page, "This link is not of the daemon that runs now.");
    await paste(page, await signInUrl(env.daemon));
    await env.waitForState(page, "Live");
    await page.locator("#sessions", { hasText: "Fix the lamp" }).waitFor();
    assert.equal(await page.locator("#sign-in").isVisible(), false);
    assert.equal(await page.getByRole("textbox").count(), 0);
    await page.reload(); // the key is kept
    await env.waitForState(page, "Live");
  });

  test("a browser without WebCrypto is told what it needs", async () => {
    await env.daemon.start();
    const { page } = await env.openPage({}, await signInUrl(env.daemon), (fresh) => fresh.addInitScript(() => {
      Object.defineProperty(Crypto.prototype, "subtle", { get: () => undefined });
    }));
    await env.waitForState(page, "This browser cannot sign in here.");
  });

  test("localhost leads to the address at which browsers sign in", async () => {
    await env.daemon.start();
    const { page } = await env.openPage({}, `http://localhost:${env.daemon.port}/?q=lamp#code=${await codeOf(env.daemon)}`);
    await env.waitForState(page, "Live.");
    assert.equal(page.url(), `${address(env.daemon)}?q=lamp`);
  });

  test("a daemon with another state directory is refused; a new code signs in there", async () => {
    await env.daemon.start();
    const { page } = await env.openPage();
    await env.waitForState(page, "Live.");
    const [before] = await browsersOf(env.daemon);
    await env.daemon.stop();
    const other = anotherDaemon();
    other.port = env.daemon.port;
    await other.start();
    await env.waitForState(page, "This is another daemon than the one that this browser signed in to.");
    await page.reload();
    await env.waitForState(page, "This is another daemon than the one that this browser signed in to.");
    await paste(page, await codeOf(other));
    await env.waitForState(page, "Live.");
    const [after] = await browsersOf(other);
    assert.notEqual(after.browser, before.browser);
  });

  test("no token, code or other bearer secret is sent, stored or kept by the page", async () => {
    await env.daemon.start();
    const sent = [];
    let hellos;
    const { page, context, url } = await env.openPage({}, undefined, async (fresh) => {
      hellos = await recordHellos(fresh);
      fresh.on("request", (request) => sent.push(request.url(), request.postData() ?? "", JSON.stringify(request.headers())));
      fresh.on("response", async (response) => sent.push(await response.text().catch(() => "")));
    });
    await env.waitForState(page, "Live.");
    const code = url.split("code=")[1];
    const { token } = env.daemon;
    assert.equal(hellos.length, 1);
    const everything = [...sent, ...hellos].join("\n");
    assert.ok(everything.includes(JSON.parse(hellos[0]).sign_in.nonce)); // the responses were recorded
    assert.ok(!everything.includes(token) && !everything.replaceAll(url, "").includes(code)); // only the navigation has it, in its fragment
    assert.equal(page.url(), address(env.daemon));
    assert.deepEqual(await context.cookies(), []);
    const stored = await page.evaluate(async () => {
      const opened = await new Promise((resolve) => (indexedDB.open("earshot").onsuccess = ({ target }) => resolve(target.result)));
      const stores = [...opened.objectStoreNames];
      const values = await new Promise((resolve) => (opened.transaction("sign_in").objectStore("sign_in").getAll().onsuccess = ({ target }) => resolve(target.result)));
      const [{ browser, daemon_id, keys, secret }] = values;
      const exported = await Promise.allSettled([["pkcs8", keys.privateKey], ["jwk", keys.privateKey], ["raw", secret]].map(([format, key]) => crypto.subtle.exportKey(format, key)));
      return { stores, count: values.length, names: Object.keys(values[0]), browser, daemon_id, extractable: [keys.privateKey.extractable, secret.extractable], exported: exported.map(({ status }) => status), web: { ...localStorage, ...sessionStorage }, cookie: document.cookie };
    });
    const [{ browser }] = await browsersOf(env.daemon);
    assert.deepEqual({ ...stored, daemon_id: undefined }, { stores: ["sign_in"], count: 1, names: ["browser", "daemon_id", "keys", "registration", "secret"], browser, daemon_id: undefined, extractable: [false, false], exported: ["rejected", "rejected", "rejected"], web: {}, cookie: "" });
    const session = await context.newCDPSession(page);
    let heap = "";
    session.on("HeapProfiler.addHeapSnapshotChunk", ({ chunk }) => (heap += chunk));
    await session.send("HeapProfiler.takeHeapSnapshot");
    assert.ok(heap.includes("earshot sign-in 1")); // the snapshot has the page's strings
    assert.ok(!heap.includes(token));
  });

  test("an answer cannot be used twice, nor for another purpose, origin or daemon", async () => {
    await env.daemon.start();
    let hellos;
    const { page } = await env.openPage({}, undefined, async (fresh) => (hellos = await recordHellos(fresh)));
    await env.waitForState(page, "Live.");
    const { port } = env.daemon;
    assert.equal(await tryHello(port, hellos[0]), 4501); // the page has used it
    const { browser, nonce, signature } = JSON.parse(hellos[0]).sign_in;
    const authorization = { Authorization: `Earshot ${browser}.${nonce}.${signature}` };
    assert.equal((await send(port, "GET", "/v1/sessions", authorization)).status, 401);

    // Answers that were not used yet: the page is held back before it sends them.
    const unused = [];
    await page.routeWebSocket(/\/v1\/ws/, (socket) => socket.onMessage((text) => unused.push(text)));
    for (let n = 1; n <= 4; n++) {
      await page.reload();
      await until("a hello", () => unused.length === n);
    }
    const [first, second, third, fourth] = unused;
    const answer = JSON.parse(first).sign_in;
    const header = { Authorization: `Earshot ${answer.browser}.${answer.nonce}.${answer.signature}` };
    assert.equal((await send(port, "GET", "/v1/sessions", header)).status, 401); // it was for a hello
    assert.equal(await tryHello(port, first), "welcome"); // a failed attempt does not use it up
    assert.equal(await tryHello(port, second, `http://localhost:${port}`), 4501);
    assert.equal(await tryHello(port, second), "welcome");
    const other = anotherDaemon();
    await other.start();
    assert.equal(await tryHello(other.port, third), 4501);
    await env.daemon.stop();
    await env.daemon.start();
    assert.equal(await tryHello(port, fourth), 4501); // a challenge of the process before
  });

  // Fault 87.
  test("a server that takes over the port receives nothing that signs in at the daemon", async () => {
    await env.daemon.start();
    const { page } = await env.openPage();
    await env.waitForState(page, "Live.");
    const { port } = env.daemon;
    const [{ browser }] = await browsersOf(env.daemon);
    const genuine = await send(port, "GET", `/v1/challenge?browser=${browser}&nonce=${"0".repeat(32)}`);
    const { daemon_id, proof } = JSON.parse(genuine.body);
    assert.equal(proof.length, 64);
    await env.daemon.stop();
    let challenge = genuine.body;
    const rogue = await recordingServer(port, ({ url }) => (url.startsWith("/v1/challenge") ? { status: 200, body: challenge } : { status: 204 }));
    env.cleanups.push(rogue.close);
    await env.waitForState(page, "What answers here did not prove that it is your daemon."); // with the daemon's own, older, answer
    challenge = JSON.stringify({ ...JSON.parse(genuine.body), proof: undefined });
    await click(page.getByRole("button", { name: "Try now" }));
    await env.waitForState(page, "This browser was signed out.");
    const seen = await page.evaluate(async () => {
      const { pathname } = location;
      return fetch(pathname).then((response) => response.status);
    });
    assert.equal(seen, 204);
    const code = "ab".repeat(32); // of a link that was opened while the daemon was away
    await page.evaluate((text) => (location.hash = `code=${text}`), code).catch(() => {});
    await until("the reload", () => rogue.requests.filter(({ url }) => url === "/").length === 2); // the first was that fetch
    await rogue.close();
    assert.deepEqual(rogue.messages, []); // it was not even answered
    const recorded = JSON.stringify([rogue.requests, rogue.messages]);
    assert.ok(!recorded.includes(env.daemon.token) && !recorded.includes(code));

    await env.daemon.start();
    assert.equal(JSON.parse((await send(port, "GET", "/v1/challenge")).body).daemon_id, daemon_id);
    for (const { method, url, headers, body } of rogue.requests) {
      const { status } = await send(port, method, "/v1/sessions", { ...headers, host: `127.0.0.1:${port}` }, body);
      assert.ok([401, 405].includes(status), `${method} ${url}: ${status}`);
    }
    await page.goto(address(env.daemon));
    await env.waitForState(page, "Live."); // which the other server did not spoil
  });

  test("a server that relays everything to the daemon, under its own address, is not signed in", async () => {
    await env.daemon.start();
    const { port } = env.daemon;
    const answers = [];
    const relay = await recordingServer(0, async ({ method, url, headers, body }) => {
      const { "content-type": type, authorization } = headers;
      const forged = { Origin: `http://127.0.0.1:${port}`, ...(type && { "Content-Type": type }), ...(authorization && { Authorization: authorization }) };
      const answer = await send(port, method, url, method === "GET" ? {} : forged, body);
      answers.push([url, answer.status]);
      const { "content-type": content_type } = answer.headers;
      return { status: answer.status, headers: { "Content-Type": content_type }, body: answer.body.replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${relay_port}`) };
    });
    const relay_port = relay.port;
    env.cleanups.push(relay.close);
    const { page } = await env.openPage({}, `http://127.0.0.1:${relay_port}/`);
    await env.waitForState(page, "Not signed in.");
    const url = await signInUrl(env.daemon);
    await paste(page, url);
    await env.waitForState(page, "This link is not of the daemon that runs now.");
    assert.ok(answers.some(([path, status]) => path === "/v1/browsers/register" && status === 401));
    assert.ok(!JSON.stringify(relay.requests).includes(url.split("code=")[1]));
    assert.deepEqual(await browsersOf(env.daemon), []);
    const honest = await env.openPage({}, url); // the code was neither used nor learned
    await env.waitForState(honest.page, "Live.");
  });
});
