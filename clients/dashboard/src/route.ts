// What is shown is in the address: it can be kept, sent and gone back to.
import { computed, signal } from "@preact/signals";

const search = signal(location.search);
addEventListener("popstate", () => (search.value = location.search));

const parameters = computed(() => new URLSearchParams(search.value));
const parameter = (name: string) => computed(() => parameters.value.get(name) ?? "");

export const query = parameter("q");
export const onlyState = parameter("state");
export const onlyProject = parameter("project");
export const onlyHost = parameter("on"); // `host` is the open session's
export const openSession = parameter("session"); // the name; empty: the overview
export const openHost = parameter("host");

/** The address with these changed; an empty value takes one away. */
export function address(changes: Record<string, string>): string {
  const next = new URLSearchParams(search.value);
  for (const [name, value] of Object.entries(changes)) value ? next.set(name, value) : next.delete(name);
  const text = next.toString();
  return text ? `/?${text}` : "/";
}

/** `replace`: no new step in the browser's history, as for each letter of a search. */
export function go(changes: Record<string, string>, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", address(changes));
  search.value = location.search;
  if (!replace) scrollTo(0, 0);
}

/** A pattern of the daemon's filters that fits this name. */
export const exactly = (name: string) => name.replaceAll(/[*?]/g, "?");

/** For links and what holds one: a plain click stays in the page. */
export function follow(changes: Record<string, string>) {
  return (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    go(changes);
  };
}
