/** The known logs of a job, those that a filter selects, and their byte ranges in the window. */

import { keyOf } from '../../api/log_bytes';
import type { ILogInfo, ILogPlace } from '../../api/types';
import { LineReader } from './lines';
import type { IRow } from './window';

export const STREAMS = ['stdout', 'stderr', 'helper'] as const;
export type Stream = (typeof STREAMS)[number];

export function streamOf(name: string): Stream | undefined {
  return STREAMS.find(stream => stream === name);
}

/** Order of attempts and tasks: `worker:2` before `worker:10`, `e2-a1` before `e10-a1`. */
export function compareNames(first: string, second: string): number {
  return first.localeCompare(second, 'en', { numeric: true });
}

/** The selection of logs. */
export interface IFilter {
  /** Name of the task; empty for all. */
  readonly task: string;
  /** Name of the stream; empty for all. */
  readonly stream: Stream | '';
  /** `e1-a1`; `latest` for the newest of each task, including later ones; empty for all. */
  readonly attempt: string;
}

/** The logs that match a filter, in order of tasks, attempts and streams. */
export function selectLogs(logs: readonly ILogInfo[], filter: IFilter): ILogInfo[] {
  const newest = new Map<string, string>();
  for (const log of logs) {
    const known = newest.get(log.task);
    if (known === undefined || compareNames(known, log.attempt) < 0) {
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
        compareNames(a.task, b.task) ||
        compareNames(a.attempt, b.attempt) ||
        STREAMS.indexOf(a.stream) - STREAMS.indexOf(b.stream)
    );
}

/** A log; the window contains its bytes from `lo` to `hi`. */
export class LogSource implements ILogPlace {
  constructor(where: ILogPlace, length: number) {
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

export class Sources {
  constructor(filter: IFilter) {
    this._filter = filter;
  }

  get filter(): IFilter {
    return this._filter;
  }

  /** All known logs of the job. */
  get logs(): readonly ILogInfo[] {
    return [...this._logs.values()];
  }

  /** The selected logs in order. */
  get shown(): readonly LogSource[] {
    return [...this._shown.values()];
  }

  /** Total length of the selected logs. */
  get total(): number {
    return this.shown.reduce((sum, source) => sum + source.length, 0);
  }

  get canEarlier(): boolean {
    return this.shown.some(source => source.lo > 0);
  }

  get canLater(): boolean {
    return this.shown.some(source => source.hi < source.length);
  }

  /** Length of each log, for the `at` of a subscription. */
  get lengths(): Record<string, number> {
    return Object.fromEntries([...this._logs].map(([key, log]) => [key, log.length]));
  }

  /** Set the list of the server and select by the filter; all sources are replaced. */
  list(logs: readonly ILogInfo[]): void {
    for (const log of logs) {
      this._logs.set(keyOf(log), { ...log });
    }
    const old = this._shown;
    this._shown = new Map();
    for (const log of selectLogs(this.logs, this._filter)) {
      const length = Math.max(log.length, old.get(keyOf(log))?.length ?? 0);
      this._shown.set(keyOf(log), new LogSource(log, length));
    }
  }

  /** Set the filter for the next `list`. */
  setFilter(filter: IFilter): void {
    this._filter = filter;
  }

  /**
   * Bytes of a log arrived: returns its source if it is selected, and whether the log is new.
   *
   * A new log belongs to the next attempt of a task, or to a task that started late.
   */
  add(
    where: ILogPlace,
    offset: number,
    end: number
  ): { source: LogSource | undefined; isNew: boolean } {
    const key = keyOf(where);
    const log = this._logs.get(key);
    if (log === undefined) {
      const stream = streamOf(where.stream) ?? 'stdout';
      this._addSource({ ...where, stream, length: end }, offset);
    } else {
      log.length = Math.max(log.length, end);
    }
    return { source: this._shown.get(key), isNew: log === undefined };
  }

  /** The position of the row at `index`: an offset in each selected log. */
  offsets(rows: readonly IRow[], index: number): Map<LogSource, number> {
    const found = new Map<LogSource, number>();
    for (let i = Math.max(0, index); i < rows.length && found.size < this._shown.size; i++) {
      const row = rows[i];
      if (row !== undefined && !found.has(row.source)) {
        found.set(row.source, row.offset);
      }
    }
    for (const source of this._shown.values()) {
      found.set(source, found.get(source) ?? source.hi);
    }
    return found;
  }

  private _addSource(log: ILogInfo, offset: number): void {
    this._logs.set(keyOf(log), log);
    if (selectLogs(this.logs, this._filter).includes(log)) {
      const source = new LogSource(log, offset);
      this._shown.set(source.key, source);
    }
  }

  private _filter: IFilter;
  private readonly _logs = new Map<string, ILogInfo>();
  private _shown = new Map<string, LogSource>();
}
