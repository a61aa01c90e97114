/**
 * Terminal escape sequences in a log: colors and weights (SGR) become styles, vertical cursor moves
 * are returned to the line reader, all other sequences are removed. No DOM.
 */

/** One of the 16 colors by number, or `r g b` for CSS. */
export type Color = number | string;

export interface IStyle {
  readonly fg: Color | null;
  readonly bg: Color | null;
  readonly bold: boolean;
  readonly dim: boolean;
  readonly italic: boolean;
  readonly underline: boolean;
  readonly strike: boolean;
  readonly inverse: boolean;
}

export interface ISpan {
  readonly text: string;
  readonly style: IStyle;
}

export const PLAIN: IStyle = {
  fg: null,
  bg: null,
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  strike: false,
  inverse: false
};

const ESC = 0x1b;
const BEL = 0x07;
const STEPS = [0, 95, 135, 175, 215, 255];

/** Whether a text contains nothing for `tokenize`. */
export function isPlain(text: string): boolean {
  return !CONTROL.test(text);
}

/** Includes bidirectional overrides and isolates, which change the order of a line. */
const CONTROL =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

/**
 * Split a text into spans of one style.
 *
 * @param text - One line, without its end.
 * @param style - The style at the start of the text.
 * @returns The spans and the style at the end. An incomplete sequence at the end is ignored.
 */
export function tokenize(text: string, style: IStyle): { spans: ISpan[]; style: IStyle } {
  const spans: ISpan[] = [];
  let run = '';
  let from = 0;
  let i = 0;
  while (i < text.length) {
    const code = text.charCodeAt(i);
    if (!isControl(code)) {
      i++;
      continue;
    }
    run += text.slice(from, i);
    const sequence = code === ESC ? readSequence(text, i) : { end: i + 1, sgr: null };
    if (sequence.sgr !== null) {
      const next = applySgr(style, sequence.sgr);
      if (run !== '' && next !== style) {
        spans.push({ text: run, style });
        run = '';
      }
      style = next;
    }
    i = from = sequence.end;
  }
  run += text.slice(from);
  if (run !== '') {
    spans.push({ text: run, style });
  }
  return { spans, style };
}

function isControl(code: number): boolean {
  return (
    (code < 0x20 && code !== 0x09) ||
    (code >= 0x7f && code <= 0x9f) ||
    code === 0x061c ||
    code === 0x200e ||
    code === 0x200f ||
    (code >= 0x2028 && code <= 0x202e) ||
    (code >= 0x2066 && code <= 0x2069)
  );
}

/** End of the sequence at `at`, and its parameters if it is SGR. */
function readSequence(text: string, at: number): { end: number; sgr: string | null } {
  const kind = text[at + 1];
  if (kind === '[') {
    let i = at + 2;
    while (i < text.length && text.charCodeAt(i) >= 0x20 && text.charCodeAt(i) <= 0x3f) {
      i++;
    }
    const final = text[i];
    const sgr = final === 'm' ? text.slice(at + 2, i) : null;
    return { end: Math.min(i + 1, text.length), sgr };
  }
  if (kind === ']' || kind === 'P' || kind === 'X' || kind === '^' || kind === '_') {
    for (let i = at + 2; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code === BEL) {
        return { end: i + 1, sgr: null };
      }
      if (code === ESC) {
        return { end: text[i + 1] === '\\' ? i + 2 : i, sgr: null };
      }
    }
    return { end: text.length, sgr: null };
  }
  let i = at + 1;
  while (i < text.length && text.charCodeAt(i) >= 0x20 && text.charCodeAt(i) <= 0x2f) {
    i++;
  }
  return { end: Math.min(i + 1, text.length), sgr: null };
}

/**
 * Vertical cursor move of the sequence at `at` (negative: up) and its end; null if it is another
 * sequence or incomplete.
 */
export function verticalMove(data: Uint8Array, at: number): { down: number; end: number } | null {
  let i = at + 2;
  let count = 0;
  for (; i < at + 5 && isDigit(data[i]); i++) {
    count = count * 10 + (data[i] ?? 0) - 0x30;
  }
  const final = String.fromCharCode(data[i] ?? 0);
  if (data[at + 1] !== 0x5b || !'ABEF'.includes(final)) {
    return null;
  }
  const lines = Math.max(count, 1);
  return { down: final === 'B' || final === 'E' ? lines : -lines, end: i + 1 };
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function applySgr(style: IStyle, parameters: string): IStyle {
  const codes = parameters.split(/[;:]/).map(part => (part === '' ? 0 : Number(part)));
  let next = style;
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] ?? 0;
    if (code === 38 || code === 48) {
      const { color, used } = extended(codes, i + 1);
      i += used;
      next = color === null ? next : { ...next, [code === 38 ? 'fg' : 'bg']: color };
    } else {
      next = applyCode(next, code);
    }
  }
  return next;
}

function applyCode(style: IStyle, code: number): IStyle {
  if (code === 0) {
    return PLAIN;
  }
  if (code >= 30 && code <= 37) {
    return { ...style, fg: code - 30 };
  }
  if (code >= 90 && code <= 97) {
    return { ...style, fg: code - 82 };
  }
  if (code >= 40 && code <= 47) {
    return { ...style, bg: code - 40 };
  }
  if (code >= 100 && code <= 107) {
    return { ...style, bg: code - 92 };
  }
  const change = CHANGES[code];
  return change === undefined ? style : { ...style, ...change };
}

const CHANGES: Readonly<Record<number, Partial<IStyle>>> = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  9: { strike: true },
  21: { underline: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  29: { strike: false },
  39: { fg: null },
  49: { bg: null }
};

/** The color after 38 or 48: `5;N` of 256, or `2;R;G;B`. */
function extended(codes: readonly number[], at: number): { color: Color | null; used: number } {
  if (codes[at] === 5) {
    return { color: of256(codes[at + 1]), used: 2 };
  }
  if (codes[at] === 2) {
    const rgb = [codes[at + 1], codes[at + 2], codes[at + 3]];
    const good = rgb.every(part => part !== undefined && part >= 0 && part <= 255);
    return { color: good ? rgb.join(' ') : null, used: 4 };
  }
  return { color: null, used: 0 };
}

function of256(index: number | undefined): Color | null {
  if (index === undefined || !(index >= 0 && index <= 255)) {
    return null;
  }
  if (index < 16) {
    return index;
  }
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return `${grey} ${grey} ${grey}`;
  }
  const cube = index - 16;
  const step = (part: number) => STEPS[part % 6] ?? 0;
  return `${step(Math.floor(cube / 36))} ${step(Math.floor(cube / 6))} ${step(cube)}`;
}
