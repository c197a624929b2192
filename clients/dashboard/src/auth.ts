// How the page gets in: the one-time code of `earshot open` is traded for the token, which stays in this tab.

const key = "earshot token"; // of sessionStorage: gone with this tab, and never sent by the browser itself

export const token = () => sessionStorage.getItem(key) ?? "";
export const forgetToken = () => sessionStorage.removeItem(key);

/** The code leaves the address bar, and with it the history, before anything else is done. */
export function takeCode(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

export async function signIn(code: string): Promise<"in" | "used" | "gone"> {
  try {
    const answer = await fetch("/v1/token", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }) });
    if (answer.status === 401) return "used";
    if (!answer.ok) return "gone";
    sessionStorage.setItem(key, ((await answer.json()) as { token: string }).token);
    return "in";
  } catch {
    return "gone";
  }
}
