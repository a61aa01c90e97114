/** What is being typed after `%submarine` or `%%submarine`: the words before the cursor. */

const MAGIC = /^(?:[ \t]*|.*=[ \t]*)(%%?)submarine[ \t](.*)$/;

export interface ITyped {
  /** `%%` stands above a cell, `%` on a line of its own or behind `name =`. */
  marks: '%' | '%%';
  /** The last one is being typed; it may be empty. */
  words: string[];
}

/** The words of the line that ends at `offset` of a cell's text; null: no line of ours. */
export function typedAt(text: string, offset: number): ITyped | null {
  const before = text.slice(0, offset);
  const match = MAGIC.exec(before.slice(before.lastIndexOf('\n') + 1));
  if (!match) {
    return null;
  }
  const words = split(match[2] ?? '');
  return words ? { marks: match[1] === '%%' ? '%%' : '%', words } : null;
}

/** As a shell splits; null inside of quotes, where nothing of ours can be offered. */
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

/** Whether a word can be put in as it is, without quotes. */
export function isPlain(word: string): boolean {
  return /^[\w@%+=:,./-]+$/.test(word);
}
