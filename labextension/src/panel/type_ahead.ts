/** Select a row by typing the start of its name; keys in quick succession form one word. No DOM. */

import type { IJobRow } from '../api/types';

/** Maximum time between two keys of a word, in milliseconds. */
const MAX_PAUSE = 700;

export class TypeAhead {
  /** Whether no word is being typed. */
  get empty(): boolean {
    return this._text === '';
  }

  /**
   * Add a key to the word.
   *
   * @param active - Index of the current row, or -1. A new word is searched after it first.
   * @returns Index of the row whose name starts with the word, or -1.
   */
  find(key: string, rows: readonly IJobRow[], active: number): number {
    clearTimeout(this._timer);
    this._timer = setTimeout(() => {
      this._text = '';
    }, MAX_PAUSE);
    this._text += key.toLowerCase();
    const from = Math.max(0, active) + (this._text.length === 1 ? 1 : 0);
    for (let i = 0; i < rows.length; i++) {
      const index = (from + i) % rows.length;
      const row = rows[index];
      if (row !== undefined && (row.name || row.job_id).toLowerCase().startsWith(this._text)) {
        return index;
      }
    }
    return -1;
  }

  dispose(): void {
    clearTimeout(this._timer);
  }

  private _text = '';
  private _timer: ReturnType<typeof setTimeout> | undefined;
}
