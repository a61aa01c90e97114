/**
 * The text of the log on the screen: the lines around the place where one reads, as DOM, a few
 * hundred at most whatever the log's length. Scrolling near an edge brings more lines from the
 * window, and there from the model. No tool bar, no scroll bar.
 */

import { Signal, type ISignal } from '@lumino/signaling';
import type { LogModel } from './model';
import { rowNode, type IRowOptions } from './row_node';
import type { LogSource } from './source';
import type { IRow } from './window';

/** Lines in the DOM: at most, and how many come at an edge. */
const MOST = 480;
const STEP = 120;
/** While it follows: what may be seen, and a little. */
const FOLLOWED = 160;
/** Pixels from an edge at which more lines come. */
const EDGE = 800;

export class Viewport {
  constructor(
    private readonly _model: LogModel,
    private _options: IRowOptions
  ) {
    this.node = document.createElement('div');
    this.node.className = 'jp-Submarine-log-lines';
    this.node.tabIndex = 0;
    this.node.addEventListener('scroll', () => {
      this._onScroll();
    });
    _model.changed.connect(this._update);
    _model.moved.connect((_, anchor) => {
      this._show(anchor);
    });
  }

  readonly node: HTMLElement;

  /** The reader scrolled, or lines came. */
  get scrolled(): ISignal<this, undefined> {
    return this._scrolled;
  }
  /** The reader left the end, or came back to it. */
  get followChanged(): ISignal<this, boolean> {
    return this._followChanged;
  }

  get follow(): boolean {
    return this._model.follow;
  }
  /** Show new lines as they come; does not move by itself where lines in between are missing. */
  set follow(follow: boolean) {
    if (follow !== this._model.follow) {
      this._model.follow = follow;
      this._followChanged.emit(follow);
    }
    if (follow) {
      this._update();
    }
  }

  /** Change how lines look. */
  setOptions(options: IRowOptions): void {
    const keep = this._topRow();
    this._options = options;
    this._clear();
    this._update();
    if (!this.follow) {
      this._scrollToNumber(keep, 'start');
    }
  }

  /** Number of the first line on the screen. */
  get top(): number {
    return this._topRow();
  }

  /** Number of the line after the last one on the screen. */
  get bottom(): number {
    return this._rowAt(this.node.getBoundingClientRect().bottom);
  }

  /** Whether all lines that are drawn are on the screen. */
  get fits(): boolean {
    return this.node.scrollHeight <= this.node.clientHeight + 1;
  }

  /** Whether the lines on the screen reach the end of everything. */
  get atEnd(): boolean {
    const { scrollTop, scrollHeight, clientHeight } = this.node;
    return (
      this._last >= this._model.window.end &&
      !this._model.canLater &&
      scrollTop + clientHeight >= scrollHeight - 4
    );
  }

  /** Bring a byte of a log into view if it is in the window; false: it is not. */
  reveal(source: LogSource, offset: number): boolean {
    const number = this._model.window.find(source, offset);
    if (number < 0) {
      return false;
    }
    this.follow = false;
    const node = this._nodeOf(number);
    const box = node?.getBoundingClientRect();
    const frame = this.node.getBoundingClientRect();
    if (box === undefined || box.top < frame.top || box.bottom > frame.bottom) {
      this._slice(number - STEP, number + STEP);
      this._scrollToNumber(number, 'center');
    }
    this._setCurrent(number);
    return true;
  }

  /** Lines near an edge that are not there yet. */
  maintain(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.node;
    const window = this._model.window;
    if (scrollTop < EDGE) {
      if (this._first > window.base) {
        this._extend(-STEP);
      } else if (this._model.canEarlier && (!this.follow || scrollHeight <= clientHeight)) {
        void this._model.earlier();
      }
    }
    if (!this.follow && scrollHeight - scrollTop - clientHeight < EDGE) {
      if (this._last < window.end) {
        this._extend(STEP);
      } else if (this._model.canLater) {
        void this._model.later();
      }
    }
  }

  private _onScroll(): void {
    const up = this.node.scrollTop < this._lastTop - 1;
    this._lastTop = this.node.scrollTop;
    if (up && this.follow && !this.atEnd) {
      this.follow = false;
    } else if (!up && !this.follow && this.atEnd && !this._selecting()) {
      this.follow = true;
    }
    this.maintain();
    this._scrolled.emit(undefined);
  }

  /** Draw what changed. */
  private readonly _update = (): void => {
    const { window } = this._model;
    if (this.follow && this._selecting()) {
      this._model.follow = false;
      this._followChanged.emit(false);
    }
    if (this._generation !== window.generation) {
      this._clear();
    }
    if (this.follow) {
      this._slice(window.end - FOLLOWED, window.end);
      this._toBottom();
    } else {
      const reaches = this._last - this._first < STEP;
      this._slice(this._first, reaches ? this._first + STEP : this._last);
    }
    this.maintain();
    this._scrolled.emit(undefined);
  };

