/**
 * Bytes of one log to lines with their byte offsets, however the bytes were cut: in a character, an
 * escape sequence or between CR and LF. What a carriage return overwrites is folded into one line, and
 * what is written after the cursor went up into the line that it went to: bars of progress that stand
 * one below the other.
 *
 * The line that is not ended yet is kept as bytes and read anew with each push, so there is no state
 * of a decoder to go wrong. Knows nothing of other logs, windows or DOM.
 */

import { isPlain, PLAIN, tokenize, verticalMove, type ISpan, type IStyle } from './ansi';

const LF = 0x0a;
const CR = 0x0d;
const ESC = 0x1b;

/** So many lines above the last one can be written to again. */
const SCREEN = 32;

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
  /** A line that was here before has another text. */
  readonly again?: boolean;
}

/** What stays on the screen before it is written over. */
interface IHeld {
  readonly bytes: Uint8Array;
  readonly style: IStyle;
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
    for (let i = this._unread(); i < data.length; i++) {
      const byte = data[i];
      const move = byte === ESC ? verticalMove(data, i) : null;
      if (move !== null) {
        this._leave(data.subarray(start, i), pieces, this._up - move.down);
        i = move.end - 1;
        start = move.end;
        this._segment = base + start;
      } else if (byte === LF && this._up > 0) {
        this._leave(data.subarray(start, i), pieces, this._up - 1);
        start = i + 1;
        this._segment = base + start;
      } else if (byte === LF) {
        const piece = this._piece(data.subarray(start, i), base + i + 1, false);
        pieces.push(piece);
        this._remember(piece);
        start = i + 1;
        this._begin(base + start);
      } else if (byte === CR) {
        this._hold(data.subarray(start, i));
        start = i + 1;
        this._segment = base + start;
      } else if (i - start >= MAX_LINE) {
        const cut = start + safeCut(data.subarray(start, i));
        if (this._up > 0) {
          this._leave(data.subarray(start, cut), pieces, this._up);
          this._segment = base + cut;
        } else {
          pieces.push(this._piece(data.subarray(start, cut), base + cut, false));
          this._begin(base + cut);
        }
        start = cut;
      }
    }
    this._segment = base + start;
    this._pending = data.slice(start);
    if (this.offset > this._line) {
      pieces.push(...this._last());
    }
    return pieces;
  }

  private _remember(piece: IPiece): void {
    this._above.push(piece);
    if (this._above.length > SCREEN) {
      this._above.shift();
    }
  }

  /** Where bytes begin that were not looked at: a sequence that was cut is looked at again. */
  private _unread(): number {
    const escape = this._pending.lastIndexOf(ESC);
    const { length } = this._pending;
    return escape >= 0 && length - escape < 8 ? escape : length;
  }

  /** What the bytes so far make of the line in which they end, and of the last one. */
  private _last(): IPiece[] {
    if (this._up === 0) {
      return [this._piece(this._pending, this.offset, true)];
    }
    const pieces: IPiece[] = [];
    this._paint(this._pending.subarray(0, completeLength(this._pending)), pieces);
    const below = this._below ?? { bytes: new Uint8Array(), style: PLAIN };
    const { text, spans } = spansOf(below.bytes, below.style);
    return [...pieces, { offset: this._line, end: this.offset, text, spans, open: true }];
  }

  /** The cursor goes to another line, so many above the last one. */
  private _leave(segment: Uint8Array, pieces: IPiece[], up: number): void {
    if (this._up === 0) {
      this._hold(segment);
      this._below = this._held;
    } else {
      this._style = this._paint(segment, pieces);
    }
    this._up = Math.min(Math.max(up, 0), this._above.length);
    this._held = this._up === 0 ? this._below : null;
  }

  /** Write over a line above the last one; the style that is in force after it. */
  private _paint(segment: Uint8Array, pieces: IPiece[]): IStyle {
    const read = spansOf(segment, this._style);
    const held = this._held;
    const shown = read.text === '' && held !== null ? spansOf(held.bytes, held.style) : read;
    const at = this._above.length - this._up;
    const old = this._above[at];
    if (old !== undefined && shown.text !== '') {
      const line = { ...old, text: shown.text, spans: shown.spans };
      this._above[at] = line;
      const here = pieces.findIndex(piece => piece.offset === line.offset);
      if (here >= 0) {
        pieces[here] = { ...line, again: pieces[here]?.again ?? false };
      } else {
        pieces.push({ ...line, again: true });
      }
    }
    return read.style;
  }

  private _begin(offset: number): void {
    this._line = this._segment = offset;
    this._held = this._below = null;
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
  private _held: IHeld | null = null;
  /** Of the last line, while the cursor is above it. */
  private _below: IHeld | null = null;
  /** Lines that the cursor may go up to, the newest last; and how far above the last line it is. */
  private readonly _above: IPiece[] = [];
  private _up = 0;
  private _style: IStyle = PLAIN;
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
