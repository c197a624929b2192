import { useEffect, useRef } from "preact/hooks";
import { signal } from "@preact/signals";
import { connection, ready, sessions } from "./connection.js";
import { ConnectionHelp } from "./ConnectionStatus.js";
import { onMoveFocus } from "./keyboard.js";
import { address, follow, go, onlyHost, onlyProgram, onlyProject, onlyState, query } from "./route.js";
import { hosts, nameOf, rows, type Row } from "./rows.js";
import { Elapsed } from "./SessionParts.js";
import { SessionRow } from "./SessionRow.js";
import { VirtualList } from "./VirtualList.js";

const narrow = signal(innerWidth < 720);
addEventListener("resize", () => (narrow.value = innerWidth < 720));

const group_px = 40; // heights: keep in agreement with overview.css
const row_px = { wide: 52, narrow: 76 };

function Empty() {
  if (sessions.value.length > 0) {
    return (
      <div class="empty">
        <p>No session matches the filters.</p>
        <button type="button" onClick={() => go({ q: "", state: "", project: "", on: "", program: "" })}>Show all {sessions.value.length}</button>
      </div>
    );
  }
  if (!ready.value || connection.value.state !== "live") return <ConnectionHelp place="empty" />;
  return (
    <div class="empty">
      <p>No agent sessions in the last 24 hours.</p>
      <p>Start an agent in a terminal, in any project: its session appears here with the first prompt. To see a demo session, run:</p>
      <pre><code>earshotd --demo</code></pre>
      <p>If an agent is running and does not appear, run <code>earshot doctor</code>.</p>
    </div>
  );
}

/** A project's path, its name emphasised. A click filters by it. */
function Project({ path }: { path: string }) {
  const name = nameOf(path);
  const only = { project: onlyProject.value === path ? "" : path };
  return <a href={address(only)} onClick={follow(only)} title={only.project ? `Only ${path}` : "All projects"}><span class="dir">{path.slice(0, path.length - name.length)}</span>{name}</a>;
}

function HostLink({ name }: { name: string }) {
  const only = { on: onlyHost.value === name ? "" : name };
  return <><a class="host" href={address(only)} onClick={follow(only)} title={only.on ? `Only ${name}` : "All hosts"}>{name}</a> </>;
}

function OfflineNote({ name }: { name: string }) {
  const host = hosts.value.get(name);
  if (!host?.offline) return null;
  return <span class="offline">offline{host.last_online ? <><span class="long">, last seen</span> <Elapsed since={host.last_online} short /> ago</> : ""}</span>;
}

export function Overview() {
  const list = rows.value;
  const width = narrow.value ? row_px.narrow : row_px.wide;
  const scrollToRow = useRef<(index: number) => void>(() => {});

  useEffect(() => onMoveFocus((step) => {
    const all = rows.peek();
    const focused = document.activeElement?.closest<HTMLElement>("[data-item]")?.dataset.item;
    let at = all.findIndex((row) => row.key === focused);
    if (at < 0) at = step > 0 ? -1 : all.length;
    do at += step; while (all[at]?.kind === "group");
    const row = all[at];
    if (!row) return;
    scrollToRow.current(at);
    requestAnimationFrame(() => document.querySelector<HTMLElement>(`[data-item="${CSS.escape(row.key)}"]`)?.focus({ preventScroll: true }));
  }), []);
  useEffect(() => scrollTo(0, 0), [query.value, onlyState.value, onlyProject.value, onlyHost.value, onlyProgram.value]);

  if (list.length === 0) return <><h2 class="visually-hidden">Sessions</h2><Empty /></>;
  return (
    <VirtualList id="sessions" label="Sessions" items={list} keyOf={(row: Row) => row.kind + row.key} height={(row) => (row.kind === "group" ? group_px : width)}
      reveal={(scroll) => (scrollToRow.current = scroll)}>
      {(row) => row.kind === "group" ? (
        <div class="group" data-waiting={row.project === undefined ? "" : undefined}>
          <h2>{row.host ? <HostLink name={row.host} /> : null}{row.project ? <Project path={row.project} /> : row.project === "" ? <span class="dir">unknown project</span> : row.title}</h2> <span class="count">{row.count}</span> {row.host ? <OfflineNote name={row.host} /> : null}
        </div>
      ) : <SessionRow frame={row.session.frame} session={row.session} phase={row.phase} show_project={row.show_project} />}
    </VirtualList>
  );
}
