const MAGIC = /^(?:[ \t]*|.*=[ \t]*)(%%?)submarine[ \t](.*)$/;

export interface IMagicLine {
  /** `%%` at the top of a cell; `%` on its own line or after `name =`. */
  marks: '%' | '%%';
  /** The words before the cursor. The last one is being typed and may be empty. */
  words: string[];
}

/** The submarine line that ends at `offset` of a cell's text; null if it is another line. */
export function parseMagicLine(text: string, offset: number): IMagicLine | null {
  const before = text.slice(0, offset);
  const match = MAGIC.exec(before.slice(before.lastIndexOf('\n') + 1));
  if (!match) {
    return null;
  }
  const words = split(match[2] ?? '');
  return words ? { marks: match[1] === '%%' ? '%%' : '%', words } : null;
}

/** Split like a shell; null inside quotes, where nothing is completed. */
function split(line: string): string[] | null {
  const words: string[] = [];
  let word = '';
  let quote = '';
  for (const sign of line) {
    if (quote) {
      word += sign === quote ? '' : sign;
      quote = sign === quote ? '' : quote;
    } else if (sign === '"' || sign === "'") {
      quote = sign;
    } else if (sign !== ' ' && sign !== '\t') {
      word += sign;
    } else if (word) {
      words.push(word);
      word = '';
    }
  }
  return quote ? null : [...words, word];
}

/** Whether a word can be inserted without quotes. */
export function isPlain(word: string): boolean {
  return /^[\w@%+=:,./-]+$/.test(word);
}
