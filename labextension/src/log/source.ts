/**
 * One log of a job: a task's attempt and stream, how long it is and which bytes of it are in the
 * window. Reads nothing and shows nothing.
 */

import type { ILogInfo } from '../api/log_types';
import { LineReader } from './lines';

export type Stream = 'stdout' | 'stderr';

export interface IWhere {
  readonly task: string;
  readonly attempt: string;
  readonly stream: string;
}

/** The name of a log in a vector of positions, as in the channel's `at`. */
export function keyOf(where: IWhere): string {
  return `${where.task}/${where.attempt}/${where.stream}`;
}

/** Order of attempts: `e1-a2` before `e2-a1` before `e10-a1`. */
export function compareAttempts(first: string, second: string): number {
  return first.localeCompare(second, 'en', { numeric: true });
}

/** Order of tasks: `worker:2` before `worker:10`. */
export function compareTasks(first: string, second: string): number {
  return first.localeCompare(second, 'en', { numeric: true });
}

/** What the reader of the log chose to see. */
export interface IFilter {
  /** Name of the task; empty: all of them. */
  readonly task: string;
  /** `stdout`, `stderr`, or empty for both. */
  readonly stream: Stream | '';
  /** `e1-a1`; `latest`: the newest of each task and those that come; empty: all. */
  readonly attempt: string;
}

/** The logs among these that a filter lets through, in the order of tasks, attempts and streams. */
export function chosen(logs: readonly ILogInfo[], filter: IFilter): ILogInfo[] {
  const newest = new Map<string, string>();
  for (const log of logs) {
    const known = newest.get(log.task);
    if (known === undefined || compareAttempts(known, log.attempt) < 0) {
      newest.set(log.task, log.attempt);
    }
  }
  return logs
    .filter(
      log =>
        (filter.task === '' || log.task === filter.task) &&
        (filter.stream === '' || log.stream === filter.stream) &&
        (filter.attempt === '' ||
          log.attempt === (filter.attempt === 'latest' ? newest.get(log.task) : filter.attempt))
    )
    .sort(
      (a, b) =>
        compareTasks(a.task, b.task) ||
        compareAttempts(a.attempt, b.attempt) ||
        -a.stream.localeCompare(b.stream)
    );
}

/** A log in the window: bytes `lo` to `hi` of it are there. */
export class LogSource implements IWhere {
  constructor(where: IWhere, length: number, index: number) {
    this.task = where.task;
    this.attempt = where.attempt;
    this.stream = where.stream;
    this.key = keyOf(where);
    this.length = length;
    this.index = index;
    this.lo = this.hi = this.firstLength = length;
    this.reader = new LineReader(length);
  }

  readonly task: string;
  readonly attempt: string;
  readonly stream: string;
  readonly key: string;
  /** Order among the sources, for its colour and for ties. */
  readonly index: number;
  /** Bytes so far, as far as anybody told us. */
  length: number;
  lo: number;
  hi: number;
  /** Later bytes are not in the window, and live ones are not added to it. */
  detached = false;
  reader: LineReader;
  /** Length when it was first heard of: what lies behind is live. */
  firstLength: number;

  /** Forget what is in the window and continue at `offset`. */
  moveTo(offset: number): void {
    this.lo = this.hi = offset;
    this.reader = new LineReader(offset);
  }
}
