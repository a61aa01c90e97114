/**
 * Types of the server's responses: views, models and metrics of a job, logs, the job list, the
 * cluster and the server.
 *
 * Documented in docs/server.md. All values come from a cluster, a container or a notebook: show
 * them as text, never as markup, and follow addresses only through `safeLink`.
 */

import type { IJobEvent, IJobRecord } from './record';

/**
 * `live` from the job's port, `shipped` from its directory, `final` from its record, or `backend`.
 */
export type Source = 'live' | 'shipped' | 'final' | 'backend';

/** A job as a card shows it. */
export interface IJobView {
  record: IJobRecord;
  source: Source;
  pending: string;
  /** Recommended action for the end reason, one sentence; empty for none. */
  advice: string;
  /** What a cancel discards (the variables of a kernel), one sentence; empty for nothing. */
  lost_if_cancelled: string;
  /** One sentence about the current state, or the end and its details. */
  status: string;
  /** The task whose log is shown first. */
  log_task: string;
  /** Number of tasks; `record.tasks` contains at most 200. */
  task_count: number;
  events: IJobEvent[];
  /** The command that runs the job again, `submarine run ...`; empty if it is not known. */
  command: string;
  /** Path of the notebook on the server and the cell that submitted the job; empty if unknown. */
  notebook: string;
  cell_id: string;
  /** Whether the user of this server may cancel, save or rerun the job. */
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

/** Where a saved version comes from, or the final model if `version` is empty. */
export interface ILineage {
  version: string;
  /** Labels and words. */
  rows: [string, string][];
}

/**
 * Samples of one quantity of one task. `t` in seconds since the epoch; null values were not
 * measured.
 */
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
  stream: 'stdout' | 'stderr' | 'helper';
  /** Current length in bytes. */
  length: number;
}

/**
 * Write times of a log: `GET jobs/ID/log/times?task=&attempt=&stream=&offset=&limit=`, for `limit`
 * bytes (default: all) from `offset` (default: 0).
 */
export interface ILogTimes {
  /** The attempt; the newest one if the request does not name one. */
  attempt: string;
  /**
   * `[offset, time]` in order, at most 2,000: all bytes before `offset` were written by `time`. The
   * time of a byte is that of the first pair with a larger offset; it is unknown after the last
   * pair.
   */
  times: [number, number][];
  /**
   * True if the times come from the task's own index (1 s resolution), false if from the upload of
   * segments.
   */
  exact: boolean;
}

export interface ISearchHit {
  /** Byte offsets of the line and of the match in the log. */
  line_offset: number;
  offset: number;
  /** Length of the match in bytes. */
  length: number;
  /** When the match was written, in seconds since the epoch; 0 if unknown. */
  time: number;
  /** The line, decoded, at most 2,000 characters. */
  text: string;
}

/** Identifies a log. */
export interface ILogPlace {
  task: string;
  attempt: string;
  stream: string;
}

/** A position in several logs, and the bytes to read from it: body of `POST jobs/ID/log/page`. */
export interface ILogPageQuery {
  /** Offset in each log, by `worker:0/e1-a1/stdout`. */
  at: Record<string, number>;
  /** Begin at the ends of the logs; `at` has the known lengths. Implies `backward`. */
  end?: boolean;
  /** The log whose offset determines the position in the others by its time; both directions. */
  around?: string;
  backward?: boolean;
  /** Bytes of all logs together. */
  limit: number;
}

/** Bytes of several logs in order of time. */
export interface ILogPage {
  /**
   * The logs in the order of `at`; `at_line`: whether `offset` is the start of a line; `data` is in
   * base64.
   */
  logs: { offset: number; length: number; at_line: boolean; data: string }[];
  /**
   * `[log, end, time]`: the next bytes, of the log with this number, up to `end`. They were written
   * at `time`, in seconds since the epoch; 0 if unknown. Blocks of the same time are in the order
   * of the logs.
   */
  order: [number, number, number][];
}

/** A search in a log; `from` is a byte offset, `backward` searches towards 0. */
export interface ILogQuery {
  text: string;
  regex: boolean;
  matchCase: boolean;
  from: number;
  backward: boolean;
  limit: number;
}

/** A row of the job list. */
export interface IJobRow extends Pick<
  IJobRecord,
  | 'job_id'
  | 'name'
  | 'state'
  | 'user'
  | 'queue'
  | 'backend'
  | 'created'
  | 'finished'
  | 'progress'
  | 'application_id'
  | 'workflow'
  | 'workflow_run'
  | 'workflow_node'
> {
  started: number | null;
  tasks: number;
  gpus: number;
  /** Why the job waits or ended, one sentence. */
  detail: string;
  notebook: string;
  cell_id: string;
}

export interface IJobsPage {
  jobs: IJobRow[];
  total: number;
  next: string | null;
  /** Why the list may be outdated, one sentence; empty if it is current. */
  problem: string;
}

export interface IQueue {
  name: string;
  state: string;
  /** Guaranteed and used share of the cluster, in percent. */
  capacity: number | null;
  used: number | null;
  gpus_total: number | null;
  gpus_used: number | null;
  /** GPUs that a job could get in this queue now, after the shares of other queues. */
  gpus_free: number | null;
  /** Applications that wait for a container, including those that already have some. */
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

/** An application that holds GPUs. */
export interface IGpuHolder {
  application_id: string;
  /** null: not a Submarine job. */
  job_id: string | null;
  name: string;
  user: string;
  queue: string;
  gpus: number;
  /** Hosts on which it certainly holds GPUs; empty if they cannot be derived. */
  hosts: string[];
  /** Whether it belongs to the user of this server. */
  mine: boolean;
}

export interface ICluster {
  backend: string;
  queues: IQueue[];
  nodes: INode[];
  /** Limited to the applications that the ResourceManager shows to this user. */
  holders?: IGpuHolder[];
  gpus_total: number;
  gpus_free: number;
  /** Why the information is incomplete, one sentence. */
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

/** The body of an error response. */
export interface IErrorBody {
  error: string;
  fix: string;
  code: string;
}

/** A kernel that the server is starting in a container. */
export interface IKernelStart {
  /** Name of the kernelspec. */
  readonly kernel: string;
  /** The document of the kernel. */
  readonly notebook: string;
  /** Progress or the reason for waiting; empty if unknown. */
  readonly words: string;
}
