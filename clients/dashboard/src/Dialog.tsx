import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** The browser's own: it keeps the focus and closes at Esc. */
export function Dialog(props: { title: string; small?: boolean; close: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
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
