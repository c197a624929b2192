// Made by scripts/generate.mjs out of protocol/schema: `npm run generate` after a change there. Do not edit.

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

/** The machine that the transcript lies on. */
export type Host = string;

/** The events of one transcript: the root's name, `/`, the path below `projects/` without `.jsonl`; `:`, `%` and bytes that are no UTF-8 are percent-encoded. */
export type Stream = string;

/** What the user calls a session: one main stream and the streams of its subagents. */
export type SessionName = string;

/** Opaque: a place in a transcript, after the event that carries it. */
export type Cursor = string;

/** `<stream>:<cursor>` */
export type Place = string;

/** RFC 3339 */
export type Time = string;

export type Count = number;

/** Text, or the beginning of a long one, cut on a character boundary. */
export type Text = string;

/** Sizes of cut texts. */
export type Truncated = Record<string, Count>;

/** Tokens. */
export type Tokens = {
  input: Count;
  output: Count;
  cache_read: Count;
  cache_write: Count;
};

export type Todo = {
  id?: string;
  content?: Text;
  /** `pending`, `in_progress`, `completed`, or another word of the agent program's */
  status: string;
  active_form?: Text;
  priority?: string;
};

/** An image or a document that stood beside text; its content is not sent. */
export type Media = {
  kind: "image" | "document" | (string & {});
  /** such as `image/png` */
  media_type: string;
  /** the decoded size */
  bytes?: Count;
};

/** What a session is doing now. */
export type SessionStatus = {
  state: "working" | "waiting" | "idle" | "ended" | "unknown";
  /** of `waiting`: what for; of `idle`: `background` when a shell still runs; of `working`: `compaction`; of `unknown`, at a hub: `host_offline` */
  reason?: "permission" | "question" | "plan" | "dialog" | "background" | "compaction" | "host_offline" | (string & {});
  /** what is asked, for people: the tool and its input, cut */
  detail?: string;
  source: "registry" | "transcript" | "clock" | (string & {});
  since?: Time;
};

/** A tool call without a result yet. */
export type OpenTool = {
  call: string;
  tool: string;
  input?: JsonValue;
  started?: Time;
  /** of a subagent that is written into the same transcript */
  agent?: string;
};

/** chosen by the client; comes back with what answers it */
export type Id = string;

export type EventFields = {
  type: string;
  host: Host;
  stream: Stream;
  session: SessionName;
  /** the subagent; absent on the session's main chain */
  agent?: string;
  cursor: Cursor;
  /** as the transcript says it; absent where it says none. Not monotonic. */
  time?: Time;
  /** 1, 2, … in this stream; 0 before the first */
  turn: Count;
  truncated?: Truncated;
};

/** The first record with a `uuid` was read. */
export type SessionStarted = Omit<EventFields, "type"> & {
  type: "session.started";
  program?: string;
  /** how this transcript is written */
  dialect: string;
  /** of the agent program */
  version?: string;
  cwd?: string;
  git_branch?: string;
  /** the first working directory */
  project?: string;
  title?: Text;
  /** the last record of an earlier session that this one goes on from */
  continues?: string;
  mode?: string;
  permission_mode?: string;
};

/** Something about the session changed: only what changed is here. */
export type SessionUpdated = Omit<EventFields, "type"> & {
  type: "session.updated";
  title?: Text;
  cwd?: string;
  git_branch?: string;
  model?: string;
  version?: string;
  mode?: string;
  permission_mode?: string;
};

/** The agent took up work. */
export type TurnStarted = Omit<EventFields, "type"> & {
  type: "turn.started";
  /** absent when there was none */
  prompt?: Text;
  origin: "human" | "command" | "queued" | "task" | "hook" | "agent" | "unknown" | (string & {});
};

/** The agent handed control back. */
export type TurnFinished = Omit<EventFields, "type"> & {
  type: "turn.finished";
  outcome: "completed" | "interrupted" | "failed" | "superseded";
  /** the transcript does not say so: the next prompt proves it */
  inferred?: true;
  stop_reason?: string;
  duration_ms?: Count;
  /** calls of the stream's own chain */
  tools: Count;
  /** of this turn */
  usage: Tokens;
};

/** Something was said. */
export type MessageAdded = Omit<EventFields, "type"> & {
  type: "message.added";
  role: "user" | "assistant" | "system" | "summary";
  /** `text`, `thinking`, `image`, `document`, or another word */
  kind: string;
  text?: Text;
  /** the message's id: one message may come in several events */
  message?: string;
  model?: string;
  media?: Media;
};

/** A tool was called. */
export type ToolInvoked = Omit<EventFields, "type"> & {
  type: "tool.invoked";
  /** pairs with `tool.finished` */
  call: string;
  tool: string;
  /** absent when the call was written without one */
  input?: JsonValue;
  message?: string;
};

/** A call has its result, or will never have one. */
export type ToolFinished = Omit<EventFields, "type"> & {
  type: "tool.finished";
  call: string;
  /** absent when the call was never seen; empty when it had no name */
  tool?: string;
  outcome: "ok" | "error" | "denied" | "interrupted" | "abandoned";
  output?: Text;
  media?: Array<Media>;
  duration_ms?: Count;
  /** the task that goes on in the background */
  background?: string;
};

