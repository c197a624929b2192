// The files that a session has changed or read. A click leads to the edits of a file, one after the other.
import { useState } from "preact/hooks";
import { Counts } from "./DiffView.js";
import { plural } from "./format.js";
import type { Entry, FileUse, SessionModel } from "./model.js";
import { scrollable } from "./SessionParts.js";
import { relativePath } from "./toolInput.js";

const shown_max = 12; // files until the user asks for more
const files_max = 200; // the newest

function File({ file, base, model, show }: { file: FileUse; base: string; model: SessionModel; show: (entry: Entry) => void }) {
  const [next, setNext] = useState(0);
  const { path, changed, read, added, removed, least, calls } = file;
  const short = relativePath(path, base);
  const slash = short.lastIndexOf("/");
  const name = <span class="path"><span class="folder">{short.slice(0, slash + 1)}</span>{short.slice(slash + 1)}</span>;
  const count = changed === 0 ? <span class="count">{read} read</span> : added + removed > 0 ? <Counts added={added} removed={removed} least={least} /> : <span class="count">{changed} changed</span>;
  const go = () => {
    const call = calls[next % calls.length];
    const entry = model.entries.find((one) => one.kind === "tool" && one.tool === call);
    setNext((next + 1) % calls.length);
    if (entry) show(entry);
  };
  return (
    <li data-changed={changed > 0 ? "" : undefined} title={path}>
      {calls.length > 0 ? <button type="button" onClick={go} title={`${path}: to edit ${(next % calls.length) + 1} of ${calls.length}`}>{name}{count}</button> : <>{name}{count}</>}
    </li>
  );
}

export function Files({ model, base, show }: { model: SessionModel; base: string; changes: number; show: (entry: Entry) => void }) {
  const [all, setAll] = useState(false);
  const files = [...model.files.values()].sort((a, b) => Number(b.changed > 0) - Number(a.changed > 0) || b.last - a.last).slice(0, files_max);
  if (files.length === 0) return null;
  const changed = files.filter((file) => file.changed > 0);
  const sum = changed.reduce((so_far, { added, removed, least }) => ({ added: so_far.added + added, removed: so_far.removed + removed, least: so_far.least || Boolean(least) }), { added: 0, removed: 0, least: false });
  const shown = all ? files : files.slice(0, shown_max);
  return (
    <section {...scrollable("Files", shown.length)}>
      <h3>Files <span class="count">{changed.length > 0 ? `${changed.length} changed` : plural(files.length, "file") + " read"}</span> {sum.added + sum.removed > 0 ? <Counts {...sum} /> : null}</h3>
      <ul class="files">{shown.map((file) => <File key={file.path} file={file} base={base} model={model} show={show} />)}</ul>
      {shown.length < files.length ? <p><button type="button" class="toggle" onClick={() => setAll(true)}>{plural(files.length - shown.length, "more file")}</button></p> : null}
    </section>
  );
}
