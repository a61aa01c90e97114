/** One log of a job: task, attempt, stream, length, and the byte range in the window. */

import type { ILogInfo } from '../../api/types';
import { LineReader } from './lines';

export type Stream = 'stdout' | 'stderr';

export interface IWhere {
  readonly task: string;
  readonly attempt: string;
  readonly stream: string;
}

/** Key of a log, as in the channel's `at`. */
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

/** The selection of logs. */
export interface IFilter {
  /** Name of the task; empty for all. */
  readonly task: string;
  /** `stdout`, `stderr`, or empty for both. */
  readonly stream: Stream | '';
  /** `e1-a1`; `latest` for the newest of each task, including later ones; empty for all. */
  readonly attempt: string;
}

/** The logs that match a filter, in order of tasks, attempts and streams. */
export function selectLogs(logs: readonly ILogInfo[], filter: IFilter): ILogInfo[] {
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

/** A log; the window contains its bytes from `lo` to `hi`. */
export class LogSource implements IWhere {
  constructor(where: IWhere, length: number) {
    this.task = where.task;
    this.attempt = where.attempt;
    this.stream = where.stream;
    this.key = keyOf(where);
    this.length = length;
    this.lo = this.hi = length;
    this.reader = new LineReader(length);
  }

  readonly task: string;
  readonly attempt: string;
  readonly stream: string;
  readonly key: string;
  /** Known length in bytes. */
  length: number;
  lo: number;
  hi: number;
  reader: LineReader;

  /** Clear the range and continue at `offset`. */
  moveTo(offset: number): void {
    this.lo = this.hi = offset;
    this.reader = new LineReader(offset);
  }
}
