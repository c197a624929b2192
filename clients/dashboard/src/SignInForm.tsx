// Signing in with a pasted code, and out.
import { connection, signIn, signOut } from "./connection.js";

export function SignInForm() {
  const submit = (event: Event) => {
    event.preventDefault();
    const input = new FormData(event.currentTarget as HTMLFormElement).get("code");
    if (typeof input === "string" && input.trim()) void signIn(input);
  };
  return (
    <form class="sign-in" onSubmit={submit}>
      <input name="code" type="text" placeholder="Link or code" aria-label="Link or code of earshot open" autocomplete="off" spellcheck={false} />
      <button type="submit">Sign in</button>
    </form>
  );
}

export function SignOut() {
  if (connection.value.state !== "live") return null;
  return <p><button type="button" title="Sign out in all tabs" onClick={() => void signOut()}>Forget this browser</button></p>;
}
