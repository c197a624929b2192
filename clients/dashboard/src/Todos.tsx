import type { SessionFrame } from "../../sdk/src/index.js";

export const doneOf = (todos: SessionFrame["todos"]) => todos.filter((todo) => todo.status === "completed").length;

export function Todos({ frame, hidden }: { frame: Pick<SessionFrame, "todos">; hidden?: boolean }) {
  const all = frame.todos.length;
  if (all === 0) return <span class="todos" />;
  const done = doneOf(frame.todos);
  return (
    <span class="todos" aria-hidden={hidden} title={`${done} of ${all} things to do are done`}>
      <progress value={done} max={all} aria-label="things to do" /> {done}/{all}
    </span>
  );
}
