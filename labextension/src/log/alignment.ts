/** Find the position from which bytes from the middle of a log can be shown. */

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
