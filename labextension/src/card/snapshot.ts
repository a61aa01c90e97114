/**
 * Parse the JSON of a job from a notebook output. The notebook is not trusted.
 *
 * Every field of the result has its declared type, and texts and lists are bounded; invalid values
 * are dropped. Only the server knows whether the job exists and to which user it belongs.
 */

import type {
  IFailure,
  IFrame,
  IJobRecord,
  IJobView,
  IPhase,
  ITask,
  Source,
  State
} from '../api/job_types';

const JOB_ID = /^[a-z0-9][a-z0-9-]{0,62}-\d{8}-[0-9a-f]{4,12}$/;
/**
 * Control characters, bidirectional overrides, separators and lone surrogates, which move or hide
 * text.
 */
const UNFIT =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]|\p{Surrogate}|[\u{e0000}-\u{e007f}]/gu;
const STATES: ReadonlySet<string> = new Set([
  'SUBMITTING',
  'PENDING',
  'STARTING',
  'RUNNING',
  'RESTARTING',
  'FINISHING',
  'SUCCEEDED',
  'FAILED',
  'CANCELLED',
  'LOST'
]);
const SOURCES: ReadonlySet<string> = new Set(['live', 'shipped', 'final', 'backend']);
const MAX_ITEMS = 50;
const MAX_TEXT = 4000;
const MAX_NUMBER = 1e15;

/** The content of an output. */
export interface ISnapshot {
  jobId: string;
  view: IJobView;
  /** Time of the snapshot; null in outputs of older versions. */
  time: number | null;
  /** Values that the cell returned, by name. */
  result: Record<string, string>;
}

type Plain = Record<string, unknown>;

/** Whether a value is a valid job id; checked before it is sent to the server. */
export function isJobId(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 100 && JOB_ID.test(value);
}

/** The snapshot of an output; null if it does not name a job. */
export function readSnapshot(data: unknown): ISnapshot | null {
  const source = plain(data);
  if (!isJobId(source['job_id'])) {
    return null;
  }
  const record = readRecord(plain(source['record']), source['job_id'], text(source['name'], 200));
  const roles = Object.values(plain(source['roles'])).slice(0, MAX_ITEMS);
  const counted = roles
    .flatMap(states => Object.values(plain(states)))
    .reduce<number>((sum, number) => sum + Math.max(0, whole(number) ?? 0), 0);
  const from = text(source['source']);
  return {
    jobId: source['job_id'],
    time: num(source['time']),
    result: texts(source['result'], 200),
    view: {
      record,
      source: SOURCES.has(from) ? (from as Source) : 'backend',
      pending: text(source['pending']),
      advice: text(source['advice']),
      lost_if_cancelled: '',
      reason_sentence: text(source['reason_sentence']),
      log_task: text(source['log_task'], 200),
      task_count: Math.max(counted, record.tasks.length),
      events: [],
      command: '',
      notebook: '',
      cell_id: '',
      mine: false,
      has_tensorboard: false
    }
  };
}

function readRecord(source: Plain, jobId: string, name: string): IJobRecord {
  return {
    job_id: jobId,
    name: name || text(source['name'], 200) || jobId,
    state: state(source['state']),
    user: text(source['user'], 200),
    backend: text(source['backend'], 200),
    job_dir: text(source['job_dir'], 2000),
    queue: text(source['queue'], 200) || null,
    application_id: text(source['application_id'], 200) || null,
    workflow: text(source['workflow'], 200),
    workflow_run: text(source['workflow_run'], 200),
    workflow_node: text(source['workflow_node'], 200),
    created: num(source['created']),
    finished: num(source['finished']),
    reason: text(source['reason'], 200) || null,
    detail: text(source['detail']),
    exit_code: whole(source['exit_code']),
    signal: whole(source['signal']),
    progress: num(source['progress']),
    phases: list(source['phases'], readPhase),
    tasks: list(source['tasks'], readTask),
    failure: readFailure(source['failure']),
    resources: plain(source['resources']),
    outputs: list(source['outputs'], item => {
      const path = text(item['path'], 2000);
      return path ? { path, size: num(item['size']) ?? 0 } : null;
    }),
    logs: {},
    links: texts(source['links'], 2000),
    warnings: sentences(source['warnings']),
    missing: sentences(source['missing']),
    behind: num(source['behind']),
    epoch: whole(source['epoch']) ?? 1,
    pending: text(source['pending']),
    hints: sentences(source['hints']),
    notes: sentences(source['notes'])
  };
}

