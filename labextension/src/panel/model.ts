/**
 * The jobs of the panel: pages of the list by REST, merged with changes from the channel while the
 * panel is visible. No DOM.
 */

import { Signal, type ISignal } from '@lumino/signaling';
import type { IDisposable } from '@lumino/disposable';
import { errorMessage } from '../api/rest/errors';
import { byUrgency } from '../api/channel/feeds';
import type { State } from '../api/record';
import type { ICluster, IJobRow } from '../api/types';
import type { ISubmarine, ISubscription } from '../tokens';
import { groupRuns } from './layout';

/** Rows per request. */
const PAGE = 100;

/** States of the groups that the panel offers. */
export const GROUPS = {
  all: [],
  active: ['SUBMITTING', 'PENDING', 'STARTING', 'RUNNING', 'RESTARTING', 'FINISHING'],
  succeeded: ['SUCCEEDED'],
  failed: ['FAILED', 'LOST'],
  cancelled: ['CANCELLED']
} as const satisfies Record<string, readonly State[]>;

export type Group = keyof typeof GROUPS;

export interface IJobsQuery {
  readonly text: string;
  readonly group: Group;
}

export class JobsModel implements IDisposable {
  constructor(private readonly _submarine: ISubmarine) {}

  /** The rows: running jobs first, then the newest; jobs of a workflow run are grouped. */
  get rows(): readonly IJobRow[] {
    return this._rows;
  }
  /** Number of matching jobs on the server. */
  get total(): number {
    return Math.max(this._total, this._rows.length);
  }
  get loading(): boolean {
    return this._loading !== null;
  }
  get canMore(): boolean {
    return this._next !== null;
  }
  /** Why the list is empty or outdated; empty if there is no problem. */
  get problem(): string {
    return this._problem;
  }
  get cluster(): ICluster | null {
    return this._cluster;
  }
  get clusterProblem(): string {
    return this._clusterProblem;
  }
  get query(): IJobsQuery {
    return this._query;
  }
  get isDisposed(): boolean {
    return this._disposed;
  }
  get changed(): ISignal<this, undefined> {
    return this._changed;
  }

  /** Whether the panel is visible. Data is loaded only then. */
  set visible(visible: boolean) {
    if (visible && this._subscription === null && !this._disposed) {
      this._subscription = this._submarine.channel.jobs((rows, _total, problem) => {
        this._merge(rows, problem);
      });
      void this.reload();
      void this.refreshCluster();
    } else if (!visible) {
      this._subscription?.dispose();
      this._subscription = null;
    }
  }

  /** Show the jobs of another query. */
  async search(query: IJobsQuery): Promise<void> {
    this._query = query;
    await this.reload();
  }

  /** Load the list from the start. */
  async reload(): Promise<void> {
    this._next = null;
    await this._page(undefined);
  }

  /** Load the next page. */
  async more(): Promise<void> {
    if (this._next !== null && this._loading === null) {
      await this._page(this._next);
    }
  }

  /** Load the free resources of the cluster. */
  async refreshCluster(): Promise<void> {
    try {
      this._cluster = await this._submarine.rest.cluster();
      this._clusterProblem = this._cluster.problem;
    } catch (error) {
      // Do not show outdated values.
      this._cluster = null;
      this._clusterProblem = errorMessage(error);
    }
    this._emit();
  }

  dispose(): void {
    if (!this._disposed) {
      this._disposed = true;
      this._subscription?.dispose();
      Signal.clearData(this);
    }
  }

  private async _page(after: string | undefined): Promise<void> {
    const request = (this._loading = {});
    this._emit();
    const { text, group } = this._query;
    try {
      const query = { states: GROUPS[group], text, limit: PAGE };
      const page = await this._submarine.rest.jobs(
        after === undefined ? query : { ...query, after }
      );
      if (this._loading === request) {
        this._known = after === undefined ? new Map<string, IJobRow>() : this._known;
        for (const row of page.jobs) {
          this._known.set(row.job_id, row);
        }
        this._total = page.total;
        this._next = page.next;
        this._problem = page.problem;
      }
    } catch (error) {
      if (this._loading === request) {
        this._problem = errorMessage(error);
      }
    }
    if (this._loading === request) {
      this._loading = null;
      this._sort();
    }
  }

  /** Merge rows from the channel: changed rows, or all rows. */
  private _merge(rows: readonly IJobRow[], problem: string): void {
    for (const row of rows) {
      const old = this._known.get(row.job_id);
      if (matches(row, this._query)) {
        this._total += old === undefined && !this.loading && !this.canMore ? 1 : 0;
        this._known.set(row.job_id, row);
      } else if (old !== undefined) {
        this._known.delete(row.job_id);
        this._total--;
      }
    }
    this._problem = problem;
    this._sort();
  }

  private _sort(): void {
    this._rows = groupRuns([...this._known.values()].sort(byUrgency));
    this._emit();
  }

  private _emit(): void {
    if (!this._disposed) {
      this._changed.emit(undefined);
    }
  }

  private _known = new Map<string, IJobRow>();
  private _rows: readonly IJobRow[] = [];
  private _total = 0;
  private _next: string | null = null;
  private _problem = '';
  private _loading: object | null = null;
  private _query: IJobsQuery = { text: '', group: 'all' };
  private _cluster: ICluster | null = null;
  private _clusterProblem = '';
  private _subscription: ISubscription | null = null;
  private _disposed = false;
  private readonly _changed = new Signal<this, undefined>(this);
}

/** Whether a job matches a query. */
export function matches(row: IJobRow, { text, group }: IJobsQuery): boolean {
  const states: readonly State[] = GROUPS[group];
  const needle = text.trim().toLowerCase();
  const { job_id, name, queue, workflow, workflow_run: run } = row;
  const haystack = [job_id, name, queue ?? '', workflow, run].join(' ').toLowerCase();
  return (states.length === 0 || states.includes(row.state)) && haystack.includes(needle);
}
