/** Read pages of the selected logs in order of time: at an end, around an offset, or next. */

import { decodeBase64 } from '../../api/log_bytes';
import type { ILogPageQuery } from '../../api/types';
import type { IRest } from '../../tokens';
import type { LogSource } from './sources';

/** Bytes per read of all logs together. */
export const PAGE = 128 * 1024;
/** Maximum number of logs in one read; of more logs, some are read after the others. */
const MAX_LOGS = 512;

/** A position: the start, the end, or an offset in one log. */
export type Anchor = 'start' | 'end' | { source: LogSource; offset: number };

/** Logs to read, and from where. */
export interface IReadRequest {
  readonly sources: readonly LogSource[];
  readonly query: ILogPageQuery;
}

/** The bytes of one log in a page, which may be empty. */
export interface IPageLog {
  readonly source: LogSource;
  readonly offset: number;
  readonly length: number;
  /** Whether `offset` is the start of a line. */
  readonly atLine: boolean;
  readonly data: Uint8Array;
}

/** Bytes of several logs, and the order in which they were written. */
export interface ILogPage {
  readonly logs: readonly IPageLog[];
  /** The next bytes: index of the log, their end, and their time in milliseconds. */
  readonly order: readonly { log: number; end: number; time: number | null }[];
}

/** The first page for a position. The lengths that are known may be outdated, also those of 0. */
export function pageAt(sources: readonly LogSource[], anchor: Anchor, limit: number): IReadRequest {
  if (anchor === 'end') {
    // The view must end at the end of the last log.
    return request(sources.slice(-MAX_LOGS), source => source.length, { end: true, limit });
  }
  if (anchor === 'start') {
    return request(sources.slice(0, MAX_LOGS), () => 0, { limit });
  }
  const others = sources.filter(source => source !== anchor.source).slice(0, MAX_LOGS - 1);
  const group = sources.filter(source => source === anchor.source || others.includes(source));
  return request(group, source => (source === anchor.source ? anchor.offset : 0), {
    around: anchor.source.key,
    limit
  });
}

/** The page before the window; null if there is nothing before it. */
export function pageBefore(sources: readonly LogSource[], limit: number): IReadRequest | null {
  const group = sources.filter(source => source.lo > 0).slice(-MAX_LOGS);
  return group.length === 0 ? null : request(group, source => source.lo, { backward: true, limit });
}

/** The page after the window; null if there is nothing after it. */
export function pageAfter(sources: readonly LogSource[], limit: number): IReadRequest | null {
  const group = sources.filter(source => source.hi < source.length).slice(0, MAX_LOGS);
  return group.length === 0 ? null : request(group, source => source.hi, { limit });
}

/** The offset of a log that is not part of the first page for a position. */
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

function request(
  sources: readonly LogSource[],
  offset: (source: LogSource) => number,
  query: Omit<ILogPageQuery, 'at'>
): IReadRequest {
  const at = Object.fromEntries(sources.map(source => [source.key, offset(source)]));
  return { sources, query: { at, ...query } };
}

/** Read a page. */
export async function readPage(
  rest: Pick<IRest, 'logPage'>,
  job: string,
  { sources, query }: IReadRequest,
  signal: AbortSignal
): Promise<ILogPage> {
  if (sources.length === 0) {
    return { logs: [], order: [] };
  }
  const page = await rest.logPage(job, query, signal);
  const logs: IPageLog[] = [];
  sources.forEach((source, index) => {
    const log = page.logs[index];
    if (log !== undefined) {
      const { offset, length, at_line: atLine, data } = log;
      logs.push({ source, offset, length, atLine, data: decodeBase64(data) });
    }
  });
  return {
    logs,
    order: page.order.map(([log, end, time]) => ({ log, end, time: time > 0 ? time * 1000 : null }))
  };
}
