/** Determine the byte ranges to read for a position or a direction, and read them. */

import type { IRest } from '../../tokens';
import type { LogSource } from './source';
import type { IPart } from './row';

/** Bytes per read of all logs together. */
export const PAGE = 128 * 1024;
const SMALLEST_SHARE = 8 * 1024;
/** Number of logs that are read for a page in the middle, and at the end. */
const LOGS_A_PAGE = 8;
const LOGS_AT_END = 48;
const REQUESTS_AT_ONCE = 6;

/** A position: the start, the end, or an offset in one log. */
export type Anchor = 'start' | 'end' | { source: LogSource; offset: number };

/** A byte range to read; a negative offset counts from the end. */
export interface IReadRange {
  readonly source: LogSource;
  readonly offset: number;
  readonly limit: number;
}

/** The data of a range, with the length of the log. */
export interface IReadResult extends IPart {
  readonly length: number;
}

/** The first ranges for a position. Other logs are read when they are scrolled to. */
export function rangesAround(
  sources: readonly LogSource[],
  anchor: Anchor,
  page: number
): IReadRange[] {
  const filled = sources.filter(source => source.length > 0);
  if (anchor === 'end') {
    // The last logs: the view must end at the end of the log. `rangesBefore` reads the logs before
    // them.
    const group = filled.slice(-LOGS_AT_END);
    return group.map(source => {
      const limit = share(source, group, page);
      return { source, offset: -limit, limit };
    });
  }
  if (anchor === 'start') {
    const group = filled.slice(0, LOGS_A_PAGE);
    return group.map(source => ({ source, offset: 0, limit: share(source, group, page) }));
  }
  const part = anchor.offset / Math.max(1, anchor.source.length);
  const others = filled.filter(source => source !== anchor.source).slice(0, LOGS_A_PAGE - 1);
  const group = [anchor.source, ...others];
  return group.map(source => {
    const limit = share(source, group, page);
    const centre = source === anchor.source ? anchor.offset : Math.floor(part * source.length);
    return { source, offset: Math.max(0, centre - Math.floor(limit / 2)), limit };
  });
}

/** The offset of a log for a position before it is read. */
export function startOffset(source: LogSource, anchor: Anchor): number {
  if (anchor === 'end') {
    return source.length;
  }
  if (anchor === 'start') {
    return 0;
  }
  const part = anchor.offset / Math.max(1, anchor.source.length);
  return Math.min(source.length, Math.floor(part * source.length));
}

/** Ranges before the window, of the logs whose loaded part starts latest. */
export function rangesBefore(sources: readonly LogSource[], page: number): IReadRange[] {
  const group = sources
    .filter(source => source.lo > 0)
    .sort((a, b) => b.lo / b.length - a.lo / a.length || b.index - a.index)
    .slice(0, LOGS_A_PAGE)
    .sort((a, b) => a.index - b.index);
  return group.map(source => {
    const limit = Math.min(share(source, group, page), source.lo);
    return { source, offset: source.lo - limit, limit };
  });
}

/** Ranges after the window, of the logs whose loaded part ends earliest. */
export function rangesAfter(sources: readonly LogSource[], page: number): IReadRange[] {
  const group = sources
    .filter(source => source.hi < source.length)
    .sort((a, b) => a.hi / a.length - b.hi / b.length)
    .slice(0, LOGS_A_PAGE);
  return group.map(source => ({ source, offset: source.hi, limit: share(source, group, page) }));
}

/** Read ranges, a few at a time, in order. */
export async function readAll(
  rest: IRest,
  job: string,
  ranges: readonly IReadRange[],
  signal: AbortSignal
): Promise<IReadResult[]> {
  const parts: IReadResult[] = [];
  for (let i = 0; i < ranges.length; i += REQUESTS_AT_ONCE) {
    const some = ranges.slice(i, i + REQUESTS_AT_ONCE).map(async ({ source, offset, limit }) => {
      const where = { task: source.task, attempt: source.attempt, stream: source.stream };
      return { source, ...(await rest.log(job, where, offset, limit, signal)) };
    });
    parts.push(...(await Promise.all(some)));
  }
  return parts;
}

function share(source: LogSource, group: readonly LogSource[], page: number): number {
  const sum = group.reduce((total, one) => total + one.length, 0);
  const part = Math.floor((page * source.length) / Math.max(1, sum));
  return Math.max(SMALLEST_SHARE, Math.min(page, part));
}
