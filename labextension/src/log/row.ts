/** A line of a log as it is kept in memory, and the bytes that become lines; plain data. */

import { PLAIN, type ISpan } from './ansi';
import type { IAlignment } from './alignment';
import type { IPiece } from './lines';
import type { LogSource } from './source';

export interface IRow {
  readonly kind: 'line' | 'skip';
  readonly source: LogSource;
  offset: number;
  end: number;
  text: string;
  spans: readonly ISpan[];
  /** When it arrived, in ms since the epoch; null: not known. */
  time: number | null;
  open: boolean;
  /** How it begins, where it was read from the middle. */
  start: IAlignment['kind'];
  /** Grows with each change, so that a view knows what to draw anew. */
  version: number;
}

/** Bytes of one source that follow, or come before, what is in the window. */
export interface IPart {
  readonly source: LogSource;
  readonly data: Uint8Array;
  /** Offset of the first byte of `data`. */
  readonly offset: number;
}

/** The row of a piece, as it is when nothing has changed it yet. */
export function rowOf(
  source: LogSource,
  piece: IPiece,
  kind: IRow['kind'],
  time: number | null,
  start: IAlignment['kind']
): IRow {
  return { ...piece, kind, source, time, start, version: 0 };
}

/** Its text in spans, also where it has no styles. */
export function spansOf(row: { text: string; spans: readonly ISpan[] }): readonly ISpan[] {
  return row.spans.length > 0 ? row.spans : [{ text: row.text, style: PLAIN }];
}
