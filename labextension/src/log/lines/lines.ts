/**
 * Convert the bytes of one log to lines with byte offsets.
 *
 * Bytes may be split anywhere: in a character, in an escape sequence, or between CR and LF. Text
 * after a carriage return replaces the line. Text after an upward cursor move replaces the earlier
 * line, so that several progress bars are shown correctly. The last line is kept as bytes and
 * parsed again with each push.
 */

import { isPlain, PLAIN, tokenize, verticalMove, type ISpan, type IStyle } from './ansi';

const LF = 0x0a;
const CR = 0x0d;
const ESC = 0x1b;

/** Number of lines above the last one that can be overwritten. */
const MAX_ABOVE = 32;

/** Longer lines are split into pieces of this number of bytes. */
export const MAX_LINE = 16384;

/** A line, or a piece of a very long line. */
export interface IPiece {
  /** `offset` of the first byte; `end` is after the last byte, including the line end. */
  readonly offset: number;
  readonly end: number;
  readonly text: string;
  /** Empty for plain text. */
  readonly spans: readonly ISpan[];
  /** Whether the line can continue. */
  readonly open: boolean;
  /** Replaces the text of an earlier line. */
  readonly replaces?: boolean;
}

/** Text that is shown until it is overwritten. */
interface IShownText {
  readonly bytes: Uint8Array;
  readonly style: IStyle;
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Reads the lines of one log from an offset. */
export class LineReader {
  /** @param start - Offset of the first byte. */
  constructor(readonly start: number) {
    this._line = this._segment = start;
  }

  /** Offset after the last pushed byte. */
  get offset(): number {
    return this._segment + this._pending.length;
  }

  /**
   * Lines that are completed by these bytes, and the open line. The first line may have been open
   * before.
   */
  push(bytes: Uint8Array): IPiece[] {
    const pieces: IPiece[] = [];
    const data = join(this._pending, bytes);
    const base = this._segment;
    let start = 0;
    for (let i = this._unread(); i < data.length; i++) {
      const byte = data[i];
      const move = byte === ESC ? verticalMove(data, i) : null;
      if (move !== null) {
        this._moveCursor(data.subarray(start, i), pieces, this._up - move.down);
        i = move.end - 1;
        start = move.end;
        this._segment = base + start;
      } else if (byte === LF && this._up > 0) {
        this._moveCursor(data.subarray(start, i), pieces, this._up - 1);
        start = i + 1;
        this._segment = base + start;
      } else if (byte === LF) {
        const piece = this._piece(data.subarray(start, i), base + i + 1, false);
        pieces.push(piece);
        this._remember(piece);
        start = i + 1;
        this._begin(base + start);
      } else if (byte === CR) {
        this._storeShown(data.subarray(start, i));
        start = i + 1;
        this._segment = base + start;
      } else if (i - start >= MAX_LINE) {
        const cut = start + safeCut(data.subarray(start, i));
        if (this._up > 0) {
          this._moveCursor(data.subarray(start, cut), pieces, this._up);
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
    if (this._above.length > MAX_ABOVE) {
      this._above.shift();
    }
  }

  /** Start of the unparsed bytes; an incomplete escape sequence is parsed again. */
  private _unread(): number {
    const escape = this._pending.lastIndexOf(ESC);
    const { length } = this._pending;
    return escape >= 0 && length - escape < 8 ? escape : length;
  }

  /** The line at the cursor and the last line, as far as they are known. */
  private _last(): IPiece[] {
    if (this._up === 0) {
      return [this._piece(this._pending, this.offset, true)];
    }
    const pieces: IPiece[] = [];
    this._overwrite(this._pending.subarray(0, completeLength(this._pending)), pieces);
    const last = this._lastLine ?? { bytes: new Uint8Array(), style: PLAIN };
    const { text, spans } = spansOf(last.bytes, last.style);
    return [...pieces, { offset: this._line, end: this.offset, text, spans, open: true }];
  }

  /** Move the cursor to the line that is `up` lines above the last one. */
  private _moveCursor(segment: Uint8Array, pieces: IPiece[], up: number): void {
    if (this._up === 0) {
      this._storeShown(segment);
      this._lastLine = this._shown;
    } else {
      this._style = this._overwrite(segment, pieces);
    }
    this._up = Math.min(Math.max(up, 0), this._above.length);
    this._shown = this._up === 0 ? this._lastLine : null;
  }

  /** Overwrite a line above the last one; returns the style after it. */
  private _overwrite(segment: Uint8Array, pieces: IPiece[]): IStyle {
    const read = spansOf(segment, this._style);
    const stored = this._shown;
    const shown = read.text === '' && stored !== null ? spansOf(stored.bytes, stored.style) : read;
    const at = this._above.length - this._up;
    const old = this._above[at];
    if (old !== undefined && shown.text !== '') {
      const line = { ...old, text: shown.text, spans: shown.spans };
      this._above[at] = line;
      const here = pieces.findIndex(piece => piece.offset === line.offset);
      if (here >= 0) {
        pieces[here] = { ...line, replaces: pieces[here]?.replaces ?? false };
      } else {
        pieces.push({ ...line, replaces: true });
      }
    }
    return read.style;
  }

  private _begin(offset: number): void {
    this._line = this._segment = offset;
    this._shown = this._lastLine = null;
  }

  /** Store the text that is visible after a carriage return, and its style. */
  private _storeShown(segment: Uint8Array): void {
    if (segment.length === 0) {
      return;
    }
    const style = this._style;
    if (segment.includes(ESC)) {
      this._style = tokenize(decoder.decode(segment), style).style;
    }
    this._shown = { bytes: segment.slice(), style };
  }

  private _piece(segment: Uint8Array, end: number, open: boolean): IPiece {
    const whole = open ? segment.subarray(0, completeLength(segment)) : segment;
    const read = spansOf(whole, this._style);
    if (!open) {
      this._style = read.style;
    }
    const shown =
      read.text === '' && this._shown !== null
        ? spansOf(this._shown.bytes, this._shown.style)
        : read;
    return { offset: this._line, end, text: shown.text, spans: shown.spans, open };
  }

  private _line: number;
  private _segment: number;
  private _pending: Uint8Array = new Uint8Array();
  private _shown: IShownText | null = null;
  /** Text of the last line while the cursor is above it. */
  private _lastLine: IShownText | null = null;
  /**
   * Lines that can be overwritten, newest last, and the distance of the cursor from the last line.
   */
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

/** Length without an incomplete character at the end. */
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

/** Where a long line can be split: not in a character or an escape sequence. */
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
