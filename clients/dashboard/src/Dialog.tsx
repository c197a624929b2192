import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { SignOut } from "./SignInForm.js";

/** A modal <dialog>: the browser keeps the focus inside and closes it on Esc. */
export function Dialog(props: { title: string; small?: boolean; close: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => { // at once: a key pressed before would not close it
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} class={props.small ? "small" : undefined} aria-label={props.title} onClose={props.close} onClick={(event) => event.target === dialog.current && dialog.current?.close()}>
      <div class="inside">
        <header><h2>{props.title}</h2><button type="button" onClick={() => dialog.current?.close()}>Close</button></header>
        {props.children}
      </div>
    </dialog>
  );
}

const help_open = signal(false);
export const showHelp = () => (help_open.value = true);

const shortcuts: Array<[string, string]> = [
  ["j, k", "next, previous session or entry"],
  ["Enter", "open the session; unfold the entry"],
  ["n", "next session that needs you"],
  ["x", "details of the session: model, turn, branch"],
  ["c", "copy the command that resumes the session"],
  ["p", "copy the session's path"],
  ["s", "snooze the session"],
  ["g, G", "to the top, to the newest"],
  ["/", "search"],
  ["h", "history: search the text of all sessions"],
  ["←, →", "in the timeline: previous, next tool call; Enter shows it"],
  ["Esc", "leave the search, close, back to all sessions"],
  ["?", "show these keys"],
];

export function HelpDialog() {
  if (!help_open.value) return null;
  return (
    <Dialog title="Keys" small close={() => (help_open.value = false)}>
      <dl class="keys">{shortcuts.map(([key, action]) => <><dt><kbd>{key}</kbd></dt><dd>{action}</dd></>)}</dl>
      <SignOut />
    </Dialog>
  );
}
