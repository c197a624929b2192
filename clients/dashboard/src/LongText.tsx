// A text of an event, and the whole of it on request if the daemon has sent its beginning only.
import { useState } from "preact/hooks";
import type { EarshotEvent } from "../../sdk/src/index.js";
import { bytes } from "./format.js";
import { Markdown } from "./Markdown.js";
import { PlainText } from "./PlainText.js";
import type { OpenSession } from "./session.js";
import { cutBytes, readWhole, textOfField } from "./wholeTexts.js";

/** A note below a text that was cut, with a button that runs `load`. */
export function ShowAll({ size, load }: { size: number | undefined; load: () => Promise<unknown> }) {
  const [state, setState] = useState<"" | "loading" | { error: string }>("");
  if (size === undefined) return null;
  const run = async () => {
    setState("loading");
    try {
      await load();
    } catch (error) {
      setState({ error: (error as Error).message });
    }
  };
  return (
    <p class="note">
      {size > 0 ? `The beginning of ${bytes(size)}.` : "Texts were cut."}{" "}
      {typeof state === "object" ? <span role="alert">{state.error}: “raw” shows the record.</span> : <button type="button" disabled={state === "loading"} onClick={() => void run()}>{state === "loading" ? "Loading…" : "Show all"}</button>}
    </p>
  );
}

export function LongText({ session, event, field, as }: { session: OpenSession; event: EarshotEvent; field: string; as: "text" | "markdown" }) {
  const [, setLoaded] = useState(0);
  const text = textOfField(event, field);
  return (
    <>
      {as === "markdown" ? <Markdown text={text} /> : <PlainText text={text} />}
      <ShowAll size={cutBytes(event, field)} load={() => readWhole(session, event, field).then(() => setLoaded((n) => n + 1))} />
    </>
  );
}
