/**
 * The lines in memory: a bounded part of one or several logs, in order of time.
 *
 * The window contains the bytes `lo` to `hi` of each source without gaps; other parts are read
 * again on demand. Live lines are in order of arrival, lines of a page in the order in which they
 * were written. Line numbers start at `base` and do not change when earlier lines are added or
 * removed.
 */

import { untaken } from '../../api/log_bytes';
import { PLAIN, type ISpan } from './ansi';
import { LineReader, MAX_LINE, type IPiece } from './lines';
import type { ILogPage } from './reading';
import type { LogSource } from './sources';

/** Number of lines at the end in which an overwritten line is searched. */
const SEARCHED_LINES = 600;

export const LIMITS = { rows: 4000, characters: 6_000_000, page: 1500 };

/** A line of a log in memory. */
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

/** Lines of several logs. The line in which a log continues keeps its place. */
class Rows {
  readonly all: IRow[] = [];
  /** Number of characters of all lines. */
  characters = 0;
  /** The last line of each source if it can continue. */
  readonly open = new Map<LogSource, IRow>();

  /** Add the next line of a source, or continue its last line. */
  add(source: LogSource, piece: IPiece, time: number | null): void {
    if (piece.replaces === true) {
      this._replace(source, piece);
      return;
    }
    const row = this.open.get(source);
    if (row?.offset !== piece.offset) {
      this.push(source, piece, 'line', time);
      return;
    }
    this.characters += piece.text.length - row.text.length;
    Object.assign(row, piece, { time: time ?? row.time, version: row.version + 1 });
    if (!piece.open) {
      this.open.delete(source);
    }
  }

  push(source: LogSource, piece: IPiece, kind: IRow['kind'], time: number | null): void {
    const row: IRow = { ...piece, kind, source, time, start: 'line', version: 0 };
    this.all.push(row);
    this.characters += row.text.length;
    if (row.open) {
      this.open.set(source, row);
    }
  }

  /** Remove the first lines, or the last ones. */
  drop(from: number, count: number): IRow[] {
    const rows = this.all.splice(from, count);
    for (const row of rows) {
      this.characters -= row.text.length;
      if (this.open.get(row.source) === row) {
        this.open.delete(row.source);
      }
    }
    return rows;
  }

  /** Replace the text of an earlier line if it is near the end. */
  private _replace(source: LogSource, { offset, text, spans }: IPiece): void {
    const near = this.all.slice(-SEARCHED_LINES);
    const row = near.find(one => one.source === source && one.offset === offset);
    if (row?.kind === 'line') {
      this.characters += text.length - row.text.length;
      Object.assign(row, { text, spans, version: row.version + 1 });
    }
  }
}

export class LogWindow {
  constructor(limits: typeof LIMITS = LIMITS) {
    this._limits = limits;
  }

  /** Number of the first line. */
  base = 0;
  /** Incremented when the content is replaced. */
  generation = 0;
  /** Bytes of the live stream that were skipped because the page was too slow. */
  skipped = 0;
  /** Later bytes are not in the window; live data is not added. */
  detached = false;

  get rows(): readonly IRow[] {
    return this._rows.all;
  }

  get end(): number {
    return this.base + this.rows.length;
  }

  /** The line with a number. */
  at(number: number): IRow | undefined {
    return this.rows[number - this.base];
  }

  clear(): void {
    this._rows = new Rows();
    this.base = 0;
    this.skipped = 0;
    this.detached = false;
    this.generation++;
  }

  /** Maximum number of lines that one read adds. */
  get page(): number {
    return this._limits.page;
  }

  /** Whether the limits are reached. */
  get full(): boolean {
    return (
      this.rows.length >= this._limits.rows || this._rows.characters >= this._limits.characters
    );
  }

  /** Add bytes of a log, of which those before `hi` are in the window already. */
  append(source: LogSource, offset: number, data: Uint8Array, time: number | null): void {
    const fresh = untaken(source.hi, offset, data);
    const at = offset + data.length - fresh.length;
    const lead = at > source.hi ? continuation(fresh) : 0;
    this.skip(source, at + lead);
    for (const piece of source.reader.push(fresh.subarray(lead))) {
      this._rows.add(source, piece, time);
    }
    source.hi = source.reader.offset;
  }

  /** Add a line for bytes up to `to` that are skipped. */
  skip(source: LogSource, to: number): void {
    if (to <= source.hi) {
      return;
    }
    this._rows.open.delete(source);
    const piece = { offset: source.hi, end: to, text: '', spans: [], open: false };
    this._rows.push(source, piece, 'skip', null);
    this.skipped += to - source.hi;
    source.hi = to;
    source.reader = new LineReader(to);
  }

  /** Add the page after the window. */
  appendPage(page: ILogPage): void {
    for (const { source, offset, data, time } of blocks(page)) {
      this.append(source, offset, data, time);
    }
  }

