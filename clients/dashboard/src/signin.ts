// Signing in: a key pair that the browser keeps and never shows answers the daemon's challenges. See "Signing in" of the protocol.
import { SignInError, type SignIn } from "../../sdk/src/index.js";

/** Why the page is not signed in; ConnectionStatus.tsx explains it. */
export type SignInProblem = "signed_out" | "code_used" | "code_expired" | "code_unknown" | "code_malformed" | "refused" | "other_daemon" | "impostor" | "unsupported" | "unreachable" | "wrong_origin" | "limit";

/** What this browser keeps of its registration. */
interface Registered {
  browser: string;
  daemon_id: string;
  keys: CryptoKeyPair;
  registration: string; // the nonce of it
  secret: CryptoKey; // HMAC, shared with the daemon, which proves by it that it is the one
}

interface Challenge {
  daemon_id: string;
  nonce: string;
  proof?: string; // absent: the daemon does not know this browser
  origin?: string; // the only one at which browsers can sign in
}

const database = { name: "earshot", version: 1, store: "sign_in", key: "registered" };
const algorithm = { name: "ECDSA", namedCurve: "P-256" };
const code_pattern = /^[0-9a-f]{64}$/;
const name_bytes_max = 64;
const asked_bytes = 16;

let kept_in_memory: Registered | undefined; // where the browser stores nothing
/** The sign-in ends with this page: the browser stores nothing, as in some private windows. */
export let is_temporary = false;

export const isSupported = () => globalThis.crypto?.subtle !== undefined;

const bytes = (text: string) => new TextEncoder().encode(text);
const hex = (buffer: ArrayBuffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

// --- Storage ---

function openDatabase(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(database.name, database.version);
    request.onupgradeneeded = () => request.result.createObjectStore(database.store);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("IndexedDB"));
    request.onblocked = () => reject(new Error("IndexedDB is blocked"));
  });
}

async function inDatabase<T>(mode: IDBTransactionMode, use: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const opened = await openDatabase();
  try {
    return await new Promise<T>((resolve, reject) => {
      const transaction = opened.transaction(database.store, mode);
      const request = use(transaction.objectStore(database.store));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error ?? new Error("IndexedDB"));
    });
  } finally {
    opened.close();
  }
}

async function load(): Promise<Registered | undefined> {
  if (kept_in_memory) return kept_in_memory;
  try {
    return (await inDatabase("readonly", (store) => store.get(database.key))) as Registered | undefined;
  } catch {
    return undefined;
  }
}

async function save(registered: Registered): Promise<void> {
  if (is_temporary) kept_in_memory = registered;
  else await inDatabase("readwrite", (store) => store.put(registered, database.key));
}

/** Whether the browser stores keys: a private window may refuse, or only pretend to. */
async function canStore(keys: CryptoKeyPair): Promise<boolean> {
  try {
    await inDatabase("readwrite", (store) => store.put(keys, "test"));
    const stored = (await inDatabase("readonly", (store) => store.get("test"))) as CryptoKeyPair | undefined;
    await inDatabase("readwrite", (store) => store.delete("test"));
    return stored?.privateKey instanceof CryptoKey;
  } catch {
    return false;
  }
}

// --- Challenges ---

async function challenge(query = ""): Promise<Challenge> {
  const response = await fetch(`/v1/challenge${query}`, { cache: "no-store" });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return (await response.json()) as Challenge;
}

const hmac = async (key: CryptoKey, lines: string[]) => hex(await crypto.subtle.sign("HMAC", key, bytes(lines.join("\n"))));
const hmacKey = (text: string) => crypto.subtle.importKey("raw", bytes(text), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
const sign = async (keys: CryptoKeyPair, message: string) => hex(await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, keys.privateKey, bytes(message)));

/** Answers a new challenge, for one purpose: `hello`, or method and target of a request. Only the daemon at which this browser registered gets an
 *  answer. Throws SignInError if the user must sign in. */
export async function answerChallenge(purpose: string): Promise<SignIn> {
  if (!isSupported()) throw new SignInError("unsupported" satisfies SignInProblem);
  const registered = await load();
  if (!registered) throw new SignInError("signed_out" satisfies SignInProblem);
  try {
    return await answerAs(registered, purpose);
  } catch (error) {
    const now = await load(); // another tab may have registered meanwhile
    if (!now || now.registration === registered.registration) throw error;
    return answerAs(now, purpose);
  }
}

