import { retry } from "./connection.js";
import { saying } from "./saying.js";

/** One line on the connection. Its own component: it ticks, what is around it does not. */
export function State() {
  const { text, kind } = saying();
  return <p id="state" role="status" data-kind={kind}>{text}</p>;
}

/** What can be done about it, if there is anything. */
export function Advice({ place }: { place: "advice" | "empty" }) {
  const { help, code, retry: can } = saying();
  if (!help && !can) return null;
  return (
    <div id="help" class={place}>
      {help ? <p>{help}</p> : null}
      {code ? <pre><code>{code}</code></pre> : null}
      {can ? <button type="button" onClick={retry}>Try now</button> : null}
    </div>
  );
}
