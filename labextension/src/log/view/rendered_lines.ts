/**
 * The lines of the log that are in the DOM, a part of the window. Updates do not move the visible
 * lines.
 */

import type { IRow } from '../lines/window';
import { rowNode, type IRowOptions } from './row_node';
import type { LogWindow } from '../lines/window';

interface IRenderedLine {
  readonly row: IRow;
  node: HTMLElement;
  version: number;
}

export class RenderedLines {
  /** @param node - The scroll container; contains only the lines. */
  constructor(
    private readonly _node: HTMLElement,
    private readonly _window: LogWindow,
    public options: IRowOptions
  ) {}

  /** Number of the first line and of the line after the last one. */
  get first(): number {
    return this._first;
  }
  get last(): number {
    return this._last;
  }

  /** Whether the window was replaced since the lines were rendered. */
  get isStale(): boolean {
    return this._generation !== this._window.generation;
  }

  /** Remove all lines. */
  clear(): void {
    this._node.replaceChildren();
    this._drawn.length = 0;
    this._generation = this._window.generation;
    this._first = this._last = this._window.base;
  }

  /**
   * Render exactly these lines without moving existing ones.
   *
   * @param keep - Whether to keep the scroll position when lines at the start are removed.
   */
  slice(first: number, last: number, keep: boolean): void {
    first = Math.max(first, this._window.base);
    last = Math.min(Math.max(first, last), this._window.end);
    if (first >= this._last || last <= this._first) {
      this._node.replaceChildren();
      this._drawn.length = 0;
      this._first = this._last = first;
    }
    this._dropHead(first, keep);
    this._dropTail(last);
    this._redraw();
    const before = this._build(first, this._first);
    const after = this._build(this._last, last);
    if (before.length > 0) {
      const height = this._node.scrollHeight;
      this._node.prepend(...before.map(({ node }) => node));
      this._node.scrollTop += this._node.scrollHeight - height;
      this._drawn.unshift(...before);
    }
    if (after.length > 0) {
      this._node.append(...after.map(({ node }) => node));
      this._drawn.push(...after);
    }
    this._first = first;
    this._last = last;
  }

  /** The element of a rendered line. */
  nodeOf(number: number): HTMLElement | undefined {
    return this._drawn[number - this._first]?.node;
  }

  /** Number of the first line that extends below `edge`, a vertical screen coordinate. */
  rowAt(edge: number): number {
    let low = 0;
    let high = this._drawn.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const bottom = this._drawn[middle]?.node.getBoundingClientRect().bottom ?? 0;
      if (bottom <= edge + 1) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return this._first + low;
  }

  /** Highlight the line of the current match. */
  setCurrent(number: number): void {
    for (const old of this._node.querySelectorAll('.jp-mod-current')) {
      old.classList.remove('jp-mod-current');
    }
    this.nodeOf(number)?.classList.add('jp-mod-current');
  }

  private _dropHead(first: number, keep: boolean): void {
    const count = first - this._first;
    if (count > 0) {
      const height = keep ? this._node.scrollHeight : 0;
      for (const { node } of this._drawn.splice(0, count)) {
        node.remove();
      }
      this._first = first;
      if (keep) {
        this._node.scrollTop -= height - this._node.scrollHeight;
      }
    }
  }

  private _dropTail(last: number): void {
    if (last < this._last) {
      for (const { node } of this._drawn.splice(Math.max(0, last - this._first))) {
        node.remove();
      }
      this._last = last;
    }
  }

  private _redraw(): void {
    for (const drawn of this._drawn) {
      if (drawn.version !== drawn.row.version) {
        const node = rowNode(drawn.row, this.options);
        drawn.node.replaceWith(node);
        drawn.node = node;
        drawn.version = drawn.row.version;
      }
    }
  }

  private _build(from: number, to: number): IRenderedLine[] {
    const built: IRenderedLine[] = [];
    for (let number = from; number < to; number++) {
      const row = this._window.at(number);
      if (row !== undefined) {
        built.push({ row, node: rowNode(row, this.options), version: row.version });
      }
    }
    return built;
  }

  private readonly _drawn: IRenderedLine[] = [];
  private _first = 0;
  private _last = 0;
  private _generation = -1;
}
