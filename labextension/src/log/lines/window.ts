/**
 * The lines in memory: a bounded part of one or several logs.
 *
 * The window contains the bytes `lo` to `hi` of each source without gaps; other parts are read
 * again on demand. Live lines are in order of arrival. In pages that were read, the lines of a log
 * stay together, because their times are unknown and interleaving would split tracebacks. Line
 * numbers start at `base` and do not change when earlier lines are added or removed.
 */

import { LineReader, MAX_LINE, type IPiece } from './lines';
import { type IPart, type IRow, rowOf, spansOf } from './row';
import type { LogSource } from './source';

/** Number of lines at the end in which an overwritten line is searched. */
const SEARCHED_LINES = 600;

export const LIMITS = { rows: 4000, characters: 6_000_000, page: 1500 };

export class LogWindow {
  constructor(limits: typeof LIMITS = LIMITS) {
    this._limits = limits;
  }

  readonly rows: IRow[] = [];
  /** Number of the first line. */
  base = 0;
  /** Incremented when the content is replaced. */
  generation = 0;
  /** Bytes of the live stream that were skipped because the page was too slow. */
  skipped = 0;

  get end(): number {
    return this.base + this.rows.length;
  }

  /** The line with a number. */
  at(number: number): IRow | undefined {
    return this.rows[number - this.base];
  }

  clear(): void {
    this.rows.length = 0;
    this.base = 0;
    this.skipped = 0;
    this._characters = 0;
    this._open.clear();
    this.generation++;
  }

  /** Maximum number of lines that one read adds. */
  get page(): number {
    return this._limits.page;
  }

  /** Whether the limits are reached. */
  get full(): boolean {
    return this.rows.length >= this._limits.rows || this._characters >= this._limits.characters;
  }

  /** Add bytes after the window, live or read. */
  append(parts: readonly IPart[], time: number | null): void {
    for (const part of parts) {
      const { source } = part;
      const lead = part.offset > source.hi ? continuation(part.data) : 0;
      this.skip(source, part.offset + lead);
      for (const piece of source.reader.push(part.data.subarray(lead))) {
        this._add(source, piece, time);
      }
      source.hi = source.reader.offset;
    }
  }

  /** Add a line for bytes up to `to` that are skipped. */
  skip(source: LogSource, to: number): void {
    if (to <= source.hi) {
      return;
    }
    this._open.delete(source);
    this._push(source, { offset: source.hi, end: to, text: '', spans: [], open: false }, 'skip');
    this.skipped += to - source.hi;
    source.hi = to;
    source.reader = new LineReader(to);
  }

  /** Add bytes that end at the start of the window. */
  prepend(parts: readonly IPart[]): void {
    const rows = parts.flatMap(part => this._before(part));
    this.rows.unshift(...rows);
    this.base -= rows.length;
    for (const row of rows) {
      this._characters += row.text.length;
    }
  }

  /** Fill the empty window with bytes around a position, which may start within a line. */
  load(parts: readonly IPart[]): void {
    const aligned = parts.map(part => {
      const start: IAlignment = part.offset === 0 ? { skip: 0, kind: 'line' } : align(part.data);
      const offset = part.offset + start.skip;
      part.source.moveTo(offset);
      return { ...part, offset, data: part.data.subarray(start.skip), start };
    });
    this.append(aligned, null);
    for (const { source, start } of aligned) {
      const first = this.rows.find(row => row.source === source);
      if (first !== undefined) {
        first.start = start.kind;
      }
    }
  }

  /** Remove lines at the start until the limits are met. */
  trimHead(): void {
    let drop = 0;
    let characters = this._characters;
    while (
      this.rows.length - drop > this._limits.rows ||
      (characters > this._limits.characters && drop < this.rows.length - 1)
    ) {
      const row = this.rows[drop++];
      if (row !== undefined) {
        characters -= row.text.length;
        row.source.lo = row.open ? row.offset : row.end;
        if (row.open) {
          this._open.delete(row.source);
        }
      }
    }
    this._characters = characters;
    this.rows.splice(0, drop);
    this.base += drop;
  }

  /** Remove lines at the end until the limits are met; their sources become detached. */
  trimTail(limit: number = this._limits.rows): void {
    while (
      this.rows.length > limit ||
      (this._characters > this._limits.characters && this.rows.length > 1)
    ) {
      const row = this.rows.pop();
      if (row !== undefined) {
        const { source } = row;
        this._characters -= row.text.length;
        this._open.delete(source);
        source.hi = row.offset;
        source.detached = true;
        source.reader = new LineReader(row.offset);
      }
    }
  }