function readPhase(source: Plain): IPhase | null {
  const start = num(source['start']);
  return start === null ? null : { name: text(source['name'], 40), start, end: num(source['end']) };
}

function readTask(source: Plain): ITask | null {
  const task = text(source['task'], 80);
  if (!task) {
    return null;
  }
  return {
    task,
    role: text(source['role'], 80) || task.replace(/:.*/, ''),
    index: whole(source['index']) ?? 0,
    epoch: whole(source['epoch']) ?? 1,
    attempt: whole(source['attempt']) ?? 1,
    state: state(source['state']),
    container_id: text(source['container_id'], 200) || null,
    host: text(source['host'], 200) || null,
    started: num(source['started']),
    finished: num(source['finished']),
    exit_code: whole(source['exit_code']),
    signal: whole(source['signal']),
    progress: num(source['progress']),
    gpus: array(source['gpus'])
      .map(gpu => text(gpu, 80))
      .filter(Boolean),
    memory_now: num(source['memory_now']),
    memory_peak: num(source['memory_peak']),
    cpu_seconds: num(source['cpu_seconds']),
    gpu_percent: num(source['gpu_percent']),
    gpu_memory: num(source['gpu_memory']),
    restarts: Math.max(0, whole(source['restarts']) ?? 0),
    reason: text(source['reason'], 200) || null,
    detail: text(source['detail']),
    log_url: text(source['log_url'], 2000) || null
  };
}

function readFailure(value: unknown): IFailure | null {
  const source = plain(value);
  const type = text(source['type'], 200);
  if (!type) {
    return null;
  }
  return {
    type,
    message: text(source['message']),
    frames: list(source['frames'], readFrame),
    text: text(source['text'])
  };
}

function readFrame(source: Plain): IFrame | null {
  return {
    file: text(source['file'], 1000),
    line: whole(source['line']) ?? 0,
    function: text(source['function'], 200),
    code: text(source['code'], 500),
    cell: text(source['cell'], 80) || null,
    cell_id: text(source['cell_id'], 80) || null,
    cell_line: whole(source['cell_line'])
  };
}

function state(value: unknown): State {
  return typeof value === 'string' && STATES.has(value) ? (value as State) : 'LOST';
}

function plain(value: unknown): Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Plain)
    : {};
}

function array(value: unknown): unknown[] {
  return Array.isArray(value) ? value.slice(0, MAX_ITEMS) : [];
}

function list<T>(value: unknown, read: (source: Plain) => T | null): T[] {
  return array(value)
    .map(item => read(plain(item)))
    .filter(item => item !== null);
}

function sentences(value: unknown): string[] {
  return array(value)
    .map(item => text(item))
    .filter(Boolean);
}

function texts(value: unknown, limit: number): Record<string, string> {
  const entries = Object.entries(plain(value)).slice(0, MAX_ITEMS);
  return Object.fromEntries(
    entries
      .map(([key, item]) => [text(key, 200), text(item, limit)] as const)
      .filter(([key, item]) => key && item)
  );
}

function text(value: unknown, limit: number = MAX_TEXT): string {
  if (typeof value !== 'string') {
    return '';
  }
  const cut = value.length > limit ? `${value.slice(0, limit - 1)}…` : value;
  return cut.replace(UNFIT, '\ufffd');
}

function num(value: unknown): number | null {
  return typeof value === 'number' && Math.abs(value) < MAX_NUMBER ? value : null;
}

function whole(value: unknown): number | null {
  return Number.isInteger(value) ? num(value) : null;
}
