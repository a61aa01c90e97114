/** To the row whose name is typed: keys shortly after each other are one word. Knows no DOM. */

import type { IJobRow } from '../api/list_types';

/** Milliseconds within which keys are one word. */
const TYPING = 700;

export class TypedWord {
  /** Whether nothing was typed just now. */
  get empty(): boolean {
    return this._text === '';
  }

  /**
   * Take one more key.
   *
   * @param active - Where the keyboard is; -1: nowhere. A new word looks behind it first.
   * @returns The row whose name begins with the word; -1: none.
   */
  find(key: string, rows: readonly IJobRow[], active: number): number {
    clearTimeout(this._timer);
    this._timer = setTimeout(() => {
      this._text = '';
    }, TYPING);
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
