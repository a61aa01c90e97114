/**
 * The job record. Written by `python scripts/record_schema.py` from its declaration in Python;
 * do not edit.
 */

/**
 * The state of a job.
 *
 * Parameters
 * ----------
 * resources
 *     ``requested``: role -> {memory (MiB), vcores, gpus, overhead (MiB)};
 *     ``used``: memory_peak (MiB), cpu_seconds, and from YARN memory_seconds, vcore_seconds.
 * logs
 *     ``"worker:0/e1-a1/stdout"`` -> length in bytes.
 * links
 *     Label -> URL: the application's YARN page, its log page, the user's quicklinks.
 * missing
 *     What is known to be absent, one sentence each (the end of a log that was not shipped).
 * behind
 *     Seconds by which a view from shipped data may lag; None for live or final data.
 * last_known
 *     Whether the state could not be requested, so that the job may have changed since, or ended.
 * epoch
 *     Number of the gang's (re)start, from 1.
 * pending
 *     Why the job waits, one sentence; empty if it does not.
 * warnings
 *     What its owner must know of a job that may have succeeded, one sentence each.
 * workflow, workflow_run, workflow_node
 *     Origin of the job if a workflow started it; otherwise empty.
 * notes
 *     Remarks on the request, one sentence each (a path that the program writes by itself).
 * hints
 *     What the owner can improve, one sentence each (memory that was requested and not used, an
 *     idle GPU).
 */
export interface IJobRecord {
  job_id: string;
  name: string;
  state: State;
  version: number;
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
  tasks: ITaskRecord[];
  events: IEvent[];
  failure: IFailure | null;
  resources: Record<string, unknown>;
  outputs: IOutput[];
  logs: Record<string, number>;
  links: Record<string, string>;
  missing: string[];
  behind: number | null;
  last_known: boolean;
  written_by: string;
  epoch: number;
  pending: string;
  hints: string[];
  notes: string[];
  warnings: string[];
  workflow: string;
  workflow_run: string;
  workflow_node: string;
  saved_outputs: ISavedOutput[];
}

/**
 * State of a job; the value is used in JSON and displayed to users.
 */
export type State =
  | 'CANCELLED'
  | 'FAILED'
  | 'FINISHING'
  | 'LOST'
  | 'PENDING'
  | 'RESTARTING'
  | 'RUNNING'
  | 'STARTING'
  | 'SUBMITTING'
  | 'SUCCEEDED';

/**
 * One period of a job; times are seconds since the epoch (UTC).
 *
 * The name is one of ``PHASES``.
 */
export interface IPhase {
  name: string;
  start: number;
  end: number | null;
}

/**
 * One task of a job; memory in MiB, times in seconds since the epoch.
 *
 * Parameters
 * ----------
 * gpus
 *     Devices of the container: ``GPU-<uuid>`` if the driver reports it, else their numbers.
 * gpu_percent, gpu_memory
 *     Mean utilisation (0 to 100) and memory (MiB) over the task's devices at the last sample.
 * restarts
 *     How often this task was restarted after a fault, in place or with its gang.
 * reason, detail
 *     Why its last attempt ended; None and empty while it runs.
 * network
 *     Interface and address that the framework was configured to use, ``eth0 10.0.0.7``.
 */
export interface ITaskRecord {
  task: string;
  role: string;
  index: number;
  epoch: number;
  attempt: number;
  state: State;
  container_id: string | null;
  host: string | null;
  pid: number | null;
  started: number | null;
  finished: number | null;
  exit_code: number | null;
  signal: number | null;
  progress: number | null;
  gpus: string[];
  memory_now: number | null;
  memory_peak: number | null;
  cpu_seconds: number | null;
  log_url: string | null;
  gpu_percent: number | null;
  gpu_memory: number | null;
  restarts: number;
  reason: string | null;
  detail: string;
  network: string | null;
}

/**
 * A change of state, or another fact for the job's history.
 *
 * ``seq`` counts from 0 within one writer (``client``, ``agent``, or ``coordinator-1`` for the
 * coordinator in the first attempt of its application). ``kind`` is ``state`` or a short word
 * such as ``claimed``, ``shipped``, ``warning``, ``cancel_requested``, ``task`` (``data["task"]``
 * is the task's record), ``gang``, ``restart``.
 */
export interface IEvent {
  seq: number;
  time: number;
  kind: string;
  writer: string;
  state: State | null;
  reason: string | null;
  detail: string;
  task: string | null;
  data: Record<string, unknown>;
}

/**
 * The exception that ended a program; the innermost frame is the last, as Python prints it.
 *
 * Parameters
 * ----------
 * time
 *     When it was raised, in seconds since the epoch by the clock of its node; None: unknown.
 * rank
 *     Rank of the process; None if the job has only one.
 */
export interface IFailure {
  type: string;
  message: string;
  frames: ITracebackFrame[];
  text: string;
  time: number | null;
  rank: number | null;
}

/**
 * One frame of a failed program; ``cell`` and ``cell_line`` are set if it is in a cell.
 */
export interface ITracebackFrame {
  file: string;
  line: number;
  function: string;
  code: string;
  cell: string | null;
  cell_id: string | null;
  cell_line: number | null;
}

/**
 * A file of the job directory that the job saved: relative path, size in bytes.
 */
export interface IOutput {
  path: string;
  size: number;
}

/**
 * A published output of ``--save-output``: name, URI of its directory, files, bytes.
 */
export interface ISavedOutput {
  name: string;
  uri: string;
  files: number;
  bytes: number;
}
