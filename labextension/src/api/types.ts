/**
 * What the server extension answers: the same words as in docs/server.md.
 *
 * Everything in here came from a cluster, a container or a notebook: it is text to be shown, never
 * markup, never a place to go to without `safeLink`.
 */

export type State =
  | 'SUBMITTING'
  | 'PENDING'
  | 'STARTING'
  | 'RUNNING'
  | 'RESTARTING'
  | 'FINISHING'
  | 'SUCCEEDED'
  | 'FAILED'
  | 'CANCELLED'
  | 'LOST';

/** Which states are final; a job in one of them changes no more (LOST may). */
export const ENDED: ReadonlySet<State> = new Set<State>([
  'SUCCEEDED',
  'FAILED',
  'CANCELLED',
  'LOST'
]);

/** One stretch of a job's life; times in seconds since the epoch, as everywhere. */
export interface IPhase {
  name: string;
  start: number;
  end: number | null;
}

export interface IJobEvent {
  seq: number;
  time: number;
  kind: string;
  writer: string;
  state: State | null;
  reason: string | null;
  detail: string;
  task: string | null;
}

export interface ITask {
  task: string;
  role: string;
  index: number;
  epoch: number;
  attempt: number;
  state: State;
  container_id: string | null;
  host: string | null;
  started: number | null;
  finished: number | null;
  exit_code: number | null;
  signal: number | null;
  /** 0 to 1. */
  progress: number | null;
  gpus: string[];
  /** MiB. */
  memory_now: number | null;
  memory_peak: number | null;
  cpu_seconds: number | null;
  gpu_percent: number | null;
  gpu_memory: number | null;
  restarts: number;
  reason: string | null;
  detail: string;
  log_url: string | null;
}

export interface IFrame {
  file: string;
  line: number;
  function: string;
  code: string;
  /** Label of the collected cell, its id and the line in it, from 1. */
  cell: string | null;
  cell_id: string | null;
  cell_line: number | null;
}

export interface IFailure {
  type: string;
  message: string;
  frames: IFrame[];
  text: string;
}

/** The job record without its events. */
export interface IJobRecord {
  job_id: string;
  name: string;
  state: State;
  user: string;
  backend: string;
  job_dir: string;
  queue: string | null;
  application_id: string | null;
  created: number | null;
  finished: number | null;
  reason: string | null;
  detail: string;
  exit_code: number | null;
  signal: number | null;
  progress: number | null;
  phases: IPhase[];
  tasks: ITask[];
  failure: IFailure | null;
  resources: Record<string, unknown>;
  outputs: { path: string; size: number }[];
  logs: Record<string, number>;
  links: Record<string, string>;
  missing: string[];
  behind: number | null;
  epoch: number;
  pending: string;
  hints: string[];
}

/** `live` from the job's port, `shipped` from its directory, `final`, or what the backend says. */
export type Source = 'live' | 'shipped' | 'final' | 'backend';

/** A job as a card shows it. */
export interface IJobView {
  record: IJobRecord;
  source: Source;
  pending: string;
  /** What to do about the end reason, one sentence; empty for none. */
  advice: string;
  /** The sentence of the end reason; empty while there is none. */
  reason_sentence: string;
  /** The task whose log speaks for the job. */
  log_task: string;
  /** How many tasks there are; `record.tasks` holds at most 200. */
  task_count: number;
  events: IJobEvent[];
  /** The words that would run it again: `submarine run ...`. Empty where it is not known. */
  command: string;
  /** The notebook's path as the server sees it and the cell that launched it; empty: unknown. */
  notebook: string;
  cell_id: string;
  /** Whether this server's user may act on it (cancel, save, rerun). */
  mine: boolean;
  has_tensorboard: boolean;
}

/** A row of the jobs list. */
export interface IJobRow {
  job_id: string;
  name: string;
  state: State;
  user: string;
  queue: string | null;
  backend: string;
  created: number | null;
  started: number | null;
  finished: number | null;
  progress: number | null;
  tasks: number;
  gpus: number;
  /** Why it waits or ended, one sentence. */
  detail: string;
  application_id: string | null;
  notebook: string;
  cell_id: string;
  workflow: string;
}

export interface IJobsPage {
  jobs: IJobRow[];
  total: number;
  next: string | null;
  /** Why the list may be old, one sentence; empty when it is fresh. */
  problem: string;
}

export interface IModelVersion {
  version: string;
  name: string;
  time: number;
  size: number;
  files: number;
  digest: string;
}

