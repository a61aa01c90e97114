/**
 * Parse the JSON of a job from a notebook output. The notebook is not trusted.
 *
 * Every field of the result has its declared type, and texts and lists are bounded; invalid values
 * are dropped. The server checks whether the job exists and to which user it belongs.
 */

import type { IFailure, IFrame, IJobRecord, IPhase, ITask, State } from '../api/record';
import type { IJobView, Source } from '../api/types';

const JOB_ID = /^[a-z0-9][a-z0-9-]{0,62}-\d{8}-[0-9a-f]{4,12}$/;
/**
 * Control characters, bidirectional overrides, separators and lone surrogates, which move or hide
 * text.
 */
const UNSAFE_CHARACTERS =
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

type JsonObject = Record<string, unknown>;

/** Whether a value is a valid job id; checked before it is sent to the server. */
export function isJobId(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 100 && JOB_ID.test(value);
}

/** The snapshot of an output; null if it does not name a job. */
export function readSnapshot(data: unknown): ISnapshot | null {
  const source = asObject(data);
  if (!isJobId(source['job_id'])) {
    return null;
  }
  const record = readRecord(
    asObject(source['record']),
    source['job_id'],
    asText(source['name'], 200)
  );
  const roles = Object.values(asObject(source['roles'])).slice(0, MAX_ITEMS);
  const counted = roles
    .flatMap(states => Object.values(asObject(states)))
    .reduce<number>((sum, number) => sum + Math.max(0, asInteger(number) ?? 0), 0);
  const from = asText(source['source']);
  return {
    jobId: source['job_id'],
    time: asNumber(source['time']),
    result: asTexts(source['result'], 200),
    view: {
      record,
      source: SOURCES.has(from) ? (from as Source) : 'backend',
      pending: asText(source['pending']),
      advice: asText(source['advice']),
      lost_if_cancelled: '',
      status: asText(source['status']),
      log_task: asText(source['log_task'], 200),
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

function readRecord(source: JsonObject, jobId: string, name: string): IJobRecord {
  return {
    job_id: jobId,
    name: name || asText(source['name'], 200) || jobId,
    state: asState(source['state']),
    user: asText(source['user'], 200),
    backend: asText(source['backend'], 200),
    job_dir: asText(source['job_dir'], 2000),
    queue: asText(source['queue'], 200) || null,
    application_id: asText(source['application_id'], 200) || null,
    workflow: asText(source['workflow'], 200),
    workflow_run: asText(source['workflow_run'], 200),
    workflow_node: asText(source['workflow_node'], 200),
    created: asNumber(source['created']),
    finished: asNumber(source['finished']),
    reason: asText(source['reason'], 200) || null,
    detail: asText(source['detail']),
    exit_code: asInteger(source['exit_code']),
    signal: asInteger(source['signal']),
    progress: asNumber(source['progress']),
    phases: asList(source['phases'], readPhase),
    tasks: asList(source['tasks'], readTask),
    failure: readFailure(source['failure']),
    resources: asObject(source['resources']),
    outputs: asList(source['outputs'], item => {
      const path = asText(item['path'], 2000);
      return path ? { path, size: asNumber(item['size']) ?? 0 } : null;
    }),
    saved_outputs: asList(source['saved_outputs'], item => {
      const [name, uri] = [asText(item['name'], 200), asText(item['uri'], 2000)];
      const [files, bytes] = [asInteger(item['files']), asNumber(item['bytes'])];
      return name && uri ? { name, uri, files: files ?? 0, bytes: bytes ?? 0 } : null;
    }),
    logs: {},
    links: asTexts(source['links'], 2000),
    warnings: asSentences(source['warnings']),
    missing: asSentences(source['missing']),
    behind: asNumber(source['behind']),
    epoch: asInteger(source['epoch']) ?? 1,
    pending: asText(source['pending']),
    hints: asSentences(source['hints']),
    notes: asSentences(source['notes'])
  };
}

function readPhase(source: JsonObject): IPhase | null {
  const start = asNumber(source['start']);
  return start === null
    ? null
    : { name: asText(source['name'], 40), start, end: asNumber(source['end']) };
}

function readTask(source: JsonObject): ITask | null {
  const task = asText(source['task'], 80);
  if (!task) {
    return null;
  }
  return {
    task,
    role: asText(source['role'], 80) || task.replace(/:.*/, ''),
    index: asInteger(source['index']) ?? 0,
    epoch: asInteger(source['epoch']) ?? 1,
    attempt: asInteger(source['attempt']) ?? 1,
    state: asState(source['state']),
    container_id: asText(source['container_id'], 200) || null,
    host: asText(source['host'], 200) || null,
    started: asNumber(source['started']),
    finished: asNumber(source['finished']),
    exit_code: asInteger(source['exit_code']),
    signal: asInteger(source['signal']),
    progress: asNumber(source['progress']),
    gpus: asArray(source['gpus'])
      .map(gpu => asText(gpu, 80))
      .filter(Boolean),
    memory_now: asNumber(source['memory_now']),
    memory_peak: asNumber(source['memory_peak']),
    cpu_seconds: asNumber(source['cpu_seconds']),
    gpu_percent: asNumber(source['gpu_percent']),
    gpu_memory: asNumber(source['gpu_memory']),
    restarts: Math.max(0, asInteger(source['restarts']) ?? 0),
    reason: asText(source['reason'], 200) || null,
    detail: asText(source['detail']),
    log_url: asText(source['log_url'], 2000) || null
  };
}

function readFailure(value: unknown): IFailure | null {
  const source = asObject(value);
  const type = asText(source['type'], 200);
  if (!type) {
    return null;
  }
  return {
    type,
    message: asText(source['message']),
    frames: asList(source['frames'], readFrame),
    text: asText(source['text']),
    time: asNumber(source['time']),
    rank: asInteger(source['rank'])
  };
}

function readFrame(source: JsonObject): IFrame | null {
  return {
    file: asText(source['file'], 1000),
    line: asInteger(source['line']) ?? 0,
    function: asText(source['function'], 200),
    code: asText(source['code'], 500),
    cell: asText(source['cell'], 80) || null,
    cell_id: asText(source['cell_id'], 80) || null,
    cell_line: asInteger(source['cell_line'])
  };
}

function asState(value: unknown): State {
  return typeof value === 'string' && STATES.has(value) ? (value as State) : 'LOST';
}

function asObject(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : {};
}

function asArray(value: unknown): unknown[] {
  return Array.isArray(value) ? value.slice(0, MAX_ITEMS) : [];
}

function asList<T>(value: unknown, read: (source: JsonObject) => T | null): T[] {
  return asArray(value)
    .map(item => read(asObject(item)))
    .filter(item => item !== null);
}

function asSentences(value: unknown): string[] {
  return asArray(value)
    .map(item => asText(item))
    .filter(Boolean);
}

function asTexts(value: unknown, limit: number): Record<string, string> {
  const entries = Object.entries(asObject(value)).slice(0, MAX_ITEMS);
  return Object.fromEntries(
    entries
      .map(([key, item]) => [asText(key, 200), asText(item, limit)] as const)
      .filter(([key, item]) => key && item)
  );
}

function asText(value: unknown, limit: number = MAX_TEXT): string {
  if (typeof value !== 'string') {
    return '';
  }
  const cut = value.length > limit ? `${value.slice(0, limit - 1)}…` : value;
  return cut.replace(UNSAFE_CHARACTERS, '\ufffd');
}

function asNumber(value: unknown): number | null {
  return typeof value === 'number' && Math.abs(value) < MAX_NUMBER ? value : null;
}

function asInteger(value: unknown): number | null {
  return Number.isInteger(value) ? asNumber(value) : null;
}