/** The list of things to do, whole, after a change. */
export type TodoUpdated = Omit<EventFields, "type"> & {
  type: "todo.updated";
  todos: Array<Todo>;
  /** the tool, or `task_reminder` */
  source: string;
};

/** The context is being compacted. */
export type CompactionStarted = Omit<EventFields, "type"> & {
  type: "compaction.started";
  /** `auto` or `manual` */
  trigger?: string;
};

/** The context was compacted. */
export type CompactionFinished = Omit<EventFields, "type"> & {
  type: "compaction.finished";
  /** `auto` or `manual` */
  trigger?: string;
  pre_tokens?: Count;
  post_tokens?: Count;
  duration_ms?: Count;
  kind: "full" | "micro" | (string & {});
};

/** A subagent was started: told in its parent's stream. */
export type AgentStarted = Omit<EventFields, "type"> & {
  type: "agent.started";
  /** its id; absent until a record tells it */
  subagent?: string;
  agent_type?: string;
  description?: Text;
  /** the parent's call */
  call: string;
  background?: true;
};

/** A subagent is done: told in its parent's stream. */
export type AgentFinished = Omit<EventFields, "type"> & {
  type: "agent.finished";
  subagent?: string;
  agent_type?: string;
  description?: Text;
  call?: string;
  outcome: "completed" | "failed" | "denied" | "interrupted" | "stopped" | "abandoned";
  duration_ms?: Count;
  tokens?: Count;
  tools?: Count;
  background?: true;
};

/** Background work reported back. */
export type TaskFinished = Omit<EventFields, "type"> & {
  type: "task.finished";
  task: string;
  call?: string;
  outcome: "completed" | "failed" | "killed" | "stopped" | (string & {});
  summary?: Text;
};

/** A prompt was queued, or taken from the queue. */
export type QueueChanged = Omit<EventFields, "type"> & {
  type: "queue.changed";
  /** the agent program's word, such as `enqueue`, `dequeue`, `remove` */
  operation: string;
  text?: Text;
};

/** Tokens were counted, once a message. */
export type UsageUpdated = Omit<EventFields, "type"> & {
  type: "usage.updated";
  message?: string;
  model?: string;
  /** this message's, as are `output`, `cache_read`, `cache_write`: all four or none */
  input?: Count;
  output?: Count;
  cache_read?: Count;
  cache_write?: Count;
  /** the stream's, so far: absolute, never an increment */
  total: Tokens;
  /** in all, where the transcript says it; it can fall */
  cost_usd?: number;
};

/** The model's API refused, or a try is repeated. */
export type ApiFailed = Omit<EventFields, "type"> & {
  type: "api.failed";
  /** HTTP */
  status?: number;
  error?: Text;
  attempt?: Count;
  max_attempts?: Count;
  retry_in_ms?: Count;
  /** no further try: the turn failed */
  fatal: boolean;
};

/** Files were saved as they were, to be able to go back. */
export type FilesSnapshotted = Omit<EventFields, "type"> & {
  type: "files.snapshotted";
  message?: string;
  files?: Array<string>;
  files_count?: number;
};

/** Lines could not be used, or only in part. */
export type LineSkipped = Omit<EventFields, "type"> & {
  type: "line.skipped";
  /** byte offset of the first one's first byte */
  line: Count;
  lines: number;
  /** of all of them, with their line feeds */
  bytes: number;
  reason: "not JSON" | "nested too deeply" | "too long" | (string & {});
  /** whole records on the line were used */
  salvaged: boolean;
};

/** The connection is authenticated. The first frame, always. */
export type Welcome = {
  type: "welcome";
  protocol: 1;
  /** name and version */
  server: string;
  /** changes when the daemon starts again */
  instance: string;
  host: Host;
  view: "full" | "meta";
  limits: {
    /** the longest message that a client may send */
    frame_bytes: number;
    /** on this connection */
    subscriptions: number;
    outbound_bytes: number;
  };
};

/** All that is known about a session: a snapshot. */
export type SessionFrame = {
  type: "session";
  host: Host;
  session: SessionName;
  program?: string;
  /** exactly these events came before this frame; one entry a stream */
  cursors: Array<Place>;
  /** the first working directory; absent until it is known */
  project?: string;
  /** the name of the transcript's directory: stands for the project until that is known */
  directory: string;
  title?: Text;
  model?: string;
  version?: string;
  git_branch?: string;
  mode?: string;
  permission_mode?: string;
  dialect?: string;
  status: SessionStatus;
  /** of the main stream: the one that is open, else the last one */
  turn: {
    number: Count;
    open: boolean;
    started?: Time;
    prompt?: Text;
    outcome?: "completed" | "interrupted" | "failed" | "superseded";
    finished?: Time;
  };
  /** the main stream's open calls, oldest first */
  tools: Array<OpenTool>;
  todos: Array<Todo>;
  /** subagents that are at work */
  agents: Array<{
    agent?: string;
    agent_type?: string;
    description?: Text;
    call?: string;
    background?: true;
    started?: Time;
    tools: Array<OpenTool>;
  }>;
  /** of all streams of the session */
  usage: {
    input: Count;
    output: Count;
    cache_read: Count;
    cache_write: Count;
    /** tokens in the main stream's context */
    context?: Count;
    cost_usd?: number;
  };
  last_activity?: Time;
  /** the beginning of what the agent said last */
  last_text?: Text;
  truncated?: Truncated;
};