/** Samples of one quantity of one task. `t` in seconds since the epoch; null: not measured. */
export interface ISeries {
  task: string;
  attempt: string;
  /** `cpu_percent memory gpu_percent gpu_memory progress`, or the name of a training scalar. */
  name: string;
  kind: 'resource' | 'scalar';
  /** `% MiB` or empty. */
  unit: string;
  t: number[];
  v: (number | null)[];
}

export interface ILogInfo {
  task: string;
  attempt: string;
  stream: 'stdout' | 'stderr';
  /** Bytes so far. */
  length: number;
}

/**
 * When a log had which length: `GET jobs/ID/log/times?task=&attempt=&stream=&offset=&limit=`, of the
 * bytes from `offset` on (absent: 0), `limit` of them (absent: all).
 */
export interface ILogTimes {
  /** The attempt that was meant: the newest where none is named. */
  attempt: string;
  /**
   * `[offset, time]` in order, at most 2,000: all bytes before `offset` had been written at `time`.
   * So a byte's time is that of the first pair whose offset is larger; behind the last pair: unknown.
   */
  times: [number, number][];
  /** From the task's own index, which looks every second; else from when pieces were stored. */
  exact: boolean;
}

export interface ISearchHit {
  /** Byte offset of the line's beginning, and of the match in the log. */
  line_offset: number;
  offset: number;
  /** Bytes of the match. */
  length: number;
  /** The line, decoded, at most 2,000 characters. */
  text: string;
}

export interface IQueue {
  name: string;
  state: string;
  /** Percent of the cluster that is guaranteed, and in use. */
  capacity: number | null;
  used: number | null;
  gpus_total: number | null;
  gpus_used: number | null;
  pending: number;
  running: number;
}

export interface INode {
  host: string;
  state: string;
  labels: string[];
  memory_total: number;
  memory_used: number;
  vcores_total: number;
  vcores_used: number;
  gpus_total: number;
  gpus_used: number;
  /** Job ids or application ids that hold GPUs here. */
  held_by: string[];
}

export interface ICluster {
  backend: string;
  queues: IQueue[];
  nodes: INode[];
  gpus_total: number;
  gpus_free: number;
  /** Why nothing better can be said, one sentence. */
  problem: string;
}

export interface IHealth {
  version: string;
  api: number;
  backend: string | null;
  profile: string;
  reachable: boolean;
  problem: string;
}

/** What goes wrong, as the server says it. */
export interface IErrorBody {
  error: string;
  fix: string;
  code: string;
}

/* The websocket. One per page; `id` is the page's number of a subscription. */

export type ClientMessage =
  | { op: 'subscribe'; id: number; kind: 'jobs' }
  | { op: 'subscribe'; id: number; kind: 'job'; job: string }
  | { op: 'subscribe'; id: number; kind: 'metrics'; job: string; points: number }
  | {
      op: 'subscribe';
      id: number;
      kind: 'log';
      job: string;
      /** Names of tasks, or `["*"]`. */
      tasks: string[];
      /** `worker:0/e1-a1/stdout` -> offset of the next byte wanted. */
      at: Record<string, number>;
      /** For a log that is not in `at`: begin so many bytes before its end; absent: at 0. */
      tail?: number;
    }
  | { op: 'unsubscribe'; id: number }
  /** Log data taken in, so that the server may send more: at most 1 MiB is under way. */
  | { op: 'ack'; id: number; bytes: number };

export type ServerMessage =
  | { type: 'hello'; version: string; api: number }
  /** `whole`: these are all rows that matter, else only those that changed. */
  | { id: number; type: 'jobs'; whole: boolean; rows: IJobRow[]; total: number; problem: string }
  | { id: number; type: 'job'; view: IJobView }
  | { id: number; type: 'metrics'; series: ISeries[]; whole: boolean }
  /** `data` is base64 of the log's bytes from `offset`. */
  | {
      id: number;
      type: 'log';
      task: string;
      attempt: string;
      stream: 'stdout' | 'stderr';
      offset: number;
      data: string;
    }
  /** Bytes from `offset` to `to` are not sent, because this page was slow; read them by REST. */
  | {
      id: number;
      type: 'skip';
      task: string;
      attempt: string;
      stream: 'stdout' | 'stderr';
      offset: number;
      to: number;
    }
  /**
   * The live path is down; what is sent comes from the job directory, so many seconds behind.
   * `null`: the job is heard again.
   */
  | { id: number; type: 'behind'; seconds: number | null }
  /** Nothing more will come: the log is complete, or the job has ended. */
  | { id: number; type: 'end' }
  | { id: number; type: 'error'; error: string; fix: string; code: string };
