/**
 * Types of a job record.
 *
 * Documented in docs/server.md. All values come from a cluster, a container or a notebook: show
 * them as text, never as markup, and follow addresses only through `safeLink`.
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

/** Final states. A job in a final state does not change, except LOST. */
export const ENDED: ReadonlySet<State> = new Set<State>([
  'SUCCEEDED',
  'FAILED',
  'CANCELLED',
  'LOST'
]);

/** A phase of a job. All times are seconds since the epoch. */
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
  /** Label and id of the collected cell, and the line in it, from 1. */
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
  /** The workflow, run and node that started the job; empty if it was not started by a workflow. */
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