  /** Number of the line that contains a byte of a source; -1 if it is not in the window. */
  find(source: LogSource, offset: number): number {
    const index = this.rows.findIndex(
      row => row.source === source && row.offset <= offset && offset < row.end
    );
    return index < 0 ? -1 : this.base + index;
  }

  /** The lines of a page that ends at the start of the window. */
  private _before(part: IPart): IRow[] {
    const { source, data } = part;
    const start: IAlignment = part.offset === 0 ? { skip: 0, kind: 'line' } : align(data);
    const reader = new LineReader(part.offset + start.skip);
    const read = reader.push(data.subarray(start.skip));
    const pieces = this._joinFirst(source, read, start.kind);
    const kept = pieces.slice(-this._limits.page);
    const whole = kept.length === pieces.length;
    source.lo = kept[0]?.offset ?? source.lo;
    return kept.map((piece, i) =>
      rowOf(source, { ...piece, open: false }, 'line', null, i === 0 && whole ? start.kind : 'line')
    );
  }

  /**
   * Join the last line of a page with the first line of the window if both are parts of one line.
   */
  private _joinFirst(source: LogSource, pieces: IPiece[], start: IAlignment['kind']): IPiece[] {
    const last = pieces.at(-1);
    const first = this.rows.find(row => row.source === source);
    if (last?.open !== true || first === undefined || first.kind !== 'line') {
      return pieces;
    }
    if (first.start === 'line' || last.text.length + first.text.length > MAX_LINE) {
      return pieces;
    }
    if (first.start === 'cut') {
      const spans = [...spansOf(last), ...spansOf(first)];
      first.spans = spans.length > 2 || first.spans.length > 0 ? spans : [];
      this._characters += last.text.length;
      first.text = last.text + first.text;
    }
    first.offset = last.offset;
    first.start = pieces.length === 1 ? start : 'line';
    first.version++;
    source.lo = first.offset;
    return pieces.slice(0, -1);
  }

  private _add(source: LogSource, piece: IPiece, time: number | null): void {
    if (piece.replaces === true) {
      this._replace(source, piece);
      return;
    }
    const row = this._open.get(source);
    if (row?.offset !== piece.offset) {
      this._push(source, piece, 'line', time);
      return;
    }
    this._characters += piece.text.length - row.text.length;
    Object.assign(row, piece, { time: time ?? row.time, version: row.version + 1 });
    if (!piece.open) {
      this._open.delete(source);
    }
  }

  /** Replace the text of an earlier line if it is near the end. */
  private _replace(source: LogSource, { offset, text, spans }: IPiece): void {
    const near = this.rows.slice(-SEARCHED_LINES);
    const row = near.find(one => one.source === source && one.offset === offset);
    if (row?.kind === 'line') {
      this._characters += text.length - row.text.length;
      Object.assign(row, { text, spans, version: row.version + 1 });
    }
  }

  private _push(
    source: LogSource,
    piece: IPiece,
    kind: IRow['kind'],
    time: number | null = null
  ): void {
    const row = rowOf(source, piece, kind, time, 'line');
    this.rows.push(row);
    this._characters += row.text.length;
    if (row.open) {
      this._open.set(source, row);
    }
  }

  private readonly _limits: typeof LIMITS;
  private readonly _open = new Map<LogSource, IRow>();
  private _characters = 0;
}

const LF = 0x0a;
const CR = 0x0d;

/** Start position within the bytes of a read. */
export interface IAlignment {
  skip: number;
  /** `line`: start of a line; `cr`: after a carriage return; `cut`: within a line. */
  kind: 'line' | 'cr' | 'cut';
}

/** The start position in bytes that were read from the middle of a log. */
export function align(data: Uint8Array): IAlignment {
  const newline = data.indexOf(LF);
  if (newline >= 0 && newline + 1 < data.length) {
    return { skip: newline + 1, kind: 'line' };
  }
  const cr = data.indexOf(CR);
  if (cr >= 0 && cr + 1 < data.length && data[cr + 1] !== LF) {
    return { skip: cr + 1, kind: 'cr' };
  }
  return { skip: continuation(data), kind: 'cut' };
}

/** Number of leading continuation bytes of a character that started earlier. */
export function continuation(data: Uint8Array): number {
  let skip = 0;
  while (skip < Math.min(3, data.length) && ((data[skip] ?? 0) & 0xc0) === 0x80) {
    skip++;
  }
  return skip;
}
