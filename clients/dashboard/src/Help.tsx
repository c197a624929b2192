import { signal } from "@preact/signals";
import { Dialog } from "./Dialog.js";

const shown = signal(false);
export const showHelp = () => (shown.value = true);

const keys: Array<[string, string]> = [
  ["j, k", "next, previous session or entry"],
  ["Enter", "open the session; unfold the entry"],
  ["g, G", "to the beginning, to the newest"],
  ["/", "search"],
  ["Esc", "leave the search, close, back to all sessions"],
  ["?", "these keys"],
];

export function Help() {
  if (!shown.value) return null;
  return (
    <Dialog title="Keys" small close={() => (shown.value = false)}>
      <dl class="keys">{keys.map(([key, what]) => <><dt><kbd>{key}</kbd></dt><dd>{what}</dd></>)}</dl>
    </Dialog>
  );
}
