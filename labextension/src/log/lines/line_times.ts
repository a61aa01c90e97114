/** Load the times of lines that were read and not received live, once, while times are shown. */

import { errorMessage } from '../../api/rest/errors';
import type { IRest } from '../../tokens';
import type { LogModel } from '../model';
import type { IRow } from './row';
import type { LogSource } from './source';

/** Delay that combines the lines of one read, in milliseconds. */
const DELAY = 300;

export class LineTimes {
  /** @param onTimes - Called when lines have received their times. */
  constructor(
    private readonly _rest: Pick<IRest, 'logTimes'>,
    private readonly _model: LogModel,
    private readonly _onTimes: () => void
  ) {
    _model.changed.connect(this._schedule);
    _model.moved.connect(this._schedule);
  }

  /** Whether times are shown. They are loaded only then. */
  set enabled(enabled: boolean) {
    this._enabled = enabled;
    this._schedule();
  }

  dispose(): void {
    this._enabled = false;
    clearTimeout(this._timer ?? undefined);
  }

  private readonly _schedule = (): void => {
    if (this._enabled) {
      this._timer ??= setTimeout(() => {
        void this._fill();
      }, DELAY);
    }
  };

  private async _fill(): Promise<void> {
    const bySource = new Map<LogSource, IRow[]>();
    for (const row of this._model.window.rows) {
      if (row.time === null && row.kind === 'line' && !row.open && !this._requested.has(row)) {
        this._requested.add(row);
        const rows = bySource.get(row.source) ?? [];
        rows.push(row);
        bySource.set(row.source, rows);
      }
    }
    try {
      for (const [source, rows] of bySource) {
        await this._request(source, rows);
      }
    } catch (error) {
      console.warn(`jupyter-submarine: the times of a log are not known: ${errorMessage(error)}`);
    }
    this._timer = null;
    if (this._enabled && bySource.size > 0) {
      this._onTimes();
      // More lines may have been added.
      this._schedule();
    }
  }

  private async _request(source: LogSource, rows: readonly IRow[]): Promise<void> {
    const from = rows[0]?.offset ?? 0;
    const to = rows.at(-1)?.end ?? from;
    const { task, attempt, stream } = source;
    const where = { task, attempt, stream };
    const { times } = await this._rest.logTimes(this._model.job, where, from, to - from);
    let at = 0;
    for (const row of rows) {
      while (at < times.length && (times[at]?.[0] ?? 0) < row.end) {
        at++;
      }
      const time = times[at]?.[1];
      if (time !== undefined && row.time === null) {
        row.time = time * 1000;
        row.version++;
      }
    }
  }

  private _enabled = false;
  private _timer: ReturnType<typeof setTimeout> | null = null;
  private readonly _requested = new WeakSet<IRow>();
}
