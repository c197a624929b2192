// The view is part of the address, so that it can be bookmarked, shared and navigated back to.
import { computed, signal } from "@preact/signals";

const search = signal(location.search);
addEventListener("popstate", () => (search.value = location.search));

const parameters = computed(() => new URLSearchParams(search.value));
const parameter = (name: string) => computed(() => parameters.value.get(name) ?? "");

export const query = parameter("q");
export const onlyState = parameter("state");
export const onlyProject = parameter("project");
export const onlyHost = parameter("on"); // `host` is the host of the open session
export const onlyProgram = parameter("program");
export const grouping = parameter("group"); // project, if empty
export const sorting = parameter("sort"); // need, if empty
export const showsQuiet = parameter("quiet"); // `1`: sessions that ended or went quiet are not folded
export const openSession = parameter("session"); // empty: the overview
export const openHost = parameter("host");
/** `<stream>@<cursor>`: the session's page opens at this event. */
export const openPlace = parameter("at");
export const openView = parameter("view"); // `history`; empty: the overview
export const findText = parameter("find");
export const historyProject = parameter("in");
export const historyDay = parameter("day");
export const historyKind = parameter("kind");

const no_session = { session: "", host: "", at: "" };
/** Changes of the address that lead to the two views. */
export const overview = { ...no_session, view: "", find: "", in: "", day: "", kind: "" };
export const historyView = { ...no_session, view: "history" };

/** Returns the address with these parameters changed; an empty value removes one. */
export function address(changes: Record<string, string>): string {
  const next = new URLSearchParams(search.value);
  if ("session" in changes) next.delete("at"); // a place is one of its session
  for (const [name, value] of Object.entries(changes)) value ? next.set(name, value) : next.delete(name);
  const text = next.toString();
  return text ? `/?${text}` : "/";
}

/** `replace`: does not add to the browser's history, for example while the user types a search. */
export function go(changes: Record<string, string>, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", address(changes));
  search.value = location.search;
  if (!replace) scrollTo(0, 0);
}

/** A filter pattern for this name. Wildcards in the name match any character: the daemon's patterns have no escape. */
export const exactPattern = (name: string) => name.replaceAll(/[*?]/g, "?");

/** Click handler of links and of elements with a link: a plain click navigates inside the page. */
export function follow(changes: Record<string, string>) {
  return (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    go(changes);
  };
}
