/**
 * The lines in memory: a bounded stretch of one log, or of several. For each source the bytes `lo` to
 * `hi` are here without a gap; what lies outside is read again when it is wanted. Live lines stand as
 * they came; of pages that were read, each log's lines stay together, since nobody knows their times
 * and a traceback cut up by another log's lines cannot be read.
 *
 * Lines have numbers, `base` for the first: they stay when lines before them come or go.
 */

import { align, continuation, type IAlignment } from './alignment';
import { LineReader, MAX_LINE, type IPiece } from './lines';
import { type IPart, type IRow, rowOf, spansOf } from './row';
import type { LogSource } from './source';

/** Lines at the end, of all logs, among which one that is written to again is looked for. */
const REPAINTED = 600;

export const LIMITS = { rows: 4000, characters: 6_000_000, page: 1500 };

export class LogWindow {
  constructor(limits: typeof LIMITS = LIMITS) {
    this._limits = limits;
  }

  readonly rows: IRow[] = [];
  /** Number of the first line. */
  base = 0;
  /** Grows when everything in here became something else. */
  generation = 0;
  /** Bytes of the live stream that are not here because the page could not keep up. */
  skipped = 0;

  get end(): number {
    return this.base + this.rows.length;
  }

  /** The line of a number. */
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

  /** How many lines one reading may add. */
  get page(): number {
    return this._limits.page;
  }

  /** Whether there is no room for more without letting something go. */
  get full(): boolean {
    return this.rows.length >= this._limits.rows || this._characters >= this._limits.characters;
  }

  /** Bytes that follow what is here: live, or read for somebody who scrolls down. */
  append(parts: readonly IPart[], time: number | null): void {
    for (const part of parts) {
      const { source } = part;
      const lead = part.offset > source.hi ? continuation(part.data) : 0;
      this.skip(source, part.offset + lead);
      for (const piece of source.reader.push(part.data.subarray(lead))) {
        this._put(source, piece, time);
      }
      source.hi = source.reader.offset;
    }
  }

  /** Bytes up to `to` will not come by themselves: say so in their place. */
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

  /** Bytes that end where the window begins. */
  prepend(parts: readonly IPart[]): void {
    const rows = parts.flatMap(part => this._before(part));
    this.rows.unshift(...rows);
    this.base -= rows.length;
    for (const row of rows) {
      this._characters += row.text.length;
    }
  }

  /** Bytes read around a place, into an empty window; may begin within a line. */
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

  /** Let lines at the beginning go until there is room. */
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

  /** Let lines at the end go until there is room: their sources are no longer followed. */
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

  /** Number of the line of a source that holds a byte; -1: it is not here. */
  find(source: LogSource, offset: number): number {
    const index = this.rows.findIndex(
      row => row.source === source && row.offset <= offset && offset < row.end
    );
    return index < 0 ? -1 : this.base + index;
  }

  /** The lines of a page that ends where the window begins. */
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

  /** A page can begin within what the line after it began with: make one line of the two. */
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

  private _put(source: LogSource, piece: IPiece, time: number | null): void {
    if (piece.again === true) {
      this._repaint(source, piece);
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

  /** Another text of a line that ended already, if it is still near. */
  private _repaint(source: LogSource, { offset, text, spans }: IPiece): void {
    const near = this.rows.slice(-REPAINTED);
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
