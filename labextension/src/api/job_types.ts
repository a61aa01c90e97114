/**
 * What the server extension answers about one job: its record, its view, its models and curves.
 *
 * The same words as in docs/server.md. Everything in here came from a cluster, a container or a
 * notebook: it is text to be shown, never markup, never a place to go to without `safeLink`.
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
  /** What started it, if a workflow did: its name, its run, the node; else empty. */
  workflow: string;
  workflow_run: string;
  workflow_node: string;
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
  warnings: string[];
  missing: string[];
  behind: number | null;
  epoch: number;
  pending: string;
  hints: string[];
  notes: string[];
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
  /** What a cancel would end for good (a kernel's variables), one sentence; empty for nothing. */
  lost_if_cancelled: string;
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
