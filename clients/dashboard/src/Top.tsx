import { isRevoked, sessions } from "./connection.js";
import { ConnectionHelp, ConnectionStatus } from "./ConnectionStatus.js";
import { showHelp } from "./Dialog.js";
import { notificationTrouble, preferences, setPreferences, toggleNotifications } from "./notifications.js";
import { follow, go, onlyHost, onlyProgram, onlyProject, openSession, openView, query, address, historyView, overview } from "./route.js";
import { programName } from "./format.js";
import { chosenGrouping, chosenSorting, groupings, hosts, isTeam, programs, showsPrograms, sortings } from "./rows.js";
import { Summary } from "./Summary.js";

function Toggle(props: { on: boolean; label: string; title: string; toggle: () => void }) {
  return <button type="button" class="toggle" aria-pressed={props.on} title={props.title} onClick={props.toggle}>{props.label}</button>;
}

/** A select instead of chips: a team may have a thousand hosts. Contains the selected host even if it has no session. */
export function HostFilter() {
  const selected = onlyHost.value;
  if (!isTeam.value && !selected) return null;
  return (
    <select id="host" aria-label="Host" value={selected} data-selected={selected ? "" : undefined} onChange={(event) => go({ on: event.currentTarget.value })}>
      <option value="">All hosts</option>
      {selected && !hosts.value.has(selected) ? <option value={selected} selected>{selected}</option> : null}
      {[...hosts.value.values()].map(({ name, offline }) => <option key={name} value={name} selected={name === selected}>{`${name}${offline ? ", offline" : ""}`}</option>)}
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

/** How the rows are grouped or sorted: a part of the address, absent for the default. */
function Arrangement({ id, name, value, choices }: { id: "group" | "sort"; name: string; value: string; choices: Record<string, string> }) {
  const [usual] = Object.keys(choices);
  return (
    <label class="arrangement"><span>{name}</span>
      <select id={id} aria-label={name} value={value} onChange={(event) => go({ [id]: event.currentTarget.value === usual ? "" : event.currentTarget.value })}>
        {Object.entries(choices).map(([choice, label]) => <option key={choice} value={choice} selected={choice === value}>{label}</option>)}
      </select>
    </label>
  );
}

function Filters() {
  return (
    <div class="filters">
      <input id="search" type="search" placeholder="Search" aria-label="Search sessions" title="Press / to search" autocomplete="off" spellcheck={false} value={query.value}
        onInput={(event) => go({ q: event.currentTarget.value }, true)} />
      <HostFilter />
      <ProgramFilter />
      {onlyProject.value ? <button type="button" class="chip" aria-pressed="true" title={onlyProject.value} onClick={() => go({ project: "" })}><span class="path">{onlyProject.value}</span> ✕</button> : null}
      <span class="arrangements">
        <Arrangement id="group" name="Group" value={chosenGrouping.value} choices={groupings} />
        <Arrangement id="sort" name="Sort" value={chosenSorting.value} choices={sortings} />
      </span>
    </div>
  );
}

const notifyTitles = {
  "": "Notify when a session needs you or is done, and this page is hidden",
  blocked: "Blocked by the browser: allow notifications for this page in its settings",
  refused: "This browser shows no notifications of a page: use earshot-notify, or the sound",
};

export function Top() {
  const { notify, sound } = preferences.value;
  const has_sessions = sessions.value.length > 0;
  return (
    <header class="top">
      <div class="bar">
        <h1><a href={address(overview)} onClick={follow(overview)}>earshot</a></h1>
        <a class="history-link" href={address(historyView)} aria-current={openView.value === "history" ? "page" : undefined} title="All sessions, and search in their text (h)" onClick={follow(historyView)}>History</a>
        <ConnectionStatus />
        <div class="toggles">
          {"Notification" in window ? <Toggle on={notify} label={notificationTrouble.value ? `Notify: ${notificationTrouble.value}` : "Notify"} title={notifyTitles[notificationTrouble.value]} toggle={() => void toggleNotifications()} /> : null}
          <Toggle on={sound} label="Sound" title="Play a tone when a session needs you, and a lower one when it is done" toggle={() => setPreferences({ sound: !sound })} />
          <button type="button" class="toggle" title="Keys (?)" aria-label="Keys" onClick={showHelp}>?</button>
        </div>
        {has_sessions || (openSession.value && !isRevoked.value) ? <ConnectionHelp place="advice" /> : null}
      </div>
      {has_sessions && !openSession.value && !openView.value ? <><Summary /><Filters /></> : null}
    </header>
  );
}
