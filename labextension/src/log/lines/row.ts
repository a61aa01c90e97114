/** A line of a log in memory, and bytes that become lines. Plain data. */

import { PLAIN, type ISpan } from './ansi';
import type { IAlignment } from './window';
import type { IPiece } from './lines';
import type { LogSource } from './source';

export interface IRow {
  readonly kind: 'line' | 'skip';
  readonly source: LogSource;
  offset: number;
  end: number;
  text: string;
  spans: readonly ISpan[];
  /** Time of arrival in milliseconds since the epoch; null if unknown. */
  time: number | null;
  open: boolean;
  /** How the line starts if it was read from the middle of a log. */
  start: IAlignment['kind'];
  /** Incremented with each change; the view renders the line again. */
  version: number;
}

/** A new row from a piece. */
export function rowOf(
  source: LogSource,
  piece: IPiece,
  kind: IRow['kind'],
  time: number | null,
  start: IAlignment['kind']
): IRow {
  return { ...piece, kind, source, time, start, version: 0 };
}

/** The text as spans, also without styles. */
export function spansOf(row: { text: string; spans: readonly ISpan[] }): readonly ISpan[] {
  return row.spans.length > 0 ? row.spans : [{ text: row.text, style: PLAIN }];
}
