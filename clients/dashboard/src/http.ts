// Authorised HTTP requests of the page.
import { answerChallenge } from "./signin.js";

export class HttpError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

/** Sends a request as this browser and returns the JSON of the response; `undefined` if it has none (204). `body` is sent as JSON. Throws
 *  HttpError for a status other than 2xx, SignInError if the user must sign in, and TypeError if there is no response. */
export async function fetchJson<T = unknown>(path: string, init: { method?: "GET" | "POST"; body?: unknown; signal?: AbortSignal } = {}): Promise<T> {
  const method = init.method ?? (init.body === undefined ? "GET" : "POST");
  const { pathname, search } = new URL(path, location.origin); // as the browser sends it
  const { browser, nonce, signature } = await answerChallenge(`${method} ${pathname}${search}`);
  const headers: Record<string, string> = { Authorization: `Earshot ${browser}.${nonce}.${signature}` };
  if (init.body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(pathname + search, { method, headers, cache: "no-store", ...(init.signal && { signal: init.signal }), ...(init.body !== undefined && { body: JSON.stringify(init.body) }) });
  const text = await response.text();
  if (!response.ok) throw new HttpError(response.status, text.trim());
  return (text === "" ? undefined : JSON.parse(text)) as T;
}
