/**
 * Bytes of one log to lines with their byte offsets, however the bytes were cut: in a character, an
 * escape sequence or between CR and LF. What a carriage return overwrites is folded into one line.
 *
 * The line that is not ended yet is kept as bytes and read anew with each push, so there is no state
 * of a decoder to go wrong. Knows nothing of other logs, windows or DOM.
 */

import { isPlain, PLAIN, tokenize, type ISpan, type IStyle } from './ansi';

const LF = 0x0a;
const CR = 0x0d;
const ESC = 0x1b;

/** A longer line is shown in pieces of so many bytes. */
export const MAX_LINE = 16384;

/** A line, or one piece of a very long one. */
export interface IPiece {
  /** Of its first byte; `end` is after its last one, with the line's end. */
  readonly offset: number;
  readonly end: number;
  readonly text: string;
  /** Empty when the text is plain. */
  readonly spans: readonly ISpan[];
  /** Whether more of this line may come. */
  readonly open: boolean;
}

/** Where a read that began anywhere can be shown from. */
export interface IAlignment {
  skip: number;
  /** `line`: a line begins there; `cr`: what comes overwrites what was before; `cut`: within a line. */
  kind: 'line' | 'cr' | 'cut';
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Turns the bytes of one log, from one offset on, into lines. */
export class LineReader {
  constructor(offset: number) {
    this._line = this._segment = offset;
  }

  /** Offset after the last byte that was pushed. */
  get offset(): number {
    return this._segment + this._pending.length;
  }

  /** The lines that these bytes end, and the open one; the first may be one that was open before. */
  push(bytes: Uint8Array): IPiece[] {
    const pieces: IPiece[] = [];
    const data = join(this._pending, bytes);
    const base = this._segment;
    let start = 0;
    for (let i = this._pending.length; i < data.length; i++) {
      const byte = data[i];
      if (byte === LF) {
        pieces.push(this._piece(data.subarray(start, i), base + i + 1, false));
        start = i + 1;
        this._begin(base + start);
      } else if (byte === CR) {
        this._hold(data.subarray(start, i));
        start = i + 1;
        this._segment = base + start;
      } else if (i - start >= MAX_LINE) {
        const cut = start + safeCut(data.subarray(start, i));
        pieces.push(this._piece(data.subarray(start, cut), base + cut, false));
        start = cut;
        this._begin(base + start);
      }
    }
    this._segment = base + start;
    this._pending = data.slice(start);
    if (this.offset > this._line) {
      pieces.push(this._piece(this._pending, this.offset, true));
    }
    return pieces;
  }

  private _begin(offset: number): void {
    this._line = this._segment = offset;
    this._held = null;
  }

  /** Remember what a carriage return would leave on the screen, and the style after it. */
  private _hold(segment: Uint8Array): void {
    if (segment.length === 0) {
      return;
    }
    const style = this._style;
    if (segment.includes(ESC)) {
      this._style = tokenize(decoder.decode(segment), style).style;
    }
    this._held = { bytes: segment.slice(), style };
  }

  private _piece(segment: Uint8Array, end: number, open: boolean): IPiece {
    const whole = open ? segment.subarray(0, completeLength(segment)) : segment;
    const read = spansOf(whole, this._style);
    if (!open) {
      this._style = read.style;
    }
    const shown =
      read.text === '' && this._held !== null ? spansOf(this._held.bytes, this._held.style) : read;
    return { offset: this._line, end, text: shown.text, spans: shown.spans, open };
  }

  private _line: number;
  private _segment: number;
  private _pending: Uint8Array = new Uint8Array();
  private _held: { bytes: Uint8Array; style: IStyle } | null = null;
  private _style: IStyle = PLAIN;
}

/** Where to begin in bytes that were read from the middle of a log. */
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

/** How many bytes at the beginning belong to a character that began before. */
export function continuation(data: Uint8Array): number {
  let skip = 0;
  while (skip < Math.min(3, data.length) && ((data[skip] ?? 0) & 0xc0) === 0x80) {
    skip++;
  }
  return skip;
}

function spansOf(
  bytes: Uint8Array,
  style: IStyle
): { text: string; spans: ISpan[]; style: IStyle } {
  const text = decoder.decode(bytes);
  if (style === PLAIN && isPlain(text)) {
    return { text, spans: [], style };
  }
  const read = tokenize(text, style);
  return { text: read.spans.map(span => span.text).join(''), ...read };
}

/** Length without a character that is not complete at the end. */
function completeLength(bytes: Uint8Array): number {
  const length = bytes.length;
  for (let back = 1; back <= Math.min(3, length); back++) {
    const byte = bytes[length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) {
      continue;
    }
    const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needs > back ? length - back : length;
  }
  return length;
}

/** Where a long line may be cut: not in a character, not in an escape sequence. */
function safeCut(bytes: Uint8Array): number {
  const whole = completeLength(bytes);
  const escape = bytes.lastIndexOf(ESC);
  if (escape <= 0 || whole - escape > 32) {
    return whole;
  }
  const tail = decoder.decode(bytes.subarray(escape, whole));
  return tokenize(tail, PLAIN).spans.length === 0 ? escape : whole;
}

function join(first: Uint8Array, second: Uint8Array): Uint8Array {
  if (first.length === 0) {
    return second;
  }
  const data = new Uint8Array(first.length + second.length);
  data.set(first);
  data.set(second, first.length);
  return data;
}
