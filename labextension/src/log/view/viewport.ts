/**
 * The visible text of a log: a few hundred lines around the current position are in the DOM.
 * Scrolling near an edge adds lines from the window, and then from the model.
 */

import { Signal, type ISignal } from '@lumino/signaling';
import { RenderedLines } from './rendered_lines';
import type { LogModel } from '../model';
import type { Anchor } from '../lines/reading';
import type { IRowOptions } from './row_node';
import type { LogSource } from '../lines/sources';

/** Maximum number of lines in the DOM, and number of lines added at an edge. */
const MAX_LINES = 480;
const STEP = 120;
/** Number of lines in the DOM while following. */
const FOLLOWED = 160;
/** Distance from an edge at which lines are added, in pixels. */
const EDGE = 800;

export class Viewport {
  constructor(
    private readonly _model: LogModel,
    options: IRowOptions,
    label: string
  ) {
    this.node = document.createElement('div');
    this.node.className = 'jp-Submarine-log-lines';
    this.node.id = `jp-Submarine-log-${++count}`;
    this.node.tabIndex = 0;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', label);
    this._lines = new RenderedLines(this.node, _model.window, options);
    this.node.addEventListener('scroll', () => {
      this._onScroll();
    });
    _model.changed.connect(this._update);
    _model.moved.connect((_, anchor) => {
      this._show(anchor);
    });
  }

  readonly node: HTMLElement;

  /** The user scrolled, or lines were added. */
  get scrolled(): ISignal<this, undefined> {
    return this._scrolled;
  }
  /** Following started or stopped. */
  get followChanged(): ISignal<this, boolean> {
    return this._followChanged;
  }

  get follow(): boolean {
    return this._model.follow;
  }
  /** Whether to follow new lines. Does not go to the end if lines in between are missing. */
  set follow(follow: boolean) {
    if (follow !== this._model.follow) {
      this._model.follow = follow;
      this._followChanged.emit(follow);
    }
    if (follow) {
      this._update();
    }
  }

  /** Change the appearance of lines. */
  setOptions(options: IRowOptions): void {
    const keep = this.top;
    this._lines.options = options;
    this._lines.clear();
    this._update();
    if (!this.follow) {
      this._scrollToNumber(keep, 'start');
    }
  }

  /** Number of the first visible line. */
  get top(): number {
    return this._lines.rowAt(this.node.getBoundingClientRect().top);
  }

  /** Number of the line after the last visible one. */
  get bottom(): number {
    return this._lines.rowAt(this.node.getBoundingClientRect().bottom);
  }

  /** Whether all rendered lines are visible. */
  get fits(): boolean {
    return this.node.scrollHeight <= this.node.clientHeight + 1;
  }

  /** Whether the visible lines reach the end of the logs. */
  get atEnd(): boolean {
    const { scrollTop, scrollHeight, clientHeight } = this.node;
    return (
      this._lines.last >= this._model.window.end &&
      !this._model.canLater &&
      scrollTop + clientHeight >= scrollHeight - 4
    );
  }

  /** Scroll to an offset of a log; returns false if it is not in the window. */
  reveal(source: LogSource, offset: number): boolean {
    const number = this._model.window.find(source, offset);
    if (number < 0) {
      return false;
    }
    this.follow = false;
    const node = this._lines.nodeOf(number);
    const box = node?.getBoundingClientRect();
    const frame = this.node.getBoundingClientRect();
    if (box === undefined || box.top < frame.top || box.bottom > frame.bottom) {
      this._slice(number - STEP, number + STEP);
      this._scrollToNumber(number, 'center');
    }
    this._lines.setCurrent(number);
    return true;
  }

  /** Add missing lines near the edges. */
  maintain(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.node;
    const window = this._model.window;
    if (scrollTop < EDGE) {
      if (this._lines.first > window.base) {
        this._extend(-STEP);
      } else if (this._model.canEarlier && (!this.follow || scrollHeight <= clientHeight)) {
        void this._model.earlier();
      }
    }
    if (!this.follow && scrollHeight - scrollTop - clientHeight < EDGE) {
      if (this._lines.last < window.end) {
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

  /** Render changes. */
  private readonly _update = (): void => {
    const { window } = this._model;
    if (this.follow && this._selecting()) {
      this._model.follow = false;
      this._followChanged.emit(false);
    }
    if (this._lines.isStale) {
      this._lines.clear();
    }
    if (this.follow) {
      this._slice(window.end - FOLLOWED, window.end);
      this._toBottom();
    } else {
      const reaches = this._lines.last - this._lines.first < STEP;
      this._slice(this._lines.first, reaches ? this._lines.first + STEP : this._lines.last);
    }
    this.maintain();
    this._scrolled.emit(undefined);
  };

  private _show(anchor: Anchor): void {
    this._lines.clear();
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

  /** Render exactly these lines. */
  private _slice(first: number, last: number): void {
    this._lines.slice(first, last, !this.follow);
  }

  /** Add lines at an edge, up to `MAX_LINES` in total. */
  private _extend(by: number): void {
    const first = by < 0 ? this._lines.first + by : this._lines.first;
    const last = by > 0 ? this._lines.last + by : this._lines.last;
    const limit = this._selecting() ? Infinity : MAX_LINES;
    this._slice(
      by > 0 ? Math.max(first, last - limit) : first,
      by < 0 ? Math.min(last, first + limit) : last
    );
  }

  private _toBottom(): void {
    this.node.scrollTop = this.node.scrollHeight;
    this._lastTop = this.node.scrollTop;
  }

  private _scrollToNumber(number: number, block: 'start' | 'center'): void {
    if (this._lines.nodeOf(number) === undefined) {
      this._slice(number - STEP, number + STEP);
    }
    const node = this._lines.nodeOf(number);
    if (node !== undefined) {
      const margin = block === 'center' ? (this.node.clientHeight - node.offsetHeight) / 2 : 0;
      this.node.scrollTop = node.offsetTop - this.node.offsetTop - margin;
      this._lastTop = this.node.scrollTop;
    }
  }

  /** Whether text in the view is selected; its lines must stay. */
  private _selecting(): boolean {
    const selection = document.getSelection();
    return selection !== null && !selection.isCollapsed && this.node.contains(selection.anchorNode);
  }

  private readonly _lines: RenderedLines;
  private _lastTop = 0;
  private readonly _scrolled = new Signal<this, undefined>(this);
  private readonly _followChanged = new Signal<this, boolean>(this);
}

/** Number of viewports on this page, for ids. */
let count = 0;