export type Heartbeat = {
  type: "heartbeat";
  time: Time;
};

export type Unsubscribed = {
  type: "unsubscribed";
  id: Id;
};

/** The snapshot is complete; what follows is live. */
export type Ready = {
  type: "ready";
  id: Id;
};

/** What a session is doing now. Not numbered, never replayed: the newest one is the truth. */
export type StatusFrame = Omit<SessionStatus, "type"> & {
  type: "status";
  host: Host;
  session: SessionName;
};

/** The client was too slow: events are missing here. Fresh `session` frames follow. */
export type Lagged = {
  type: "lagged";
  id: Id;
};

/** What was told of this stream is no longer what its file says: forget its cursor. */
export type Reset = {
  type: "reset";
  host?: Host;
  session?: SessionName;
  stream: Stream;
  reason: string;
  /** of the subscription whose `after` is answered; absent when it happened live */
  id?: Id;
};

/** The stream's transcript is gone. */
export type StreamRemoved = {
  type: "stream.removed";
  host?: Host;
  session?: SessionName;
  stream: Stream;
};

/** Where streams have come to, though no event of them may have matched the filter. */
export type Bookmark = {
  type: "bookmark";
  /** of a subscription with `after`: what it missed has been sent; absent: it comes now and then */
  id?: Id;
  /** the last one in answer to `after` */
  complete?: true;
  cursors: Array<Place>;
};

/** A record, whole, in as many parts as it takes: join their `data`. */
export type RecordFrame = {
  type: "record";
  id: Id;
  part: number;
  parts: number;
  /** the line is no JSON: `data` is its text */
  json?: false;
  /** JSON text, redacted */
  data: string;
};

/** Something that the client asked for cannot be had. The connection stands unless it is closed. */
export type ErrorFrame = {
  type: "error";
  /** of the request; absent when it had none */
  id?: Id;
  code: "bad_message" | "bad_filter" | "bad_cursor" | "limit" | "not_allowed" | "not_found" | "busy" | "host_offline" | (string & {});
  /** for people */
  message: string;
  /** the same request may succeed later */
  retry: boolean;
};

/** Proves that the client may listen, where it could not set an `Authorization` header. */
export type Hello = {
  type: "hello";
  token: string;
  /** `meta` asks to be shown less */
  view?: "full" | "meta";
  /** who is calling, for the daemon's log: `dashboard/1.0` */
  client?: string;
};

/** Asks for sessions and their events. */
export type Subscribe = {
  type: "subscribe";
  id: Id;
  /** lists are ORed in a key, keys are ANDed; `*` and `?` only */
  filter?: {
    project?: Array<string>;
    session?: Array<string>;
    host?: Array<string>;
    program?: Array<string>;
    type?: Array<string>;
  };
  deliver?: "events" | "state";
  snapshot?: boolean;
  /** `session` frames of sessions that are not live, too */
  all?: boolean;
  /** what a client that falls behind gets: `lagged` and fresh `session` frames, or what it missed, from the files */
  on_lag?: "snapshot" | "catch_up";
  /** the last cursor of each stream that the client handled; an empty one is the beginning */
  after?: Array<string>;
  since?: Time;
  new_streams?: "beginning" | "snapshot";
};

/** Ends a subscription. */
export type Unsubscribe = {
  type: "unsubscribe";
  id: Id;
};

/** Asks for the whole record behind a cursor. */
export type Read = {
  type: "read";
  id: Id;
  stream: Stream;
  cursor: Cursor;
};

/** What happened in a transcript. */
export type EarshotEvent = SessionStarted | SessionUpdated | TurnStarted | TurnFinished | MessageAdded | ToolInvoked | ToolFinished | TodoUpdated | CompactionStarted | CompactionFinished | AgentStarted | AgentFinished | TaskFinished | QueueChanged | UsageUpdated | ApiFailed | FilesSnapshotted | LineSkipped;

/** What the daemon sends. A type that is not listed is from a later daemon: ignore it. */
export type Frame = EarshotEvent | Welcome | SessionFrame | Ready | StatusFrame | Lagged | Reset | StreamRemoved | Bookmark | Heartbeat | Unsubscribed | RecordFrame | ErrorFrame;

/** What a client sends. */
export type ClientMessage = Hello | Subscribe | Unsubscribe | Read;

export const eventTypes = ["session.started","session.updated","turn.started","turn.finished","message.added","tool.invoked","tool.finished","todo.updated","compaction.started","compaction.finished","agent.started","agent.finished","task.finished","queue.changed","usage.updated","api.failed","files.snapshotted","line.skipped"] as const;
export type EventType = (typeof eventTypes)[number];