async function answerAs(registered: Registered, purpose: string): Promise<SignIn> {
  const asked = hex(crypto.getRandomValues(new Uint8Array(asked_bytes)).buffer);
  const { daemon_id, nonce, proof } = await challenge(`?browser=${registered.browser}&nonce=${asked}`);
  if (daemon_id !== registered.daemon_id) throw new SignInError("other_daemon" satisfies SignInProblem);
  if (proof === undefined) throw new SignInError("refused" satisfies SignInProblem);
  if (proof !== (await hmac(registered.secret, ["earshot challenge 1", daemon_id, location.origin, asked, nonce]))) throw new SignInError("impostor" satisfies SignInProblem);
  const message = ["earshot sign-in 1", purpose, daemon_id, location.origin, registered.browser, nonce].join("\n");
  return { browser: registered.browser, nonce, signature: await sign(registered.keys, message) };
}

export const isRegistered = async () => (await load()) !== undefined;

// --- Registration ---

/** `Chrome on Linux`, for the list of `earshot browsers`. */
export function browserName(agent: string): string {
  const browsers: Array<[RegExp, string]> = [[/\bEdg\//, "Edge"], [/\bOPR\//, "Opera"], [/\bFirefox\//, "Firefox"], [/Chrome\//, "Chrome"], [/Safari\//, "Safari"]];
  const systems: Array<[RegExp, string]> = [[/Android/, "Android"], [/iPhone|iPad/, "iOS"], [/Windows/, "Windows"], [/Mac OS X/, "macOS"], [/Linux/, "Linux"]];
  const first = (table: Array<[RegExp, string]>) => table.find(([pattern]) => pattern.test(agent))?.[1];
  const name = first(browsers) ?? "A browser";
  const system = first(systems);
  return (system ? `${name} on ${system}` : name).slice(0, name_bytes_max);
}

/** The code of a link of `earshot open`, or of what a user pasted. */
export function findCode(text: string): string | undefined {
  const trimmed = text.trim();
  const code = /[#&]code=([^&\s]*)/.exec(trimmed)?.[1] ?? trimmed;
  return code_pattern.test(code) ? code : undefined;
}

/** Registers this browser's key. The code is not sent: an HMAC proves to the daemon that the page has it, and to the page that the daemon made it. */
export async function register(text: string): Promise<SignInProblem | "signed_in"> {
  if (!isSupported()) return "unsupported";
  const code = findCode(text);
  if (!code) return "code_malformed";
  const known = await load();
  const keys = known?.keys ?? ((await crypto.subtle.generateKey(algorithm, false, ["sign", "verify"])) as CryptoKeyPair);
  is_temporary = kept_in_memory !== undefined || !(await canStore(keys));
  const code_key = await hmacKey(code);
  try {
    const { daemon_id, nonce } = await challenge();
    const key = hex(await crypto.subtle.exportKey("raw", keys.publicKey));
    const name = browserName(navigator.userAgent);
    const lines = ["earshot registration 1", daemon_id, location.origin, nonce, key, is_temporary ? "temporary" : "kept", name];
    const body = JSON.stringify({ nonce, key, name, temporary: is_temporary, proof: await hmac(code_key, lines), signature: await sign(keys, lines.join("\n")) });
    const response = await fetch("/v1/browsers/register", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    const answer = (await response.json().catch(() => ({}))) as { browser?: string; proof?: string; code?: string };
    if (!response.ok) return problemOf(answer.code);
    const { browser } = answer;
    if (browser === undefined || answer.proof !== (await hmac(code_key, ["earshot registered 1", daemon_id, location.origin, browser, nonce]))) return "impostor";
    const secret = await hmacKey(await hmac(code_key, ["earshot secret 1", daemon_id, location.origin, browser, nonce]));
    await save({ browser, daemon_id, keys, registration: nonce, secret });
    return "signed_in";
  } catch {
    return "unreachable";
  }
}

function problemOf(code: string | undefined): SignInProblem {
  const known: SignInProblem[] = ["code_used", "code_expired", "code_unknown", "wrong_origin", "limit"];
  return known.find((problem) => problem === code) ?? "unreachable";
}

/** Signs this browser out at the daemon, as far as it answers, and deletes the key. */
export async function forget(revoke: (browser: string) => Promise<unknown>): Promise<void> {
  const registered = await load();
  if (registered) await revoke(registered.browser).catch(() => {});
  kept_in_memory = undefined;
  await inDatabase("readwrite", (store) => store.delete(database.key)).catch(() => {});
}

/** The same page where browsers can sign in, if that is not here: `localhost` may be another program's address. */
export async function properAddress(): Promise<string | undefined> {
  if (location.hostname !== "localhost" || location.protocol !== "http:") return undefined;
  const origin = (await challenge().catch(() => undefined))?.origin;
  const proper = [`http://127.0.0.1:${location.port}`, `http://[::1]:${location.port}`].find((each) => each === origin);
  return proper && proper + location.pathname + location.search + location.hash;
}
