import { useEffect, useRef } from "preact/hooks";
import { signal } from "@preact/signals";
import { copiedText, copy } from "./actions.js";
import { Cards } from "./Cards.js";
import { connection, ready, rest, sessions } from "./connection.js";
import { ConnectionHelp } from "./ConnectionStatus.js";
import type { SessionState } from "../../sdk/src/index.js";
import { cost, plural } from "./format.js";
import { onMoveFocus, onRowAction, showCard } from "./keyboard.js";
import { address, follow, go, grouping, onlyHost, onlyProgram, onlyProject, onlyState, query, sorting } from "./route.js";
import { cards, hosts, matches, nameOf, rows, snoozed, type Row } from "./rows.js";
import { Elapsed } from "./SessionParts.js";
import { snoozing } from "./snooze.js";
import { SessionRow, expanded, toggleDetails } from "./SessionRow.js";
import { VirtualList } from "./VirtualList.js";

const narrow = signal(innerWidth < 720);
addEventListener("resize", () => (narrow.value = innerWidth < 720));

// Heights in pixels: keep in agreement with overview.css.
const group_px = 44;
const quiet_px = 56;
const row_px = { wide: 48, narrow: 84 };
const animated_rows_max = 200; // above it the marks of working sessions do not pulse
const details_px = { wide: 76, narrow: 148 };

/** Sessions that the daemon has not sent yet. */
function Loading() {
  const left = rest.value?.sessions ?? 0;
  return left > 0 ? <p class="loading" role="status">{plural(left, "more session")} {left === 1 ? "is" : "are"} being loaded…</p> : null;
}

function Empty() {
  if (rest.value) return <div class="empty"><Loading /></div>;
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

function HostName({ name }: { name: string }) {
  const only = { on: onlyHost.value === name ? "" : name };
  const host = hosts.value.get(name);
  return (
    <>
      <a class="host" href={address(only)} onClick={follow(only)} title={only.on ? `Only ${name}` : "All hosts"}>{name}</a>
      {host?.offline ? <> <span class="offline">offline{host.last_online ? <><span class="long">, last seen</span> <Elapsed since={host.last_online} short /> ago</> : ""}</span></> : null}
    </>
  );
}

/** How many of the group's rows work, and what they cost as far as it is known. */
function Sums({ members }: { members: readonly SessionState[] }) {
  if (members.length < 2) return null;
  let working = 0, usd = 0, unknown = 0, estimated = false;
  for (const { frame } of members) {
    if (frame.status.state === "working") working++;
    if (frame.usage.cost_usd === undefined) unknown++;
    else usd += frame.usage.cost_usd;
    estimated ||= (frame.usage.cost_source ?? "recorded") !== "recorded";
  }
  const price = unknown === members.length ? "" : cost(usd, estimated);
  const title = `${plural(members.length, "session")}, from their beginning${unknown > 0 ? `; ${unknown} without a known cost` : ""}`;
  return <span class="sums" title={title}>{[working > 0 && `${working.toLocaleString()} working`, price && `${price}${unknown > 0 ? " known" : ""} for these ${members.length.toLocaleString()}`].filter(Boolean).join(" · ")}</span>;
}

function Group({ row }: { row: Row & { kind: "group" } }) {
  const offline = row.host !== undefined && hosts.value.get(row.host)?.offline;
  return (
    <div class="group" data-offline={offline ? "" : undefined}>
      <h2>{row.host ? <HostName name={row.host} /> : row.project ? <Project path={row.project} /> : row.title}</h2> <span class="count">{row.count.toLocaleString()}</span> <Sums members={row.members} />
    </div>
  );
}

function Quiet({ row: { count, all_ended, open } }: { row: Row & { kind: "quiet" } }) {
  return <button type="button" class="quiet-line" data-item="quiet" aria-expanded={open} onClick={() => go({ quiet: open ? "" : "1" }, true)}>{count.toLocaleString()} {all_ended ? "ended" : "ended or quiet"}</button>;
}

/** The names of the columns. For screen readers each row is one sentence. */
const ColumnNames = () => <div class="columns-head" aria-hidden="true"><span>Session</span><span class="tool">Now</span><span>To do</span><span>Context</span><span>Cost</span><span title="Time in the present state">For</span></div>;

/** What j and k move between: cards, rows, and the line of quiet sessions. */
function focusable(): string[] {
  return [...cards.peek().map(({ key }) => key), ...rows.peek().rows.filter(({ kind }) => kind !== "group").map(({ key }) => key)];
}

export function Overview() {
  const { rows: list } = rows.value;
  const open = expanded.value;
  const size = narrow.value ? "narrow" : "wide";
  const heightOf = (row: Row) => (row.kind === "group" ? group_px : row.kind === "quiet" ? quiet_px : row_px[size] + (open.has(row.key) ? details_px[size] : 0));
  const scrollToRow = useRef<(index: number) => void>(() => {});

  useEffect(() => onMoveFocus((step) => {
    const all = focusable();
    const focused = document.activeElement?.closest<HTMLElement>("[data-item]") ?? document.activeElement?.closest(".card")?.querySelector<HTMLElement>("[data-item]");
    const at = all.indexOf(focused?.dataset.item ?? "");
    const key = at < 0 ? all.at(step > 0 ? 0 : -1) : all[at + step];
    if (key === undefined) return;
    const index = rows.peek().rows.findIndex((row) => row.kind !== "group" && row.key === key);
    if (index >= 0) scrollToRow.current(index);
    requestAnimationFrame(() => {
      const element = document.querySelector<HTMLElement>(`[data-item="${CSS.escape(key)}"]`);
      element?.focus({ preventScroll: true });
      if (index < 0) showCard(element);
    });
  }), []);
  useEffect(() => onRowAction((action) => {
    const key = document.activeElement?.closest<HTMLElement>("[data-item]")?.dataset.item ?? document.activeElement?.closest(".card")?.querySelector<HTMLElement>("[data-item]")?.dataset.item;
    const session = sessions.peek().find((one) => one.key === key);
    if (!session) return;
    if (action === "details") toggleDetails(session.key);
    else if (action === "snooze") snoozing.value = cards.peek().includes(session) ? session.key : "";
    else void copy(session.frame, action);
  }), []);
  useEffect(() => scrollTo(0, 0), [query.value, onlyState.value, onlyProject.value, onlyHost.value, onlyProgram.value, grouping.value, sorting.value]);

  if (matches.value === 0 && snoozed.value.length === 0) return <><h2 class="visually-hidden">Sessions</h2><Empty /></>;
  return (
    <>
      <div id="sessions" class="overview">
        <Cards />
        {list.length > 0 ? (
          <section class="list" data-many={list.length > animated_rows_max ? "" : undefined} aria-label="All other sessions">
            {list.some(({ kind }) => kind === "session") ? <ColumnNames /> : null}
            <VirtualList id="rows" label="Sessions" items={list} keyOf={(row: Row) => row.kind + row.key} height={heightOf} heights={[open, size]} reveal={(scroll) => (scrollToRow.current = scroll)}>
              {(row) => row.kind === "group" ? <Group row={row} /> : row.kind === "quiet" ? <Quiet row={row} />
                : <SessionRow frame={row.session.frame} session={row.session} phase={row.phase} show_project={row.show_project} show_host={row.show_host} />}
            </VirtualList>
          </section>
        ) : null}
        {matches.value === 0 ? <Empty /> : <Loading />}
      </div>
      {copiedText.value ? <p class="copied-note" aria-hidden="true">{copiedText.value}</p> : null}
    </>
  );
}