  private _show(anchor: 'start' | 'end' | { source: LogSource; offset: number }): void {
    this._clear();
    if (anchor === 'end') {
      this.follow = true;
      this._update();
      return;
    }
    this.follow = false;
    const { base } = this._model.window;
    const number =
      anchor === 'start' ? base : this._model.window.find(anchor.source, anchor.offset);
    this._slice(Math.max(base, number - STEP), number + STEP);
    this._scrollToNumber(Math.max(base, number), 'start');
    this.maintain();
    this._scrolled.emit(undefined);
  }

  private _clear(): void {
    const { window } = this._model;
    this.node.replaceChildren();
    this._drawn.length = 0;
    this._generation = window.generation;
    this._first = this._last = window.base;
  }

  /** Have exactly these lines in the DOM, what is there already unmoved. */
  private _slice(first: number, last: number): void {
    const { window } = this._model;
    first = Math.max(first, window.base);
    last = Math.min(Math.max(first, last), window.end);
    if (first >= this._last || last <= this._first) {
      this.node.replaceChildren();
      this._drawn.length = 0;
      this._first = this._last = first;
    }
    this._dropHead(first);
    this._dropTail(last);
    this._redraw();
    const before = this._build(first, this._first);
    const after = this._build(this._last, last);
    if (before.length > 0) {
      const height = this.node.scrollHeight;
      this.node.prepend(...before.map(({ node }) => node));
      this.node.scrollTop += this.node.scrollHeight - height;
      this._drawn.unshift(...before);
    }
    if (after.length > 0) {
      this.node.append(...after.map(({ node }) => node));
      this._drawn.push(...after);
    }
    this._first = first;
    this._last = last;
  }

  private _dropHead(first: number): void {
    const count = first - this._first;
    if (count > 0) {
      const keep = !this.follow;
      const height = keep ? this.node.scrollHeight : 0;
      for (const { node } of this._drawn.splice(0, count)) {
        node.remove();
      }
      this._first = first;
      if (keep) {
        this.node.scrollTop -= height - this.node.scrollHeight;
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
        const node = rowNode(drawn.row, this._options);
        drawn.node.replaceWith(node);
        drawn.node = node;
        drawn.version = drawn.row.version;
      }
    }
  }

  private _build(from: number, to: number): IDrawn[] {
    const built: IDrawn[] = [];
    for (let number = from; number < to; number++) {
      const row = this._model.window.at(number);
      if (row !== undefined) {
        built.push({ row, node: rowNode(row, this._options), version: row.version });
      }
    }
    return built;
  }

  private _extend(by: number): void {
    const first = by < 0 ? this._first + by : this._first;
    const last = by > 0 ? this._last + by : this._last;
    const room = this._selecting() ? Infinity : MOST;
    this._slice(
      by > 0 ? Math.max(first, last - room) : first,
      by < 0 ? Math.min(last, first + room) : last
    );
  }

  private _toBottom(): void {
    this.node.scrollTop = this.node.scrollHeight;
    this._lastTop = this.node.scrollTop;
  }

  private _nodeOf(number: number): HTMLElement | undefined {
    return this._drawn[number - this._first]?.node;
  }

  private _scrollToNumber(number: number, block: 'start' | 'center'): void {
    if (this._nodeOf(number) === undefined) {
      this._slice(number - STEP, number + STEP);
    }
    const node = this._nodeOf(number);
    if (node !== undefined) {
      const room = block === 'center' ? (this.node.clientHeight - node.offsetHeight) / 2 : 0;
      this.node.scrollTop = node.offsetTop - this.node.offsetTop - room;
      this._lastTop = this.node.scrollTop;
    }
  }

  private _setCurrent(number: number): void {
    for (const old of this.node.querySelectorAll('.jp-mod-current')) {
      old.classList.remove('jp-mod-current');
    }
    this._nodeOf(number)?.classList.add('jp-mod-current');
  }

  private _topRow(): number {
    return this._rowAt(this.node.getBoundingClientRect().top);
  }

  private _rowAt(edge: number): number {
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

  /** Whether the reader has marked text in here: lines with it must stay. */
  private _selecting(): boolean {
    const selection = document.getSelection();
    return selection !== null && !selection.isCollapsed && this.node.contains(selection.anchorNode);
  }

  private readonly _drawn: IDrawn[] = [];
  private _first = 0;
  private _last = 0;
  private _generation = -1;
  private _lastTop = 0;
  private readonly _scrolled = new Signal<this, undefined>(this);
  private readonly _followChanged = new Signal<this, boolean>(this);
}

interface IDrawn {
  readonly row: IRow;
  node: HTMLElement;
  version: number;
}
