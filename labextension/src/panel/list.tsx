/** The job list: only the visible rows are in the DOM. */

import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import type { IJobRow } from '../api/types';
import type { JobsModel } from './model';
import { JobRow, RowMenu, RunHeading } from './row';
import { countAbove, type ILayout, layoutRows, ROW_HEIGHT } from './layout';
import { TypeAhead } from './type_ahead';

/** Number of rows rendered beyond each margin. */
const OVERSCAN = 6;

export interface IListProps {
  readonly model: JobsModel;
  readonly trans: TranslationBundle;
  readonly now: number;
  readonly onOpen: (job: string) => void;
  readonly onMenu: (job: string, x: number, y: number) => void;
}

interface IListState {
  readonly top: number;
  readonly height: number;
  /** The job with the keyboard focus; it does not change when rows are added. */
  readonly active: string;
}

export class JobList extends React.Component<IListProps, IListState> {
  override state: IListState = { top: 0, height: 600, active: '' };

  override componentDidMount(): void {
    const box = this._box.current;
    if (box !== null) {
      this._observer = new ResizeObserver(() => {
        this._measure();
      });
      this._observer.observe(box);
      this._measure();
    }
  }

  override componentDidUpdate(): void {
    this._fill();
  }

  override componentWillUnmount(): void {
    this._observer?.disconnect();
    this._typeAhead.dispose();
  }

  override render(): React.ReactElement {
    const { model, trans, now } = this.props;
    const { rows } = model;
    const { top, height } = this.state;
    const { tops, headings, height: whole } = this._layout();
    const first = Math.max(0, countAbove(tops, top) - 1 - OVERSCAN);
    const last = Math.min(rows.length, countAbove(tops, top + height) + OVERSCAN);
    const margin = OVERSCAN * ROW_HEIGHT;
    const active = this._activeIndex();
    const shown = active >= first && active < last;
    return (
      <div className="jp-Submarine-jobs-frame">
        <div
          ref={this._box}
          className="jp-Submarine-jobs-list"
          role="listbox"
          tabIndex={0}
          aria-label={trans.__('Jobs')}
          aria-busy={model.loading}
          {...(shown ? { 'aria-activedescendant': idOf(active) } : {})}
          onScroll={() => {
            this._measure();
          }}
          onFocus={event => {
            if (active < 0 && event.currentTarget.matches(':focus-visible')) {
              this._moveTo(0);
            }
          }}
          onKeyDown={event => {
            this._key(event);
          }}
        >
          <div role="presentation" style={{ height: whole }}>
            {headings
              .filter(one => one.top > top - margin && one.top < top + height + margin)
              .map(one => (
                <RunHeading key={one.key} heading={one} trans={trans} />
              ))}
            {rows.slice(first, last).map((row, i) => (
              <JobRow
                key={row.job_id}
                id={idOf(first + i)}
                row={row}
                index={first + i}
                top={tops[first + i] ?? 0}
                total={model.total}
                active={first + i === active}
                now={now}
                trans={trans}
                onOpen={index => {
                  this._open(index);
                }}
                onMenu={(index, x, y) => {
                  this._menu(index, x, y);
                }}
              />
            ))}
          </div>
        </div>
        {shown && this._rowMenu(active)}
      </div>
    );
  }

  private _rowMenu(active: number): React.ReactElement {
    const { model, trans } = this.props;
    const row = model.rows[active];
    const { top, height } = this.state;
    const box = this._box.current;
    const bar = box === null ? 0 : box.offsetWidth - box.clientWidth;
    return (
      <RowMenu
        label={trans.__('Actions for %1', row?.name || (row?.job_id ?? ''))}
        top={Math.min(Math.max(0, this._topOf(active) - top), Math.max(0, height - ROW_HEIGHT))}
        right={bar + 4}
        onOpen={() => {
          this._menuAt(active);
        }}
      />
    );
  }

  /** The layout, calculated once per list. */
  private _layout(): ILayout {
    const { rows } = this.props.model;
    if (this._cachedLayout.rows !== rows) {
      this._cachedLayout = { rows, layout: layoutRows(rows) };
    }
    return this._cachedLayout.layout;
  }

  private _topOf(index: number): number {
    return this._layout().tops[index] ?? 0;
  }

  private _activeIndex(): number {
    const { active } = this.state;
    return this.props.model.rows.findIndex(row => row.job_id === active);
  }

  private _measure(): void {
    const box = this._box.current;
    if (box !== null) {
      this.setState({ top: box.scrollTop, height: box.clientHeight });
    }
  }

  /** Load more rows near the end. */
  private _fill(): void {
    const { model } = this.props;
    const { top, height } = this.state;
    if (model.canMore && !model.loading && top + 2 * height > this._layout().height) {
      void model.more();
    }
  }

  private _open(index: number): void {
    const row = this.props.model.rows[index];
    if (row !== undefined) {
      this.setState({ active: row.job_id });
      this.props.onOpen(row.job_id);
    }
  }

  private _menu(index: number, x: number, y: number): void {
    const row = this.props.model.rows[index];
    if (row !== undefined) {
      this.setState({ active: row.job_id });
      this.props.onMenu(row.job_id, x, y);
    }
  }

  private _key(event: React.KeyboardEvent): void {
    const active = this._activeIndex();
    const page = Math.max(1, Math.floor(this.state.height / ROW_HEIGHT) - 1);
    const last = this.props.model.rows.length - 1;
    const moves: Record<string, number> = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      PageDown: active + page,
      PageUp: active - page,
      Home: 0,
      End: last
    };
    const to = moves[event.key];
    if (to !== undefined) {
      this._moveTo(Math.min(last, Math.max(0, to)));
    } else if (event.key === 'Enter' || (event.key === ' ' && this._typeAhead.empty)) {
      this._open(active);
    } else if (event.key === 'ContextMenu' || (event.shiftKey && event.key === 'F10')) {
      this._menuAt(active);
    } else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey) {
      this._moveTo(this._typeAhead.find(event.key, this.props.model.rows, active));
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private _moveTo(index: number): void {
    const box = this._box.current;
    const row = this.props.model.rows[index];
    if (box === null || row === undefined) {
      return;
    }
    const top = this._topOf(index);
    if (top < box.scrollTop) {
      box.scrollTop = top;
    } else if (top + ROW_HEIGHT > box.scrollTop + box.clientHeight) {
      box.scrollTop = top + ROW_HEIGHT - box.clientHeight;
    }
    this.setState({ active: row.job_id });
  }

  private _menuAt(index: number): void {
    const box = document.getElementById(idOf(index))?.getBoundingClientRect();
    if (box !== undefined) {
      this._menu(index, box.left + 24, box.bottom - 8);
    }
  }

  private _cachedLayout: { rows: readonly IJobRow[]; layout: ILayout } = {
    rows: [],
    layout: layoutRows([])
  };
  private readonly _box = React.createRef<HTMLDivElement>();
  private _observer: ResizeObserver | null = null;
  private readonly _typeAhead = new TypeAhead();
}

function idOf(index: number): string {
  return `jp-Submarine-job-${index}`;
}