  /** Add the page before the window. */
  prepend(page: ILogPage): void {
    const earlier = new Rows();
    const readers = new Map<LogSource, LineReader>();
    const starts = this._addAligned(page, earlier, (source, start) => {
      const reader = new LineReader(start);
      readers.set(source, reader);
      return reader;
    });
    for (const [source, reader] of readers) {
      const last = earlier.open.get(source);
      if (source.lo < source.hi) {
        this._joinFirst(source, earlier, starts.get(source) ?? 'line');
      } else if (last !== undefined) {
        // The window has no line of this log: its next bytes continue this line.
        source.reader = reader;
        this._rows.open.set(source, last);
        earlier.open.delete(source);
      }
      source.lo = reader.start;
    }
    for (const row of earlier.open.values()) {
      row.open = false;
    }
    const surplus = earlier.drop(0, Math.max(0, earlier.all.length - this._limits.page));
    for (const { source, end } of surplus) {
      source.lo = Math.min(end, source.hi);
    }
    this._rows.all.unshift(...earlier.all);
    this._rows.characters += earlier.characters;
    this.base -= earlier.all.length;
  }

  /** Fill the empty window with a page from the middle of the logs. */
  load(page: ILogPage): void {
    for (const { source, offset } of page.logs) {
      source.moveTo(offset);
    }
    const starts = this._addAligned(page, this._rows, (source, start) => {
      source.moveTo(start);
      return source.reader;
    });
    for (const source of starts.keys()) {
      source.hi = source.reader.offset;
    }
  }

  /** Remove lines at the start until the limits are met. */
  trimHead(): void {
    const { all } = this._rows;
    let count = 0;
    let { characters } = this._rows;
    while (
      all.length - count > this._limits.rows ||
      (characters > this._limits.characters && count < all.length - 1)
    ) {
      characters -= all[count++]?.text.length ?? 0;
    }
    for (const row of this._rows.drop(0, count)) {
      row.source.lo = row.open ? row.offset : row.end;
    }
    this.base += count;
  }

  /** Remove lines at the end until the limits are met. The window is detached then. */
  trimTail(limit: number = this._limits.rows): void {
    while (
      this.rows.length > limit ||
      (this._rows.characters > this._limits.characters && this.rows.length > 1)
    ) {
      for (const { source, offset } of this._rows.drop(this.rows.length - 1, 1)) {
        source.hi = offset;
        source.reader = new LineReader(offset);
        this._rows.open.delete(source);
        this.detached = true;
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

  /**
   * Add the lines of a page that may start within lines.
   *
   * @param readerAt - Returns the reader of a source that starts at an offset.
   * @returns How the first line of each source starts.
   */
  private _addAligned(
    page: ILogPage,
    rows: Rows,
    readerAt: (source: LogSource, start: number) => LineReader
  ): Map<LogSource, IAlignment['kind']> {
    const starts = new Map<LogSource, IAlignment['kind']>();
    const readers = new Map<LogSource, LineReader>();
    for (const { source, offset, atLine, data } of page.logs) {
      if (data.length > 0) {
        const start: IAlignment = atLine ? { skip: 0, kind: 'line' } : align(data);
        starts.set(source, start.kind);
        readers.set(source, readerAt(source, offset + start.skip));
      }
    }
    const first = new Set<LogSource>();
    for (const { source, offset, data, time } of blocks(page)) {
      const reader = readers.get(source);
      for (const piece of reader?.push(untaken(reader.offset, offset, data)) ?? []) {
        rows.add(source, piece, time);
        if (!first.has(source)) {
          first.add(source);
          const row = rows.all.at(-1);
          if (row !== undefined) {
            row.start = starts.get(source) ?? 'line';
          }
        }
      }
    }
    return starts;
  }

  /**
   * Join the last line of a page with the first line of the window if both are parts of one line.
   */
  private _joinFirst(source: LogSource, earlier: Rows, start: IAlignment['kind']): void {
    const last = earlier.open.get(source);
    const first = this.rows.find(row => row.source === source);
    if (last === undefined || first?.kind !== 'line' || first.start === 'line') {
      return;
    }
    if (last.text.length + first.text.length > MAX_LINE) {
      return;
    }
    if (first.start === 'cut') {
      const spans = [...spansOf(last), ...spansOf(first)];
      first.spans = spans.length > 2 || first.spans.length > 0 ? spans : [];
      this._rows.characters += last.text.length;
      first.text = last.text + first.text;
    }
    earlier.drop(earlier.all.indexOf(last), 1);
    first.offset = last.offset;
    first.start = earlier.all.some(row => row.source === source) ? 'line' : start;
    first.version++;
  }

  private readonly _limits: typeof LIMITS;
  private _rows = new Rows();
}

interface IBlock {
  readonly source: LogSource;
  readonly offset: number;
  readonly data: Uint8Array;
  readonly time: number | null;
}

/** The blocks of a page in order. */
function* blocks(page: ILogPage): Generator<IBlock> {
  const next = page.logs.map(log => log.offset);
  for (const { log, end, time } of page.order) {
    const part = page.logs[log];
    const offset = next[log];
    if (part !== undefined && offset !== undefined) {
      const data = part.data.subarray(offset - part.offset, end - part.offset);
      yield { source: part.source, offset, data, time };
      next[log] = end;
    }
  }
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

/** The text as spans, also without styles. */
function spansOf(row: { text: string; spans: readonly ISpan[] }): readonly ISpan[] {
  return row.spans.length > 0 ? row.spans : [{ text: row.text, style: PLAIN }];
}
