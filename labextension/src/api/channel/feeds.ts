/**
 * Feeds of the channel, except logs: the job list, one job, its metrics, kernel starts and workflow
 * runs.
 *
 * A feed is the state of a subscription that survives a lost connection. It converts server
 * messages to listener calls and does not own a connection.
 */

import type { IRunPicture } from '../../tokens';
import { ENDED } from '../record';
import type { IJobRow, IJobView, IKernelStart, ISeries } from '../types';
import type { ClientMessage, ServerMessage } from './messages';

/** Messages for a subscription. */
export type FeedMessage = Exclude<ServerMessage, { type: 'hello' }>;

/** One subscription of the page. */
export interface IFeed {
  /** Whether it belongs to a card. The number of card subscriptions is limited. */
  readonly isCard: boolean;
  /** The message that starts the subscription, or resumes it at its position. */
  request(id: number): ClientMessage;
  /**
   * Handle a message. Return the bytes of log data to acknowledge and whether to restart the
   * subscription.
   */
  handle(message: FeedMessage): { bytes?: number; restart?: boolean };
  /** The server cannot be used; report `message` to the listeners. */
  fail(message: string): void;
}

/** Listeners of one feed. */
export class Listeners<T> {
  readonly all = new Set<(value: T) => void>();

  notify(value: T): void {
    for (const listener of [...this.all]) {
      callSafely(() => {
        listener(value);
      });
    }
  }
}

/** A value, or the reason why there is none. */
export type Update<T> = { value: T } | { error: string };

/** A feed of which only the latest value matters. */
export abstract class LatestValueFeed<T> implements IFeed {
  readonly isCard: boolean = true;
  readonly listeners = new Listeners<Update<T>>();
  last: Update<T> | null = null;

  abstract request(id: number): ClientMessage;

  /** The value of a message; null if it contains none. */
  protected abstract read(message: FeedMessage): T | null;

  handle(message: FeedMessage) {
    const value = this.read(message);
    if (value !== null) {
      this.last = { value };
      this.listeners.notify(this.last);
    } else if (message.type === 'error') {
      this.fail(errorText(message));
    }
    return {};
  }

  fail(message: string): void {
    const update = { error: message };
    // Keep a known value for listeners that are added later.
    this.last = this.last && 'value' in this.last ? this.last : update;
    this.listeners.notify(update);
  }
}

/** Call a listener. Log an exception so that the other listeners are still called. */
export function callSafely(call: () => void): void {
  try {
    call();
  } catch (problem) {
    console.error('jupyter-submarine: a listener failed.', problem);
  }
}

/** The error and its fix as one text. */
export function errorText({ error, fix }: { error: string; fix: string }): string {
  return fix ? `${error} ${fix}` : error;
}

export interface IJobsUpdate {
  rows: readonly IJobRow[];
  total: number;
  problem: string;
}

/** The user's job list, updated from changed rows. */
export class JobsFeed implements IFeed {
  readonly isCard = false;
  readonly listeners = new Listeners<IJobsUpdate>();
  last: IJobsUpdate | null = null;
  private readonly _rows = new Map<string, IJobRow>();

  request(id: number): ClientMessage {
    return { op: 'subscribe', id, kind: 'jobs' };
  }

  handle(message: FeedMessage) {
    if (message.type === 'jobs') {
      if (message.whole) {
        this._rows.clear();
      }
      for (const row of message.rows) {
        this._rows.set(row.job_id, row);
      }
      this.update([...this._rows.values()].sort(byUrgency), message.total, message.problem);
    } else if (message.type === 'error') {
      this.fail(errorText(message));
    }
    return {};
  }

  fail(message: string): void {
    this.update(this.last?.rows ?? [], this.last?.total ?? 0, message);
  }

  private update(rows: readonly IJobRow[], total: number, problem: string): void {
    this.last = { rows, total, problem };
    this.listeners.notify(this.last);
  }
}

/** Order of the server: running jobs first, then by creation time, newest first. */
export function byUrgency(one: IJobRow, other: IJobRow): number {
  const ended = Number(ENDED.has(one.state)) - Number(ENDED.has(other.state));
  return ended || (other.created ?? 0) - (one.created ?? 0) || (one.job_id < other.job_id ? 1 : -1);
}

/** The view of one job. */
export class JobFeed extends LatestValueFeed<IJobView> {
  constructor(readonly job: string) {
    super();
  }

  request(id: number): ClientMessage {
    return { op: 'subscribe', id, kind: 'job', job: this.job };
  }

  protected read(message: FeedMessage): IJobView | null {
    return message.type === 'job' ? message.view : null;
  }
}

/** Metrics of one job; new points are appended to the known series. */
export class MetricsFeed implements IFeed {
  readonly isCard = true;
  readonly listeners = new Listeners<readonly ISeries[]>();
  last: readonly ISeries[] | null = null;

  constructor(
    readonly job: string,
    readonly points: number
  ) {}

  request(id: number): ClientMessage {
    return { op: 'subscribe', id, kind: 'metrics', job: this.job, points: this.points };
  }

  handle(message: FeedMessage) {
    if (message.type !== 'metrics') {
      return {};
    }
    this.last = message.whole ? message.series : appendPoints(this.last ?? [], message.series);
    this.listeners.notify(this.last);
    // The server has all points and reduces their number: restart before the series become too
    // long.
    return { restart: this.last.some(series => series.t.length > 3 * this.points) };
  }

  fail(): void {
    // The job's own feed reports the error.
  }
}

/** Append the new points to each series; skip points that are not later than the last known one. */
function appendPoints(known: readonly ISeries[], added: readonly ISeries[]): readonly ISeries[] {
  const all = new Map(known.map(series => [nameOf(series), series]));
  for (const series of added) {
    const before = all.get(nameOf(series));
    const last = before?.t.at(-1) ?? -Infinity;
    const first = series.t.findIndex(time => time > last);
    if (!before) {
      all.set(nameOf(series), series);
    } else if (first >= 0) {
      const t = [...before.t, ...series.t.slice(first)];
      all.set(nameOf(series), { ...series, t, v: [...before.v, ...series.v.slice(first)] });
    }
  }
  return [...all.values()];
}

function nameOf(series: ISeries): string {
  return JSON.stringify([series.task, series.attempt, series.kind, series.name]);
}

export class StartsFeed extends LatestValueFeed<readonly IKernelStart[]> {
  override readonly isCard = false;

  request(id: number): ClientMessage {
    return { op: 'subscribe', id, kind: 'starts' };
  }

  protected read(message: FeedMessage): readonly IKernelStart[] | null {
    return message.type === 'starts' ? message.starts : null;
  }
}

export class WorkflowFeed extends LatestValueFeed<IRunPicture> {
  constructor(
    readonly run: string,
    readonly url: string
  ) {
    super();
  }

  request(id: number): ClientMessage {
    return { op: 'subscribe', id, kind: 'workflow', run: this.run, url: this.url };
  }

  protected read(message: FeedMessage): IRunPicture | null {
    return message.type === 'workflow' ? { time: message.time, html: message.html } : null;
  }
}
