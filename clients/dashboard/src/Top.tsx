import { sessions } from "./connection.js";
import { showHelp } from "./Help.js";
import { blocked, choose, preferences, toggleNotify } from "./preferences.js";
import { follow, go, onlyHost, onlyProject, onlyState, openSession, query, address } from "./route.js";
import { counts, hosts, phaseWords, phases, team } from "./rows.js";
import { Advice, State } from "./State.js";

function Toggle(props: { on: boolean; label: string; title: string; toggle: () => void }) {
  return <button type="button" class="toggle" aria-pressed={props.on} title={props.title} onClick={props.toggle}>{props.label}</button>;
}

/** A list and no chips: a team may have a thousand. One that is asked for and not there stays to be seen. */
function Hosts() {
  const chosen = onlyHost.value;
  if (!team.value && !chosen) return null;
  return (
    <select id="host" aria-label="Host" value={chosen} data-chosen={chosen ? "" : undefined} onChange={(event) => go({ on: event.currentTarget.value })}>
      <option value="">All hosts</option>
      {chosen && !hosts.value.has(chosen) ? <option value={chosen} selected>{chosen}</option> : null}
      {[...hosts.value.values()].map(({ name, count, away }) => <option key={name} value={name} selected={name === chosen}>{`${name} (${count})${away ? ", away" : ""}`}</option>)}
    </select>
  );
}

function Filters() {
  const found = counts.value;
  return (
    <div class="filters">
      <input id="search" type="search" placeholder="Search" aria-label="Search sessions" title="Press / to search" autocomplete="off" spellcheck={false} value={query.value}
        onInput={(event) => go({ q: event.currentTarget.value }, true)} />
      <Hosts />
      <div class="chips" role="group" aria-label="Show only">
        {phases.filter((phase) => found[phase] > 0 || onlyState.value === phase).map((phase) => (
          <button type="button" class="chip" data-state={phase} aria-pressed={onlyState.value === phase} onClick={() => go({ state: onlyState.value === phase ? "" : phase })}>
            {phaseWords[phase]} <b>{found[phase]}</b>
          </button>
        ))}
        {onlyProject.value ? <button type="button" class="chip" aria-pressed="true" onClick={() => go({ project: "" })}>{onlyProject.value} ✕</button> : null}
      </div>
    </div>
  );
}

export function Top() {
  const { notify, sound } = preferences.value;
  const some = sessions.value.length > 0;
  return (
    <header class="top">
      <div class="bar">
        <h1><a href={address({ session: "", host: "" })} onClick={follow({ session: "", host: "" })}>earshot</a></h1>
        <State />
        <div class="toggles">
          {"Notification" in window ? <Toggle on={notify} label={blocked.value ? "Notify: blocked" : "Notify"} title={blocked.value ? "The browser forbids it: allow notifications for this page in its settings" : "A notification when someone needs you and this page is hidden"} toggle={() => void toggleNotify()} /> : null}
          <Toggle on={sound} label="Sound" title="A soft tone when someone needs you" toggle={() => choose({ sound: !sound })} />
          <button type="button" class="toggle" title="Keys (?)" aria-label="Keys" onClick={showHelp}>?</button>
        </div>
        {some || openSession.value ? <Advice place="advice" /> : null}
      </div>
      {some && !openSession.value ? <Filters /> : null}
    </header>
  );
}
