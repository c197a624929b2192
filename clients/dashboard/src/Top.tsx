import { sessions } from "./connection.js";
import { ConnectionHelp, ConnectionStatus } from "./ConnectionStatus.js";
import { showHelp } from "./Dialog.js";
import { notificationsBlocked, preferences, setPreferences, toggleNotifications } from "./notifications.js";
import { follow, go, onlyHost, onlyProgram, onlyProject, onlyState, openSession, query, address } from "./route.js";
import { programName } from "./format.js";
import { LimitList } from "./SessionParts.js";
import { counts, hosts, isTeam, limits, phaseLabels, phases, programs, showsPrograms, unseenCount } from "./rows.js";

function Toggle(props: { on: boolean; label: string; title: string; toggle: () => void }) {
  return <button type="button" class="toggle" aria-pressed={props.on} title={props.title} onClick={props.toggle}>{props.label}</button>;
}

/** A select instead of chips: a team may have a thousand hosts. Contains the selected host even if it has no session. */
function HostFilter() {
  const selected = onlyHost.value;
  if (!isTeam.value && !selected) return null;
  return (
    <select id="host" aria-label="Host" value={selected} data-selected={selected ? "" : undefined} onChange={(event) => go({ on: event.currentTarget.value })}>
      <option value="">All hosts</option>
      {selected && !hosts.value.has(selected) ? <option value={selected} selected>{selected}</option> : null}
      {[...hosts.value.values()].map(({ name, sessions, offline }) => <option key={name} value={name} selected={name === selected}>{`${name} (${sessions})${offline ? ", offline" : ""}`}</option>)}
    </select>
  );
}

function ProgramFilter() {
  const selected = onlyProgram.value;
  if (!showsPrograms.value && !selected) return null;
  const known = programs.value;
  return (
    <select id="program" aria-label="Agent program" value={selected} data-selected={selected ? "" : undefined} onChange={(event) => go({ program: event.currentTarget.value })}>
      <option value="">All programs</option>
      {selected && !known.has(selected) ? <option value={selected} selected>{programName(selected)}</option> : null}
      {[...known].map(([program, count]) => <option key={program} value={program} selected={program === selected}>{`${programName(program)} (${count})`}</option>)}
    </select>
  );
}

function StateChip({ state, label, count, title }: { state: string; label: string; count: number; title?: string }) {
  if (count === 0 && onlyState.value !== state) return null;
  return (
    <button type="button" class="chip" data-state={state} title={title} aria-pressed={onlyState.value === state} onClick={() => go({ state: onlyState.value === state ? "" : state })}>
      {label} <b>{count}</b>
    </button>
  );
}

function Filters() {
  const counted = counts.value;
  return (
    <div class="filters">
      <input id="search" type="search" placeholder="Search" aria-label="Search sessions" title="Press / to search" autocomplete="off" spellcheck={false} value={query.value}
        onInput={(event) => go({ q: event.currentTarget.value }, true)} />
      <HostFilter />
      <ProgramFilter />
      <div class="chips" role="group" aria-label="Show only">
        {phases.map((phase) => (
          <>
            <StateChip state={phase} label={phaseLabels[phase]} count={counted[phase]} />
            {phase === "waiting" ? <StateChip state="unseen" label="unseen" count={unseenCount.value} title="Finished since you last looked" /> : null}
          </>
        ))}
        {onlyProject.value ? <button type="button" class="chip" aria-pressed="true" onClick={() => go({ project: "" })}>{onlyProject.value} ✕</button> : null}
      </div>
      <LimitList limits={limits.value} />
    </div>
  );
}

export function Top() {
  const { notify, sound } = preferences.value;
  const has_sessions = sessions.value.length > 0;
  return (
    <header class="top">
      <div class="bar">
        <h1><a href={address({ session: "", host: "" })} onClick={follow({ session: "", host: "" })}>earshot</a></h1>
        <ConnectionStatus />
        <div class="toggles">
          {"Notification" in window ? <Toggle on={notify} label={notificationsBlocked.value ? "Notify: blocked" : "Notify"} title={notificationsBlocked.value ? "Blocked by the browser: allow notifications for this page in its settings" : "Notify when a session needs you and this page is hidden"} toggle={() => void toggleNotifications()} /> : null}
          <Toggle on={sound} label="Sound" title="Play a tone when a session needs you" toggle={() => setPreferences({ sound: !sound })} />
          <button type="button" class="toggle" title="Keys (?)" aria-label="Keys" onClick={showHelp}>?</button>
        </div>
        {has_sessions || openSession.value ? <ConnectionHelp place="advice" /> : null}
      </div>
      {has_sessions && !openSession.value ? <Filters /> : null}
    </header>
  );
}
