import { useEffect, useRef } from "preact/hooks";
import { signal } from "@preact/signals";
import { ready, sessions, state } from "./connection.js";
import { moves } from "./keyboard.js";
import { address, follow, go, onlyHost, onlyProject, onlyState, query } from "./route.js";
import { hosts, nameOf, rows, type Row } from "./rows.js";
import { SessionRow } from "./SessionRow.js";
import { Advice } from "./State.js";
import { Ticking } from "./Ticking.js";
import { VirtualList } from "./VirtualList.js";

const narrow = signal(innerWidth < 720);
addEventListener("resize", () => (narrow.value = innerWidth < 720));

const group_px = 40; // as overview.css says
const row_px = { wide: 52, narrow: 76 };

function Empty() {
  if (sessions.value.length > 0) {
    return (
      <div class="empty">
        <p>Nothing fits what is asked for.</p>
        <button type="button" onClick={() => go({ q: "", state: "", project: "", on: "" })}>Show all {sessions.value.length}</button>
      </div>
    );
  }
  if (!ready.value || state.value.state !== "live") return <Advice place="empty" />;
  return (
    <div class="empty">
      <p>No agent has been at work in the last day.</p>
      <p>Start one in a terminal, in any project: it appears here with its first prompt. To see what this looks like without one:</p>
      <pre><code>earshotd --demo</code></pre>
      <p>If one is at work and does not appear, <code>earshot doctor</code> says why.</p>
    </div>
  );
}

/** Its name tells, where it lies less so. A click shows this one only. */
function Project({ path }: { path: string }) {
  const name = nameOf(path);
  const only = { project: onlyProject.value === path ? "" : path };
  return <a href={address(only)} onClick={follow(only)} title={only.project ? `Only ${path}` : "All projects"}><span class="dir">{path.slice(0, path.length - name.length)}</span>{name}</a>;
}

function Whose({ name }: { name: string }) {
  const only = { on: onlyHost.value === name ? "" : name };
  return <><a class="whose" href={address(only)} onClick={follow(only)} title={only.on ? `Only ${name}` : "All hosts"}>{name}</a> </>;
}

function Away({ name }: { name: string }) {
  const host = hosts.value.get(name);
  if (!host?.away) return null;
  return <span class="away">away{host.heard ? <><span class="long">, last heard</span> <Ticking since={host.heard} short /> ago</> : ""}</span>;
}

export function Overview() {
  const list = rows.value;
  const width = narrow.value ? row_px.narrow : row_px.wide;
  const show = useRef<(index: number) => void>(() => {});

  useEffect(() => moves((by) => {
    const all = rows.peek();
    const focused = document.activeElement?.closest<HTMLElement>("[data-item]")?.dataset.item;
    let at = all.findIndex((row) => row.key === focused);
    if (at < 0) at = by > 0 ? -1 : all.length;
    do at += by; while (all[at]?.kind === "group");
    const row = all[at];
    if (!row) return;
    show.current(at);
    requestAnimationFrame(() => document.querySelector<HTMLElement>(`[data-item="${CSS.escape(row.key)}"]`)?.focus({ preventScroll: true }));
  }), []);
  useEffect(() => scrollTo(0, 0), [query.value, onlyState.value, onlyProject.value, onlyHost.value]);

  if (list.length === 0) return <><h2 class="unseen">Sessions</h2><Empty /></>;
  return (
    <VirtualList id="sessions" label="Sessions" items={list} keyOf={(row: Row) => row.kind + row.key} height={(row) => (row.kind === "group" ? group_px : width)}
      reveal={(given) => (show.current = given)}>
      {(row) => row.kind === "group" ? (
        <div class="group" data-waiting={row.project === undefined ? "" : undefined}>
          <h2>{row.host ? <Whose name={row.host} /> : null}{row.project ? <Project path={row.project} /> : row.project === "" ? <span class="dir">not known yet where</span> : row.title}</h2> <span class="count">{row.count}</span> {row.host ? <Away name={row.host} /> : null}
        </div>
      ) : <SessionRow frame={row.session.now} session={row.session} phase={row.phase} where={row.where} />}
    </VirtualList>
  );
}
